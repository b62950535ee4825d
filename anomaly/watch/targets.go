package watch

import (
	"cmp"
	"math"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/backend"
	"fairway/anomaly/compare"
	"fairway/anomaly/failslow"
	"fairway/anomaly/targetslow"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// appendPoints takes the service times that a storage or metadata server reports: each class of operations is
// compared among the servers of that role.
func appendPoints(to []targetslow.Point, f *collector.Frame) []targetslow.Point {
	for c, what := range [...]string{"reads", "writes", "metadata operations"} {
		if v, ok := f.Value(classOf[c].exec); ok {
			to = append(to, targetslow.Point{Target: f.Node, Group: f.Role.String() + " servers in " + what, Cost: v})
		}
	}
	return to
}

// sights judge storage targets and metadata servers by those who ask them, whether they report or not, and those who
// ask by each other.
type sights struct {
	targets    *compare.Judge
	forwarders *compare.Judge
	clients    *compare.Judge // behind routers, which know no files
}

func newSights(every time.Duration) sights {
	return sights{targets: compare.New(every, compare.Targets()), forwarders: compare.New(every, compare.Forwarders()),
		clients: compare.New(every, compare.Clients())}
}

// take notes what a node saw of each that it asks, and what these saw of it beside those who ask for what is about as
// large; askers nil: of its kind nobody is judged so.
func (s *sights) take(f *collector.Frame, askers *compare.Judge) {
	for _, t := range f.Targets {
		for c, m := range classOf {
			ops, _ := collector.SampleOf(t.Samples, m.ops)
			took, ok := collector.SampleOf(t.Samples, m.client)
			if !ok || t.Target.IsNID() {
				continue
			}
			class, target := failslow.Class(c), topology.NodeID(t.Target)
			s.targets.Take(compare.Sighting{Observer: f.Node, Subject: target, Class: class.String(), Ops: ops,
				Took: took})
			if askers != nil && class != failslow.Meta {
				bytes, _ := collector.SampleOf(t.Samples, m.bytes)
				askers.Take(compare.Sighting{Observer: target, Subject: f.Node, Class: class.String(),
					Size: int(math.Round(math.Log2(max(bytes/ops, 1)))), Ops: ops, Took: took})
			}
		}
	}
}

// judgeAskers accuses forwarders and clients by their own requests to storage. That one asks its targets as fast as
// others do clears it of nothing.
func (s *sights) judgeAskers(now time.Time) []anomaly.Verdict {
	return slices.DeleteFunc(append(s.forwarders.Second(now), s.clients.Second(now)...),
		func(v anomaly.Verdict) bool { return v.Level < anomaly.Doubt })
}

// judgeTargets compares the servers of the back end. A server that is slow in several classes gets one verdict. While a
// router is in doubt, what clients wait for is its doing and accuses no server.
func (d *Detectors) judgeTargets(now time.Time, routers []anomaly.Verdict) []anomaly.Verdict {
	// The window has no order, and verdicts must not depend on it.
	slices.SortFunc(d.second.points, func(a, b targetslow.Point) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Group, b.Group))
	})
	out := anomaly.Merge(nil, d.targets.Take(now, d.second.points))
	seen := d.clients.sights.targets.Second(now)
	if slices.ContainsFunc(routers, func(v anomaly.Verdict) bool {
		return v.Kind == anomaly.FailSlow && v.Level >= anomaly.Doubt
	}) {
		seen = nil
	}
	return anomaly.Merge(out, seen)
}

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
	if len(d.second.servers) == 0 {
		return nil
	}
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
