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
	served float64               // operation-seconds in service of metadata servers
	votes  map[topology.Mode]int // of the phases that have ended
}

// counted are files created and opened.
type counted struct{ created, opened float64 }

// opened is one server's second of a job, at ms: what was opened, and how many of its operations were in service.
type opened struct {
	at int64
	counted
	served float64
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
	ops, _ := collector.SampleOf(samples, collector.MetaOps)
	took, _ := collector.SampleOf(samples, collector.MetaExec) // absent: it is not known what is in service
	one := s.opens[f.Node]                                     // a server has a share for each of its targets
	s.opens[f.Node] = opened{f.TimeMillis, counted{one.created + created, one.opened + n}, one.served + ops*took}
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
		o.served += one.served // a frame's rates stand for a second
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

// callbacks are the seconds in which at least half of a job's nodes wrote, as far as their locks of the file system are
// counted, and those of them in which half of all nodes had locks taken back: others asked for the same files.
type callbacks struct{ writing, shared int }

const (
	// calledBack locks a second are more than a node loses by itself.
	calledBack = 1
	// fewWriting seconds of writing say nothing.
	fewWriting = 10
)

// lockSecond are the nodes that wrote in a second and report their locks, and those that had some taken back.
type lockSecond struct{ wrote, lost int }

// add takes a node's second.
func (l *lockSecond) add(f *collector.Frame) {
	wrote, _ := f.Value(collector.WriteBytes)
	lost, known := f.Value(collector.LockCallbacks)
	if !known || wrote <= 0 {
		return
	}
	if l.wrote++; lost > calledBack {
		l.lost++
	}
}

func (c *callbacks) note(l lockSecond, nodes int) {
	if nodes < 2 || 2*l.wrote < nodes {
		return
	}
	if c.writing++; 2*l.lost >= nodes {
		c.shared++
	}
}

// mode is N-1 where that was so in most seconds of writing. Without callbacks nothing is known: nodes that write parts
// of a file that are far apart keep their locks.
func (c *callbacks) mode() topology.Mode {
	if c.writing >= fewWriting && 2*c.shared > c.writing {
		return topology.ModeN1
	}
	return ""
}

// mode is how the run's nodes shared files, 1-1 where one of them did all I/O: by what their mounts report, else by
// what the metadata servers counted where at least half of the nodes did I/O, else by the locks that the nodes took
// from each other.
func (j *job) mode(p *history.Profile) topology.Mode {
	if p.IONodes == 1 {
		return topology.Mode11
	}
	if m := modeOf(j.files, p); m != "" {
		return m
	}
	if 2*p.IONodes < j.run.Nodes {
		return ""
	}
	if m := j.opens.mode(j.run.Nodes); m != "" {
		return m
	}
	return j.locks.mode()
}
