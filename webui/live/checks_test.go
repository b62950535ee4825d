package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fairway/anomaly/watch"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/place"
	"fairway/tsdb/window"
	"fairway/webui/api"
)

func TestMappingCheck(t *testing.T) {
	machine := &topology.Machine{Nodes: []topology.Node{{ID: "cn1", Role: topology.Compute},
		{ID: "cn2", Role: topology.Compute}}}
	well := window.Route{Forwarder: "fwd1"}
	for _, c := range []struct {
		name  string
		cn1   window.Route
		level api.CheckLevel
		says  string
	}{
		{"well", well, api.CheckOK, "every one of 2"},
		{"stale", window.Route{Forwarder: "fwd1", Stale: true}, api.CheckWarned,
			"1 of 2 compute nodes' forwarders are not observed: cn1"},
		{"lost", window.Route{Forwarder: "fwd1", Lost: true}, api.CheckFailed,
			"1 of 2 compute nodes have no forwarder, theirs does not answer: cn1"},
	} {
		s := &Snapshot{Machine: machine,
			Situation: routed(map[topology.NodeID]window.Route{"cn1": c.cn1, "cn2": well})}
		if got := mappingCheck(s); got.Level != c.level || !strings.Contains(got.Text, c.says) ||
			(got.Level != api.CheckOK) != (got.Fix != "") {
			t.Errorf("%s: %+v, want %s with %q", c.name, got, c.level, c.says)
		}
	}
	machine.Nodes = machine.Nodes[:1]
	s := &Snapshot{Machine: machine, Situation: routed(map[topology.NodeID]window.Route{"cn1": well})}
	if got := mappingCheck(s).Text; got != "the forwarder of the only compute node is observed" {
		t.Errorf("one node: %s", got)
	}
	if got := driverCheck(t.Context(), s,
		placed{"cn1": "fwd1"}).Text; got != "asked 1 compute node, and it says what is observed" {
		t.Errorf("one node asked: %s", got)
	}
}

// A compute node without an agent is seen by its forwarder and cannot be moved by agents: the check says so of it, and
// what to do.
func TestANodeWithoutAnAgentIsNamed(t *testing.T) {
	well := window.Route{Forwarder: "fwd1"}
	s := &Snapshot{Situation: routed(map[topology.NodeID]window.Route{"cn1": well, "cn2": well})}
	for answers, want := range map[string]api.Check{
		"cn1": {Level: api.CheckWarned, Text: "1 of 2 compute nodes cannot be asked where they are, nor moved: cn2 " +
			"(cn2: no agent connected)"},
		"": {Level: api.CheckFailed, Text: "2 of 2 compute nodes cannot be asked where they are, nor moved: cn1 cn2 " +
			"(cn2: no agent connected)"},
	} {
		got := driverCheck(t.Context(), s, agentless{topology.NodeID(answers): "fwd1"})
		if got.Level != want.Level || got.Text != want.Text || !strings.Contains(got.Fix, "orders.enabled = true") {
			t.Errorf("%q answers: %+v", answers, got)
		}
	}
}

// agentless is a driver that reaches some nodes and not cn2.
type agentless topology.Mapping

func (d agentless) Observe(context.Context, []topology.NodeID) (topology.Mapping, error) {
	return topology.Mapping(d), errors.New("cn2: no agent connected")
}

// placed is a driver whose nodes report where they are.
type placed topology.Mapping

func (d placed) Observe(context.Context, []topology.NodeID) (topology.Mapping, error) {
	return topology.Mapping(d), nil
}

// A back end without an agent, or one that does not count what it serves, would be taken for its gateways when it is
// slow.
func TestBackEndsCheck(t *testing.T) {
	for _, c := range []struct {
		name    string
		reports bool
		counts  []collector.Metric
		level   api.CheckLevel
		says    string
	}{
		{"all report", true, []collector.Metric{collector.WriteOps, collector.MetaOps}, api.CheckOK,
			"2 gateways in front of 2 back ends"},
		{"nothing in this second", true, nil, api.CheckOK, "2 gateways in front of 2 back ends"},
		{"one does not", false, nil, api.CheckWarned, "do not report, so a slow one is taken for its gateways: be2"},
		{"without FULLV4", true, []collector.Metric{collector.WriteOps}, api.CheckWarned,
			"do not count metadata operations, so one that is slow at them is taken for its gateways: be2"},
		{"without its data", true, []collector.Metric{collector.MetaOps}, api.CheckWarned,
			"do not count reads and writes, so one that is slow at them is taken for its gateways: be2"},
	} {
		b := window.NewBoard(0)
		now := time.Now()
		second := now.Add(-time.Second).UnixMilli()
		gateway := func(id topology.NodeID, back topology.TargetID) collector.Frame {
			return collector.Frame{Node: id, Role: topology.Forwarder, TimeMillis: second,
				Sources: []collector.SourceStatus{{Name: "ganesha"}},
				Targets: []collector.TargetSamples{{Target: back}}}
		}
		frames := []collector.Frame{gateway("gw1", "be1"), gateway("gw2", "be2"),
			{Node: "be1", Role: topology.Storage, TimeMillis: second}}
		if c.reports {
			f := collector.Frame{Node: "be2", Role: topology.Storage, TimeMillis: second}
			for _, m := range c.counts {
				f.Samples = append(f.Samples, collector.Sample{Metric: m})
			}
			frames = append(frames, f)
		}
		b.Take(frames, now)
		got := backEndsCheck(readHealth(&Picture{cfg: Config{Board: b}}, now))
		if got.Level != c.level || !strings.Contains(got.Text, c.says) ||
			(got.Level != api.CheckOK) != (got.Fix != "") {
			t.Errorf("%s: %+v, want %s with %q", c.name, got, c.level, c.says)
		}
	}
}

// The doctor counts who reports what names a cause, and names ports that do not count; it warns of nothing.
func TestCausesCheck(t *testing.T) {
	now := time.Now()
	board := window.NewBoard(0)
	if c := causesCheck(board, now); c.Level != api.CheckUnknown {
		t.Errorf("nobody reports: %+v", c)
	}
	for id, metrics := range map[topology.NodeID][]collector.Metric{
		"f1": {collector.ThrottledRatio, collector.ThrottleEvents, collector.LinkLanes, collector.LinkWaitTicks},
		"f2": {collector.ThrottleEvents, collector.LinkLanes}, "f3": {collector.ResentRatio}} {
		f := collector.Frame{Node: id, Role: topology.Forwarder, TimeMillis: now.UnixMilli()}
		for _, m := range metrics {
			f.Samples = append(f.Samples, collector.Sample{Metric: m})
		}
		board.Take([]collector.Frame{f}, now)
	}
	const want = "of 3 forwarders report in this second what names a cause: throttling of processors 2, " +
		"waits of InfiniBand links 1, TCP segments sent again 1; port_xmit_wait of f2 is missing or at its end, " +
		"until perfquery -R resets it"
	if c := causesCheck(board, now); c.Level != api.CheckOK || c.Text != want || c.Fix != "" {
		t.Errorf("%+v", c)
	}
}

// The doctor reports per kind of forwarder which columns work, and what to switch on for the others.
func TestLayerCheck(t *testing.T) {
	now := time.Now()
	board := window.NewBoard(0)
	samples := func(values ...collector.Metric) (out []collector.Sample) {
		for _, m := range values {
			out = append(out, collector.Sample{Metric: m, Value: 1})
		}
		return out
	}
	frame := func(id topology.NodeID, source string, s []collector.Sample) collector.Frame {
		return collector.Frame{Node: id, Role: topology.Forwarder, TimeMillis: now.UnixMilli() - 1000, Samples: s,
			Sources: []collector.SourceStatus{{Name: source}}}
	}
	if c := layerCheck(board, now); c.Level != api.CheckUnknown {
		t.Errorf("nobody reports: %+v", c)
	}
	router := samples(collector.RoutedBytes, collector.RoutedOps, collector.TransitTime, collector.QueueLen)
	board.Take([]collector.Frame{frame("r1", "lnet", router)}, now)
	if c := layerCheck(board, now); c.Level != api.CheckOK ||
		c.Text != "LNet router (1): bytes, operations, queue, time [no metadata: a router knows no files]" {
		t.Errorf("a whole router: %+v", c)
	}
	board.Take([]collector.Frame{frame("r0", "lnet", []collector.Sample{{Metric: collector.RoutedBytes},
		{Metric: collector.RoutedOps}, {Metric: collector.QueueLen}})}, now)
	if c := layerCheck(board, now); c.Level != api.CheckOK || strings.Contains(c.Text, "no time") {
		t.Errorf("a router without a message to time: %+v", c)
	}
	board.Take([]collector.Frame{frame("d1", "diod", samples(collector.WriteBytes, collector.WriteOps,
		collector.QueueLen, collector.MetaOps))}, now)
	if c := layerCheck(board, now); c.Level != api.CheckOK || !strings.Contains(c.Text, "no time: diod keeps none") {
		t.Errorf("what diod keeps none of is asked for: %+v", c)
	}
	board.Take([]collector.Frame{frame("io2", "lwfs", samples(collector.WriteBytes, collector.WriteOps,
		collector.MetaOps))}, now)
	if c := layerCheck(board, now); c.Level != api.CheckOK ||
		!strings.Contains(c.Text, "queue in some seconds: its trace has one operation in 1,000") {
		t.Errorf("a second without a line in LWFS's trace: %+v", c)
	}
	board.Take([]collector.Frame{frame("r2", "lnet", router[:2]),
		frame("io1", "lwfs", samples(collector.WriteOps, collector.QueueLen, collector.WriteExec, collector.MetaOps)),
		frame("ces1", "gpfs", samples(collector.WriteBytes, collector.WriteOps, collector.MetaOps)),
		frame("dvs1", "dvs", samples(collector.WriteOps, collector.MetaOps)),
		frame("gw1", "procfs", nil)}, now)
	c := layerCheck(board, now)
	for _, want := range []string{"no queue on r2",
		"LWFS server (2): operations, metadata [no bytes on io1; queue in some seconds: ",
		"GPFS node (1): bytes, operations, metadata [no queue: GPFS counts no requests of its NFS server; no time: ",
		"DVS server (1): operations, metadata [no bytes; no queue; no time: DVS times its messages from 2019 on",
		"no source reports what a forwarder moves: gw1"} {
		if !strings.Contains(c.Text, want) {
			t.Errorf("no %q in %q", want, c.Text)
		}
	}
	for _, want := range []string{"LNet router, time: run the agent as root",
		"switch source.lustre on beside source.lwfs", "switch source.lustre on beside source.dvs",
		"DVS server, queue: run the agent as root",
		"switch on the source of your layer"} {
		if c.Level != api.CheckWarned || !strings.Contains(c.Fix, want) {
			t.Errorf("no %q in %q", want, c.Fix)
		}
	}
}

// A few late seconds after a start are those that agents kept; later they say that the host or the network is slow.
func TestLateSecondsOfAStartAskForNothing(t *testing.T) {
	for starting, want := range map[bool]api.CheckLevel{true: api.CheckOK, false: api.CheckWarned} {
		got := judgedCheck(watch.Judged{Judged: 10, Late: 90, Starting: starting})
		if got.Level != want || (got.Fix == "") != starting {
			t.Errorf("starting %v: %+v, want %s", starting, got, want)
		}
	}
}

// routed is a situation that knows nothing but routes.
func routed(routes map[topology.NodeID]window.Route) *remap.Situation {
	return &remap.Situation{Places: place.New(nil, routes, nil)}
}

// TestClocksAreComparedWithEachOther: where most nodes are off alike it is the daemon or its host, and only who differs
// from them is named.
func TestClocksAreComparedWithEachOther(t *testing.T) {
	for _, c := range []struct {
		name  string
		ahead []time.Duration
		level api.CheckLevel
		says  string
		not   string
	}{
		{"well", []time.Duration{-1e9, -1e9, -1.5e9}, api.CheckOK, "within 2s", ""},
		{"one ahead", []time.Duration{-1e9, -1e9, 5e9}, api.CheckFailed,
			"the clocks of 1 node are off, the worst 5s ahead: n2", ""},
		{"a late daemon", []time.Duration{-7e9, -8e9, -7.5e9, -8.2e9}, api.CheckFailed,
			"the seconds of most nodes are 7.5s off alike", "clocks of"},
		{"a late daemon and one wrong clock", []time.Duration{-7e9, -8e9, -7.5e9, -60e9}, api.CheckFailed,
			"the worst 52.5s behind, or its seconds come late: n3", "n0"},
		{"a daemon that takes in what had to wait", []time.Duration{-49e9, -48e9, -49.5e9, -44e9, -78e9},
			api.CheckFailed, "the seconds of most nodes are 49s off alike", "clocks of"},
		{"two nodes alone", []time.Duration{-7e9, -8e9}, api.CheckFailed, "the clocks of 2 nodes are off", "alike"},
	} {
		h := health{ahead: map[topology.NodeID]time.Duration{}}
		for i, ahead := range c.ahead {
			h.ahead[topology.NodeID(fmt.Sprint("n", i))] = ahead
		}
		if got := clocksCheck(h); got.Level != c.level || !strings.Contains(got.Text, c.says) ||
			c.not != "" && strings.Contains(got.Text, c.not) || (got.Level == api.CheckOK) != (got.Fix == "") {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestALateDaemonJudgesNoNode: its own lateness is the first check, what else would be found is left open, and
// forwarders without news are unknown.
func TestALateDaemonJudgesNoNode(t *testing.T) {
	late, now := &watch.Lateness{}, time.Now()
	late.Note(now.Add(-4*time.Second), now)
	all := excused([]api.Check{{Name: "peaks", Level: api.CheckOK},
		{Name: "agents", Level: api.CheckFailed, Text: "silent: a"}}, late.Notice(now))
	if len(all) != 3 || all[0].Name != "daemon" || !strings.Contains(all[0].Text, "4.0 s late") ||
		all[1].Level != api.CheckOK || all[2].Level != api.CheckUnknown || strings.Contains(all[2].Text, "silent") {
		t.Errorf("%+v", all)
	}
	machine := &topology.Machine{Nodes: []topology.Node{{ID: "fwd1", Role: topology.Forwarder}}}
	for l, want := range map[*watch.Lateness]remap.ForwarderState{late: remap.ForwarderUnknown,
		nil: remap.ForwarderStale} {
		sit := remap.BuildSituation(remap.SituationParts{At: now, Machine: machine})
		p := New(Config{Board: window.NewBoard(0), Situation: func() *remap.Situation { return sit }, Lateness: l,
			Notice: func() string { return "it follows" }})
		o := p.Snapshot().Overview
		if o.Forwarders[0].State != want || strings.HasPrefix(o.Notice, "fairway's own daemon was") != (l != nil) ||
			!strings.HasSuffix(o.Notice, "it follows") {
			t.Errorf("late by %s: %s, %q", l.Within(now), o.Forwarders[0].State, o.Notice)
		}
	}
}

func TestAlikeCheckNamesWhoIsSetUpInAnotherWay(t *testing.T) {
	b := window.NewBoard(0)
	now := time.Now()
	say := func(role topology.Role, count int, facts func(i int) string) {
		for i := range count {
			b.Take([]collector.Frame{{Node: topology.NodeID(fmt.Sprintf("%s%d", role, i)), Role: role,
				TimeMillis: now.Add(-time.Second).UnixMilli(),
				Sources:    []collector.SourceStatus{{Name: "procfs", Note: facts(i)}}}}, now)
		}
	}
	say(topology.Forwarder, 8, func(i int) string {
		if i == 3 {
			return "kernel=6.1;MTU=1500"
		}
		return "kernel=6.1;MTU=9000"
	})
	say(topology.Compute, 100, func(i int) string { // two kinds, and one of the second that is behind
		switch {
		case i == 99:
			return "kernel=5.14.0-1"
		case i > 60:
			return "kernel=5.14.0-2"
		}
		return "kernel=6.1"
	})
	say(topology.Storage, 2, func(i int) string { return fmt.Sprint("kernel=", i) }) // too few for either to be right
	c, known := alikeCheck(readHealth(&Picture{cfg: Config{Board: b}}, now).facts)
	const want = "MTU of forwarder nodes: 1500 (forwarder3), where 7 have 9000. " +
		"kernel of compute nodes: 5.14.0-1 (compute99), where 61 have 6.1"
	if !known || c.Level != api.CheckWarned || c.Text != want || c.Fix == "" {
		t.Errorf("%+v, want %s", c, want)
	}
	if c, known = alikeCheck(nil); known || c.Level != api.CheckOK {
		t.Errorf("of nobody: %+v, %v", c, known)
	}
}
