package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/lab/daemon"
	"fairway/cmd/lab/sitefiles"
	"fairway/cmd/lab/sitefiles/format"
	"fairway/cmd/lab/sitefiles/gateways"
	"fairway/cmd/lab/sitefiles/model"
)

// siteOptions are the flags of a site in files.
type siteOptions struct {
	seed    uint64
	load    float64
	groups  int
	spares  int
	large   bool
	release string
	dir     string
	orders  bool
	auto    bool
	alone   bool
	layer   string
	blind   string
	named   bool
	unknown string
}

// fileSite is a site in files, of routers or of gateways.
type fileSite interface {
	Run(context.Context) error
	sitefiles.Ordered
	Configure(sitefiles.Agents) error
	Nodes() []string
	Machine() []map[string]any
	Forwarders() int
	Rates() (client, forwarder float64) // bytes a second
	What() string
}

// jobOfSeconds is the volume above which a job of such a site may have more forwarders: its jobs last seconds.
const jobOfSeconds = 1e9

// newSite is the command that runs a site in files, and those that change it while it runs.
func newSite() *cobra.Command {
	o := options{}
	s := siteOptions{}
	c := &cobra.Command{
		Use: "site",
		Short: "A site with LNet routers or gateways, modelled in files that fairway reads as a real one's; opens " +
			"the console",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.site = &s
			if s.alone {
				return runSiteAlone(c.Context(), s, c.OutOrStdout())
			}
			return run(c.Context(), o, c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&s.dir, "dir", "", "folder of the site's files (default: one that goes at the end)")
	f.Uint64Var(&s.seed, "seed", 1, "draws what happens")
	f.Float64Var(&s.load, "load", 0.6, "data asked for, as a share of what the routers pass")
	f.IntVar(&s.groups, "groups", 0, "static routes: groups of clients with routers of their own; 0: all use all")
	f.IntVar(&s.spares, "spares", 0, "routers or gateways that nobody's traffic uses by itself")
	f.BoolVar(&s.large, "large", false, "1,000 clients, 16 routers, 32 servers; 8 of the clients have files")
	f.StringVar(&s.release, "release", "2.15", "Lustre's release: 2.10, 2.12, 2.14, 2.15 or 2.17")
	f.BoolVar(&s.orders, "orders", true, "whether the agents may change routes")
	f.BoolVar(&s.auto, "auto", false, "whatever is found slow or dead is excluded, left and returned, without a person")
	f.StringVar(&s.layer, "layer", "lnet",
		"lnet (routers); nfs, dvs, dvs-old or lwfs: gateways to Lustre; gpfs: protocol nodes")
	f.StringVar(&s.blind, "blind", "", "a router whose agent has no source for LNet")
	f.BoolVar(&s.named, "named-jobs", false, "nothing runs but what \"site job\" starts; DFRA decides on such jobs")
	f.StringVar(&s.unknown, "unknown-metadata", "refuse",
		"what DFRA takes a metadata queue for that nobody measured: refuse or light")
	f.BoolVar(&s.alone, "alone", false, "only the site and its files, no other program")
	f.BoolVar(&o.noConsole, "no-console", false, "do not open the terminal console; run until interrupted")
	f.StringVar(&o.http, "http", "127.0.0.1:7117", "where browsers reach the demo")
	f.StringVar(&o.programs, "programs", "", "folder of fairway's other programs (default: that of this one)")
	for _, one := range siteCommands {
		c.AddCommand(&cobra.Command{Use: one.use, Short: one.short, Args: cobra.RangeArgs(one.least, one.most),
			Hidden: one.hidden, DisableFlagParsing: one.most == manyArgs,
			RunE: func(c *cobra.Command, args []string) error { return one.do(c, args[0], args[1:]) }})
	}
	return c
}

// manyArgs is the most of a command whose further arguments are another program's.
const manyArgs = math.MaxInt

// siteCommands are what a running site in the folder dir is asked for, and the programs of its nodes.
var siteCommands = []struct {
	use, short  string
	hidden      bool
	least, most int // arguments, the folder among them
	do          func(c *cobra.Command, dir string, args []string) error
}{
	{"tool DIR NODE PROGRAM ...", "A program of a node", true, 3, manyArgs, runTool},
	{"relink DIR", "Move LWFS clients by their volume files, as the driver exec asks", true, 1, 1, relink},
	{"fault DIR KIND NODE [VALUE]",
		fmt.Sprintf("Break a node of a running site: %v; VALUE is the share that is left", model.FaultKinds()),
		false, 3, 4, makeFault},
	{"mend DIR NODE", "End every fault of a node", false, 2, 2,
		func(c *cobra.Command, dir string, args []string) error {
			return ask(c, dir, "Mend", args[0])
		}},
	{"trick DIR [NODE MODE [COMMAND]]",
		"Make a node's lnetctl or mmces busy, hang, ignore or lie; without NODE all are honest again", false, 1, 4,
		func(c *cobra.Command, dir string, args []string) error {
			args = append(args, "", "", "")
			return ask(c, dir, "Trick", sitefiles.Trick{Node: args[0], Mode: args[1], Command: args[2]})
		}},
	{"truth DIR", "What the model knows and no file shows (JSON)", false, 1, 1, printTruth},
	// The batch system's part of a job, fairway's hooks, is the caller's.
	{"job DIR ID NODE,NODE.. N-1|N-N LOAD",
		"Start a job: its nodes open one file, or each its own; LOAD of 1 would fill its part of the routers",
		false, 5, 5, startSiteJob},
	{"end DIR ID", "End a job of a running site", false, 2, 2,
		func(c *cobra.Command, dir string, args []string) error {
			return ask(c, dir, "End", sitefiles.JobOrder{ID: args[0]})
		}},
}

func ask(c *cobra.Command, dir, order string, what any) error {
	return sitefiles.Ask(c.Context(), dir, order, what, &struct{}{})
}

// runTool is a program of a node: mount, umount, and GPFS's.
func runTool(c *cobra.Command, dir string, args []string) error {
	a, err := sitefiles.Tool(c.Context(), dir, args[0], args[1:])
	for args[1] == "mmpmon" && err == nil && a.Code == 0 { // as it does with -r 0 -d 1000
		if _, err = fmt.Fprint(os.Stdout, a.Out); err != nil {
			return err
		}
		select {
		case <-time.After(time.Second):
		case <-c.Context().Done():
			return nil
		}
		a, err = sitefiles.Tool(c.Context(), dir, args[0], args[1:])
	}
	if err == nil {
		answer(a)
	}
	return err
}

// answer ends as a program of the site's that answered so.
func answer(a sitefiles.Answer) {
	fmt.Fprint(os.Stdout, a.Out)
	fmt.Fprint(os.Stderr, a.Err)
	if a.Code != 0 {
		os.Exit(a.Code)
	}
}

// relink is the site's own command to move LWFS's clients.
func relink(c *cobra.Command, dir string, _ []string) error {
	order, err := io.ReadAll(c.InOrStdin())
	if err != nil {
		return err
	}
	answers, err := gateways.Command(c.Context(), dir, order)
	out := json.NewEncoder(c.OutOrStdout())
	for _, a := range answers {
		err = errors.Join(err, out.Encode(a))
	}
	return err
}

func makeFault(c *cobra.Command, dir string, args []string) (err error) {
	f := model.Fault{Kind: args[0], Node: args[1]}
	if len(args) == 3 {
		if f.Value, err = strconv.ParseFloat(args[2], 64); err != nil {
			return err
		}
	}
	return ask(c, dir, "Fault", f)
}

func startSiteJob(c *cobra.Command, dir string, args []string) (err error) {
	o := sitefiles.JobOrder{ID: args[0], Nodes: strings.Split(args[1], ","), Files: model.Sharing(args[2])}
	if o.Files != model.OneFile && o.Files != model.FileEach {
		return fmt.Errorf("%q: want %s or %s", args[2], model.OneFile, model.FileEach)
	}
	if o.Load, err = strconv.ParseFloat(args[3], 64); err != nil {
		return err
	}
	return ask(c, dir, "Job", o)
}

func printTruth(c *cobra.Command, dir string, _ []string) error {
	var t sitefiles.Truth
	if err := sitefiles.Ask(c.Context(), dir, "Truth", struct{}{}, &t); err != nil {
		return err
	}
	return json.NewEncoder(c.OutOrStdout()).Encode(t)
}

// startSite starts the model; the daemon and the agents find its files.
func (d *demo) startSite(context.Context) (what string, err error) {
	o := d.site
	dir := o.dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "fairway-site"); err != nil {
			return "", err
		}
		d.atEnd(func() error { return os.RemoveAll(dir) })
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	site, err := o.build(dir)
	if err != nil {
		return "", err
	}
	if err := d.prepare(dir); err != nil {
		return "", err
	}
	if err := d.configureSite(site, dir); err != nil {
		return "", err
	}
	d.forwarders = site.Forwarders()
	d.senses = []func(context.Context) error{func(ctx context.Context) error {
		d.tasks.Go(func() { d.keep(ctx, "the site", site.Run(ctx)) })
		d.tasks.Go(func() { d.keep(ctx, "the site's socket", sitefiles.ServeAt(ctx, dir, site)) })
		return d.siteAgents(ctx, site, dir)
	}}
	return site.What(), nil
}

// build builds the site that the flags describe.
func (o *siteOptions) build(dir string) (fileSite, error) {
	if o.layer != "lnet" {
		return gateways.New(gateways.Layer(o.layer), o.seed, dir, o.named, o.spares)
	}
	opt := sitefiles.Options{Model: model.Small(o.seed), Dir: dir}
	if o.large {
		const withFiles = 8
		opt.Model, opt.Clients = model.Large(o.seed), withFiles
	}
	opt.Model.Load, opt.Model.Groups, opt.Model.Spares, opt.Blind = o.load, o.groups, o.spares, o.blind
	if o.named {
		opt.Model.Jobs = []model.Job{}
	}
	var err error
	if opt.Release, err = format.ParseRelease(o.release); err != nil {
		return nil, err
	}
	return sitefiles.New(opt, time.Now())
}

// runSiteAlone runs the site without fairway's programs, until ctx ends.
func runSiteAlone(ctx context.Context, o siteOptions, out io.Writer) error {
	if o.dir == "" {
		return errors.New("site --alone needs --dir: nothing else would know where the files are")
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	site, err := o.build(o.dir)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, site.What())
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- sitefiles.ServeAt(ctx, o.dir, site) }()
	err = site.Run(ctx)
	stop()
	return errors.Join(err, <-served)
}

func (d *demo) keep(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		d.log.Error(what+" stopped", "err", err)
	}
}

// configureSite writes the agents' configurations and what the daemon knows of the machine.
func (d *demo) configureSite(site fileSite, dir string) error {
	token := filepath.Join(dir, "agents.token")
	if err := os.WriteFile(token, []byte(d.token+"\n"), 0o600); err != nil {
		return err
	}
	kind := "agents"
	if g, ok := site.(*gateways.Site); ok {
		var command []string
		if kind, command = g.Driver([]string{d.self, "site", "relink", dir}); command != nil {
			d.conf.Table("driver")["command"] = command
		}
	} else {
		d.conf.Table("driver")["drain"] = d.site.orders
	}
	if err := site.Configure(sitefiles.Agents{URL: "unix://" + d.socket, TokenFile: token, Orders: d.site.orders,
		Tool: []string{d.self, "site", "tool", dir}}); err != nil {
		return err
	}
	d.conf["name"], d.conf["simulated"], d.conf["node"] = "site", true, site.Machine()
	d.conf.Table("driver")["kind"] = kind
	if d.site.auto {
		d.conf.Table("findings")["mode"] = "auto"
		d.conf["rule"] = []daemon.Settings{{"name": "leave", "condition": []string{"slow", "hung", "dead"},
			"action": "act"}}
	}
	if d.site.named {
		d.conf.Table("desk")["mode"] = "auto"
		limits := d.conf.Table("dispatch")
		limits["policy"], limits["v_min_bytes"] = "dfra", jobOfSeconds
		limits["cn_peak_bw"], d.conf.Table("forwarder")["peak_bytes_per_sec"] = site.Rates()
		limits["unknown_metadata"] = d.site.unknown
	}
	return nil
}

// siteAgents starts an agent a node.
func (d *demo) siteAgents(ctx context.Context, site fileSite, dir string) error {
	for _, n := range site.Nodes() {
		log, err := os.OpenFile(filepath.Join(d.dir, "agent-"+n+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND,
			0o600)
		if err != nil {
			return err
		}
		c := exec.CommandContext(ctx, d.program("fairway-agent"), "--config", sitefiles.ConfigIn(dir, n))
		c.Stdout, c.Stderr = log, log
		c.Env = append(os.Environ(), "PATH="+sitefiles.PathIn(dir, n)+":"+os.Getenv("PATH"))
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
		c.WaitDelay = 10 * time.Second
		if err := errors.Join(c.Start(), log.Close()); err != nil {
			return err
		}
		d.tasks.Go(func() { d.keep(ctx, "the agent of "+n, c.Wait()) })
	}
	return nil
}
