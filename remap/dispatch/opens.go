package dispatch

import (
	"math"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/history"
)

// phaseGap is how long a job opens nothing between two phases of I/O, ms.
const phaseGap = 10_000

// opens are a job's creations and opens as its metadata servers count them, by phase: of an application that writes a
// file for each node every phase creates about as many as it has nodes, of one that writes a shared file one node
// creates it and all open it.
type opens struct {
	read   map[topology.NodeID]int64 // the newest second taken of each server, ms
	newest int64                     // of any with something in it
	phase  counted
	votes  map[topology.Mode]int // of the phases that have ended
}

// counted are files created and opened.
type counted struct{ created, opened float64 }

// opened is one server's second of a job, at ms.
type opened struct {
	at int64
	counted
}

// addOpens takes what a metadata server counted of the job.
func (s *seen) addOpens(f *collector.Frame, samples []collector.Sample) {
	created, known := collector.SampleOf(samples, collector.FilesCreated)
	n, too := collector.SampleOf(samples, collector.FilesOpened)
	if !known && !too {
		return
	}
	if s.opens == nil {
		s.opens = map[topology.NodeID]opened{}
	}
	s.opens[f.Node] = opened{f.TimeMillis, counted{created, n}}
}

// note takes each server's second once. Seconds come in order, but for those that arrived late.
func (o *opens) note(seconds map[topology.NodeID]opened, nodes int) {
	for n, one := range seconds {
		if one.at <= o.read[n] {
			continue
		}
		if o.read == nil {
			o.read, o.votes = map[topology.NodeID]int64{}, map[topology.Mode]int{}
		}
		o.read[n] = one.at
		if one.created+one.opened == 0 {
			continue
		}
		if one.at-o.newest >= phaseGap {
			if m := o.phase.mode(nodes); m != "" {
				o.votes[m]++
			}
			o.phase = counted{}
		}
		o.newest = max(o.newest, one.at)
		o.phase.created, o.phase.opened = o.phase.created+one.created, o.phase.opened+one.opened
	}
}

// mode is how one phase shared files. Opens of what is there already may be of one file or of many, and a few creations
// of anything: then it is not known.
func (c counted) mode(nodes int) topology.Mode {
	created, all := math.Round(c.created), float64(nodes)
	switch {
	case nodes < 2:
	case created == 1 && math.Round(c.opened) >= all:
		return topology.ModeN1
	case created > 1 && created >= all/2:
		return topology.ModeNN
	}
	return ""
}

// mode is that of more than half of the phases of which it is known.
func (o *opens) mode(nodes int) topology.Mode {
	last := o.phase.mode(nodes)
	all, most, best := 0, 0, topology.Mode("")
	for _, m := range []topology.Mode{topology.ModeN1, topology.ModeNN} {
		n := o.votes[m]
		if m == last {
			n++
		}
		all += n
		if n > most {
			most, best = n, m
		}
	}
	if 2*most <= all {
		return ""
	}
	return best
}

// mode is how the run's nodes shared files: by what their mounts report, else by what the metadata servers counted
// where at least half of the nodes did I/O.
func (j *job) mode(p *history.Profile) topology.Mode {
	if m := modeOf(j.files, p); m != "" {
		return m
	}
	if 2*p.IONodes < j.run.Nodes {
		return ""
	}
	return j.opens.mode(j.run.Nodes)
}
