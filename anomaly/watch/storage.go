package watch

import (
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/anomaly/layout"
	"fairway/collector"
	"fairway/collector/topology"
)

// backHalf judges forwarders by their own requests to the storage targets, which others ask in the same seconds.
type backHalf struct {
	group   *layout.Group
	pairs   []layout.Pair
	accused map[topology.NodeID]bool
}

func newBackHalf(every time.Duration) backHalf {
	return backHalf{group: layout.NewForwarders(every), accused: map[topology.NodeID]bool{}}
}

// take notes what a forwarder asked of each storage target.
func (b *backHalf) take(f *collector.Frame) {
	for _, t := range f.Targets {
		if t.Target.IsNID() {
			continue
		}
		for _, c := range []failslow.Class{failslow.Read, failslow.Write} {
			m := classOf[c]
			ops, okOps := collector.SampleOf(t.Samples, m.ops)
			bytes, _ := collector.SampleOf(t.Samples, m.bytes)
			took, ok := collector.SampleOf(t.Samples, m.client)
			if ok && okOps {
				b.pairs = append(b.pairs, layout.Pair{Forwarder: f.Node, Target: t.Target, Class: c, Ops: ops,
					Bytes: bytes,
					Took:  took})
			}
		}
	}
}

// judge compares the forwarders of the second. That one asks its targets as fast as others do clears it of nothing
// else: only what was accused here is cleared here.
func (b *backHalf) judge(now time.Time) []anomaly.Verdict {
	rows := layout.Rows(b.pairs)
	b.pairs = b.pairs[:0]
	return slices.DeleteFunc(b.group.Second(now, rows), func(v anomaly.Verdict) bool {
		was := b.accused[v.Node]
		b.accused[v.Node] = v.Level >= anomaly.Doubt
		return v.Kind != anomaly.FailSlow || v.Level < anomaly.Doubt && !was
	})
}
