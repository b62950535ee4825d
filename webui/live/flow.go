package live

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
)

// Flow says which way the bytes of jobs take in the newest second: from the job over forwarders to storage.
type Flow struct {
	At time.Time `json:"at"`
	// Links are the ways from jobs to forwarders, the most bytes first; nodes that only could use one
	// count as links without bytes.
	Links []Link `json:"links"`
	// Storage goes on from the forwarder. Where it is empty StorageUnknown says why.
	Storage        []StorageLink `json:"storage"`
	StorageUnknown string        `json:"storage_unknown,omitempty"`
}

// Link is one job's part of one forwarder.
type Link struct {
	Job              topology.JobID       `json:"job"`
	Forwarder        topology.ForwarderID `json:"forwarder"`
	ReadBytesPerSec  float64              `json:"read_bytes_per_sec"`
	WriteBytesPerSec float64              `json:"write_bytes_per_sec"`
	// Nodes are the job's compute nodes observed there, where the batch system reported the job; one that uses several
	// forwarders is at each.
	Nodes int `json:"nodes"`
	// By is who counted the bytes: the compute nodes, or the forwarder where they count no jobs.
	By string `json:"by,omitempty"`
}

func (l *Link) bytes() float64 { return l.ReadBytesPerSec + l.WriteBytesPerSec }

// StorageLink is what a job moves between a forwarder and a storage server.
type StorageLink struct {
	Job              topology.JobID       `json:"job"`
	Forwarder        topology.ForwarderID `json:"forwarder"` // empty: by no forwarder that is known
	Server           topology.NodeID      `json:"server"`
	ReadBytesPerSec  float64              `json:"read_bytes_per_sec"`
	WriteBytesPerSec float64              `json:"write_bytes_per_sec"`
	// Estimated says that the job uses several forwarders, so that its bytes at the server, which are
	// measured, are split as its bytes at the forwarders are.
	Estimated bool `json:"estimated,omitempty"`
}

// The observers of a link.
const (
	byClients   = "clients"
	byForwarder = "forwarder"
)

type way struct {
	job topology.JobID
	fwd topology.ForwarderID
}

// Flow is that of the newest snapshot. It is counted when it is first asked for, and once: many pages show it.
// What it refers to is shared and never changed.
func (p *Picture) Flow() Flow { return p.Snapshot().flow() }

func (p *Picture) countFlow(s *Snapshot) Flow {
	c := flowCount{situation: s.Situation, oldest: oldestShown(s.Made),
		links: map[way]*Link{}, byNodes: map[topology.ForwarderID]bool{},
		byForwarder: map[topology.ForwarderID][]Link{},
		stored:      map[topology.JobID]map[topology.NodeID]*StorageLink{}}
	p.cfg.Board.Visit(c.frame)
	for f, links := range c.byForwarder {
		if c.byNodes[f] {
			continue // the mounts say the same, node by node
		}
		for _, l := range links {
			*c.link(l.Job, f) = l
		}
	}
	for _, j := range s.Situation.Jobs {
		for _, n := range j.Nodes {
			for _, over := range s.Situation.Over(n) {
				c.link(j.ID, over.Forwarder).Nodes++
			}
		}
	}
	out := Flow{At: s.Overview.At, Links: make([]Link, 0, len(c.links)), Storage: []StorageLink{}}
	for _, l := range c.links {
		out.Links = append(out.Links, *l)
	}
	slices.SortFunc(out.Links, func(a, b Link) int {
		return cmp.Or(cmp.Compare(b.bytes(), a.bytes()), cmp.Compare(a.Job, b.Job),
			cmp.Compare(a.Forwarder, b.Forwarder))
	})
	out.Storage = c.storage(out.Links)
	switch {
	case len(out.Storage) > 0:
	case c.servers == 0:
		out.StorageUnknown = "no storage server reports (run fairway-agent on them, or bring their counters by the " +
			"line protocol)"
	default:
		out.StorageUnknown = "the storage servers report no shares of jobs (Lustre does where job_stats is on)"
	}
	return out
}

// flowCount adds up one second's frames.
type flowCount struct {
	situation   *remap.Situation
	oldest      int64
	links       map[way]*Link
	byForwarder map[topology.ForwarderID][]Link // by forwarders
	stored      map[topology.JobID]map[topology.NodeID]*StorageLink
	servers     int
	byNodes     map[topology.ForwarderID]bool // compute nodes counted bytes there
}

func (c *flowCount) link(j topology.JobID, f topology.ForwarderID) *Link {
	return entryOf(c.links, way{j, f}, Link{Job: j, Forwarder: f})
}

// entryOf is what a map has of a key, at first a value.
func entryOf[K comparable, T any](of map[K]*T, key K, first T) *T {
	if of[key] == nil {
		of[key] = &first
	}
	return of[key]
}

func (c *flowCount) frame(f *collector.Frame) {
	if f.TimeMillis < c.oldest {
		return
	}
	if f.Role == topology.Storage {
		c.servers++
	}
	for i := range f.Jobs {
		j := &f.Jobs[i]
		if !j.Job.IsJob() {
			continue
		}
		d := didOf(j.Samples)
		read, write := d[didRead], d[didWrite]
		switch f.Role {
		case topology.Compute:
			for _, over := range c.situation.Over(f.Node) {
				l := c.link(j.Job, over.Forwarder)
				l.ReadBytesPerSec, l.WriteBytesPerSec, l.By = l.ReadBytesPerSec+over.Part*read,
					l.WriteBytesPerSec+over.Part*write, byClients
				c.byNodes[over.Forwarder] = true
			}
		case topology.Forwarder:
			on := topology.ForwarderID(f.Node)
			c.byForwarder[on] = append(c.byForwarder[on], Link{Job: j.Job, Forwarder: on, ReadBytesPerSec: read,
				WriteBytesPerSec: write, By: byForwarder})
		case topology.Storage:
			if c.stored[j.Job] == nil {
				c.stored[j.Job] = map[topology.NodeID]*StorageLink{}
			}
			at := entryOf(c.stored[j.Job], f.Node, StorageLink{Job: j.Job, Server: f.Node})
			at.ReadBytesPerSec, at.WriteBytesPerSec = at.ReadBytesPerSec+read, at.WriteBytesPerSec+write
		}
	}
}

// storage goes on from the forwarders: a job's bytes at a server are measured; over several forwarders
// they are split as its bytes there.
func (c *flowCount) storage(links []Link) []StorageLink {
	of := map[topology.JobID][]Link{}
	for _, l := range links {
		if l.bytes() > 0 {
			of[l.Job] = append(of[l.Job], l)
		}
	}
	out := []StorageLink{}
	for j, servers := range c.stored {
		total := 0.0
		for _, l := range of[j] {
			total += l.bytes()
		}
		for _, t := range servers {
			if t.ReadBytesPerSec+t.WriteBytesPerSec <= 0 {
				continue
			}
			if total == 0 {
				out = append(out, *t)
			}
			for _, l := range of[j] {
				part := *t
				share := l.bytes() / total
				part.Forwarder, part.Estimated = l.Forwarder, len(of[j]) > 1
				part.ReadBytesPerSec, part.WriteBytesPerSec = share*t.ReadBytesPerSec, share*t.WriteBytesPerSec
				out = append(out, part)
			}
		}
	}
	slices.SortFunc(out, func(a, b StorageLink) int {
		return cmp.Or(cmp.Compare(b.ReadBytesPerSec+b.WriteBytesPerSec, a.ReadBytesPerSec+a.WriteBytesPerSec),
			cmp.Compare(a.Job, b.Job), cmp.Compare(a.Forwarder, b.Forwarder), cmp.Compare(a.Server, b.Server))
	})
	return out
}

// OfJob keeps a job's ways and those of its neighbours on the same forwarders.
func (f Flow) OfJob(j topology.JobID) Flow {
	on := map[topology.ForwarderID]bool{}
	for _, l := range f.Links {
		if l.Job == j {
			on[l.Forwarder] = true
		}
	}
	f.Links = slices.DeleteFunc(slices.Clone(f.Links), func(l Link) bool { return !on[l.Forwarder] })
	f.Storage = slices.DeleteFunc(slices.Clone(f.Storage), func(l StorageLink) bool { return l.Job != j })
	return f
}

// Interference says how much jobs stand in each other's way: who shares forwarders with whom, now.
type Interference struct {
	At time.Time `json:"at"`
	// Jobs are those that move bytes, the most first; Cells has a row and a column for each.
	Jobs  []topology.JobID `json:"jobs"`
	Cells []Cell           `json:"cells"`
	// Left counts the jobs with fewer bytes that are not shown.
	Left int `json:"left"`
	// NoPeak lists the forwarders whose peak is not known: they count in no pressure.
	NoPeak []topology.ForwarderID `json:"no_peak"`
}

// Cell is what job By does where Job does its I/O. Cells with nothing to say are left out.
type Cell struct {
	Job topology.JobID `json:"job"`
	By  topology.JobID `json:"by"`
	// Share is By's part of the bytes that the forwarders move, each forwarder counted by its part of
	// Job's bytes, 0..1. Of a job on itself it is how much it has its forwarders to itself.
	Share float64 `json:"share"`
	// Pressure is By's bytes as a part of the forwarders' peaks, weighed alike; nil without a peak.
	Pressure *float64 `json:"pressure"`
	// Forwarders are those that both use; Finding names one that blames By there.
	Forwarders []topology.ForwarderID `json:"forwarders"`
	Finding    string                 `json:"finding,omitempty"`
}

// Interference compares every two of the most jobs that move bytes now.
func (p *Picture) Interference(f Flow, most int) Interference {
	s := p.Snapshot()
	out := Interference{At: f.At, Jobs: []topology.JobID{}, Cells: []Cell{}, NoPeak: []topology.ForwarderID{}}
	ofJob, ofForwarder := map[topology.JobID]float64{}, map[topology.ForwarderID]float64{}
	on := map[topology.ForwarderID][]Link{}
	for _, l := range f.Links {
		if b := l.bytes(); b > 0 {
			ofJob[l.Job] += b
			ofForwarder[l.Forwarder] += b
			on[l.Forwarder] = append(on[l.Forwarder], l)
		}
	}
	out.Jobs = slices.AppendSeq(out.Jobs, maps.Keys(ofJob))
	slices.SortFunc(out.Jobs, func(a, b topology.JobID) int {
		return cmp.Or(cmp.Compare(ofJob[b], ofJob[a]), cmp.Compare(a, b))
	})
	out.Left = max(0, len(out.Jobs)-most)
	out.Jobs = out.Jobs[:min(most, len(out.Jobs))]
	place := map[topology.JobID]int{}
	for i, j := range out.Jobs {
		place[j] = i
	}
	blamed := blame(s.Overview.Findings)
	cells := map[[2]int]*Cell{}
	for _, row := range s.Overview.Forwarders { // in the machine's order, so that sums do not wobble
		if row.PeakBytesPerSec <= 0 && len(on[row.ID]) > 0 {
			out.NoPeak = append(out.NoPeak, row.ID)
		}
		for _, a := range on[row.ID] {
			for _, b := range on[row.ID] {
				i, iShown := place[a.Job]
				k, kShown := place[b.Job]
				if !iShown || !kShown {
					continue
				}
				c := entryOf(cells, [2]int{i, k}, Cell{Job: a.Job, By: b.Job})
				c.add(row.ID, a.bytes()/ofJob[a.Job], b.bytes(), ofForwarder[row.ID], row.PeakBytesPerSec)
				if id := blamed[way{b.Job, row.ID}]; id != "" && a.Job != b.Job {
					c.Finding = id
				}
			}
		}
	}
	for i := range out.Jobs {
		for k := range out.Jobs {
			if c := cells[[2]int{i, k}]; c != nil {
				out.Cells = append(out.Cells, *c)
			}
		}
	}
	return out
}

func (c *Cell) add(f topology.ForwarderID, weight, bytes, all, peak float64) {
	c.Forwarders = append(c.Forwarders, f)
	c.Share += weight * bytes / all
	if peak > 0 {
		if c.Pressure == nil {
			c.Pressure = new(float64)
		}
		*c.Pressure += weight * bytes / peak
	}
}

// blame lists which open finding holds which job responsible on which forwarder.
func blame(findings []anomaly.Finding) map[way]string {
	out := map[way]string{}
	for i := range findings {
		f := &findings[i]
		if f.Open() && (f.Kind == anomaly.N1Pin || f.Kind == anomaly.MetaStorm || f.Kind == anomaly.HighBandwidth) {
			for _, j := range f.Jobs {
				out[way{j, topology.ForwarderID(f.Node)}] = f.ID
			}
		}
	}
	return out
}
