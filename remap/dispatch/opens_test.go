package dispatch

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb/history"
)

// TestModeIsWhatPhasesCreateAndOpen: how a job's nodes share files by what a metadata server counts, phase by phase.
func TestModeIsWhatPhasesCreateAndOpen(t *testing.T) {
	const nodes = 8
	for _, c := range []struct {
		name   string
		phases []counted
		want   topology.Mode
	}{
		{"a file for each node", []counted{{8, 8}, {8, 8}}, topology.ModeNN},
		{"a file for each process, on half of the nodes", []counted{{4, 4}}, topology.ModeNN},
		{"a shared file for each phase", []counted{{1, 8}, {1, 256}, {1, 8}}, topology.ModeN1},
		{"input that all read, then a shared file", []counted{{0, 400}, {1, 8}}, topology.ModeN1},
		{"only input that all read", []counted{{0, 8}}, ""},
		{"one node writes", []counted{{1, 1}, {1, 2}}, ""},
		{"logs and a shared file", []counted{{3, 11}}, ""},
		{"both, as often", []counted{{1, 8}, {8, 8}}, ""},
		{"mostly shared files", []counted{{1, 8}, {8, 8}, {1, 8}}, topology.ModeN1},
		{"nothing", nil, ""},
	} {
		var o opens
		at := int64(1_795_000_000_000)
		for _, p := range c.phases {
			for range 4 { // each phase in four seconds, each seen twice, with rates that are not whole
				one := map[topology.NodeID]opened{"mds1": {at, counted{p.created * 0.26, p.opened * 0.2501}, 0}}
				o.note(one, nodes)
				o.note(one, nodes)
				at += 1000
			}
			at += phaseGap
		}
		if got := o.mode(nodes); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if m := (counted{1, 9}).mode(1); m != "" {
		t.Errorf("a job of one node is %q", m)
	}
}

// TestProfileHasTheModeThatMetadataServersSaw: on a layer whose nodes have no mount of ours, and not where the mounts
// report, nor where few of the nodes did I/O.
func TestProfileHasTheModeThatMetadataServersSaw(t *testing.T) {
	for name, c := range map[string]struct {
		created float64
		nodes   int // that do I/O
		want    topology.Mode
	}{
		"each its own": {4, 4, topology.ModeNN}, "one for all": {1, 4, topology.ModeN1},
		"one node": {1, 1, topology.Mode11},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, newMachine(8, 2, 3), remap.ModeApprove)
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); s.d.Run(ctx) }()
				defer func() { stop(); <-done }()
				s.dispatch(t, "1", "ROMS", cns(0, 4))
				time.Sleep(300 * time.Millisecond) // frames do not come when the dispatcher looks
				for second := range 5 {
					counts := []collector.Sample{{Metric: collector.FilesCreated}, {Metric: collector.FilesOpened}}
					if second == 2 {
						counts[0].Value, counts[1].Value = c.created, 4
					}
					frames := []collector.Frame{{Node: "mds1", Role: topology.Metadata,
						TimeMillis: time.Now().UnixMilli(),
						Jobs: []collector.JobSamples{{Job: "1", Samples: counts},
							{Job: "2", Samples: []collector.Sample{
								{Metric: collector.FilesCreated, Value: 99},
								{Metric: collector.FilesOpened, Value: 99}}}}}}
					for i := range c.nodes {
						frames = append(frames, collector.Frame{Node: topology.NodeID(fmt.Sprintf("c%d", i)),
							TimeMillis: time.Now().UnixMilli(),
							Samples: []collector.Sample{{Metric: collector.ReadBytes},
								{Metric: collector.WriteBytes, Value: 5e8}}})
					}
					s.mu.Lock()
					s.frames = frames
					s.mu.Unlock()
					time.Sleep(time.Second)
				}
				if _, err := s.d.End(t.Context(), "1"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				r, ok, err := s.d.Job("1")
				if err != nil || !ok || r.Profile == nil || r.Profile.Mode != c.want {
					t.Fatalf("%+v %+v %v", r, r.Profile, err)
				}
			})
		})
	}
}

// TestOneNodesFilesAreNotOfMany: where one node did all I/O the mode is 1-1, however many files it made.
func TestOneNodesFilesAreNotOfMany(t *testing.T) {
	for _, c := range []struct {
		nodes, ioNodes int
		created        float64
		want           topology.Mode
	}{
		{1, 1, 3, topology.Mode11}, {2, 1, 3, topology.Mode11}, {2, 2, 3, topology.ModeNN}, {4, 1, 1, topology.Mode11},
	} {
		j := job{run: history.Run{Nodes: c.nodes}, opens: opens{phase: counted{created: c.created}}}
		if got := j.mode(&history.Profile{IONodes: c.ioNodes}); got != c.want {
			t.Errorf("%d of %d nodes made %.0f files: %q, want %q", c.ioNodes, c.nodes, c.created, got, c.want)
		}
	}
}

// TestNodesThatTakeLocksFromEachOtherShareAFile: where most seconds of writing cost half of the nodes locks; a few such
// seconds, one node's, and nodes that do not report their locks say nothing.
func TestNodesThatTakeLocksFromEachOtherShareAFile(t *testing.T) {
	const nodes = 8
	for _, c := range []struct {
		name                   string
		seconds, wrote, losing int
		silent                 bool
		want                   topology.Mode
	}{
		{"all", 20, 8, 8, false, topology.ModeN1},
		{"half of them", 20, 8, 4, false, topology.ModeN1},
		{"too few of them", 20, 8, 3, false, ""},
		{"too few seconds", 9, 8, 8, false, ""},
		{"few write", 20, 3, 3, false, ""},
		{"locks are not reported", 20, 8, 8, true, ""},
	} {
		var all callbacks
		for range c.seconds {
			var l lockSecond
			for i := range nodes {
				f := collector.Frame{Node: topology.NodeID(fmt.Sprintf("c%d", i)),
					Samples: []collector.Sample{{Metric: collector.WriteBytes}, {Metric: collector.LockCallbacks}}}
				if i < c.wrote {
					f.Samples[0].Value = 1e8
				}
				if i < c.losing {
					f.Samples[1].Value = 40
				}
				if c.silent {
					f.Samples = f.Samples[:1]
				}
				l.add(&f)
			}
			all.note(l, nodes)
		}
		if got := all.mode(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
