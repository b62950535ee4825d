package journal

import (
	"slices"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// A day at the desk, record by record; each hour is asked for afterwards.
func TestTimelineTellsEveryHour(t *testing.T) {
	day := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	h := func(hours float64) time.Time { return day.Add(time.Duration(hours * float64(time.Hour))) }
	finding := func(at float64, state anomaly.State) *Record {
		return &Record{At: h(at), Kind: StepFinding, Plan: "F-0001", Finding: &anomaly.Change{At: h(at), Why: "seen",
			Finding: anomaly.Finding{ID: "F-0001", Node: "fwd1", Kind: anomaly.FailSlow, State: state},
			Frozen:  &anomaly.Frozen{}}}
	}
	moves := []remap.Move{{Node: "cn1", From: "fwd1", To: "fwd2"}, {Node: "cn2", From: "fwd1", To: "fwd3"}}
	tl := NewTimeline()
	for _, r := range []*Record{
		finding(1, anomaly.Suspect), finding(2, anomaly.Confirmed),
		{At: h(3), Kind: StepExclude, Exclusion: &remap.Exclusion{Forwarder: "fwd1", Reason: "slow", Since: h(3),
			Until: h(9)}},
		{At: h(4), Kind: StepPropose, Plan: "P-000001", Proposed: &remap.Plan{ID: "P-000001", Job: "7", Dedicated: true,
			State: remap.Proposed, Moves: moves, Created: h(4)}},
		{At: h(5), Kind: StepApprove, Plan: "P-000001", State: remap.Approved},
		{At: h(5), Kind: StepStart, Plan: "P-000001", State: remap.Applying},
		{At: h(6), Kind: StepResults, Plan: "P-000001", Results: []remap.Result{{Node: "cn1", OK: true, At: h(6)},
			{Node: "cn2", At: h(6), Error: "hung"}}},
		{At: h(6), Kind: StepFinish, Plan: "P-000001", State: remap.Partial},
		{At: h(7), Kind: StepReturn, Exclusion: &remap.Exclusion{Forwarder: "fwd1"}},
		finding(7, anomaly.Returned),
		{At: h(8), Kind: StepRollBack, Plan: "P-000001", State: remap.RollingBack, Goal: remap.RolledBack},
		{At: h(8.5), Kind: StepUndone, Plan: "P-000001", Results: []remap.Result{{Node: "cn1", OK: true, At: h(8.5)}}},
		{At: h(8.5), Kind: StepFinish, Plan: "P-000001", State: remap.RolledBack},
	} {
		tl.Take(r)
	}
	never := func(topology.NodeID) time.Time { return time.Time{} }
	for _, c := range []struct {
		at       float64
		finding  anomaly.State
		excluded bool
		plan     remap.PlanState
		cn1      topology.ForwarderID
	}{
		{0.5, "", false, "", "fwd1"}, {1, anomaly.Suspect, false, "", "fwd1"},
		{2.5, anomaly.Confirmed, false, "", "fwd1"},
		{3.5, anomaly.Confirmed, true, "", "fwd1"}, {4.5, anomaly.Confirmed, true, remap.Proposed, "fwd1"},
		{5.5, anomaly.Confirmed, true, remap.Applying, "fwd1"},
		{6.5, anomaly.Confirmed, true, remap.Partial, "fwd2"}, {7.5, anomaly.Returned, false, remap.Partial, "fwd2"},
		{8.2, "", false, remap.RollingBack, "fwd2"}, {9, "", false, "", "fwd1"},
	} {
		at := h(c.at)
		state, plan := anomaly.State(""), remap.PlanState("")
		if f := tl.Findings(at); len(f) > 0 {
			state = f[0].State
		}
		if p := tl.Plans(at); len(p) > 0 {
			plan = p[0].State
			if !slices.Equal(p[0].Targets, []topology.ForwarderID{"fwd2", "fwd3"}) || p[0].Title == "" {
				t.Errorf("%v h: the plan is %+v", c.at, p[0])
			}
		}
		m, ok := tl.Mapping(topology.Mapping{"cn1": "fwd1", "cn2": "fwd1", "cn9": "fwd9"}, never, at)
		if state != c.finding || (tl.Excluded(at)["fwd1"] != "") != c.excluded || plan != c.plan || m["cn1"] != c.cn1 ||
			m["cn2"] != "fwd1" || m["cn9"] != "fwd9" || !ok {
			t.Errorf("%v h: finding %q, excluded %v, plan %q, mapping %v %v; want %+v", c.at, state, tl.Excluded(at),
				plan, m, ok, c)
		}
	}
	// A node that is gone was where the last move before left it; one seen there all the time stays.
	if m, _ := tl.Mapping(nil, never, h(9)); m["cn1"] != "fwd1" || len(m) != 1 {
		t.Errorf("of nodes that are gone: %v", m)
	}
	if m, _ := tl.Mapping(topology.Mapping{"cn1": "fwd5"}, func(topology.NodeID) time.Time { return h(5) },
		h(6.5)); m["cn1"] != "fwd5" {
		t.Errorf("a node that was observed: %v", m)
	}
	kinds := map[string]int{}
	marks := tl.Marks(h(2), h(8))
	for i, m := range marks {
		kinds[m.Kind]++
		if i > 0 && m.At.Before(marks[i-1].At) {
			t.Errorf("mark %d at %s comes after %s", i, m.At, marks[i-1].At)
		}
	}
	if kinds["finding"] != 2 || kinds["plan"] != 4 || kinds["exclusion"] != 1 {
		t.Errorf("marks %v: %+v", kinds, marks)
	}
}

// Moves are bounded: the older ones go, and times before them are reported as unknown.
func TestTimelineGivesUpOldMoves(t *testing.T) {
	tl := NewTimeline()
	tl.count = maxPastMoves - 2
	at := time.Unix(1e9, 0)
	for i := range 4 {
		tl.keep("cn1", moved{at.Add(time.Duration(i) * time.Hour), topology.ForwarderID('a' + rune(i)),
			topology.ForwarderID('b' + rune(i))})
	}
	if tl.count > 3 || len(tl.moves["cn1"]) > 3 {
		t.Errorf("%d moves are counted, %d kept", tl.count, len(tl.moves["cn1"]))
	}
	if _, ok := tl.Mapping(nil, func(topology.NodeID) time.Time { return time.Time{} }, at); ok {
		t.Error("a mapping is called known though the moves before it are gone")
	}
}
