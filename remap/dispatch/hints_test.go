package dispatch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/policy/dfra"
	"fairway/tsdb/history"
	"fairway/tsdb/history/iolog"
)

// TestHintsForWhoAsks: a job whose user asks gets hints that follow from the last run's log, else from its profile; the
// answer says why one gets none, and the history that one got some.
func TestHintsForWhoAsks(t *testing.T) {
	h, _, err := history.Open(t.TempDir() + "/history")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	shared := periodicRun("mesh", 1)
	shared.Profile.Mode = topology.ModeN1
	ran(t, h, shared)
	ran(t, h, periodicRun("ocean", 1)) // a file per process
	ran(t, h, periodicRun("posix", 1))
	m := newMachine(8, 2, 2)
	stripe, servers := int64(1<<20), int64(2)
	var logged error
	d := New(Config{History: h, Situation: m.situation, Limits: dfra.Config{FwdPeakBW: 5e8, CNPeakBW: 1e9},
		Logs: func(_ context.Context, run history.Run) ([]iolog.Log, error) {
			id := run.Job
			l := iolog.Log{JobFiles: []iolog.JobFile{{File: 1, Procs: 8, BytesWritten: 64 << 20, StripeSize: &stripe,
				StripeCount: &servers}}}
			switch {
			case logged != nil:
				return nil, logged
			case id == "mesh1":
				l.JobFiles[0].UsesMPIIO, l.JobFiles[0].UsesCollective = true, true
			case id != "posix1":
				return nil, nil
			}
			return []iolog.Log{l}, nil
		}})
	ask := func(app string) *ROMIOHints {
		return hintsFor(t.Context(), &d.cfg, m.situation(), &Request{Job: "9", User: "wei", App: app,
			Nodes: []topology.NodeID{cn(0), cn(1)}})
	}
	got := ask("mesh")
	if got.Run != "mesh1" || got.Hints["striping_unit"] != "1048576" || got.Hints["striping_factor"] != "2" ||
		got.Hints["cb_nodes"] != "2" || !strings.Contains(got.File(), "cb_nodes 2\nromio_cb_write enable\n") {
		t.Errorf("%+v\n%s", got, got.File())
	}
	for app, why := range map[string]string{"nobody": "no run like this one", "ocean": "no file by several processes",
		"posix": "POSIX calls"} {
		if got := ask(app); len(got.Hints) > 0 || !strings.Contains(got.Why, why) {
			t.Errorf("%s: %+v, expected no hints because of %q", app, got, why)
		}
	}
	// Without the log its profile has no servers to divide the file over, and this machine has none configured.
	logged = errors.New("the archive is busy")
	if got := ask("mesh"); len(got.Hints) > 0 || !strings.Contains(got.Why, "number of servers") {
		t.Errorf("without a log: %+v", got)
	}
}

// TestHintsAreAskedFor: nobody gets hints unasked; of who gets some the history says so.
func TestHintsAreAskedFor(t *testing.T) {
	s := newSite(t, newMachine(8, 2, 2), remap.ModeAuto)
	s.topo.Nodes = append(s.topo.Nodes, topology.Node{ID: "ost1", Role: topology.Storage})
	s.past(t, "mesh", 4, func(p *history.Profile) { p.Mode, p.WriteBytes = topology.ModeN1, 1e9 })
	for job, asked := range map[topology.JobID]bool{"1": false, "2": true} {
		nodes := cns(0, 4)
		if asked {
			nodes = cns(4, 8)
		}
		for range 2 { // the hook asks until the nodes have moved
			a, err := s.d.Dispatch(t.Context(), Request{Job: job, User: "wei", App: "mesh", Nodes: nodes, Hints: asked})
			if err != nil {
				t.Fatal(err)
			}
			if got := a.Hints != nil && len(a.Hints.Hints) > 0; got != asked {
				t.Errorf("job %s asked %t and got %+v", job, asked, a.Hints)
			}
		}
		run, _, err := s.d.Job(job)
		if err != nil || slices.Contains(run.Given, history.GivenHints) != asked {
			t.Errorf("job %s: the history has %v, %v", job, run.Given, err)
		}
	}
}

// TestWritersAreSpreadOverForwarders: the nodes named are behind as many forwarders as there are, after the job's
// moves; any others may take their place.
func TestWritersAreSpreadOverForwarders(t *testing.T) {
	m := newMachine(8, 2, 2) // four nodes a forwarder
	long := topology.NodeID(strings.Repeat("n", 125))
	for _, c := range []struct {
		writers, want string
		nodes         []topology.NodeID
		moves         []remap.Move
	}{
		{"2", "c0:1,c4:1,*:1", cns(0, 8), nil},
		{"3", "c0:1,c4:1,c1:1,*:1", cns(0, 8), nil},
		{"9", "c3:1,c4:1,c5:1,*:1", cns(3, 6), nil},
		{"2", "", cns(0, 4), nil},
		{"2", "c0:1,c3:1,*:1", cns(0, 4), []remap.Move{{Node: cn(3), To: "f1"}}},
		{"2", "", cns(3, 5), []remap.Move{{Node: cn(4), To: "f0"}}},
		{"", "", cns(0, 8), nil},
		{"2", "", []topology.NodeID{"fe80::1", cn(4)}, nil},
		{"2", "", append(cns(0, 2), "x", "y"), nil}, // behind one forwarder, or who knows
		{"4", "c0:1,c4:1,c1:1,x:1,*:1", append([]topology.NodeID{"x"}, append(cns(0, 2), cn(4))...), nil},
		{"4", "c0:1," + string(long) + ":1,*:1", []topology.NodeID{cn(0), long, long + "m"},
			[]remap.Move{{Node: long, To: "f1"}, {Node: long + "m", To: "f1"}}},
	} {
		h := &ROMIOHints{Hints: map[string]string{"cb_nodes": c.writers}}
		if h.pair(m.situation(), c.nodes, c.moves); h.Hints["cb_config_list"] != c.want {
			t.Errorf("%s writers of %v, moves %v: %q, want %q", c.writers, c.nodes, c.moves, h.Hints["cb_config_list"],
				c.want)
		}
	}
}
