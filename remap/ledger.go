package remap

import (
	"fmt"
	"slices"
	"time"

	"fairway/anomaly"
)

// Ledger says what was expected of a job when its plan was made, and what was measured when it had
// run: did it help?
type Ledger struct {
	Policy string `json:"policy"`
	Action string `json:"action"`
	// Predicted is what the job's latest run did; Runs is how many runs there were.
	Predicted *IOFigures `json:"predicted,omitempty"`
	Runs      int        `json:"runs,omitempty"`
	// Of Own (of this job's kind) and Site (of all) predictions that could be checked so many were right.
	Own  Hits `json:"own"`
	Site Hits `json:"site"`
	// DefaultIOSeconds and PlannedIOSeconds are the least time for the predicted volume through the
	// default and the planned forwarders, by peak bandwidths; absent where those are not known.
	DefaultIOSeconds *float64 `json:"default_io_seconds,omitempty"`
	PlannedIOSeconds *float64 `json:"planned_io_seconds,omitempty"`
	// Measured is what the run did, once it has ended and was collected.
	Measured   *IOFigures `json:"measured,omitempty"`
	MeasuredAt time.Time  `json:"measured_at,omitzero"`
}

// Hits counts predictions that could be checked, and those that were right.
type Hits struct {
	Checked int `json:"checked"`
	Right   int `json:"right"`
}

// IOFigures is the I/O of one run.
type IOFigures struct {
	VolumeBytes     float64  `json:"volume_bytes"`
	IONodes         int      `json:"io_nodes"`
	PeakBytesPerSec float64  `json:"peak_bytes_per_sec"`
	PeakOpsPerSec   float64  `json:"peak_ops_per_sec"`
	MetaQueue       *float64 `json:"meta_queue,omitempty"` // absent: not known
	IOSeconds       float64  `json:"io_seconds"`           // in which it did I/O
	Seconds         float64  `json:"seconds"`              // it ran
}

// Expected says in words what the plan should bring; empty for a plan without a ledger.
func (l *Ledger) Expected() string {
	if l == nil {
		return ""
	}
	p := l.Predicted
	switch {
	case p == nil:
		return "not known: no run like this one was measured"
	case !(p.VolumeBytes > 0):
		return "" // the last run did no I/O: it predicts nothing
	}
	text := fmt.Sprintf("%s by %s in %s of I/O, as the last run like it did (%d known)", anomaly.Size(p.VolumeBytes),
		anomaly.Counted(p.IONodes, "node"), spell(p.IOSeconds), l.Runs)
	if l.DefaultIOSeconds != nil && l.PlannedIOSeconds != nil && *l.DefaultIOSeconds > 0 {
		ratio := *l.PlannedIOSeconds / *l.DefaultIOSeconds
		if ratio > 0.995 && ratio < 1.005 { // as many forwarders as before: others, not more
			text = "no more bandwidth than by default, but healthy forwarders: " + text
		} else {
			text = fmt.Sprintf("I/O time ~%.2fx: at least %s instead of %s by peak bandwidths, for %s", ratio,
				spell(*l.PlannedIOSeconds), spell(*l.DefaultIOSeconds), text)
		}
	}
	if l.Own.Checked > 0 {
		text += fmt.Sprintf("; %d of %s it did as the run before", l.Own.Right,
			anomaly.Counted(l.Own.Checked, "time"))
	}
	return text
}

// Outcome says in words what the run came to once it has ended and was measured; empty before.
func (l *Ledger) Outcome() string {
	if l == nil || l.Measured == nil {
		return ""
	}
	m := l.Measured
	text := fmt.Sprintf("I/O time %s for %s, %s/s at its peak", spell(m.IOSeconds), anomaly.Size(m.VolumeBytes),
		anomaly.Size(m.PeakBytesPerSec))
	if p := l.Predicted; p != nil && p.IOSeconds > 0 && p.VolumeBytes > 0 && m.VolumeBytes > 0 {
		text += fmt.Sprintf(": %.2fx of the last run's per byte", m.IOSeconds/m.VolumeBytes*p.VolumeBytes/p.IOSeconds)
	}
	return text
}

// Harm says in words by how much a job that a plan moved was slower than its last run; empty where it was not, or where
// that is not known.
func (p *Plan) Harm() string {
	if e := p.Effect; e != nil && e.Verdict == Worse {
		return e.Text()
	}
	l := p.Ledger
	if l == nil || l.Measured == nil || l.Predicted == nil {
		return ""
	}
	before, after := l.Predicted, l.Measured
	if !(before.VolumeBytes > 0 && before.IOSeconds > 0 && after.VolumeBytes > 0) {
		return ""
	}
	ratio := after.IOSeconds / after.VolumeBytes * before.VolumeBytes / before.IOSeconds
	if !(ratio >= HelpedFrom) {
		return ""
	}
	return fmt.Sprintf("its I/O took %.2fx of the last run's time for each byte", ratio)
}

// spell writes seconds with the precision that a person reads.
func spell(seconds float64) string {
	if seconds < 100 {
		return fmt.Sprintf("%.2g s", seconds)
	}
	return (time.Duration(seconds) * time.Second).String()
}

// Track is what moves that were carried out were measured to bring, beside what was expected of them.
type Track struct {
	// Measured are those whose effect is known, Helped and Worse some of these; of Unknown ones it is not.
	Measured int `json:"measured"`
	Helped   int `json:"helped"`
	Worse    int `json:"worse"`
	Unknown  int `json:"unknown"`
	// Expected and Got are how many times as fast requests should have become, and became: the medians of the moves of
	// which both are known; 0: of none.
	Expected float64 `json:"expected,omitempty"`
	Got      float64 `json:"got,omitempty"`
}

// TrackOf counts plans; those never carried out, or not measured yet, and limits count nowhere.
func TrackOf(plans []Plan) (t Track) {
	var expected, got []float64
	for i := range plans {
		e := plans[i].Effect
		if e == nil || e.Verdict == Measuring || plans[i].Limits() {
			continue
		}
		switch e.Verdict {
		case EffectUnknown:
			t.Unknown++
			continue
		case Helped:
			t.Helped++
		case Worse:
			t.Worse++
		}
		t.Measured++
		if e.Expected > 0 && e.Gain != nil && e.HungSeconds == 0 {
			expected, got = append(expected, e.Expected), append(got, e.Gain.Times)
		}
	}
	if n := len(got); n > 0 {
		slices.Sort(expected)
		slices.Sort(got)
		t.Expected, t.Got = expected[n/2], got[n/2]
	}
	return t
}

// Text says it in words; empty where no effect is known.
func (t Track) Text() string {
	if t.Measured == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %s helped", t.Helped, anomaly.Counted(t.Measured, "measured move"))
	if t.Got > 0 {
		text = fmt.Sprintf("promised %s, got %s; ", anomaly.Times(t.Expected), anomaly.Times(t.Got)) + text
	}
	if t.Worse > 0 {
		text += fmt.Sprintf(", %d made it worse", t.Worse)
	}
	return text
}
