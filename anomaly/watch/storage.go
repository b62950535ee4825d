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
	kind    anomaly.Kind // of what it finds
	pairs   []layout.Pair
	accused map[topology.NodeID]bool
}

func newBackHalf(every time.Duration) backHalf {
	return backHalf{group: layout.NewForwarders(every), kind: anomaly.FailSlow, accused: map[topology.NodeID]bool{}}
}

// newFrontHalf judges clients so: a slow one is nobody else's fault.
func newFrontHalf(every time.Duration) backHalf {
	return backHalf{group: layout.NewClients(every), kind: anomaly.ClientSlow, accused: map[topology.NodeID]bool{}}
}

// mostPairs of a node and a storage target are compared in a second; on a machine with more clients are not.
const mostPairs = 20_000

// take notes what a forwarder asked of each storage target.
func (b *backHalf) take(f *collector.Frame) {
	if b.kind == anomaly.ClientSlow && len(b.pairs) > mostPairs {
		return
	}
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
	var rows []layout.Router
	if b.kind == anomaly.FailSlow || len(b.pairs) <= mostPairs {
		rows = layout.Rows(b.pairs)
	}
	b.pairs = b.pairs[:0]
	out := slices.DeleteFunc(b.group.Second(now, rows), func(v anomaly.Verdict) bool {
		was := b.accused[v.Node]
		b.accused[v.Node] = v.Level >= anomaly.Doubt
		return v.Kind != anomaly.FailSlow || v.Level < anomaly.Doubt && !was
	})
	for i := range out {
		out[i].Kind = b.kind
	}
	return out
}
