package advise

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/rootcause"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb/history"
)

// Work is what the answer to a job's ticket is made of.
type Work struct {
	Job   topology.JobID
	Ended bool
	// IOSeconds is the time in which it did I/O; nil: nobody reported any of it.
	IOSeconds *float64
	// Findings are those of its time, each as it was last.
	Findings []anomaly.Finding
	// Moved is its newest plan that moved nodes; nil: none did.
	Moved *remap.Plan
	// Wait is the part of its nodes' time that they waited in the last minute, 0..1; nil: not known. Cause is for what.
	Wait  *float64
	Cause string
}

// lostFrom is the least loss that is worth a word, seconds.
const lostFrom = 0.5

// AnswerFor says in one sentence what a job lost to whom, what was done, and how it has been since. Times of day are
// in the zone of now, which is named.
func AnswerFor(w *Work, now time.Time) string {
	text := "Job " + string(w.Job)
	lost := w.losses()
	switch {
	case len(lost) > 0:
		text += " lost " + remap.Span(lost[0].seconds)
		if w.IOSeconds != nil && *w.IOSeconds >= lost[0].seconds {
			text += fmt.Sprintf(" of %s of I/O", remap.Span(*w.IOSeconds))
		}
		text += " to " + lost[0].node
		for _, l := range lost[1:min(3, len(lost))] {
			text += fmt.Sprintf(", %s to %s", remap.Span(l.seconds), l.node)
		}
	case w.IOSeconds == nil:
		text += ": nothing is known of its I/O, because none of its nodes reported any"
	case *w.IOSeconds == 0 && !w.Ended:
		text += " has done no I/O yet"
	case *w.IOSeconds == 0:
		text += " did no I/O"
	default:
		text += fmt.Sprintf(" lost nothing to a slow node in %s of I/O", remap.Span(*w.IOSeconds))
	}
	text += w.movedText(now)
	switch at := movedAt(w.Moved); {
	case w.Ended || w.Wait == nil:
	case at != nil && w.Moved.Ended == nil && now.Sub(*at) < time.Minute: // its last minute has seconds from before
		text += "; whether that helps is being measured"
	case *w.Wait >= waitsFrom:
		text += fmt.Sprintf("; now it waits %.0f %% of its time", 100**w.Wait)
		if w.Cause != "" {
			text += " for " + w.Cause
		}
	case at != nil:
		text += "; since then normal"
	case len(lost) > 0:
		text += "; now normal"
	}
	return text
}

// waitsFrom is the part of its time from which a job counts as waiting.
const waitsFrom = 0.05

// movedText says when a job was moved, and of one that has ended whether that helped.
func (w *Work) movedText(now time.Time) string {
	if w.Moved == nil {
		return ""
	}
	at := movedAt(w.Moved)
	if at == nil {
		return "; its move failed at " + clockText(w.Moved.Changed, now)
	}
	text := "; moved at " + clockText(*at, now)
	if e := w.Moved.Ended; e != nil && w.Moved.State != remap.Restored { // at a job's end its nodes always go back
		text += ", back at " + clockText(e.At, now)
	}
	if e := w.Moved.Effect; w.Ended && e != nil {
		switch {
		case e.Verdict == remap.Helped:
			text += ", which helped"
		case e.InVain():
			text += ", which did not help"
		}
	}
	return text
}

// movedAt is when the first node was moved; nil where none was.
func movedAt(p *remap.Plan) *time.Time {
	switch {
	case p == nil:
		return nil
	case len(p.Results) == 0:
		return &p.Changed
	}
	for i := range p.Results {
		if p.Results[i].OK {
			return &p.Results[i].At
		}
	}
	return nil
}

const (
	// wellReported is the part of a run that was reported from which I/O that was not seen counts as none.
	wellReported = 0.9
	// judgedFrom is how much of a run that goes on is enough for a word: programs begin with reading.
	judgedFrom = time.Minute
)

// RunTime says which part of a run's time was I/O, in the words of its logs' verdict, and what its nodes used
// meanwhile. Of one that goes on, p is what it did since then. It is empty where nothing is known of its I/O, and in
// a run's first minute.
func RunTime(r *history.Run, p *history.Profile, since, now time.Time) (text string, share *float64) {
	from, to := r.Start, r.End
	if r.End.IsZero() {
		from, to = since, now
	}
	seconds := to.Sub(from).Seconds()
	if p == nil || seconds <= 0 || r.End.IsZero() && to.Sub(from) < judgedFrom {
		return "", nil
	}
	io := min(p.IOSeconds, seconds)
	part, reported := io/seconds, p.Coverage*to.Sub(r.Start).Seconds()/seconds
	text, little := rootcause.OfTheRun(io, seconds, rootcause.Defaults())
	switch {
	case reported < wellReported:
		text = fmt.Sprintf("I/O is %.0f %% of the run time (%s of %s), of which %.0f %% was reported.", 100*part,
			remap.Span(io), remap.Span(seconds), 100*reported)
	case !little: // while one node does I/O the others may compute
		text = fmt.Sprintf("I/O is up to %.0f %% of the run time (%s of %s).", 100*part, remap.Span(io),
			remap.Span(seconds))
	}
	switch {
	case !r.End.IsZero():
	case from.Sub(r.Start) > time.Minute:
		text = "Since " + clockText(from, now) + ": " + text
	default:
		text = "So far: " + text
	}
	percent := func(v *float64) string {
		if v == nil {
			return "not known"
		}
		return fmt.Sprintf("%.0f %%", 100**v)
	}
	text += fmt.Sprintf(" CPU of its nodes %s, highest memory %s.", percent(p.CPUBusy), percent(p.MemoryUsed))
	return text, &part
}

// clockText is a time of day with its zone; of another day than now with the date.
func clockText(t, now time.Time) string {
	form := "15:04 MST"
	if now.Sub(t).Abs() >= 20*time.Hour {
		form = "2006-01-02 15:04 MST"
	}
	return t.In(now.Location()).Format(form)
}

// loss is the time that a job lost to one node.
type loss struct {
	node    string
	seconds float64
}

// losses adds up what the job lost by node, the most first.
func (w *Work) losses() (out []loss) {
	for i := range w.Findings {
		f := &w.Findings[i]
		if f.State == anomaly.Dismissed {
			continue
		}
		for _, hurt := range f.Impact {
			if hurt.Job != w.Job {
				continue
			}
			at := slices.IndexFunc(out, func(l loss) bool { return l.node == subject(f) })
			if at < 0 {
				at, out = len(out), append(out, loss{node: subject(f)})
			}
			out[at].seconds += hurt.CostSeconds
		}
	}
	out = slices.DeleteFunc(out, func(l loss) bool { return l.seconds < lostFrom })
	slices.SortFunc(out, func(a, b loss) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(a.node, b.node))
	})
	return out
}
