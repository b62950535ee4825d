package gateways

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"fairway/cmd/lab/sitefiles"
	"fairway/cmd/lab/sitefiles/format"
	"fairway/collector/source/gpfs"
	"fairway/remap"
)

// Site is a running site in a folder.
type Site struct {
	layer Layer
	dir   string
	start time.Time
	mu    sync.Mutex // guards everything that follows
	model *Model
	files *sitefiles.Files

	tricks sitefiles.Tricks // of mmces
}

// New builds a site; Run lets it live. With named nothing runs but what StartJob starts, and the last spares gateways
// have no client.
func New(l Layer, seed uint64, dir string, named bool, spares int) (*Site, error) {
	if !slices.Contains(Layers(), l) {
		return nil, fmt.Errorf("layer %q: want lnet, or one of %v", l, Layers())
	}
	m := NewModel(seed)
	if l == GPFS {
		m.float(len(m.Gateways), 0)
	}
	switch {
	case spares < 0 || spares >= len(m.Gateways):
		return nil, fmt.Errorf("%d spare gateways of %d: want 0 to %d", spares, len(m.Gateways), len(m.Gateways)-1)
	case named:
		m.quiet(spares)
	case spares > 0:
		return nil, fmt.Errorf("%d spare gateways: what runs by itself uses all; want named jobs, too", spares)
	}
	return &Site{layer: l, dir: dir, start: time.Now(), model: m, files: sitefiles.NewFiles(dir)}, nil
}

// Forwarders is how many gateways it has.
func (s *Site) Forwarders() int { return len(s.model.Gateways) }

// Rates are what a client and a gateway's link can move, bytes a second: a client waits for each answer, and is not
// bound by a link of its own.
func (s *Site) Rates() (client, gateway float64) { return linkRate, linkRate }

// What says what the site is.
func (s *Site) What() string {
	return fmt.Sprintf("a MODELLED site of %d clients and %d gateways (%s) lives in %s", len(s.model.Clients),
		len(s.model.Gateways), s.layer, s.dir)
}

// Nodes are the names of the nodes that have files.
func (s *Site) Nodes() (out []string) {
	for _, c := range s.model.Clients {
		out = append(out, c.Name)
	}
	for _, g := range s.model.Gateways {
		out = append(out, g.Name)
	}
	return out
}

func (s *Site) root(node string) string { return filepath.Join(s.dir, "nodes", node) }

// step lets the site live until t after its start, and writes its files, or DVS clients' lists of outstanding requests
// alone: a kernel makes these when they are read.
func (s *Site) step(t time.Duration, all bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model.Run(t)
	if !all {
		return s.lists(t)
	}
	for _, c := range s.model.Clients {
		if err := s.writeClient(c); err != nil {
			return err
		}
	}
	for _, g := range s.model.Gateways {
		if err := s.files.Write(s.root(g.Name), gatewayFiles(s.layer, g, s.model.floating(g), t,
			s.start)); err != nil {
			return err
		}
		if s.layer == LWFS {
			if err := s.appendTrace(g, t); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Site) lists(t time.Duration) error {
	for _, c := range s.model.Clients {
		if c.on == nil || !s.layer.isDVS() {
			continue
		}
		list := format.Tree{dvsListFile(s.layer): dvsList(c, t)}
		if err := s.files.Write(s.root(c.Name), list); err != nil {
			return err
		}
	}
	return nil
}

func (s *Site) writeClient(c *Client) error {
	root := s.root(c.Name)
	if s.layer.isDVS() && c.on == nil {
		if err := s.files.Remove(filepath.Join(root, filepath.FromSlash(s.layer.dvsFiles()))); err != nil {
			return err
		}
	}
	if err := s.files.Write(root, clientFiles(s.layer, c, s.model.Now(), s.start)); err != nil || s.layer != LWFS {
		return err
	}
	link := filepath.Join(root, filepath.FromSlash(volume))
	want := ""
	if c.on != nil {
		want = volumeOf(c.on)
	}
	if is, _ := os.Readlink(link); is == want {
		return nil
	}
	part := link + ".part"
	if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(want, part)); err != nil {
		return err
	}
	return os.Rename(part, link)
}

func (s *Site) appendTrace(g *Gateway, t time.Duration) error {
	text := trace(g, s.start.Add(t))
	if text == "" {
		return nil
	}
	name := filepath.Join(s.root(g.Name), filepath.FromSlash(traceFile))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Run lets the site live with the wall's clock until ctx ends.
func (s *Site) Run(ctx context.Context) error {
	if s.layer.isDVS() {
		return sitefiles.Live(ctx, listEvery, s.step)
	}
	return sitefiles.Live(ctx, time.Second, s.step)
}

// listEvery is how often DVS clients' lists of outstanding requests are written.
const listEvery = 100 * time.Millisecond

// Do calls f with the model while it stands still.
func (s *Site) Do(f func(sitefiles.Breakable) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f(s.model)
}

// StartJob starts a job. How it shares its files shows nowhere on such a site.
func (s *Site) StartJob(o sitefiles.JobOrder) error {
	if o.Load <= 0 || o.Load > 1 {
		return fmt.Errorf("job %s: load %g: want more than 0, up to 1", o.ID, o.Load)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var nodes []*Client
	for _, name := range o.Nodes {
		c := s.model.client(name)
		switch {
		case c == nil:
			return fmt.Errorf("job %s: %q is not a client of this site", o.ID, name)
		case c.runs:
			return fmt.Errorf("job %s: %s has another one", o.ID, name)
		}
		nodes = append(nodes, c)
	}
	// With as much between two calls as a call takes a client asks for half of what it could.
	pause := time.Duration((1/o.Load - 1) * float64(diskMean))
	for _, c := range nodes {
		s.model.start(c, o.ID, pause)
	}
	return nil
}

// StopJob ends a job.
func (s *Site) StopJob(o sitefiles.JobOrder) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := false
	for _, c := range s.model.Clients {
		if c.runs && c.job == o.ID {
			c.stop()
			ended = true
		}
	}
	if !ended {
		return fmt.Errorf("no job %q runs", o.ID)
	}
	return nil
}

// Truth is what the model knows and no file shows.
func (s *Site) Truth() sitefiles.Truth {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := sitefiles.Truth{Seconds: s.model.Now().Seconds(), Routers: map[string]sitefiles.RouterTruth{}}
	for _, g := range s.model.Gateways {
		t.Routers[g.Name] = sitefiles.NewRouterTruth(g.bytesOf)
	}
	return t
}

// Tool runs a program of a node.
func (s *Site) Tool(node string, args []string) sitefiles.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.layer == GPFS && len(args) > 0 {
		return s.cesTool(node, args)
	}
	if err := s.change(node, args); err != nil {
		return sitefiles.Answer{Err: err.Error() + "\n", Code: 1}
	}
	return sitefiles.Answer{}
}

// change carries out mount and umount of a node, and relink, which is LWFS's: a node's volume file leads
// to another server.
func (s *Site) change(node string, args []string) error {
	n := s.model.client(node)
	if n == nil || len(args) < 2 {
		return fmt.Errorf("%s: no node with %v", node, args)
	}
	force := slices.Contains(args, "-l")
	last := args[len(args)-1]
	var to *Gateway
	switch args[0] {
	case "umount":
		if n.on == nil {
			return fmt.Errorf("umount: %s: not mounted", last)
		}
	case "mount":
		if n.on != nil {
			return fmt.Errorf("mount: %s: already mounted", last)
		}
		words := strings.FieldsFunc(strings.Join(args, ","), func(r rune) bool { return r == ',' || r == '=' })
		if to = s.model.gateway(func(g *Gateway) bool {
			return slices.Contains(words, g.Addr+":"+export) || slices.Contains(words, nodename(g))
		}); to == nil {
			return fmt.Errorf("mount: %s: no such server: %v", last, args)
		}
	case "relink":
		if to = s.model.gateway(func(g *Gateway) bool { return volumeOf(g) == last }); to == nil {
			return fmt.Errorf("relink: no volume %s", last)
		}
	default:
		return fmt.Errorf("%s: no such program", args[0])
	}
	if err := s.model.use(n, to, force); err != nil {
		return fmt.Errorf("%s: %s: %w", args[0], last, err)
	}
	return s.writeClient(n)
}

// Configure writes the agents' configurations and the nodes' programs.
func (s *Site) Configure(a sitefiles.Agents) error {
	for _, n := range s.Nodes() {
		if err := sitefiles.WriteAgent(s.dir, n, s.agent(n, a), a.Tool, "mount", "umount", "mmces",
			"mmlscluster", "mmpmon", "mmdiag"); err != nil {
			return err
		}
		installed := filepath.Join(s.root(n), filepath.Dir(gpfs.DefaultCommand))
		if err := errors.Join(os.MkdirAll(filepath.Dir(installed), 0o755), os.RemoveAll(installed),
			os.Symlink(sitefiles.PathIn(s.dir, n), installed)); err != nil {
			return err
		}
	}
	return nil
}

type table = map[string]any

// agent is the configuration of a node's agent.
func (s *Site) agent(node string, a sitefiles.Agents) table {
	root := s.root(node)
	source := table{"procfs": table{"enabled": true}}
	c := table{"node": node, "role": "compute", "root": root, "source": source,
		"daemon": table{"url": a.URL, "token_file": a.TokenFile},
		"spool":  table{"dir": filepath.Join(s.dir, "spool", node)}}
	if s.layer.isDVS() {
		source["dvs"] = table{"enabled": true}
	}
	if s.model.client(node) == nil {
		c["role"] = "forwarder"
		if s.layer == GPFS {
			source["gpfs"] = table{"enabled": true}
			c["routes"] = table{"by": "addresses"}
			if a.Orders {
				names := table{}
				for _, g := range s.model.Gateways {
					names[g.Name] = cesName(g)
				}
				c["orders"] = table{"enabled": true, "by": "ces", "forwarders": names,
					"allow": []string{"10.2.3.0/24"}}
			}
			return c
		}
		source["lustre"] = table{"enabled": true}
		if s.layer == LWFS {
			source["lwfs"] = table{"enabled": true, "trace": filepath.Join(root, filepath.FromSlash(traceFile))}
		}
		return c
	}
	if s.layer == GPFS {
		c["routes"] = table{"by": "nfs"}
		return c
	}
	names, mounted := table{}, table{}
	for _, g := range s.model.Gateways {
		switch s.layer {
		case NFS:
			names[g.Name], mounted[g.Name] = g.Addr, g.Addr+":"+export
		case DVS, OldDVS:
			names[g.Name], mounted[g.Name] = nodename(g), nodename(g)
		case LWFS:
			names[g.Name] = volumeOf(g)
		}
	}
	routes := table{"by": s.layer.kind(), "forwarders": names}
	if s.layer == LWFS {
		routes["volume"] = "/" + volume
	}
	c["routes"] = routes
	if a.Orders && s.layer != LWFS {
		remount := table{"point": mountPoint, "type": s.layer.kind()}
		if s.layer.isDVS() {
			remount["path"] = export
		}
		c["orders"] = table{"enabled": true, "by": "remount", "remount": remount, "forwarders": mounted}
	}
	return c
}

// Machine is what the daemon's configuration says of the site: its nodes, for the tables [[node]].
func (s *Site) Machine() []table {
	var out []table
	for _, c := range s.model.Clients {
		out = append(out, table{"id": c.Name, "role": "compute"})
	}
	for _, g := range s.model.Gateways {
		out = append(out, table{"id": g.Name, "role": "forwarder", "addr": g.Addr + ":2049",
			"peak_bytes_per_sec": linkRate})
	}
	return out
}

// Driver is how the daemon moves nodes: by their agents, or by the site's command, whose words these are.
func (s *Site) Driver(command []string) (kind string, argv []string) {
	switch s.layer {
	case LWFS:
		return "exec", command
	case GPFS:
		return "ces", nil
	}
	return "agents", nil
}

// Command is a site's own command to move nodes, in the way of the driver "exec": it reads an order and returns the
// answers. It relinks the volume files of LWFS's clients.
func Command(ctx context.Context, dir string, order []byte) (answers []map[string]any, err error) {
	var o struct {
		Verb  string
		Force bool
		Moves []remap.Move
	}
	if err := json.Unmarshal(order, &o); err != nil {
		return nil, err
	}
	for _, m := range o.Moves {
		a := map[string]any{"node": m.Node}
		switch o.Verb {
		case "preview":
			if len(answers) == 0 {
				a["text"] = "each node's volume file leads to the new server; files that are open stay with the old one"
			}
		case "observe":
			name, err := os.Readlink(filepath.Join(dir, "nodes", string(m.Node), filepath.FromSlash(volume)))
			if err != nil {
				a["error"] = err.Error()
			}
			a["forwarder"] = strings.TrimSuffix(strings.TrimPrefix(name, "lwfs_"), ".vol")
		default:
			args := []string{"relink", "lwfs_" + string(m.To) + ".vol"}
			if o.Force {
				args = slices.Insert(args, 1, "-l")
			}
			switch done, err := sitefiles.Tool(ctx, dir, string(m.Node), args); {
			case err != nil:
				a["error"] = err.Error()
			case done.Code != 0:
				a["error"] = strings.TrimSpace(done.Err)
			default:
				a["ok"] = true
			}
		}
		answers = append(answers, a)
	}
	return answers, nil
}
