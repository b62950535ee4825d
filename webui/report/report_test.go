package report

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
	"fairway/tsdb/engine"
	"fairway/tsdb/history"
)

var monday = time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)

func records(all ...*journal.Record) func(journal.Wanted) iter.Seq2[*journal.Record, error] {
	return func(w journal.Wanted) iter.Seq2[*journal.Record, error] {
		return func(yield func(*journal.Record, error) bool) {
			for _, r := range all {
				if !r.At.Before(w.From) && r.At.Before(w.To) && !yield(r, nil) {
					return
				}
			}
		}
	}
}

// sources are a week of 500 runs, a slow forwarder, a suspicion, a finding that a person called wrong, and a plan.
func sources(t testing.TB, seed uint64) (Sources, []history.Run) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	store, err := engine.Open(t.TempDir(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	var frames []collector.Frame
	for sec := range 120 {
		at := monday.Add(26*time.Hour + time.Duration(sec)*time.Second)
		frames = append(frames, collector.Frame{Node: "fwd1", Role: topology.Forwarder, TimeMillis: at.UnixMilli(),
			Samples: []collector.Sample{
				{Metric: collector.ReadBytes, Value: 1e6}, {Metric: collector.WriteBytes, Value: 2e6},
				{Metric: collector.MetaOps, Value: 10}}})
	}
	if err := store.Append(t.Context(), frames); err != nil {
		t.Fatal(err)
	}
	var runs []history.Run
	for i := range 500 {
		end := monday.Add(time.Duration(rnd.IntN(9*24*3600)-24*3600) * time.Second)
		r := history.Run{Job: topology.JobID(fmt.Sprint(i)), User: fmt.Sprint("u", rnd.IntN(30)), App: "app<b>|x",
			Project: []string{"", "sea", "air"}[rnd.IntN(3)], Nodes: 1 + rnd.IntN(64), Start: end.Add(-time.Hour),
			End:        end,
			Forwarders: []topology.ForwarderID{"fwd1", "fwd2"}}
		if rnd.IntN(5) > 0 {
			r.Profile = &history.Profile{ReadBytes: rnd.Float64() * 1e12, WriteBytes: 1e9, MetaOps: 1000, IOSeconds: 60}
		}
		runs = append(runs, r)
	}
	step := func(state anomaly.State, after time.Duration) anomaly.Step {
		return anomaly.Step{State: state, At: monday.Add(after)}
	}
	slow := anomaly.Finding{ID: "F-1", Node: "fwd1", Kind: anomaly.FailSlow, State: anomaly.Returned,
		Since:   monday.Add(26 * time.Hour),
		Changed: monday.Add(27 * time.Hour), Sentence: "fwd1 is 10x slow <script>", Why: "healthy again",
		Impact: []anomaly.Impact{{Job: "7", Share: .77}}, Steps: []anomaly.Step{step(anomaly.Suspect, 26*time.Hour),
			step(anomaly.Confirmed, 26*time.Hour+30*time.Second), // and then it was worse
			step(anomaly.Confirmed, 26*time.Hour+40*time.Second), step(anomaly.Returned, 27*time.Hour)}}
	wrong := anomaly.Finding{ID: "F-2", Node: "fwd2", Kind: anomaly.FailSlow, State: anomaly.Dismissed,
		Since: monday.Add(30 * time.Hour), Changed: monday.Add(31 * time.Hour), Sentence: "fwd2 is 2x slow",
		Steps: []anomaly.Step{step(anomaly.Suspect, 30*time.Hour), step(anomaly.Confirmed, 30*time.Hour+50*time.Second),
			step(anomaly.Dismissed, 31*time.Hour)}}
	suspicion := anomaly.Finding{ID: "F-3", Node: "fwd3", Kind: anomaly.FailSlow, State: anomaly.Suspect,
		Since: monday.Add(40 * time.Hour), Steps: []anomaly.Step{step(anomaly.Suspect, 40*time.Hour)}}
	old := anomaly.Finding{ID: "F-0", Node: "fwd4", Kind: anomaly.TargetSlow, State: anomaly.Confirmed,
		Since: monday.Add(-24 * time.Hour), Sentence: "since last week",
		Steps: []anomaly.Step{step(anomaly.Confirmed, -23*time.Hour)}}
	record := func(at time.Duration, f anomaly.Finding) *journal.Record {
		return &journal.Record{At: monday.Add(at), Kind: journal.StepFinding, Plan: f.ID,
			Finding: &anomaly.Change{Finding: f}}
	}
	earlier := slow
	earlier.State = anomaly.Confirmed
	return Sources{Site: "hpc1", Version: "test", Runs: func(visit func(history.Run) error) error {
		for _, r := range runs {
			if err := visit(r); err != nil {
				return err
			}
		}
		return nil
	}, Records: records(record(40*time.Hour, suspicion), record(31*time.Hour, wrong), record(27*time.Hour, slow),
		record(26*time.Hour, earlier),
		&journal.Record{At: monday.Add(26 * time.Hour), Kind: journal.StepPropose, Plan: "P-1"}),
		Open: []anomaly.Finding{suspicion, old}, Store: store, Forwarders: []topology.NodeID{"fwd1", "fwd2"},
		Plan: func(_ context.Context, id string) (remap.Plan, error) {
			return remap.Plan{ID: id, Job: "7", Proposer: "olga", State: remap.Verified,
				Moves: remap.MoveAll([]topology.NodeID{"cn1"}, "fwd2")}, nil
		}}, runs
}

// TestReport checks a week's figures against what went into it.
func TestReport(t *testing.T) {
	s, runs := sources(t, 1)
	to := monday.AddDate(0, 0, 7)
	r, err := Make(t.Context(), s, monday, to, to.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	want := Use{Name: "all"}
	for i := range runs {
		if e := runs[i].End; !e.Before(monday) && e.Before(to) {
			want.add(&runs[i])
		}
	}
	if r.Total != want || want.Runs == 0 || want.Runs == len(runs) {
		t.Errorf("in all %+v, want %+v", r.Total, want)
	}
	for name, all := range map[string][]Use{"projects": r.Projects, "users": r.Users, "applications": r.Apps} {
		sum := 0
		for _, u := range all {
			sum += u.Runs
		}
		if sum != r.Total.Runs {
			t.Errorf("the %s have %d runs, all together %d", name, sum, r.Total.Runs)
		}
	}
	if r.Layer.ReadBytes != 120e6 || r.Layer.WriteBytes != 240e6 || r.Layer.MetaOps != 1200 {
		t.Errorf("the layer moved %+v", r.Layer)
	}
	if got := r.Layer.Reported * 2 * 7 * 86400; got < 119 || got > 121 {
		t.Errorf("%g seconds were reported, want 120", got)
	}
	if r.Record != (Record{Suspected: 3, Confirmed: 2, Dismissed: 1, Returned: 1, ToConfirm: 50}) {
		t.Errorf("the detectors' record is %+v", r.Record)
	}
	if len(r.Findings) != 3 || r.Findings[0].ID != "F-0" || r.Findings[0].Seconds != 7*86400 ||
		r.Findings[1].Seconds != 3600 {
		t.Errorf("findings %+v", r.Findings)
	}
	if len(r.Plans) != 1 || r.Plans[0].ID != "P-1" || len(r.Missing) != 1 {
		t.Errorf("plans %+v, missing %q", r.Plans, r.Missing)
	}
	wantShort := []string{fmt.Sprintf("The forwarders read 120 MB and wrote 240 MB; %d jobs ended.", want.Runs),
		"2 nodes were slow, for 7.0 days in all; 1 job lost time by it; 1 finding not ended yet.",
		"1 proposal to move compute nodes to other forwarders; 1 carried out, whole or in part."}
	if got := r.InShort(); !slices.Equal(got, wantShort) {
		t.Errorf("in short: %q\nwant %q", got, wantShort)
	}
	var page, text bytes.Buffer
	if err := r.HTML(&page); err != nil {
		t.Fatal(err)
	}
	if err := r.Markdown(&text); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script>", "<b>|"} {
		if strings.Contains(page.String(), bad) || strings.Contains(text.String(), bad) {
			t.Errorf("%q stands in the report as it came", bad)
		}
	}
	for _, want := range []string{"http://", "https://", "src=", "@import"} { // it opens without a network
		if strings.Contains(page.String(), want) {
			t.Errorf("the page asks for %q", want)
		}
	}
	for _, want := range []string{"F-1", "fwd1", "1h00", "P-1", "moved, and observed", "<svg", "120 MB"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not have %q", want)
		}
	}
}

// TestWhatCannotBeReadIsNamed: a part that fails leaves the others.
func TestWhatCannotBeReadIsNamed(t *testing.T) {
	s, _ := sources(t, 2)
	s.Runs = func(func(history.Run) error) error { return fmt.Errorf("the disk failed") }
	r, err := Make(t.Context(), s, monday, monday.AddDate(0, 0, 7), monday.AddDate(0, 0, 7))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 3 || !strings.Contains(strings.Join(r.Missing, ";"),
		"the runs of jobs could not be read: the disk failed") {
		t.Errorf("%d findings, missing %q", len(r.Findings), r.Missing)
	}
}

// Between two changes a finding's cost grows. A report that reaches to now has what its page has; one of an earlier
// time what was on record then.
func TestAnOpenFindingCostsWhatItsPageSays(t *testing.T) {
	recorded := anomaly.Finding{ID: "F-1", Node: "fwd1", Kind: anomaly.FailSlow, State: anomaly.Confirmed,
		Since: monday, Impact: []anomaly.Impact{{Job: "7", Share: .77, CostSeconds: 5}},
		Steps: []anomaly.Step{{State: anomaly.Confirmed, At: monday}}}
	now := recorded
	now.Impact = []anomaly.Impact{{Job: "7", Share: .77, CostSeconds: 172}}
	s := Sources{Records: records(&journal.Record{At: monday, Kind: journal.StepFinding, Plan: "F-1",
		Finding: &anomaly.Change{Finding: recorded}}), Open: []anomaly.Finding{now}}
	for after, want := range map[time.Duration]string{10 * time.Millisecond: "2m52 in all", time.Hour: "5 s in all"} {
		to := monday.Add(time.Hour)
		r, err := Make(t.Context(), s, monday, to, to.Add(after))
		if err != nil || len(r.Findings) != 1 || !strings.Contains(r.InShort()[1], want) {
			t.Errorf("%s after its end: %v %q, want %s", after, err, r.InShort(), want)
		}
	}
}
