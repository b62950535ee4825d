package remap

import (
	"fmt"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
)

// Effect is what a plan's moves were measured to bring: the seconds before its first order beside those after its
// nodes were observed on their new forwarders. That a plan is verified says where its nodes are; the effect says
// whether that helped.
type Effect struct {
	BeforeFrom time.Time `json:"before_from"`
	BeforeTo   time.Time `json:"before_to"` // the plan's first order
	AfterFrom  time.Time `json:"after_from"`
	AfterTo    time.Time `json:"after_to"`
	Verdict    Verdict   `json:"verdict"`
	// Latency is the mean time of a request of the class that its nodes waited longest for before the move.
	Latency *Change `json:"latency,omitempty"` // seconds; absent: too few requests, or nobody reports them
	Class   string  `json:"class,omitempty"`   // read, write or metadata
	// Expected is how many times as fast the class should have become by the findings about what its nodes left; 0:
	// not known.
	Expected float64 `json:"expected,omitempty"`
	// ByClients says that the compute nodes measured the latency; else it is of the forwarders, all their clients
	// together.
	ByClients bool `json:"by_clients,omitempty"`
	// Rate is what Job's nodes, or without a job the moved nodes, read and wrote, bytes a second.
	Rate *Change        `json:"rate,omitempty"`
	Job  topology.JobID `json:"job,omitempty"`
}

// Change is a mean before and after.
type Change struct {
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// Verdict says in a word what a move has brought.
type Verdict string

// The verdicts.
const (
	Measuring     Verdict = "measuring" // the time after the move is not over
	Helped        Verdict = "helped"
	NoEffect      Verdict = "no_effect"
	Worse         Verdict = "worse"
	EffectUnknown Verdict = "unknown" // too little I/O before or after to compare, or nobody measures it
)

// helpedFrom is the change of a latency or a rate from which a move counts as having helped, or as having done harm.
// Means over a minute of one job differ by up to a fifth from minute to minute without any move.
const helpedFrom = 1.25

// Judge sets the verdict that the figures give. The latency decides where it is known: a rate also follows what the
// job happens to do.
func (e *Effect) Judge() {
	better := 0.0
	switch {
	case e.Latency != nil:
		better = e.Latency.Before / e.Latency.After
	case e.Rate != nil:
		better = e.Rate.After / e.Rate.Before
	}
	switch {
	case !(better > 0):
		e.Verdict = EffectUnknown
	case better >= helpedFrom:
		e.Verdict = Helped
	case better <= 1/helpedFrom:
		e.Verdict = Worse
	default:
		e.Verdict = NoEffect
	}
}

// InVain says that the moves were measured and have not helped: they may as well be taken back.
func (e *Effect) InVain() bool { return e != nil && (e.Verdict == NoEffect || e.Verdict == Worse) }

// Text says what was measured in words, without who may undo it; empty for nil.
func (e *Effect) Text() string {
	if e == nil {
		return ""
	}
	text := ""
	switch e.Verdict {
	case Measuring:
		text = fmt.Sprintf("measuring for %.0f s", e.AfterTo.Sub(e.AfterFrom).Seconds())
	case Helped:
		text = "helped"
	case NoEffect:
		text = "no effect"
	case Worse:
		text = "worse than before"
	default:
		return "not known whether it helped: too little I/O before or after the move to compare"
	}
	sep := ": "
	if l := e.Latency; l != nil {
		whose := "its nodes'"
		if !e.ByClients {
			whose = "its forwarders'"
		}
		text += fmt.Sprintf("%s%s %s latency %s", sep, whose, e.Class, fromTo(*l, milliseconds))
		sep = "; "
		by := l.Before / l.After
		if by >= helpedFrom {
			text += ", " + anomaly.Times(by) + " as fast"
		}
		if e.Expected > 0 {
			text += " (expected " + anomaly.Times(e.Expected) + ")"
		}
	}
	if r := e.Rate; r != nil {
		who := "its nodes"
		if e.Job != "" {
			who = "job " + string(e.Job)
		}
		text += sep + who + " " + fromTo(*r, megabytes)
	}
	return text
}

// fromTo writes a change with one unit for both.
func fromTo(c Change, unit func(v float64) (number, unit string)) string {
	before, _ := unit(c.Before)
	after, name := unit(c.After)
	return before + " -> " + after + " " + name
}

func milliseconds(s float64) (number, unit string) { return figure(s * 1e3), "ms" }

func megabytes(bytes float64) (number, unit string) { return figure(bytes / 1e6), "MB/s" }

// figure writes a value with the two digits that a person reads.
func figure(v float64) string {
	if v >= 10 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2g", v)
}
