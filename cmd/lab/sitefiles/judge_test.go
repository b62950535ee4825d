package sitefiles

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/anomaly/watch"
	"fairway/cmd/lab/sitefiles/format"
	"fairway/cmd/lab/sitefiles/model"
	"fairway/collector"
	"fairway/collector/source/lnet"
	"fairway/collector/source/lustre"
	"fairway/collector/source/procfs"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// watched is a site whose nodes are read by the agents' own sources, and judged by the daemon's own detectors.
type watched struct {
	*Site
	board     *window.Board
	detectors *watch.Detectors
	machine   watch.Machine
	trees     map[string]*swapped
	sources   map[string][]collector.Source
	frames    []collector.Frame // of the newest second
	seconds   int
	events    []string // what was done to it
	// files are those of a node at a whole second.
	files func(n *model.Node, now time.Duration) format.Tree
	// first is when each node was first accused of each kind, in seconds of the site.
	first map[string]int
	says  map[string]string
}

func watchSite(t *testing.T, c model.Config) *watched {
	w := &watched{Site: newSite(t, Options{Model: c}), board: window.NewBoard(0), trees: map[string]*swapped{},
		sources: map[string][]collector.Source{}, first: map[string]int{}, says: map[string]string{}}
	w.detectors = watch.NewDetectors(w.board, failslow.DefaultSettings())
	w.machine.Mapping, w.files = topology.Mapping{}, w.writer.All
	for _, n := range w.model.Nodes {
		tree := &swapped{}
		w.trees[n.Name] = tree
		w.sources[n.Name] = []collector.Source{lnet.New(tree)}
		if n.Role == model.Router {
			w.sources[n.Name] = append(w.sources[n.Name], procOf(tree))
		}
		if n.Role == model.Router {
			w.machine.Forwarders = append(w.machine.Forwarders, topology.ForwarderID(n.Name))
		} else {
			w.sources[n.Name] = append(w.sources[n.Name], lustre.New(tree))
		}
	}
	return w
}

func procOf(tree fs.FS) collector.Source {
	files, err := fs.Sub(tree, "proc")
	sys, err2 := fs.Sub(tree, "sys")
	if err != nil || err2 != nil {
		panic(errors.Join(err, err2))
	}
	return procfs.New(procfs.Options{Root: "proc", Files: files, Sys: sys})
}

func (w *watched) close() {
	for _, all := range w.sources {
		for _, s := range all {
			s.Close()
		}
	}
}

// run lets the site live for some seconds and judges each.
func (w *watched) run(t *testing.T, seconds int) {
	t.Helper()
	for range seconds {
		for i := range 20 { // files change between two samples, which are taken at whole steps
			time.Sleep(25 * time.Millisecond)
			w.model.Run(w.model.Now() + 50*time.Millisecond)
			for _, n := range w.model.Nodes {
				switch {
				case i == 19:
					w.trees[n.Name].set(w.files(n, w.model.Now()))
				case n.Role == model.Router:
					w.trees[n.Name].set(w.writer.Fast(n))
				}
			}
			time.Sleep(25 * time.Millisecond)
		}
		w.seconds++
		now := time.Now()
		w.frames = nil
		for _, n := range w.model.Nodes {
			w.frames = append(w.frames, w.frame(t, n, now))
		}
		w.board.Take(w.frames, now)
		for _, v := range w.detectors.Verdicts(now, &w.machine) {
			if key := fmt.Sprintf("%s %s", v.Kind, v.Node); v.Level == anomaly.Alarm && w.says[key] == "" {
				w.first[key], w.says[key] = w.seconds, v.Sentence
			}
		}
	}
}

func (w *watched) frame(t *testing.T, n *model.Node, now time.Time) collector.Frame {
	r := collector.Reading{Now: now}
	for _, s := range w.sources[n.Name] {
		if err := s.Read(t.Context(), &r); err != nil {
			t.Fatalf("%s, %s: %v", n.Name, s.Name(), err)
		}
	}
	role := map[model.Role]topology.Role{model.Client: topology.Compute, model.Router: topology.Forwarder,
		model.OSS: topology.Storage, model.MDS: topology.Metadata}[n.Role]
	return collector.Frame{Node: topology.NodeID(n.Name), Role: role, TimeMillis: now.Add(-time.Second).UnixMilli(),
		Samples: r.Samples, Targets: r.Targets, Jobs: r.Jobs}
}

// The daemon's detectors, fed by the agents' sources, name the router that is slow, short of CPU or of buffers, or
// stands still, the client that is slow by itself, and no router where it is something else.
func TestASlowRouterIsFound(t *testing.T) {
	for _, c := range []struct {
		fault  model.Fault
		load   float64
		within int    // seconds
		what   string // the finding; "": none
		says   string
		groups int // of clients with routers of their own; 0: all use all
	}{{model.Fault{Kind: model.FaultLink, Node: "rtr2", Value: 0.5}, 0.6, 45, "fail_slow rtr2", "x slow", 0},
		{model.Fault{Kind: model.FaultLink, Node: "rtr2", Value: 0.1}, 1, 30, "fail_slow rtr2", "x slow", 0},
		{model.Fault{Kind: model.FaultCPU, Node: "rtr2", Value: 0.05}, 0.6, 45, "fail_slow rtr2", "short of CPU", 0},
		{model.Fault{Kind: model.FaultHung, Node: "rtr3"}, 0.6, 15, "fail_slow rtr3", "forwards nothing", 0},
		{model.Fault{Kind: model.FaultBuffers, Node: "rtr2", Value: 2}, 0.6, 45, "buffers_exhausted rtr2", "too few",
			0},
		{model.Fault{Kind: model.FaultLink, Node: "cn3", Value: 0.02}, 0.6, 45, "client_slow cn3", "from it", 0},
		{model.Fault{Kind: model.FaultDisk, Node: "oss1", Value: 0.1}, 0.6, 45, "", "", 0},
		{model.Fault{Kind: model.FaultLink, Node: "rtr2", Value: 0.5}, 0.4, 45, "fail_slow rtr2", "x slow", 2},
		{model.Fault{Kind: model.FaultLink, Node: "rtr3", Value: 0.1}, 0.4, 30, "fail_slow rtr3", "x slow", 2}} {
		t.Run(fmt.Sprintf("%s %g of %d groups", c.fault.Kind, c.fault.Value, c.groups), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := model.Small(5)
				site.Load, site.Groups = c.load, c.groups
				w := watchSite(t, site)
				defer w.close()
				w.run(t, 60)
				if err := w.model.Break(c.fault); err != nil {
					t.Fatal(err)
				}
				w.run(t, c.within)
				for what := range w.first {
					if kind, _, _ := strings.Cut(what, " "); what != c.what && kind != string(anomaly.TargetSlow) {
						t.Errorf("%s is found: %s", what, w.says[what])
					}
				}
				if at := w.first[c.what]; c.what != "" && (at <= 60 || !strings.Contains(w.says[c.what], c.says)) {
					t.Errorf("%s was not found in %d s, with %q: %v", c.what, c.within, c.says, w.says)
				}
			})
		})
	}
}

// A router whose links fall from four lanes to one is named within 10 s while next to nothing is asked for, and nobody
// else, on a site whose routers have links of two rates by design.
func TestALinkOnOneLaneIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := model.Small(5)
		site.Load, site.Older = 0.001, 2
		w := watchSite(t, site)
		defer w.close()
		const healthy, within = 150, 10
		w.run(t, healthy)
		if len(w.first) > 0 {
			t.Fatalf("nothing is wrong: %v", w.says)
		}
		if err := w.model.Break(model.Fault{Kind: model.FaultLanes, Node: "rtr4", Value: 0.25}); err != nil {
			t.Fatal(err)
		}
		w.run(t, within)
		if len(w.first) != 1 || !strings.Contains(w.says["fail_slow rtr4"], "runs on one lane") {
			t.Errorf("within %d s: %v", within, w.says)
		}
	})
}
