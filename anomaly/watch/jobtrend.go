package watch

import (
	"math"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/topology"
)

// Cause is what a job waits for.
type Cause int

// The causes: a forwarder that is slower than its peers, another job on it, the storage behind all of them, and what
// the job does itself.
const (
	ByForwarder Cause = iota
	ByNeighbour
	ByBackEnd
	ByItself
	Causes // how many there are
)

const (
	// jobSteps of TrendStep seconds are kept of a job: a quarter of an hour.
	jobSteps = 15 * 60 / TrendStep
	// mostJobs bounds how many jobs are followed, with those that have ended: a quarter of an hour of each is 13 kB.
	mostJobs = 4096
	// leastNodes keeps a part of a node from counting more than it is.
	leastNodes = 0.1
	// commonFrom is from which factor on the whole layer counts as slower than it was: less is noise.
	commonFrom = 1.1
)

// JobStep is a job over one step, or the mean of some. What was not reported is NaN.
type JobStep struct {
	Moved float32 // bytes/s of all its nodes
	// Waits are the parts of the time that its nodes behind one forwarder waited, those that waited the most: a
	// parallel program is as slow as its slowest node. 0..1 by cause.
	Waits [Causes]float32
}

// ranOn knows which nodes one job has for itself: what such a node does is that job's, where the node's source has no
// figures by job.
type ranOn struct {
	jobs []Job
	of   map[topology.NodeID]topology.JobID // empty: of several
	one  [1]collector.JobSamples
}

func (r *ranOn) take(jobs []Job) {
	// A job that was put back into its queue runs on other nodes under the same number.
	same := func(a, b Job) bool { return a.ID == b.ID && slices.Equal(a.Nodes, b.Nodes) }
	if slices.EqualFunc(r.jobs, jobs, same) {
		return
	}
	r.jobs, r.of = r.jobs[:0], map[topology.NodeID]topology.JobID{}
	for _, j := range jobs {
		r.jobs = append(r.jobs, Job{j.ID, slices.Clone(j.Nodes)})
		for _, n := range j.Nodes {
			if _, several := r.of[n]; several {
				r.of[n] = ""
				continue
			}
			r.of[n] = j.ID
		}
	}
}

// jobsOf is what each job did in a node's second; the slice is used again by the next call.
func (r *ranOn) jobsOf(f *collector.Frame) []collector.JobSamples {
	if id := r.of[f.Node]; len(f.Jobs) == 0 && id != "" && f.CountsIO() {
		r.one[0] = collector.JobSamples{Job: id, Samples: f.Samples}
		return r.one[:]
	}
	return f.Jobs
}

// jobTrend is the newest past of one job, and what it has waited in all.
type jobTrend struct {
	past   *past // what it moved, then Waits
	seen   int64 // Unix second when it last ran
	known  float64
	waited [Causes]float64 // seconds by cause, of known seconds
}

// add takes a second; nil: nothing is known of it.
func (t *jobTrend) add(at int64, s *JobStep) {
	var values [1 + Causes]float64
	if s == nil {
		for i := range values {
			values[i] = math.NaN()
		}
		t.past.add(at, values[:]...)
		return
	}
	values[0] = float64(s.Moved)
	for c, w := range s.Waits {
		values[1+c] = float64(w)
		t.waited[c] += float64(w)
	}
	t.known++
	t.past.add(at, values[:]...)
}

// takeJobTrends adds the newest second of each running job; called after all detectors have judged it.
func takeJobTrends(d *Detectors, now time.Time, m *Machine) {
	at := now.Unix()
	seconds := map[topology.JobID]*JobStep{}
	read, write := d.slow.Common()
	common := [3]float64{failslow.Read: read, failslow.Write: write, failslow.Meta: 1}
	for id, sums := range d.clients.of {
		ratios := ratiosOf(d, id.Node())
		for job, j := range sums.jobs {
			s := anomaly.Entry(seconds, job)
			s.Moved += float32(j.bytes)
			cause := causeOf(d.second.verdicts, id.Node(), job)
			own, behind := j.lost(ratios), 0.0
			for c, r := range ratios {
				if common[c] > commonFrom {
					behind += j.took[c] / max(1, r) * (1 - 1/common[c])
				}
			}
			s.Waits[cause] = max(s.Waits[cause], float32(own))
			s.Waits[ByBackEnd] = max(s.Waits[ByBackEnd], float32(min(1, behind/max(leastNodes, j.nodes))))
		}
	}
	for _, j := range m.Jobs {
		t := d.trend.jobs[j.ID]
		if t == nil {
			if len(d.trend.jobs) >= mostJobs && !d.trend.forgetEnded(at) {
				continue
			}
			t = &jobTrend{past: newPast(jobSteps * TrendStep)}
			d.trend.jobs[j.ID] = t
		}
		t.seen = at
		t.add(at, seconds[j.ID])
	}
}

// forgetEnded forgets the job that ended first; false where all of them run.
func (t *trend) forgetEnded(now int64) bool {
	first, seen := topology.JobID(""), now-1 // those that run were seen now or one second ago
	for id, j := range t.jobs {
		if j.seen < seen {
			first, seen = id, j.seen
		}
	}
	delete(t.jobs, first)
	return first != ""
}

// causeOf is why a job waits at a node, by what the detectors say of the node in this second.
func causeOf(verdicts []anomaly.Verdict, node topology.NodeID, job topology.JobID) Cause {
	cause := ByForwarder
	for i := range verdicts {
		v := &verdicts[i]
		if v.Level < anomaly.Doubt || v.Node != node && v.Node != anomaly.Everywhere {
			continue
		}
		switch {
		case v.Kind.Accuses() && v.Node == node && v.Level == anomaly.Alarm:
			return ByForwarder
		case slices.Contains(v.Culprits, job):
			cause = ByItself
		case len(v.Culprits) > 0 && cause != ByItself:
			cause = ByNeighbour
		case (v.Kind == anomaly.BrownoutAll || v.Kind == anomaly.BrownoutPool) && cause == ByForwarder:
			cause = ByBackEnd
		}
	}
	return cause
}

// JobPast is what a job did last, and of all its seconds that were seen the parts in which it waited.
type JobPast struct {
	Steps []JobStep // the oldest first
	End   time.Time // of the newest one
	Waits [Causes]float32
	Known bool // of a second at least
}

// PastOf is the newest so many steps of a job that runs, or is among the newest that have ended; false of another.
func PastOf(d *Detectors, id topology.JobID, steps int64) (JobPast, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.trend.jobs[id]
	if t == nil {
		return JobPast{}, false
	}
	last := t.past.Newest
	past := JobPast{End: time.Unix((last+1)*TrendStep, 0), Known: t.known > 0}
	for s := last - steps + 1; s <= last; s++ {
		one := JobStep{Moved: float32(t.past.mean(0, s, s))}
		for c := range one.Waits {
			one.Waits[c] = float32(t.past.mean(1+c, s, s))
		}
		past.Steps = append(past.Steps, one)
	}
	for c, seconds := range t.waited {
		past.Waits[c] = float32(seconds / max(1, t.known))
	}
	return past, true
}

// MeanOf is the mean of the steps that are known, and how many these are.
func MeanOf(steps []JobStep) (m JobStep, known int) {
	for _, s := range steps {
		if s.Moved != s.Moved {
			continue
		}
		known++
		m.Moved += s.Moved
		for c := range s.Waits {
			m.Waits[c] += s.Waits[c]
		}
	}
	if known > 0 {
		m.Moved /= float32(known)
		for c := range m.Waits {
			m.Waits[c] /= float32(known)
		}
	}
	return m, known
}

// Worst is the largest cause and how much it is.
func (s *JobStep) Worst() (Cause, float32) {
	worst := ByForwarder
	for c := range s.Waits {
		if s.Waits[c] > s.Waits[worst] {
			worst = Cause(c)
		}
	}
	return worst, s.Waits[worst]
}
