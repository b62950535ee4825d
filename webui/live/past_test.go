package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/remap/journal"
	"fairway/tsdb"
	"fairway/webui/api"
)

// A finding keeps whom it hurt until it changes: a second in which that job had ended names it no more, and one in
// which it ran says how many of its nodes waited.
func TestAPastSecondNamesTheJobsThatRanThen(t *testing.T) {
	at := time.Unix(1.8e9, 0).UTC()
	timeline := journal.NewTimeline()
	timeline.Take(&journal.Record{At: at, Kind: journal.StepFinding, Plan: "F-1", Finding: &anomaly.Change{At: at,
		Finding: anomaly.Finding{ID: "F-1", Node: "fwd1", Kind: anomaly.FailSlow, State: anomaly.Confirmed, Since: at,
			Impact: []anomaly.Impact{{Job: "5", Share: .5}}}}})
	m := &topology.Machine{Nodes: []topology.Node{{ID: "fwd1", Role: topology.Forwarder},
		{ID: "cn1", Role: topology.Compute}}}
	now := &Snapshot{Machine: m, Situation: remap.BuildSituation(remap.SituationParts{Machine: m})}
	now.Situation.Observed = topology.Mapping{"cn1": "fwd1"}
	// Job 5 runs until a minute after.
	ran := func(others ...remap.Job) func(time.Time) ([]remap.Job, error) {
		return func(t time.Time) ([]remap.Job, error) {
			if t.After(at.Add(time.Minute)) {
				return others, nil
			}
			return append([]remap.Job{{ID: "5", App: "climate", Nodes: []topology.NodeID{"cn1"}}}, others...), nil
		}
	}
	for name, c := range map[string]struct {
		jobsAt func(time.Time) ([]remap.Job, error)
		after  time.Duration
		text   string
	}{
		"it ran":             {ran(), time.Second, "climate (job 5): 1 of 1 node waits 50 %"},
		"it ran beside one":  {ran(remap.Job{ID: "4"}), time.Second, "climate (job 5): 1 of 1 node waits 50 %"},
		"it had ended":       {ran(), 2 * time.Minute, ""},
		"another ran then":   {ran(remap.Job{ID: "6"}), 2 * time.Minute, ""},
		"jobs are not known": {nil, time.Second, "job 5: waits 50 %"},
		"the history does not know it": {func(time.Time) ([]remap.Job, error) { return nil, nil }, time.Second,
			"job 5: waits 50 %"},
	} {
		end := at.Add(c.after)
		rows := []api.ForwarderRow{{ID: "fwd1", LastSeen: end}}
		newRowValues(1).fill(0, &rows[0], []collector.Sample{{Metric: collector.ReadBytes}})
		m := moment{overview: api.Overview{At: end, Forwarders: rows}}
		p := past{cfg: &Config{JobsAt: c.jobsAt, JobsKnown: func() bool { return true }}}
		sit, plans := recall(&m, now, timeline, end)
		if err := p.recallJobs(t.Context(), &m, sit); err != nil {
			t.Fatal(err)
		}
		got := ""
		needs := advise.Cards(advise.Input{Situation: sit, Plans: plans, Now: end})
		if len(needs) == 1 && len(needs[0].Victims) == 1 {
			got = needs[0].Victims[0].Text
		}
		if got != c.text || (len(needs) == 0) != (c.text == "") {
			t.Errorf("%s: %q of %+v, want %q", name, got, needs, c.text)
		}
	}
}

// broken is a store in which connections broke at some seconds, or that does not answer.
type broken struct {
	tsdb.Store
	at   map[topology.NodeID][]tsdb.Point
	fail error
}

func (b broken) Select(_ context.Context, q tsdb.Query) (out []tsdb.Series, err error) {
	if b.fail != nil {
		return nil, b.fail
	}
	for _, n := range q.Nodes {
		if (q.Metric == collector.Recovering) == (n == "oss1") {
			out = append(out, tsdb.Series{Node: n, Points: b.at[n]})
		}
	}
	return out, nil
}

// TestBrokenConnectionsAreMarks: one mark where each trouble begins, of forwarders and of servers.
func TestBrokenConnectionsAreMarks(t *testing.T) {
	points := func(values ...float64) (out []tsdb.Point) {
		for i, v := range values {
			out = append(out, tsdb.Point{TimeMillis: int64(i) * 10_000, Value: v})
		}
		return out
	}
	p := &past{cfg: &Config{Store: broken{at: map[topology.NodeID][]tsdb.Point{"fwd1": points(0, 1, 1, 0, 2),
		"fwd2": points(0, 0), "oss1": points(2, 2)}}}}
	machine := &topology.Machine{Nodes: []topology.Node{{ID: "fwd1", Role: topology.Forwarder},
		{ID: "fwd2", Role: topology.Forwarder}, {ID: "oss1", Role: topology.Storage}}}
	marks, err := p.breaks(t.Context(), machine, time.UnixMilli(0), time.UnixMilli(60_000))
	got := ""
	for _, m := range marks {
		got += fmt.Sprint(m.At.UnixMilli(), " ", m.Node, " ", m.Text, m.Forwarders, "; ")
	}
	want := "10000 fwd1 had to connect to its servers anew[fwd1]; " +
		"40000 fwd1 had to connect to its servers anew[fwd1]; " +
		"0 oss1 targets in recovery[]; "
	if err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

// TestMarksOutliveTheStore: a store that does not answer costs the journal's marks nothing, and a mark says so.
func TestMarksOutliveTheStore(t *testing.T) {
	at := time.UnixMilli(6000).UTC()
	found := journal.Record{At: at, Kind: journal.StepFinding, Plan: "F-1", Finding: &anomaly.Change{At: at,
		Finding: anomaly.Finding{ID: "F-1", Node: "fwd1", Kind: anomaly.FailSlow, State: anomaly.Confirmed, Since: at}}}
	p := &Picture{log: slog.New(slog.DiscardHandler), past: past{cfg: &Config{Store: broken{fail: errors.New("disk")},
		Journal: func(_ uint64, visit func(*journal.Record) error) (uint64, error) { return 1, visit(&found) }}}}
	p.snap.Store(&Snapshot{Machine: &topology.Machine{
		Nodes: []topology.Node{{ID: "fwd1", Role: topology.Forwarder}}}})
	from := time.UnixMilli(5000)
	marks, err := p.Marks(t.Context(), from, from.Add(time.Minute))
	var kinds []string
	for _, m := range marks {
		kinds = append(kinds, m.Kind)
	}
	if err != nil || !slices.Equal(kinds, []string{"finding", "connection"}) ||
		!strings.Contains(marks[1].Text, "not known") {
		t.Errorf("%+v, %v; want the finding, then a mark that says what the store did not answer", marks, err)
	}
}
