package watch

import (
	"time"

	"fairway/anomaly"
	"fairway/anomaly/interference"
	"fairway/collector/topology"
)

// judge is one of those whose verdicts make up a second.
type judge struct {
	name   string
	second func(*moment) []anomaly.Verdict
}

// moment is the second that is judged, and what judges leave for those after them.
type moment struct {
	now     time.Time
	machine *Machine
	routers []anomaly.Verdict
}

// judgesOf are asked in this order, the one nearest to the cause first: of equal verdicts about one node its own stays.
// Adding one is a function, or a package, and a row.
func judgesOf(d *Detectors) []judge {
	return []judge{
		{"forwarders", func(m *moment) []anomaly.Verdict { return judgeForwarders(d, m) }},
		{"neighbours", func(m *moment) []anomaly.Verdict { return judgeNeighbours(d, m) }},
		{"jobs", func(m *moment) []anomaly.Verdict { // they accuse nobody, and note who explains what they wait
			takeJobTrends(d, m.now, m.machine)
			return nil
		}},
		{"servers", func(m *moment) []anomaly.Verdict {
			m.routers = d.routers.judge(m.now, d.board)
			return d.judgeTargets(m.now, m.routers)
		}},
		{"back ends", func(*moment) []anomaly.Verdict { return d.judgeBackEnds() }},
		{"routers", func(m *moment) []anomaly.Verdict { return m.routers }},
		{"forwarders' own requests", func(m *moment) []anomaly.Verdict { return d.routers.back.judge(m.now) }},
		{"hung", func(m *moment) []anomaly.Verdict { return judgeHung(d, m) }},
		{"links' rates", func(m *moment) []anomaly.Verdict { return d.silence.rates.verdicts(m.now) }},
		{"silence", func(m *moment) []anomaly.Verdict { return d.silence.verdicts(m.now, m.machine.mapped) }},
		{"capacity", func(m *moment) []anomaly.Verdict { return d.silence.full.Verdicts(m.now) }},
		{"second speakers", func(m *moment) []anomaly.Verdict { return d.silence.speakerVerdicts(m.now) }},
	}
}

// judgeForwarders judges forwarders by their own clocks and by their clients', and what else needs these.
func judgeForwarders(d *Detectors, m *moment) []anomaly.Verdict {
	d.second.verdicts = d.failSlow(m.now)
	d.tally.noteClasses(d.slow.Served())
	d.takeTrend(m.now)
	return d.second.verdicts
}

// judgeNeighbours says what else explains that forwarders are slow.
func judgeNeighbours(d *Detectors, m *moment) []anomaly.Verdict {
	d.boundExec()
	read, write := d.slow.Common()
	return d.others.Second(m.now, d.second.rows,
		interference.Layer{Read: read, Write: write, PeakBytesPerSec: d.slow.PeakBytesPerSec()})
}

// judgeHung accuses those that answer nothing, who are not judged by what they answered before.
func judgeHung(d *Detectors, m *moment) []anomaly.Verdict {
	hung := d.silence.bury(m.now, d.clients.hangs(m.now, d.silence.mute))
	for i := range hung {
		d.clients.plain.Forget(hung[i].Node)
	}
	return hung
}

// mapped is how many compute nodes have a forwarder as theirs, or as one of several.
func (m *Machine) mapped(n topology.NodeID) (nodes int) {
	for _, f := range m.Mapping {
		if f.Node() == n {
			nodes++
		}
	}
	for _, shares := range m.Spread {
		for _, s := range shares {
			if s.Forwarder.Node() == n {
				nodes++
			}
		}
	}
	return nodes
}

// about is what a verdict is about: jobs may each do the same on one node.
type about struct {
	node topology.NodeID
	kind anomaly.Kind
	job  topology.JobID
}

func aboutOf(v *anomaly.Verdict) about {
	a := about{node: v.Node, kind: v.Kind}
	if v.Kind.OfJob() && len(v.Culprits) > 0 {
		a.job = v.Culprits[0]
	}
	return a
}

// merge adds verdicts to those of nearer judges; of two about the same the higher level stays, of two alarms the worse
// condition. At an equal level it is the one that came first: scores of different tests cross from second to second,
// and a finding's sentence would jump.
func merge(to, more []anomaly.Verdict) []anomaly.Verdict {
	if len(more) == 0 {
		return to
	}
	at := make(map[about]int, len(to)+len(more))
	for i := range to {
		if key := aboutOf(&to[i]); at[key] == 0 {
			at[key] = i + 1
		}
	}
	for i := range more {
		v, key := &more[i], aboutOf(&more[i])
		k := at[key]
		switch {
		case k == 0:
			to = append(to, *v)
			at[key] = len(to)
		case v.Level > to[k-1].Level, v.Level == anomaly.Alarm && v.Level == to[k-1].Level && !v.Condition.Serves() &&
			v.Condition.Worse(to[k-1].Condition):
			to[k-1] = *v
		}
	}
	return to
}
