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
	// mostJobs bounds how many jobs are followed, with those that have ended: a quarter of an hour of each is 4 kB.
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
	steps  [jobSteps]JobStep
	newest int64 // step: Unix seconds / TrendStep
	sum    JobStep
	n      float32
	seen   int64 // Unix second when it last ran
	known  float64
	waited [Causes]float64 // seconds by cause, of known seconds
}

// add takes a second; nil: nothing is known of it.
func (t *jobTrend) add(at int64, s *JobStep) {
	step := at / TrendStep
	if step != t.newest {
		t.close()
		nan := float32(math.NaN())
		for i := max(t.newest+1, step-jobSteps+1); i <= step; i++ {
			t.steps[i%jobSteps] = JobStep{Moved: nan, Waits: [Causes]float32{nan, nan, nan, nan}}
		}
		t.newest, t.sum, t.n = step, JobStep{}, 0
	}
	if s == nil {
		return
	}
	t.sum.Moved += s.Moved
	for c := range s.Waits {
		t.sum.Waits[c] += s.Waits[c]
		t.waited[c] += float64(s.Waits[c])
	}
	t.n++
	t.known++
	t.close()
}

// close writes the mean of the newest step's seconds so far.
func (t *jobTrend) close() {
	if t.n == 0 {
		return
	}
	m := JobStep{Moved: t.sum.Moved / t.n}
	for c := range m.Waits {
		m.Waits[c] = t.sum.Waits[c] / t.n
	}
	t.steps[t.newest%jobSteps] = m
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
			s := seconds[job]
			if s == nil {
				s = &JobStep{}
				seconds[job] = s
			}
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
			t = &jobTrend{newest: at/TrendStep - jobSteps}
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

// JobTrends are the newest past of the jobs that are followed.
type JobTrends struct{ d *Detectors }

// Jobs are the jobs that run.
func (d *Detectors) Jobs() JobTrends { return JobTrends{d} }

// JobPast is what a job did last, and of all its seconds that were seen the parts in which it waited.
type JobPast struct {
	Steps []JobStep // the oldest first
	End   time.Time // of the newest one
	Waits [Causes]float32
	Known bool // of a second at least
}

// Of is the newest so many steps of a job that runs, or is among the newest that have ended; false of another.
func (j JobTrends) Of(id topology.JobID, steps int64) (JobPast, bool) {
	d := j.d
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.trend.jobs[id]
	if t == nil {
		return JobPast{}, false
	}
	past := JobPast{Steps: t.last(steps), End: time.Unix((t.newest+1)*TrendStep, 0), Known: t.known > 0}
	for c, seconds := range t.waited {
		past.Waits[c] = float32(seconds / max(1, t.known))
	}
	return past, true
}

// last are the newest n steps, the oldest first.
func (t *jobTrend) last(n int64) []JobStep {
	out := make([]JobStep, 0, n)
	for i := t.newest - n + 1; i <= t.newest; i++ {
		out = append(out, t.steps[i%jobSteps])
	}
	return out
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
