// Package sitefiles is a site in files: the model of a site with LNet routers whose nodes write, each in a folder of
// its own, the files of /proc and /sys that real nodes have, so that fairway's programs run on it unchanged. Orders go
// to its lnetctl, which changes the model's tables. It needs no right and no network but a socket in its folder.
package sitefiles

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"fairway/cmd/lab/sitefiles/format"
	"fairway/cmd/lab/sitefiles/model"
)

// Options are a site's.
type Options struct {
	Model   model.Config
	Release format.Release
	Dir     string // the nodes' folders and the socket
	// Clients is how many clients have files; 0: all. The others live in the model only.
	Clients int
	// Blind is a router whose agent has no source for LNet; empty: none.
	Blind string
}

// Site is a running one.
type Site struct {
	opt     Options
	mu      sync.Mutex // guards everything that follows
	model   *model.Site
	writer  format.Writer
	files   *Files
	shadows map[string]*model.Table // what lying lnetctls show
	tricks  Tricks
}

// New builds a site; Write or Run writes it.
func New(o Options, start time.Time) (*Site, error) {
	m, err := model.New(o.Model)
	if err != nil {
		return nil, err
	}
	if o.Release == 0 {
		o.Release = 15
	}
	if n := m.Node(o.Blind); o.Blind != "" && (n == nil || n.Role != model.Router) {
		return nil, fmt.Errorf("blind: %q is not a router of this site", o.Blind)
	}
	return &Site{opt: o, model: m, writer: format.Writer{Release: o.Release, Start: start},
		files: NewFiles(o.Dir), shadows: map[string]*model.Table{}}, nil
}

// Model is what the site was built from.
func (s *Site) Model() model.Config { return s.model.Config() }

// Do calls f with the model while it stands still.
func (s *Site) Do(f func(m Breakable) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f(s.model)
}

// hasFiles says whether a node has a folder.
func (s *Site) hasFiles(n *model.Node) bool {
	return n.Role != model.Client || s.opt.Clients == 0 || n.Index < s.opt.Clients
}

// Forwarders is how many of its routers report what they move.
func (s *Site) Forwarders() int {
	n := s.opt.Model.Routers
	if s.opt.Blind != "" {
		n--
	}
	return n
}

// Rates are what a client's and a router's link pass in one direction, bytes a second.
func (s *Site) Rates() (client, router float64) {
	return s.opt.Model.ClientRate, s.opt.Model.RouterRate
}

// What says what the site is.
func (s *Site) What() string {
	m := s.opt.Model
	return fmt.Sprintf("a MODELLED site of %d clients, %d routers and %d servers lives in %s", m.Clients, m.Routers,
		m.OSS+m.MDS, s.opt.Dir)
}

// Nodes are the names of the nodes that have files.
func (s *Site) Nodes() (names []string) {
	for _, n := range s.shown() {
		names = append(names, n.Name)
	}
	return names
}

func (s *Site) shown() []*model.Node {
	var out []*model.Node
	for _, n := range s.model.Nodes {
		if s.hasFiles(n) {
			out = append(out, n)
		}
	}
	return out
}

// Root is a node's folder.
func (s *Site) Root(node string) string { return filepath.Join(s.opt.Dir, "nodes", node) }

// Step lets the site live until t after its start, and writes the files that changed: those of the routers that are
// worth it, and with slow all others.
func (s *Site) Step(t time.Duration, slow bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model.Run(t)
	for _, n := range s.shown() {
		switch {
		case slow:
			if err := s.write(n, s.writer.All(n, t)); err != nil {
				return err
			}
		case n.Role == model.Router:
			if err := s.write(n, s.writer.Fast(n)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Site) write(n *model.Node, t format.Tree) error { return s.files.Write(s.Root(n.Name), t) }

// Files writes the files of a site's nodes.
type Files struct {
	dir     string            // for files that are not complete yet
	written map[string]string // text by file
}

// NewFiles makes one for a site in a folder.
func NewFiles(dir string) *Files { return &Files{dir, map[string]string{}} }

// Write writes what changed, each file in one step: a reader has the old text or the new one.
func (f *Files) Write(root string, t format.Tree) error {
	for name, text := range t {
		file := filepath.Join(root, filepath.FromSlash(name))
		was, known := f.written[file]
		if known && was == text {
			continue
		}
		if !known {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
		}
		part := filepath.Join(f.dir, ".part")
		if err := os.WriteFile(part, []byte(text), 0o644); err != nil {
			return err
		}
		if err := os.Rename(part, file); err != nil {
			return err
		}
		f.written[file] = text
	}
	return nil
}

// Remove removes a folder of a node.
func (f *Files) Remove(dir string) error {
	maps.DeleteFunc(f.written, func(name, _ string) bool {
		return strings.HasPrefix(name,
			dir+string(filepath.Separator))
	})
	return os.RemoveAll(dir)
}

// fastEvery is how often the routers' fast files are written.
const fastEvery = 50 * time.Millisecond

// Run lets the site live with the wall's clock until ctx ends.
func (s *Site) Run(ctx context.Context) error { return Live(ctx, fastEvery, s.Step) }

// Live has a site step every so often until ctx ends, each time with the site's time. Once a second the step is to
// write all files, half a second after agents read: both at once would make seconds of nothing and of double. A site
// that cannot keep up falls behind: its seconds become longer, none is left out.
func Live(ctx context.Context, every time.Duration, step func(t time.Duration, all bool) error) error {
	pace := NewPace(2 * every)
	for next := time.Now(); ; {
		select {
		case <-time.After(min(time.Until(next), every)):
		case <-ctx.Done():
			return nil
		}
		all := !time.Now().Before(next)
		if all {
			next = next.Truncate(time.Second).Add(3 * time.Second / 2)
		}
		if err := step(pace.Now(), all); err != nil {
			return fmt.Errorf("write the site's files: %w", err)
		}
	}
}

// Pace is the clock of a site: the wall's, and slower where the site cannot keep up. It never makes up for
// lost time: a reader would see nothing happen in some seconds and too much in others.
type Pace struct {
	most time.Duration // of the wall's time between two looks that counts
	now  time.Duration
	wall time.Time
}

// NewPace starts one.
func NewPace(most time.Duration) *Pace { return &Pace{most: most, wall: time.Now()} }

// Now is the site's time from its start on.
func (p *Pace) Now() time.Duration {
	wall := time.Now()
	p.now += min(wall.Sub(p.wall), p.most)
	p.wall = wall
	return p.now
}
