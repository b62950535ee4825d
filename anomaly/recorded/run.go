// Package recorded replays a recorded trace of a forwarding layer through the same detectors that watch
// a running one, by the trace's own clock: what arrives later is never used.
package recorded

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/anomaly/interference"
	"fairway/collector/topology"
)

// Settings say how a trace is judged.
type Settings struct {
	FailSlow     failslow.Settings
	Interference interference.Settings
	Life         anomaly.Settings // its mode is taken for auto: a trace has nobody to ask
}

// DefaultSettings are those of the daemon, with exclusion switched on.
func DefaultSettings() Settings {
	s := Settings{FailSlow: failslow.DefaultSettings(), Interference: interference.DefaultSettings(), Life: anomaly.DefaultSettings()}
	s.Life.Mode = anomaly.ModeAuto
	s.Life.MaxExcluded = 0.15
	return s
}

// Event is one line of the answer.
type Event struct {
	Type       string // fail_slow, exclude, interference, backend or probe
	Node       topology.NodeID
	Start, End int64 // Unix seconds; End is 0 while it lasts
	Detail     string
}

// Summary counts what was read.
type Summary struct {
	Rows, Seconds, Bad int
}

// subject is what one event is about.
type subject struct {
	node topology.NodeID
	kind anomaly.Kind
}

type run struct {
	set      Settings
	trace    *Trace
	slow     *failslow.Detector
	others   *interference.Detector
	tracker  *anomaly.Tracker
	excluded map[topology.NodeID]string
	open     map[subject]Event
	emit     func(Event) error
	failed   error
	said     map[subject]int64 // newest second of what goes on
	nextJob  int
	jobs     []Job
	verdicts []anomaly.Verdict
}

// Detect judges the trace in dir and writes its events as CSV: one line when an event ends, those still
// open at the end of the trace last. bad is told of each row that cannot be used.
func Detect(ctx context.Context, dir string, set Settings, out io.Writer, bad func(*RowError)) (sum Summary, err error) {
	t, err := Open(dir, func(e *RowError) {
		sum.Bad++
		bad(e)
	})
	if err != nil {
		return sum, err
	}
	w := bufio.NewWriter(out)
	defer func() {
		sum.Rows = t.Rows
		err = errors.Join(err, w.Flush(), t.Close())
	}()
	if _, err := fmt.Fprintln(w, "type,node,start,end,detail"); err != nil {
		return sum, err
	}
	r := newRun(set, t, func(e Event) error {
		end := ""
		if e.End != 0 {
			end = fmt.Sprint(e.End)
		}
		_, err := fmt.Fprintf(w, "%s,%s,%d,%s,%s\n", e.Type, e.Node, e.Start, end, e.Detail)
		return err
	})
	for {
		s, err := t.Next()
		if errors.Is(err, io.EOF) {
			return sum, r.finish()
		}
		if err != nil {
			return sum, errors.Join(err, r.finish())
		}
		sum.Seconds++
		r.second(s)
		if err := errors.Join(r.failed, ctx.Err()); err != nil {
			return sum, err
		}
	}
}

func newRun(set Settings, t *Trace, emit func(Event) error) *run {
	return &run{set: set, trace: t, emit: emit, slow: failslow.New(set.FailSlow), others: interference.New(set.Interference), tracker: anomaly.NewTracker(set.Life, nil),
		excluded: map[topology.NodeID]string{}, open: map[subject]Event{}, said: map[subject]int64{}}
}

func (r *run) second(s *Second) {
	now := time.Unix(s.RX, 0).UTC()
	r.schedule(s.RX)
	r.slow.Backend(r.others.Worst())
	r.verdicts = append(r.verdicts[:0], r.slow.Second(now, s.Rows)...)
	read, write := r.slow.Common()
	layer := interference.Layer{Read: read, Write: write, PeakBytesPerSec: r.slow.PeakBytesPerSec(), Pools: s.Pools}
	r.verdicts = append(r.verdicts, r.others.Second(now, s.Rows, layer)...)
	r.events(s.RX)
	r.live(now)
	r.probe(now)
}

// events turns what the detectors say into events that begin and end.
func (r *run) events(now int64) {
	for i := range r.verdicts {
		v := &r.verdicts[i]
		if v.Level != anomaly.Alarm {
			continue
		}
		key := subject{v.Node, v.Kind}
		if r.said[key] == 0 {
			kind, detail := eventType(v)
			r.mark(true, kind, v.Node, v.Kind, now, detail)
		}
		r.said[key] = now
	}
	for _, key := range slices.SortedFunc(maps.Keys(r.said), func(a, b subject) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.kind, b.kind))
	}) {
		if r.said[key] != now {
			delete(r.said, key)
			r.mark(false, "", key.node, key.kind, now, "")
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

// schedule tells the detectors which jobs run now.
func (r *run) schedule(now int64) {
	changed := false
	kept := r.jobs[:0]
	for _, j := range r.jobs {
		if j.End > now {
			kept = append(kept, j)
		}
	}
	changed = len(kept) != len(r.jobs)
	r.jobs = kept
	for ; r.nextJob < len(r.trace.Jobs) && r.trace.Jobs[r.nextJob].Start <= now; r.nextJob++ {
		if j := r.trace.Jobs[r.nextJob]; j.End > now {
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
func (r *run) live(now time.Time) {
	pool := anomaly.Pool{Forwarders: max(len(r.trace.Nodes), len(r.trace.ids)), Excluded: r.excluded}
	pool.Healthy = pool.Forwarders - len(r.tracker.Suspected())
	for _, c := range r.tracker.Step(now, r.verdicts, pool) {
		if !c.Finding.Kind.Accuses() {
			continue
		}
		out := c.Finding.ExcludedBy != "" && c.Finding.State != anomaly.Returned
		node := c.Finding.Node
		r.mark(out, "exclude", node, "exclude", now.Unix(), c.Why)
		if out {
			r.excluded[node] = c.Finding.ExcludedBy
		} else {
			delete(r.excluded, node)
		}
	}
}

// probe sends the canaries that the detector wants.
func (r *run) probe(now time.Time) {
	if r.trace.probe == nil {
		return
	}
	for _, node := range r.slow.Due(now) {
		p, ok := r.trace.Canary(node)
		if !ok {
			continue
		}
		r.write(Event{Type: "probe", Node: node, Start: now.Unix(), End: now.Unix()})
		r.slow.Probe(now, p)
	}
}

// mark opens or closes an event.
func (r *run) mark(on bool, kind string, node topology.NodeID, what anomaly.Kind, now int64, detail string) {
	key := subject{node, what}
	e, was := r.open[key]
	switch {
	case on && !was:
		r.open[key] = Event{Type: kind, Node: node, Start: now, Detail: plain(detail)}
	case !on && was:
		delete(r.open, key)
		e.End = now
		r.write(e)
	}
}

func (r *run) write(e Event) {
	if r.failed == nil {
		r.failed = r.emit(e)
	}
}

// Validate says which setting is out of its range.
func (s Settings) Validate() error {
	return errors.Join(s.FailSlow.Validate(), s.Interference.Validate(), s.Life.Validate())
}
