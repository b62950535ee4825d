package dispatch

import (
	"fmt"
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
}

const (
	// windowRuns is how many of the newest runs are looked at for periodic applications.
	windowRuns = 1000
	// planAgain is how long a pattern that nobody keeps to is used, and how long the history without one is believed.
	planAgain = time.Minute
)

// windows is the pattern that periodic jobs keep to. What a job's environment says cannot be changed while it runs: the
// pattern stays as long as one of its jobs does, and an application that it does not have gets no window meanwhile.
type windows struct {
	mu      sync.Mutex // guards everything that follows
	pattern periodic.Pattern
	from    time.Time
	made    time.Time
	begun   time.Time // of the dispatcher
	holders map[topology.JobID]bool
}

// give returns the window of a job that starts; nil: its application is not periodic, or not of the pattern. Jobs of
// the daemon before may keep to a pattern that is not known any more: while there are some, none is given.
func (w *windows) give(d *Dispatcher, s *remap.Situation, j *job, now time.Time) (*IOWindow, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d.mu.RLock()
	unknown := false
	for _, o := range d.jobs {
		unknown = unknown || o.answer == nil && o.run.Start.Before(w.begun)
	}
	for id := range w.holders {
		if d.jobs[id] == nil {
			delete(w.holders, id)
		}
	}
	d.mu.RUnlock()
	if len(w.holders) == 0 && now.Sub(w.made) >= planAgain {
		if unknown {
			return nil, nil
		}
		if err := w.plan(d, s, now); err != nil {
			return nil, err
		}
	}
	name := windowName(j.run.Key())
	win, ok := window.Of(w.pattern, name, w.from)
	if !ok {
		return nil, nil
	}
	if w.holders == nil {
		w.holders = map[topology.JobID]bool{}
	}
	w.holders[j.run.Job] = true
	out := &IOWindow{Text: win.String(), Words: win.Words()}
	for _, a := range w.pattern.Apps {
		if a.Name == name {
			out.Dilation = a.Dilation
		}
	}
	for _, p := range cycles.Windows(w.pattern) {
		if p.App == name {
			begin := window.Window{From: win.From, Every: win.Every, Open: []window.Span{{
				Start: time.Duration(p.StartSeconds * float64(time.Second)),
				End:   time.Duration(p.StartSeconds*float64(time.Second)) + time.Millisecond}}}
			out.StartInSeconds = begin.Wait(now).Seconds()
		}
	}
	return out, nil
}

// plan makes a pattern of the periodic applications of the history; none is not an error.
func (w *windows) plan(d *Dispatcher, s *remap.Situation, now time.Time) error {
	w.made, w.pattern = now, periodic.Pattern{}
	runs, err := d.cfg.History.Recent(windowRuns)
	if err != nil {
		return fmt.Errorf("windows for I/O: %w", err)
	}
	cs := cycles.Of(runs, cycles.Defaults())
	for i := range cs {
		c := &cs[i]
		c.App = windowName(history.Key{App: c.App, User: c.User, Project: c.Project, Nodes: c.Nodes})
	}
	m := cycles.Shared(s.Machine)
	if m.BytesPerSec == 0 {
		m.BytesPerSec = d.cfg.Limits.FwdPeakBW * float64(len(s.Index.Forwarders()))
	}
	if m.NodeBytesPerSec == 0 {
		m.NodeBytesPerSec = d.cfg.Limits.CNPeakBW
	}
	set, _, err := cycles.Set(cs, m)
	if err != nil {
		return nil // no application is periodic, or the bandwidths are not known: no windows
	}
	p, err := periodic.Schedule(set)
	if err != nil || p.Check(set) != nil {
		return nil // no pattern has room for all of them
	}
	w.pattern, w.from = p, now.Truncate(time.Second)
	return nil
}

// windowName is an application of the pattern.
func windowName(k history.Key) string {
	return fmt.Sprintf("%s|%s|%s|%d", k.App, k.User, k.Project, k.Nodes)
}
