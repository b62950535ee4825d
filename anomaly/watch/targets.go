package watch

import (
	"cmp"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/anomaly/sighted"
	"fairway/anomaly/targetslow"
	"fairway/collector"
	"fairway/collector/topology"
)

// appendPoints takes the service times that a storage or metadata server reports: each class of operations is
// compared among the servers of that role.
func appendPoints(to []targetslow.Point, f *collector.Frame) []targetslow.Point {
	for _, c := range []struct {
		metric collector.Metric
		what   string
	}{{collector.ReadExec, " servers in reads"}, {collector.WriteExec, " servers in writes"},
		{collector.MetaExec, " servers in metadata operations"}} {
		if v, ok := f.Value(c.metric); ok {
			to = append(to, targetslow.Point{Target: f.Node, Group: f.Role.String() + c.what, Cost: v})
		}
	}
	return to
}

// sights judge storage targets and metadata servers by those who ask them, whether they report or not.
type sights struct {
	judge *sighted.Judge
	taken map[topology.NodeID]int64 // the newest second of each node that was taken
}

func newSights(every time.Duration) sights {
	return sights{judge: sighted.New(every, sighted.Targets()), taken: map[topology.NodeID]int64{}}
}

// take notes what a node saw of each that it asks.
func (s *sights) take(f *collector.Frame) {
	if len(f.Targets) == 0 || s.taken[f.Node] == f.TimeMillis {
		return
	}
	s.taken[f.Node] = f.TimeMillis
	for _, t := range f.Targets {
		for c, m := range classOf {
			ops, _ := collector.SampleOf(t.Samples, m.ops)
			took, ok := collector.SampleOf(t.Samples, m.client)
			if ok && !t.Target.IsNID() {
				s.judge.Take(sighted.Sighting{Observer: f.Node, Subject: topology.NodeID(t.Target),
					Class: failslow.Class(c).String(), Ops: ops, Took: took})
			}
		}
	}
}

// judgeTargets compares the servers of the back end. A server that is slow in several classes gets one verdict, on
// the worst of them. While a router is in doubt, what clients wait for is its doing and accuses no server.
func (d *Detectors) judgeTargets(now time.Time, routers []anomaly.Verdict) []anomaly.Verdict {
	// The window has no order, and verdicts must not depend on it.
	slices.SortFunc(d.second.points, func(a, b targetslow.Point) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Group, b.Group))
	})
	out := []anomaly.Verdict{}
	for _, v := range d.targets.Take(now, d.second.points) { // in order of targets
		switch last := len(out) - 1; {
		case last < 0 || out[last].Node != v.Node:
			out = append(out, v)
		case v.Level > out[last].Level || v.Level == out[last].Level && v.Score > out[last].Score:
			out[last] = v
		}
	}
	seen := d.clients.sights.judge.Second(now)
	if slices.ContainsFunc(routers, func(v anomaly.Verdict) bool {
		return v.Kind == anomaly.FailSlow && v.Level >= anomaly.Doubt
	}) {
		seen = nil
	}
	return worst(out, seen)
}
