package window

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

var t0 = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// report is one observer's frame: the word of cn1's mount (generation > 0), or a forwarder's list.
type report struct {
	second  int
	fwd     topology.ForwarderID
	gen     uint64
	lost    bool              // the mount gets no answer
	lists   []topology.NodeID // of a forwarder
	arrives int               // second of arrival; 0: at the frame's end
}

func (s report) frame() collector.Frame {
	f := collector.Frame{Node: "cn1", Role: topology.Compute,
		TimeMillis: t0.Add(time.Duration(s.second) * time.Second).UnixMilli(), RoutesComplete: true}
	if s.gen > 0 {
		f.Routes = []collector.Route{{Client: "cn1", Forwarder: s.fwd, Generation: s.gen, Lost: s.lost}}
		return f
	}
	f.Node, f.Role = s.fwd.Node(), topology.Forwarder
	for _, c := range s.lists {
		f.Routes = append(f.Routes, collector.Route{Client: c, Forwarder: s.fwd})
	}
	return f
}

func (r Route) String() string {
	by := ""
	if r.ByMount {
		by += "m"
	}
	if r.ByForwarder {
		by += "f"
	}
	out := fmt.Sprintf("%s gen %d by %s at %d", r.Forwarder, r.Generation, by, int(r.At.Sub(t0).Seconds()))
	if r.Stale {
		out += " stale"
	}
	if r.Lost {
		out += " lost"
	}
	for _, l := range r.Lingering {
		out += " lingering " + string(l)
	}
	return out
}

func TestRoutes(t *testing.T) {
	cn1 := []topology.NodeID{"cn1"}
	for _, c := range []struct {
		name    string
		reports []report
		at      int
		want    string
	}{
		{"nothing was reported", nil, 5, ""},
		{"the mount alone", []report{{second: 0, fwd: "a", gen: 1}}, 2, "a gen 1 by m at 1"},
		{"a forwarder alone", []report{{second: 0, fwd: "a", lists: cn1}}, 2, "a gen 0 by f at 1"},
		{"both agree", []report{{second: 0, fwd: "a", gen: 1}, {second: 1, fwd: "a", lists: cn1}}, 2,
			"a gen 1 by mf at 2"},
		{"the mount left and its old forwarder still lists it",
			[]report{{second: 0, fwd: "a", lists: cn1}, {second: 1, fwd: "b", gen: 2},
				{second: 1, fwd: "a", lists: cn1}},
			2,
			"b gen 2 by m at 2 lingering a"},
		{"the old forwarder no longer lists it",
			[]report{{second: 0, fwd: "a", lists: cn1}, {second: 1, fwd: "b", gen: 2}, {second: 1, fwd: "a"}}, 2,
			"b gen 2 by m at 2"},
		{"a mount's older second changes nothing",
			[]report{{second: 3, fwd: "b", gen: 2}, {second: 1, fwd: "a", gen: 1, arrives: 4}}, 4, "b gen 2 by m at 4"},
		{"in one second the newer generation wins",
			[]report{{second: 3, fwd: "b", gen: 2}, {second: 3, fwd: "a", gen: 1}}, 4, "b gen 2 by m at 4"},
		{"a mount started anew counts from the beginning",
			[]report{{second: 3, fwd: "b", gen: 7}, {second: 5, fwd: "a", gen: 1}}, 6, "a gen 1 by m at 6"},
		{"without a mount the connection that began last is the route",
			[]report{{second: 0, fwd: "a", lists: cn1}, {second: 1, fwd: "b", lists: cn1},
				{second: 2, fwd: "a", lists: cn1}}, 3,
			"b gen 0 by f at 2 lingering a"},
		{"a mount without an answer is still set to its forwarder",
			[]report{{second: 0, fwd: "a", gen: 2}, {second: 1, fwd: "a", gen: 2, lost: true}}, 2,
			"a gen 2 by m at 2 lost"},
		{"a mount that was moved off a dead forwarder has one again",
			[]report{{second: 0, fwd: "a", gen: 2, lost: true}, {second: 1, fwd: "b", gen: 3}}, 2, "b gen 3 by m at 2"},
		{"old news are stale", []report{{second: 0, fwd: "a", gen: 1}}, 12, "a gen 1 by m at 1 stale"},
		{"a silent mount's node is where a forwarder lists it",
			[]report{{second: 0, fwd: "a", gen: 1}, {second: 14, fwd: "b", lists: cn1}}, 15, "b gen 0 by f at 15"},
		{"of two silent observers the mount is shown",
			[]report{{second: 0, fwd: "a", gen: 1}, {second: 3, fwd: "b", lists: cn1}}, 30, "a gen 1 by m at 1 stale"},
		{"a replayed spool is as old as it is",
			[]report{{second: 0, fwd: "a", gen: 1, arrives: 60}}, 60, "a gen 1 by m at 1 stale"},
		{"a clock that is ahead does not make news of the future",
			[]report{{second: 50, fwd: "a", gen: 1, arrives: 2}}, 20, "a gen 1 by m at 2 stale"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTracker(0)
			for _, s := range c.reports {
				arrives := s.arrives
				if arrives == 0 {
					arrives = s.second + 1
				}
				f := s.frame()
				tr.observe(&f, t0.Add(time.Duration(arrives)*time.Second))
			}
			got := ""
			routes := map[topology.NodeID]Route{}
			tr.routes(t0.Add(time.Duration(c.at)*time.Second), func(n topology.NodeID, r Route) { routes[n] = r })
			if r, ok := routes["cn1"]; ok {
				got = r.String()
			}
			if got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if _, fresh := Mapping(routes)["cn1"]; fresh != (c.want != "" && !strings.Contains(c.want, "stale")) {
				t.Errorf("in the mapping: %v", fresh)
			}
		})
	}
}

func TestBoardKeepsTheNewestFrameAndLearnsNodes(t *testing.T) {
	b := NewBoard(0)
	f := collector.Frame{Node: "cn10", Role: topology.Compute, TimeMillis: t0.UnixMilli(),
		Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: 5}},
		Jobs:    []collector.JobSamples{{Job: "7", Samples: []collector.Sample{{Metric: collector.ReadOps, Value: 2}}}},
		Routes:  []collector.Route{{Client: "cn10", Forwarder: "fwd2", Generation: 1}}}
	b.Take([]collector.Frame{f}, t0.Add(time.Second))
	f.Samples[0].Value, f.Jobs[0].Samples[0].Value = 99, 99 // the decoder reuses its memory
	old := collector.Frame{Node: "cn10", Role: topology.Compute, TimeMillis: t0.Add(-time.Minute).UnixMilli()}
	b.Take([]collector.Frame{old, {Node: "cn2", Role: topology.Compute}}, t0.Add(2*time.Second))

	got, ok := b.Frame("cn10")
	if v, has := got.Value(collector.ReadBytes); !ok || !has || v != 5 || got.Jobs[0].Samples[0].Value != 2 {
		t.Errorf("newest frame is %+v", got)
	}
	if _, ok := b.Frame("cn3"); ok {
		t.Error("a node that never reported has a frame")
	}
	if n := b.Members(); n != 2 {
		t.Errorf("%d members, want 2", n)
	}
	conf := topology.Machine{Name: "m", Nodes: []topology.Node{{ID: "fwd9", Role: topology.Forwarder, Addr: "h:1"}}}
	m := b.Learn(conf, t0.Add(2*time.Second))
	var names []string
	for _, n := range m.Nodes {
		names = append(names, string(n.ID)+"/"+n.Role.String())
	}
	want := "fwd9/forwarder cn2/compute cn10/compute fwd2/forwarder"
	if strings.Join(names, " ") != want {
		t.Errorf("learned %v, want %s", names, want)
	}
}

func TestNamesAreOrderedByTheirNumbers(t *testing.T) {
	names := []string{"cn10", "b", "cn2", "cn02x", "cn", "cn2a", "a9", "cn1"}
	slices.SortFunc(names, compareNames)
	if got := strings.Join(names, " "); got != "a9 b cn cn1 cn2 cn2a cn02x cn10" {
		t.Errorf("order is %s", got)
	}
}

// TestRoutesAreForgotten lets evidence grow old: an hour later nothing of it is kept.
func TestRoutesAreForgotten(t *testing.T) {
	b := NewBoard(0)
	take := func(s report) {
		f := s.frame()
		b.Take([]collector.Frame{f}, t0.Add(time.Duration(s.second+1)*time.Second))
	}
	names := []topology.NodeID{"cn1"}
	for i := range 1000 {
		names = append(names, topology.NodeID(fmt.Sprint("made-up", i)))
	}
	take(report{second: 0, fwd: "a", lists: names})
	take(report{second: 3000, fwd: "b", gen: 1}) // cn1's mount
	take(report{second: 3700, fwd: "c", lists: []topology.NodeID{"cn2"}})
	if got := b.Routes(t0.Add(3701 * time.Second)); len(got) != 2 || got["cn1"].Forwarder != "b" ||
		got["cn2"].Forwarder != "c" {
		t.Errorf("routes are %v", got)
	}
	if n, f := len(b.tracker.nodes), len(b.tracker.clients); n != 2 || f != 1 {
		t.Errorf("%d nodes and %d forwarders' lists are kept", n, f)
	}
}

// TestAShareVector: a node that reports shares of several forwarders is on none of them whole; nine tenths are whole; a
// forwarder of the vector that lists the node does not linger; an older frame changes nothing.
func TestAShareVector(t *testing.T) {
	now := time.Unix(1795000000, 0)
	b := NewBoard(0)
	frame := func(at time.Time, routes ...collector.Route) collector.Frame {
		for i := range routes {
			routes[i].Client = "cn1"
		}
		return collector.Frame{Node: "cn1", Role: topology.Compute, TimeMillis: at.UnixMilli() - 1000,
			RoutesComplete: true, Routes: routes}
	}
	lists := collector.Frame{Node: "r1", Role: topology.Forwarder, TimeMillis: now.UnixMilli() - 1000,
		Routes: []collector.Route{{Client: "cn1", Forwarder: "r1"}}}
	take := func(f collector.Frame) Route {
		b.Take([]collector.Frame{f, lists}, now)
		return b.Routes(now)["cn1"]
	}
	r := take(frame(now, collector.Route{Forwarder: "r2", Share: 0.25, Assumed: true},
		collector.Route{Forwarder: "r1", Share: 0.75}))
	want := []topology.Share{{Forwarder: "r1", Part: 0.75}, {Forwarder: "r2", Part: 0.25}}
	if r.Forwarder != "" || !slices.Equal(r.Shares, want) || !r.Assumed || len(r.Lingering) != 0 || !r.ByForwarder {
		t.Errorf("%+v", r)
	}
	if m := Mapping(b.Routes(now)); len(m) != 0 {
		t.Errorf("the mapping has %v", m)
	}
	machine := b.Learn(topology.Machine{}, now)
	if len(machine.ByRole(topology.Forwarder)) != 2 {
		t.Errorf("known nodes: %+v", machine.Nodes)
	}
	if r = take(frame(now.Add(-5*time.Second), collector.Route{Forwarder: "r3"})); r.Forwarder != "" {
		t.Errorf("an older frame made it %+v", r)
	}
	if r = take(frame(now.Add(time.Second/2), collector.Route{Forwarder: "r1", Share: 0.95},
		collector.Route{Forwarder: "r2", Share: 0.05})); r.Forwarder != "r1" || len(r.Shares) != 0 {
		t.Errorf("nearly all over one: %+v", r)
	}
	if r = b.Routes(now.Add(time.Minute))["cn1"]; !r.Stale {
		t.Errorf("a minute later: %+v", r)
	}
}

// Servers choose routers as clients do, and are no clients of theirs.
func TestServersAreNobodysClients(t *testing.T) {
	b, now := NewBoard(0), time.Unix(1795000000, 0)
	var frames []collector.Frame
	for n, role := range map[topology.NodeID]topology.Role{"cn1": topology.Compute, "oss1": topology.Storage,
		"mds1": topology.Metadata} {
		frames = append(frames, collector.Frame{Node: n, Role: role, TimeMillis: now.UnixMilli() - 1000,
			RoutesComplete: true, Routes: []collector.Route{{Client: n, Forwarder: "r1", Share: 0.5},
				{Client: n, Forwarder: "r2", Share: 0.5}}})
	}
	b.Take(frames, now)
	if got := b.Routes(now); len(got) != 1 || len(got["cn1"].Shares) != 2 {
		t.Errorf("routes are %v, want those of cn1", got)
	}
}
