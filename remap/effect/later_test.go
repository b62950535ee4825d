package effect

import (
	"context"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/place"
	"fairway/tsdb"
)

// slowUntil is a store in which writes take 133 ms until an instant and 17 ms from then on, 10 a second.
type slowUntil struct{ at time.Time }

func (s slowUntil) Select(_ context.Context, q tsdb.Query) (out []tsdb.Series, err error) {
	for _, n := range q.Nodes {
		one := tsdb.Series{Node: n}
		for t := q.FromMillis; t < q.ToMillis; t += 1000 {
			switch {
			case q.Metric == collector.WriteOps:
				one.Points = append(one.Points, tsdb.Point{TimeMillis: t, Value: 10})
			case q.Metric == collector.ClientWrite && t < s.at.UnixMilli():
				one.Points = append(one.Points, tsdb.Point{TimeMillis: t, Value: 0.133})
			case q.Metric == collector.ClientWrite:
				one.Points = append(one.Points, tsdb.Point{TimeMillis: t, Value: 0.017})
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// TestLaterRunsShowWhatAShortJobCouldNot: runs of the same application count once they have done a minute elsewhere
// than where the plan's job was slow, each once and at most three.
func TestLaterRunsShowWhatAShortJobCouldNot(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	store := slowUntil{at}
	p := remap.Plan{ID: "P-1", Job: "1", App: "climate", User: "wei", Changed: at,
		Moves: []remap.Move{{Node: "c1", From: "f1", To: "f2"}}}
	e := &remap.Effect{Verdict: remap.EffectUnknown, Why: "its job ended too soon after the move",
		BeforeFrom: at.Add(-Window), BeforeTo: at}
	l, err := newLater(t.Context(), store, p, e)
	if err != nil || l == nil {
		t.Fatal(l, err)
	}
	where := topology.Mapping{"c1": "f2", "c2": "f1", "c3": "f3"}
	job := func(id topology.JobID, app string, after time.Duration, nodes ...topology.NodeID) remap.Job {
		return remap.Job{ID: id, App: app, User: "wei", Nodes: nodes, Start: at.Add(after)}
	}
	s := remap.BuildSituation(remap.SituationParts{At: at, Machine: &topology.Machine{Default: where},
		Jobs: []remap.Job{job("1", "climate", -time.Hour, "c1"), job("2", "climate", time.Minute, "c1", "c3"),
			job("3", "other", time.Minute, "c3"), job("4", "climate", time.Minute, "c2"),
			job("5", "climate", 2*time.Minute, "c3"), job("6", "climate", 3*time.Minute, "c3"),
			job("7", "climate", 9*time.Minute, "c3")}})
	s.Places = place.New(where, nil, nil)
	texts := map[topology.JobID]string{}
	for now := at; now.Before(at.Add(10 * time.Minute)); now = now.Add(time.Second) {
		for _, j := range l.due(s, now) {
			if now.Sub(j.Start) < Window {
				t.Errorf("job %s is measured after %s", j.ID, now.Sub(j.Start))
			}
			if ok, err := l.take(t.Context(), store, &j); !ok || err != nil {
				t.Errorf("job %s: %v, %v", j.ID, ok, err)
			}
			texts[j.ID] = l.effect.Text()
		}
		if l.over(now) {
			break
		}
	}
	const want = "helped: 3 of 3 later runs faster: 133 -> 17 ms"
	if l.effect.Text() != want {
		t.Errorf("%s", l.effect.Text())
	}
	if texts["2"] != "not known whether it helped: its job ended too soon after the move; 1 of 1 later run faster: "+
		"133 -> 17 ms" {
		t.Errorf("%q", texts)
	}
}
