package remote

import (
	"context"
	"slices"
	"strings"
	"sync"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
)

// Known is what a server says of one series of a node.
type Known struct {
	Node       topology.NodeID
	Role       topology.Role
	Metric     collector.Metric
	LastMillis int64 // its newest sample, 0 where the server does not say
}

// Directory lists the nodes: what the server had when it was first asked, and what was appended since.
type Directory struct {
	load func(ctx context.Context) ([]Known, error)

	mu     sync.Mutex // guards everything that follows
	loaded bool
	nodes  map[topology.NodeID]*entry
}

type entry struct {
	role    topology.Role
	at      int64 // of the frame that role is from
	metrics collector.MetricSet
}

// NewDirectory makes a directory that asks the server once.
func NewDirectory(load func(ctx context.Context) ([]Known, error)) *Directory {
	return &Directory{load: load, nodes: map[topology.NodeID]*entry{}}
}

// Note remembers the nodes, roles and metrics of frames.
func (d *Directory) Note(frames []collector.Frame) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range frames {
		f := &frames[i]
		if check(f) != nil {
			continue
		}
		e := d.entry(f.Node)
		if f.TimeMillis >= e.at && f.Role != topology.RoleUnknown {
			e.role, e.at = f.Role, f.TimeMillis
		}
		for _, s := range f.Samples {
			if s.Metric.Known() && collector.IsValue(s.Value) {
				e.metrics.Add(s.Metric)
			}
		}
	}
}

func (d *Directory) entry(node topology.NodeID) *entry {
	e := d.nodes[node]
	if e == nil {
		e = &entry{at: -1}
		d.nodes[node] = e
	}
	return e
}

// List answers tsdb.Store's Nodes.
func (d *Directory) List(ctx context.Context) ([]tsdb.NodeInfo, error) {
	if err := d.ask(ctx); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]tsdb.NodeInfo, 0, len(d.nodes))
	for node, e := range d.nodes {
		if metrics := slices.Collect(e.metrics.All()); node != "" && metrics != nil {
			out = append(out, tsdb.NodeInfo{Node: node, Role: e.role, Metrics: metrics})
		}
	}
	slices.SortFunc(out, func(a, b tsdb.NodeInfo) int { return strings.Compare(string(a.Node), string(b.Node)) })
	return out, nil
}

func (d *Directory) ask(ctx context.Context) error {
	d.mu.Lock()
	loaded := d.loaded
	d.mu.Unlock()
	if loaded {
		return nil
	}
	list, err := d.load(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loaded = true
	for _, k := range list {
		e := d.entry(k.Node)
		if k.LastMillis >= e.at {
			e.role, e.at = k.Role, k.LastMillis
		}
		e.metrics.Add(k.Metric)
	}
	return nil
}
