package dispatch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/policy/cycles"
	"fairway/remap/policy/periodic"
	"fairway/remap/window"
	"fairway/tsdb/history"
)

// IOWindow is when a periodic job may do its I/O, and when its first computation should begin.
type IOWindow struct {
	// Text is the window as a job's environment holds it (window.Parse).
	Text  string `json:"text"`
	Words string `json:"words"` // for people
	// StartInSeconds is how long the job would best wait before it begins.
	StartInSeconds float64 `json:"start_in_seconds"`
	// Dilation is the slowdown that the pattern predicts for it against running alone.
	Dilation float64 `json:"dilation"`
	// Cycle is what the pattern takes the job for.
	Cycle cycles.Live `json:"cycle"`
	// Kept is how it kept to its windows so far; absent before its first I/O.
	Kept *history.KeptWindows `json:"kept,omitempty"`
}

const (
	// likeRuns is how many of the newest runs of its kind say what cycle a job has that begins.
	likeRuns = 20
	// maxSpans bounds the intervals of a window: its text must fit a job's environment.
	maxSpans = 1000
	// windowSteps bounds the search for a pattern, in places of I/O looked at: tens of ms of one core.
	windowSteps = 1e6
	// lateIO is how long after its window's end a job's I/O still counts as kept: a second of the collectors.
	lateIO = time.Second
)

// rhythm is what is known of one running job's cycle, and its part of the pattern; the dispatcher's mu guards it.
type rhythm struct {
	watch  cycles.Watch
	cycle  *cycles.Live // nil: not known to be periodic
	asked  bool         // earlier runs were asked
	window *window.Window
	given  IOWindow
	kept   history.KeptWindows
}

// windows makes the pattern of the jobs that run, anew whenever one of them starts or ends and when one turns out to be
// periodic.
type windows struct {
	mu sync.Mutex // one renewal at a time
	// found is the newest pattern; the dispatcher's mu guards it.
	found foundPattern
}

// foundPattern is a pattern with the set that it was made for, or the problem that it met.
type foundPattern struct {
	set     periodic.Set
	pattern periodic.Pattern
	problem error
}

// note takes a second of a job; true: it is now known to be periodic. A job with a window is not asked any more:
// waiting for its window would count as computation.
func (r *rhythm) note(bytesPerSecond float64, since time.Duration, now time.Time) (learned bool) {
	r.watch.Add(bytesPerSecond, since)
	if r.window != nil {
		r.keep(bytesPerSecond*since.Seconds(), now)
		return false
	}
	if r.cycle != nil || !r.watch.Due() {
		return false
	}
	c, ok := r.watch.Cycle()
	if ok {
		r.cycle = &c
	}
	return ok
}

// keep writes the ledger: bytes inside of the job's windows and outside of them.
func (r *rhythm) keep(bytes float64, now time.Time) {
	if bytes <= 0 {
		return
	}
	if _, open := r.window.RateAt(now, lateIO); open {
		r.kept.InsideBytes += bytes
	} else {
		r.kept.OutsideBytes += bytes
	}
	r.given.Kept = &history.KeptWindows{InsideBytes: r.kept.InsideBytes, OutsideBytes: r.kept.OutsideBytes}
}

// renew makes the pattern of the running jobs, and of one that begins (nil: none does). It returns the windows of all
// running jobs, as their environment holds them: empty where a job has none.
func (w *windows) renew(d *Dispatcher, s *remap.Situation, begins *job, now time.Time) map[topology.JobID]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	set, kinds := w.running(d, s, begins)
	found := findPattern(set)
	pattern := found.pattern

	d.mu.Lock()
	defer d.mu.Unlock()
	w.found = found
	renewed := map[topology.JobID]bool{}
	for _, a := range pattern.Apps {
		id := topology.JobID(a.Name)
		j := d.jobs[id]
		if begins != nil && begins.run.Job == id {
			j = begins
		}
		if j == nil {
			continue // it has ended meanwhile
		}
		win, ok := window.Of(pattern, a.Name, now.Truncate(time.Second))
		if !ok || len(win.Open) > maxSpans {
			continue
		}
		j.rhythm.window = &win
		j.rhythm.given = IOWindow{Text: win.String(), Words: win.Words(), Dilation: a.Dilation, Cycle: kinds[id],
			StartInSeconds: startIn(a, &win, now), Kept: j.rhythm.given.Kept}
		renewed[id] = true
	}
	for id, j := range d.jobs {
		if !renewed[id] {
			j.rhythm.window, j.rhythm.given = nil, IOWindow{}
		}
	}
	return windowTexts(d)
}

// windowTexts are the windows of the running jobs; d.mu is held.
func windowTexts(d *Dispatcher) map[topology.JobID]string {
	texts := make(map[topology.JobID]string, len(d.jobs))
	for id, j := range d.jobs {
		texts[id] = j.rhythm.given.Text
	}
	return texts
}

// answered is a job's answer with its window as it is now; d.mu is held.
func (j *job) answered() Answer {
	a := *j.answer
	a.Window = nil
	if j.rhythm.window != nil {
		a.Window = new(j.rhythm.given)
	}
	return a
}

// running are the periodic ones of the running jobs as a set, named by their numbers.
func (w *windows) running(d *Dispatcher, s *remap.Situation, begins *job) (set periodic.Set,
	kinds map[topology.JobID]cycles.Live) {
	m := cycles.Shared(s.Machine)
	if m.BytesPerSec == 0 {
		m.BytesPerSec = d.cfg.Limits.FwdPeakBW * float64(len(s.Index.Forwarders()))
	}
	if m.NodeBytesPerSec == 0 {
		m.NodeBytesPerSec = d.cfg.Limits.CNPeakBW
	}
	set = periodic.Set{Procs: m.Nodes, Link: m.NodeBytesPerSec / 1e9, Bandwidth: m.BytesPerSec / 1e9,
		Aim: periodic.Both}
	kinds = map[topology.JobID]cycles.Live{}

	d.mu.RLock()
	all := maps.Clone(d.jobs)
	d.mu.RUnlock()
	if begins != nil {
		all[begins.run.Job] = begins
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		j := all[id]
		if c := w.cycleOf(d, j); c != nil {
			kinds[id] = *c
			set.Apps = append(set.Apps, periodic.App{Name: string(id), Work: c.ComputeSeconds,
				Volume: c.VolumeBytes / 1e9, Procs: float64(j.run.Nodes)})
		}
	}
	return set, kinds
}

// cycleOf is a running job's cycle: its own, or until that is known that of the newest runs of its kind.
func (w *windows) cycleOf(d *Dispatcher, j *job) *cycles.Live {
	d.mu.RLock()
	known, asked := j.rhythm.cycle, j.rhythm.asked
	d.mu.RUnlock()
	if known != nil || asked {
		return known
	}
	runs, _, err := d.cfg.History.Like(j.run.Key(), likeRuns)
	if err != nil {
		d.log.Warn("a job's earlier runs cannot be read: its cycle is learned from watching it", "job", j.run.Job,
			"err", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	j.rhythm.asked = true
	if found := cycles.Of(runs, cycles.Defaults()); len(found) == 1 && found[0].Periodic && j.rhythm.cycle == nil {
		j.rhythm.cycle = new(found[0].Live())
	}
	return j.rhythm.cycle
}

// findPattern makes a set's pattern. The larger a set, the coarser it searches.
func findPattern(set periodic.Set) (f foundPattern) {
	f.set = set
	if len(set.Apps) == 0 {
		f.problem = errors.New("of the running jobs none is known to be periodic")
		return f
	}
	if set, f.problem = periodic.Complete(set); f.problem != nil {
		return f
	}
	for set.Steps() > windowSteps && (set.KPrime > 1 || set.Eps < 0.3) {
		if set.KPrime > 1 {
			set.KPrime = max(1, set.KPrime/2)
		} else {
			set.Eps *= 2
		}
	}
	f.set = set
	if f.pattern, f.problem = periodic.Schedule(set); f.problem == nil {
		f.problem = f.pattern.Check(set)
	}
	if f.problem != nil {
		f.pattern = periodic.Pattern{}
	}
	return f
}

// startIn is how long a job would best wait before its first computation, so that its I/O falls into its window.
func startIn(a periodic.Placed, w *window.Window, now time.Time) float64 {
	begin := window.Window{From: w.From, Every: w.Every}
	for _, in := range a.Instances {
		at := time.Duration(in.InitW*float64(time.Second)) % w.Every
		begin.Open = append(begin.Open, window.Span{Start: at, End: at + time.Millisecond})
	}
	return begin.Wait(now).Seconds()
}

// RunningPattern is the pattern of the running jobs.
type RunningPattern struct {
	// InForce says that the jobs were given its windows; otherwise it is what they would get.
	InForce bool `json:"in_force"`
	// Set names applications by their jobs. Pattern and Unplanned are absent where Problem says why.
	Set       periodic.Set        `json:"set"`
	Pattern   *periodic.Pattern   `json:"pattern,omitempty"`
	Unplanned *periodic.Unplanned `json:"unplanned,omitempty"`
	Problem   string              `json:"problem,omitempty"`
	Jobs      []RunningJob        `json:"jobs"`
}

// RunningJob is a job as the pattern sees it.
type RunningJob struct {
	Job   topology.JobID `json:"job"`
	App   string         `json:"app"`
	User  string         `json:"user"`
	Nodes int            `json:"nodes"`
	// Cycle is absent where it is not known to be periodic, Window where it has none.
	Cycle  *cycles.Live `json:"cycle,omitempty"`
	Window *IOWindow    `json:"window,omitempty"`
}

// Windows is what a dispatcher says of the running jobs' windows.
type Windows struct{ d *Dispatcher }

// Windows returns what it says of windows.
func (d *Dispatcher) Windows() Windows { return Windows{d} }

// Pattern is the pattern in force, or where no windows are given the one that the running jobs would get.
func (w Windows) Pattern() RunningPattern {
	d := w.d
	v := RunningPattern{InForce: d.cfg.Windows, Jobs: []RunningJob{}}
	var found foundPattern
	if !v.InForce {
		set, _ := d.windows.running(d, d.cfg.Situation(), nil)
		found = findPattern(set)
	}
	d.mu.RLock()
	if v.InForce {
		found = d.windows.found
	}
	for _, id := range slices.Sorted(maps.Keys(d.jobs)) {
		j := d.jobs[id]
		row := RunningJob{Job: id, App: j.run.App, User: j.run.User, Nodes: j.run.Nodes, Cycle: j.rhythm.cycle}
		if j.rhythm.window != nil {
			row.Window = new(j.rhythm.given)
		}
		v.Jobs = append(v.Jobs, row)
	}
	d.mu.RUnlock()
	v.Set = found.set
	switch {
	case found.problem != nil:
		v.Problem = found.problem.Error()
	case found.pattern.T > 0:
		u := periodic.Online(found.set, periodic.Fair, found.set.TMin*max(2, found.set.KPrime))
		v.Pattern, v.Unplanned = &found.pattern, &u
	default:
		v.Problem = "no job has started or ended since the daemon began"
	}
	return v
}

// Rates are the bandwidths that the pattern gives its jobs at a time, bytes per second: 0 for one whose window is
// closed. A job without a window is not among them.
func (w Windows) Rates(now time.Time) map[topology.JobID]float64 {
	w.d.mu.RLock()
	defer w.d.mu.RUnlock()
	out := map[topology.JobID]float64{}
	for id, j := range w.d.jobs {
		if j.rhythm.window != nil {
			out[id], _ = j.rhythm.window.RateAt(now, 0)
		}
	}
	return out
}

// keptWindows is the ledger of a job's windows; nil: it had none, or did no I/O since.
func (j *job) keptWindows(d *Dispatcher) *history.KeptWindows {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if j.rhythm.kept == (history.KeptWindows{}) {
		return nil
	}
	return new(j.rhythm.kept)
}

// words says in words what window a job got.
func (w *IOWindow) words() string {
	return fmt.Sprintf("%s, best started in %.0f s; it does I/O %s", w.Words, w.StartInSeconds, w.Cycle.Words())
}
