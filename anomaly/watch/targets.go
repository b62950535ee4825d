package watch

import (
	"cmp"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/targetslow"
	"fairway/collector"
)

// appendPoints takes what a storage or metadata server told of its own service times: each class of
// operations is compared among the servers of that role.
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

// judgeTargets compares the servers of the back end; of one that is slow in several classes the worst
// counts.
func (d *Detectors) judgeTargets(now time.Time) []anomaly.Verdict {
	// The board's order is none; answers must not depend on it.
	slices.SortFunc(d.points, func(a, b targetslow.Point) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Group, b.Group))
	})
	var out []anomaly.Verdict
	for _, v := range d.targets.Take(now, d.points) { // in order of targets
		switch last := len(out) - 1; {
		case last < 0 || out[last].Node != v.Node:
			out = append(out, v)
		case v.Level > out[last].Level || v.Level == out[last].Level && v.Score > out[last].Score:
			out[last] = v
		}
	}
	return out
}
