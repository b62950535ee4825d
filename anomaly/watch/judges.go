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
