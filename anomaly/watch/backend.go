package watch

import (
	"math"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/backend"
	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// takeBackEnds takes the newest seconds of the storage servers behind the forwarders, and has each forwarder's
// observation know its own.
func (d *Detectors) takeBackEnds(now time.Time) {
	d.second.servers = d.second.servers[:0]
	used := map[topology.NodeID]bool{}
	for i := range d.second.rows {
		used[d.second.rows[i].Behind] = true
	}
	delete(used, "")
	if len(used) == 0 {
		return
	}
	d.board.Layer(topology.Storage, func(n *window.Node) {
		if used[n.Node] && now.UnixMilli()-n.TimeMillis <= fresh.Milliseconds() {
			d.second.servers = append(d.second.servers, serverSecond(&n.Frame))
		}
	})
	d.backEnds.Take(now, d.second.servers)
	for i := range d.second.rows {
		o := &d.second.rows[i]
		for c := range o.Class {
			if k := &o.Class[c]; o.Behind != "" && k.Ops > 0 {
				o.Excused[c] = d.backEnds.Explains(o.Behind, failslow.Class(c), k.Bytes/k.Ops, k.Exec)
			}
		}
		if t := o.Class[failslow.Meta].Wait; o.Behind != "" && t > 0 {
			o.Excused[failslow.Meta] = o.Excused[failslow.Meta] ||
				d.backEnds.Explains(o.Behind, failslow.Meta, 0, t)
		}
	}
}

// serverSecond is the second of a back end.
func serverSecond(f *collector.Frame) backend.Second {
	s := backend.Second{Node: f.Node, Answer: valueOr(f, collector.AnswerTime, 0)}
	for c, m := range classOf {
		k := &s.Class[c]
		k.Ops, k.Bytes = valueOr(f, m.ops, 0), valueOr(f, m.bytes, 0)
		k.Exec = valueOr(f, m.exec, math.NaN())
	}
	return s
}

// behind is the one server that a forwarder is a client of; "" where it has several or none.
func behind(f *collector.Frame) topology.NodeID {
	if len(f.Targets) != 1 || f.Targets[0].Target.IsNID() { // an LNet router lists its neighbours
		return ""
	}
	return topology.NodeID(f.Targets[0].Target)
}

// judgeBackEnds judges the back ends by their own clock and by what the clients of their gateways saw.
func (d *Detectors) judgeBackEnds() []anomaly.Verdict {
	var gateways []backend.Gateway
	for i := range d.second.rows {
		if o := &d.second.rows[i]; o.Behind != "" {
			gateways = append(gateways, backend.Gateway{Node: o.Node, Back: o.Behind,
				Slower: d.byClient.Slower(o.Node)})
		}
	}
	out := d.backEnds.Judge(gateways)
	for i := range out {
		if v := &out[i]; v.Level >= anomaly.Doubt {
			for _, g := range gateways {
				if g.Back == v.Node {
					d.lostBehind(v, g.Node)
				}
			}
		}
	}
	return out
}

// worst adds verdicts to others; of two about one node and kind the graver stays, of two alarms the worse condition. At
// an equal level it is the one that came first: scores of different tests cross from second to second, and a finding's
// sentence would jump.
func worst(to, more []anomaly.Verdict) []anomaly.Verdict {
	for i := range more {
		v := &more[i]
		at := slices.IndexFunc(to, func(o anomaly.Verdict) bool { return o.Node == v.Node && o.Kind == v.Kind })
		switch {
		case at < 0:
			to = append(to, *v)
		case v.Level > to[at].Level, v.Level == anomaly.Alarm && v.Level == to[at].Level && !v.Condition.Serves() &&
			v.Condition.Worse(to[at].Condition):
			to[at] = *v
		}
	}
	return to
}

// lostBehind adds the jobs behind one gateway to the impact of its back end.
func (d *Detectors) lostBehind(v *anomaly.Verdict, gateway topology.NodeID) {
	sums := d.clients.of[topology.ForwarderID(gateway)]
	if sums == nil {
		return
	}
	ratios := d.backEnds.Ratio(v.Node)
	for job, j := range sums.jobs {
		if share := j.lost(ratios); share >= leastShare {
			v.Impact = append(v.Impact, anomaly.Impact{Job: job, Share: share})
		}
	}
}
