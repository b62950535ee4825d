package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"fairway/cmd/fairwayd/config"
	"fairway/cmd/fairwayd/host"
	"fairway/cmd/fairwayd/listen"
	"fairway/cmd/program"
	"fairway/collector/topology"
	"fairway/webui"
	"fairway/webui/api"
	"fairway/webui/client"
	"fairway/webui/live"
	"fairway/webui/sites"
)

// Consoles are the machines of the file that 'fairway --site' reads which a browser can go to.
func Consoles(log *slog.Logger) (out []api.Site) {
	known, err := program.ReadSites(program.SitesPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("the browser offers no other machines", "err", err)
	}
	return linksTo(known)
}

func linksTo(known map[string]program.Site) (out []api.Site) {
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if at := sites.URL(known[name].Addr); at != "" {
			out = append(out, api.Site{Name: name, Addr: at})
		}
	}
	return out
}

// AskOthers asks the other machines' daemons, while this one, which is here, accuses storage targets that they may use,
// and returns what is known of a target; nil where the file names no other machine.
func AskOthers(ctx context.Context, conf *config.Config, url string, p *live.Picture, start func(func()),
	log *slog.Logger) func([]topology.NodeID) []api.SharedTarget {
	known, err := program.ReadSites(program.SitesPath())
	if err != nil || conf.View {
		return nil // Consoles has logged it
	}
	maps.DeleteFunc(known, func(name string, s program.Site) bool {
		at := sites.URL(s.Addr)
		return name == conf.Name || at != "" && at == url || s.Addr == "unix:"+conf.Listen.Socket
	})
	places, err := placesOf(known, slices.Sorted(maps.Keys(known)))
	if err != nil {
		log.Warn("the other machines are not asked about shared targets", "err", err)
	}
	if len(places) == 0 {
		return nil
	}
	return watchShared(ctx, conf.Name, p, places, start)
}

// watchShared is AskOthers once it is known whom to ask.
func watchShared(ctx context.Context, here string, p *live.Picture, places []client.Place, start func(func())) func(
	[]topology.NodeID) []api.SharedTarget {
	asked := client.NewSites(places)
	start(func() {
		asked.Run(ctx, func() []topology.NodeID { return sites.Accused([]sites.Answer{ownAnswer(here, p)}) })
	})
	return func(of []topology.NodeID) (out []api.SharedTarget) {
		a := ownAnswer(here, p)
		if uses := live.TargetUses(p, of); uses != nil {
			a.Uses = sites.List[sites.Use]{}
			for _, u := range uses {
				a.Uses = append(a.Uses, sites.Use{TargetUse: u})
			}
		}
		answers, accused := append([]sites.Answer{a}, asked.Answers()...), sites.Accused([]sites.Answer{a})
		for _, name := range of {
			if !slices.Contains(accused, name) {
				out = append(out, api.SharedTarget{Target: name, Lines: []string{},
					Text: "too many targets are slow for the other machines to be asked about " + string(name)})
				continue
			}
			out = append(out, sites.Describe(answers, name))
		}
		return out
	}
}

// ownAnswer is what this machine's daemon answers as others do, but for its uses of targets.
func ownAnswer(name string, p *live.Picture) sites.Answer {
	s := p.Snapshot()
	a := sites.Answer{Site: name}
	a.Overview.At, a.Overview.Now = s.Overview.At, s.Overview.Now
	for i := range s.Situation.Findings {
		f := &s.Situation.Findings[i]
		a.Overview.Findings = append(a.Overview.Findings, sites.Finding{ID: f.ID, Node: f.Node, Kind: f.Kind,
			State: f.State})
	}
	for i := range s.Situation.Jobs {
		j := &s.Situation.Jobs[i]
		a.Jobs = append(a.Jobs, sites.Job{ID: j.ID, User: j.User, App: j.App})
	}
	return a
}

// mostSites are asked by one process.
const mostSites = 64

// placesOf are the daemons of the named sites, which are all different.
func placesOf(known map[string]program.Site, names []string) (places []client.Place, err error) {
	if len(names) > mostSites {
		return nil, program.BadUsage(fmt.Errorf("--of: %d machines; at most %d are asked by one view", len(names),
			mostSites))
	}
	for _, name := range names {
		s, ok := known[name]
		if !ok {
			return nil, program.BadUsage(fmt.Errorf("--of: %s has no site %q; it has %s", program.SitesPath(), name,
				strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
		}
		if slices.ContainsFunc(places, func(p client.Place) bool { return p.Name == name }) {
			return nil, program.BadUsage(fmt.Errorf("--of: %q is there twice", name))
		}
		places = append(places, client.Place{Name: name, Addr: s.Addr, TokenFile: s.TokenFile})
	}
	return places, nil
}

// serveSites serves one page over the daemons of several sites until ctx ends. It asks their API, opens no store and
// keeps nothing.
func serveSites(ctx context.Context, conf *config.Config, at, socket string, names []string, version string,
	log *slog.Logger) error {
	known, err := program.ReadSites(program.SitesPath())
	if err != nil {
		return err
	}
	places, err := placesOf(known, names)
	if err != nil {
		return err
	}
	maps.DeleteFunc(known, func(name string, _ program.Site) bool { return !slices.Contains(names, name) })
	conf.Listen.HTTP, conf.Listen.Socket, conf.Listen.Agents = at, socket, ""
	if err := conf.Listen.Validate(); err != nil {
		return err
	}
	people, err := conf.Access.ForWeb()
	if err != nil {
		return fmt.Errorf("%w: %w", program.ErrSettings, err)
	}
	listeners, err := listen.Open(&conf.Listen, log)
	if err != nil {
		return err
	}
	people.SecureCookie = people.SecureCookie || listeners.Encrypted()
	asked := client.NewSites(places)
	web, err := webui.NewOfSites(webui.SitesConfig{Access: people, Version: version, Log: log,
		Addresses: webui.Addresses{Hosts: conf.Listen.Hosts, Sites: linksTo(known),
			BrowserURL: cmp.Or(strings.TrimSuffix(conf.Access.OIDC.URL, "/"), listeners.BrowserURL())},
		View: func() sites.View { return sites.Merge(asked.Answers(), time.Now()) }})
	if err != nil {
		listeners.Close()
		return fmt.Errorf("%w: %w", program.ErrSettings, err)
	}
	ctx, stop := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	tasks.Go(func() {
		asked.Run(ctx, func() []topology.NodeID {
			return append([]topology.NodeID{}, sites.Accused(asked.Answers())...) // never nil
		})
	})
	listeners.Serve(web.HTTP, web.Crowd(host.RaiseOpenFiles(log)))
	log.Info("ready", "version", version, "sites", len(places))
	select {
	case <-ctx.Done():
	case err = <-listeners.Failed():
	}
	stop()
	listeners.Close()
	listeners.Shutdown()
	tasks.Wait()
	return err
}
