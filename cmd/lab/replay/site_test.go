package replay

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing/fstest"

	"fairway/collector"
	"fairway/collector/source/lnet"
	"fairway/collector/source/lustre"
	"fairway/collector/source/procfs"
	"fairway/collector/source/routes"
	"fairway/collector/topology"
)

// Layer is what a record's site runs: which sources its agents have.
type Layer string

// The layers of records.
const (
	LNet   Layer = "lnet"
	Lustre Layer = "lustre"
	NFS    Layer = "nfs"
)

// Site is a record's site: its forwarders by name with what clients and servers call them, and the layer.
type Site struct {
	Layer      Layer
	Forwarders map[topology.ForwarderID]string
	FrontNet   string // of LNet, that of the clients
	BackNet    string
}

// Role is what a node of the site is, by its name.
func (s *Site) Role(node string) topology.Role {
	switch {
	case s.Forwarders[topology.ForwarderID(node)] != "":
		return topology.Forwarder
	case strings.HasPrefix(node, "oss"), strings.HasPrefix(node, "be"):
		return topology.Storage
	case strings.HasPrefix(node, "mds"):
		return topology.Metadata
	}
	return topology.Compute
}

// shelf has a node's files as of now, which samplers read beside the ticks, and what its commands printed last.
type shelf struct {
	mu     sync.Mutex // guards everything that follows
	files  fstest.MapFS
	prints map[string][]byte // by command
}

// Open implements fs.FS.
func (s *shelf) Open(name string) (fs.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files.Open(name)
}

// agent plays a node's agent: the sources that read what is on its shelf.
type agent struct {
	node    topology.NodeID
	role    topology.Role
	shelf   *shelf
	sources []collector.Source
}

func (s *Site) newAgent(node string) (*agent, error) {
	a := &agent{node: topology.NodeID(node), role: s.Role(node),
		shelf: &shelf{files: fstest.MapFS{}, prints: map[string][]byte{}}}
	var err error
	proc := procfs.Options{Root: "proc", SkipLinks: []string{"lo"}}
	if proc.Files, err = fs.Sub(a.shelf, "proc"); err == nil {
		proc.Sys, err = fs.Sub(a.shelf, "sys")
	}
	if err != nil {
		return nil, err
	}
	way := routes.Options{Kind: routes.LNet, Node: a.node, Root: a.shelf, Forwarders: s.Forwarders, Net: s.BackNet,
		Run: a.run}
	switch {
	case s.Layer == NFS:
		way.Kind, way.Net = routes.NFS, ""
		proc.ReportWaiting = a.role == topology.Compute
	case a.role != topology.Compute:
		way.Net = s.FrontNet
	}
	if s.Layer == Lustre && a.role != topology.Forwarder {
		a.sources = append(a.sources, lustre.New(a.shelf))
	}
	if s.Layer != NFS {
		a.sources = append(a.sources, lnet.New(a.shelf))
	}
	if a.role == topology.Compute || s.Layer != NFS && a.role != topology.Forwarder {
		a.sources = append(a.sources, routes.New(way))
	}
	a.sources = append(a.sources, procfs.New(proc))
	return a, nil
}

// run prints what a command printed last.
func (a *agent) run(_ context.Context, argv ...string) ([]byte, error) {
	words := strings.Join(argv, "_")
	a.shelf.mu.Lock()
	defer a.shelf.mu.Unlock()
	if out, ok := a.shelf.prints[words]; ok {
		return out, nil
	}
	for asked, out := range a.shelf.prints { // more words of the same answer
		if plain, _, verbose := strings.Cut(words, "_-v"); verbose && strings.HasPrefix(asked, plain+"_-v") {
			return out, nil
		}
	}
	return nil, fmt.Errorf("%s: the record has no such command of %s", strings.Join(argv, " "), a.node)
}

// take puts a moment's files in place.
func (a *agent) take(m *Moment) {
	a.shelf.mu.Lock()
	defer a.shelf.mu.Unlock()
	for below, text := range m.Texts {
		if strings.Contains(below, "/") {
			a.shelf.files[below] = &fstest.MapFile{Data: text}
		} else {
			a.shelf.prints[below] = text
		}
	}
}

// frame reads all sources at a moment. What a source cannot read is its status.
func (a *agent) frame(ctx context.Context, m *Moment) collector.Frame {
	f := collector.Frame{Node: a.node, Role: a.role, TimeMillis: m.At.Unix()*1000 - 1000}
	var seen [collector.MetricCount]bool
	for _, s := range a.sources {
		r := collector.Reading{Now: m.At}
		err := s.Read(ctx, &r)
		st := collector.SourceStatus{Name: s.Name()}
		if err != nil {
			st.Err = err.Error()
		}
		f.Sources = append(f.Sources, st)
		for _, one := range r.Samples {
			if one.Metric.Known() && !seen[one.Metric] {
				seen[one.Metric] = true
				f.Samples = append(f.Samples, one)
			}
		}
		f.Jobs, f.Targets = append(f.Jobs, r.Jobs...), append(f.Targets, r.Targets...)
		f.Routes = append(f.Routes, r.Routes...)
		f.RoutesComplete = f.RoutesComplete || r.RoutesComplete
	}
	return f
}

func (a *agent) close() error {
	for _, s := range a.sources {
		if err := s.Close(); err != nil {
			return err
		}
	}
	return nil
}
