// Package sitefiles is a site in files: the model of a site with LNet routers whose nodes write, each in a folder of
// its own, the files of /proc and /sys that real nodes have, so that fairway's programs run on it unchanged. Orders go
// to its lnetctl, which changes the model's tables. It needs no right and no network but a socket in its folder.
package sitefiles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"fairway/cmd/fairway-demo/sitefiles/format"
	"fairway/cmd/fairway-demo/sitefiles/model"
)

// Options are a site's.
type Options struct {
	Model   model.Config
	Release format.Release
	Dir     string // the nodes' folders and the socket
	// Clients is how many clients have files; 0: all. The others live in the model only.
	Clients int
	// Speed is how fast the site's clock goes; 0: as the wall's.
	Speed float64
}

// Site is a running one.
type Site struct {
	opt     Options
	mu      sync.Mutex // guards everything that follows
	model   *model.Site
	writer  format.Writer
	written map[string]string // text by file
	shadows map[string]*shadow
	tricks  []Trick
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
	if o.Speed == 0 {
		o.Speed = 1
	}
	return &Site{opt: o, model: m, writer: format.Writer{Release: o.Release, Start: start},
		written: map[string]string{}, shadows: map[string]*shadow{}}, nil
}

// Model is what the site was built from.
func (s *Site) Model() model.Config { return s.model.Config() }

// Do calls f with the model while it stands still.
func (s *Site) Do(f func(m *model.Site)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.model)
}

// hasFiles says whether a node has a folder.
func (s *Site) hasFiles(n *model.Node) bool {
	return n.Role != model.Client || s.opt.Clients == 0 || n.Index < s.opt.Clients
}

// Nodes are the nodes that have files.
func (s *Site) Nodes() []*model.Node {
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
	for _, n := range s.Nodes() {
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

// write writes what changed, each file in one step: a reader has the old text or the new one.
func (s *Site) write(n *model.Node, t format.Tree) error {
	root := s.Root(n.Name)
	for name, text := range t {
		file := filepath.Join(root, filepath.FromSlash(name))
		was, known := s.written[file]
		if known && was == text {
			continue
		}
		if !known {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
		}
		part := filepath.Join(s.opt.Dir, ".part")
		if err := os.WriteFile(part, []byte(text), 0o644); err != nil {
			return err
		}
		if err := os.Rename(part, file); err != nil {
			return err
		}
		s.written[file] = text
	}
	return nil
}

// Every so often the routers' fast files are written, and at the whole seconds all files.
const (
	fastEvery = 50 * time.Millisecond
	slowEvery = time.Second
)

// Run lets the site live with the wall's clock until ctx ends. A site that cannot keep up falls behind: its seconds
// become longer, none is left out.
func (s *Site) Run(ctx context.Context) error {
	if err := os.MkdirAll(s.opt.Dir, 0o755); err != nil {
		return err
	}
	begun := time.Now()
	tick := time.NewTicker(fastEvery)
	defer tick.Stop()
	for last := time.Duration(-1); ; {
		now := time.Duration(float64(time.Since(begun)) * s.opt.Speed)
		if err := s.Step(now, last < 0 || now/slowEvery != last/slowEvery); err != nil {
			return fmt.Errorf("write the site's files: %w", err)
		}
		last = now
		select {
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil
			}
			return ctx.Err()
		}
	}
}
