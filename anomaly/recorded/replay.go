package recorded

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/anomaly/interference"
	"fairway/collector/topology"
)

// subject is what one event is about.
type subject struct {
	node topology.NodeID
	kind anomaly.Kind
}

// Site is what is known of a layer beside its seconds.
type Site struct {
	Forwarders int // how many there are; 0: as many as are seen
	Jobs       []Job
	// Canary is what a canary sent to a node now would see; ok is false where nobody knows. It may be nil.
	Canary func(topology.NodeID) (p failslow.Probe, ok bool)
}

// Replay leads seconds through the detectors and the findings' life. Its methods must not be called concurrently.
type Replay struct {
	set      Settings
	site     Site
	seen     map[topology.NodeID]bool
	slow     *failslow.Detector
	others   *interference.Detector
	tracker  *anomaly.Tracker
	excluded map[topology.NodeID]string
	open     map[subject]Event
	emit     func(Event) error
	failed   error
	reported map[subject]int64 // newest second of what goes on
	nextJob  int
	jobs     []Job
	verdicts []anomaly.Verdict
	load     occupancy
}

// NewReplay makes a replay that gives every event to emit when it ends.
func NewReplay(set Settings, site Site, emit func(Event) error) *Replay {
	slices.SortStableFunc(site.Jobs, func(a, b Job) int { return cmp.Compare(a.Start, b.Start) })
	return &Replay{set: set, site: site, emit: emit, seen: map[topology.NodeID]bool{}, slow: failslow.New(set.FailSlow),
		others: interference.New(), tracker: anomaly.NewTracker(set.Life, nil),
		excluded: map[topology.NodeID]string{}, open: map[subject]Event{}, reported: map[subject]int64{}}
}

// Second takes the next second. Its error is that of emit.
func (r *Replay) Second(s *Second) error {
	for i := range s.Rows {
		r.seen[s.Rows[i].Node] = true
	}
	now := time.Unix(s.RX, 0).UTC()
	r.schedule(s.RX)
	r.slow.Backend(r.others.Pools())
	r.verdicts = append(r.verdicts[:0], r.slow.Second(now, s.Rows)...)
	read, write := r.slow.Common()
	layer := interference.Layer{Read: read, Write: write, PeakBytesPerSec: r.slow.PeakBytesPerSec(), Pools: s.Pools}
	r.verdicts = append(r.verdicts, r.others.Second(now, s.Rows, layer)...)
	r.events(s.RX)
	r.live(now)
	r.probe(now)
	if r.set.Occupancy {
		for _, e := range r.load.take(s, r.slow.PeakBytesPerSec()) {
			r.write(e)
		}
	}
	return r.failed
}

// events turns what the detectors say into events that begin and end.
func (r *Replay) events(now int64) {
	for i := range r.verdicts {
		v := &r.verdicts[i]
		if v.Level != anomaly.Alarm {
			continue
		}
		key := subject{v.Node, v.Kind}
		if r.reported[key] == 0 {
			kind, detail := eventType(v)
			e := Event{Type: kind, Node: v.Node, Start: now, Detail: detail, Sentence: v.Sentence,
				Confidence: v.Confidence}
			e.Jobs = append(e.Jobs, v.Culprits...)
			for _, i := range v.Impact {
				e.Jobs = append(e.Jobs, i.Job)
			}
			r.open[key] = e
		}
		r.reported[key] = now
	}
	for _, key := range slices.SortedFunc(maps.Keys(r.reported), func(a, b subject) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.kind, b.kind))
	}) {
		if r.reported[key] != now {
			delete(r.reported, key)
			r.end(key, now)
		}
	}
}

// eventType is how a verdict is called in the answer.
func eventType(v *anomaly.Verdict) (kind, detail string) {
	switch v.Kind {
	case anomaly.FailSlow:
		return "fail_slow", v.Sentence
	case anomaly.BrownoutAll, anomaly.BrownoutPool:
		return "backend", string(v.Kind)
	}
	return "interference", string(v.Kind)
}

// schedule gives the detectors the jobs that run now.
func (r *Replay) schedule(now int64) {
	changed := false
	kept := r.jobs[:0]
	for _, j := range r.jobs {
		if j.End > now {
			kept = append(kept, j)
		}
	}
	changed = len(kept) != len(r.jobs)
	r.jobs = kept
	for ; r.nextJob < len(r.site.Jobs) && r.site.Jobs[r.nextJob].Start <= now; r.nextJob++ {
		if j := r.site.Jobs[r.nextJob]; j.End > now {
			r.jobs = append(r.jobs, j)
			changed = true
		}
	}
	if !changed {
		return
	}
	jobs := make([]failslow.Job, len(r.jobs))
	for i, j := range r.jobs {
		jobs[i] = failslow.Job{ID: topology.JobID(j.ID), Nodes: j.Nodes}
	}
	r.slow.Jobs(jobs)
	r.others.Jobs(jobs)
}

// live leads the findings through their life and turns exclusions into events.
func (r *Replay) live(now time.Time) {
	pool := anomaly.Pool{Forwarders: max(r.site.Forwarders, len(r.seen)), Excluded: r.excluded}
	pool.Healthy = pool.Forwarders - len(r.tracker.Suspected())
	for _, c := range r.tracker.Step(now, r.verdicts, pool) {
		if !c.Finding.Kind.Accuses() {
			continue
		}
		if c.Cleared {
			r.slow.Forget(c.Finding.Node)
		}
		out := c.Finding.ExcludedBy != "" && c.Finding.State != anomaly.Returned
		node := c.Finding.Node
		key := subject{node, "exclude"}
		if _, was := r.open[key]; out && !was {
			r.open[key] = Event{Type: "exclude", Node: node, Start: now.Unix(), Detail: c.Why}
		} else if !out {
			r.end(key, now.Unix())
		}
		if out {
			r.excluded[node] = c.Finding.ExcludedBy
		} else {
			delete(r.excluded, node)
		}
	}
}

// probe sends the canaries that the detector wants.
func (r *Replay) probe(now time.Time) {
	if r.site.Canary == nil {
		return
	}
	suspects, idle := r.slow.Due(now)
	for _, node := range append(suspects, idle...) {
		r.slow.Asked(now, node)
		p, ok := r.site.Canary(node)
		if !ok {
			continue
		}
		r.write(Event{Type: "probe", Node: node, Start: now.Unix(), End: now.Unix()})
		r.slow.Probe(now, p)
	}
}

// end closes an event, if it is open.
func (r *Replay) end(key subject, now int64) {
	if e, ok := r.open[key]; ok {
		delete(r.open, key)
		e.End = now
		r.write(e)
	}
}

func (r *Replay) write(e Event) {
	if r.failed == nil {
		r.failed = r.emit(e)
	}
}

// Finish writes what is still open.
func (r *Replay) Finish() error {
	left := slices.SortedFunc(maps.Values(r.open), func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Node, b.Node))
	})
	for _, e := range append(left, r.load.finish(r.slow.PeakBytesPerSec())...) {
		r.write(e)
	}
	return r.failed
}

// plain makes a sentence fit for one field of a CSV line without quotes.
func plain(s string) string {
	return strings.NewReplacer(",", ";", "\n", " ", `"`, "'").Replace(s)
}
