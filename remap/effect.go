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
	// Why says in a line what kept the effect from being known.
	Why string `json:"why,omitempty"`
	// Gain is how many times as fast requests of the class became beside nodes that were not moved.
	Gain *Gain `json:"gain,omitempty"` // absent: not known
	// HungSeconds is for how long the nodes' requests had waited without any answer at the move; 0: some were answered.
	HungSeconds float64 `json:"hung_seconds,omitempty"`
	// Later are the next runs of the application where they ran after the move, of a job that ended too early.
	Later *LaterRuns `json:"later,omitempty"`
	// Latency is the mean time of a request of the class that its nodes waited longest for before the move.
	Latency *Change `json:"latency,omitempty"` // seconds; absent: too few requests, or nobody reports them
	Class   string  `json:"class,omitempty"`   // read, write or metadata
	// Expected is how many times as fast the class should have become by the findings about what its nodes left; 0:
	// not known.
	Expected float64 `json:"expected,omitempty"`
	// ByClients says that the compute nodes measured the latency; else it is of the forwarders, all
	// their clients together.
	ByClients bool `json:"by_clients,omitempty"`
	// Rate is what Job's nodes, or without a job the moved nodes, read and wrote, bytes a second.
	Rate *Change        `json:"rate,omitempty"`
	Job  topology.JobID `json:"job,omitempty"`
}

// Gain is how many times as fast requests became beyond what nodes that were not moved saw meanwhile.
type Gain struct {
	Times float64 `json:"times"`
	// Low and High are the interval in which it is in 95 of 100 cases.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Beside says which nodes were not moved.
	Beside string `json:"beside"`
}

// LaterRuns are runs of an application after a move beside the run that was moved.
type LaterRuns struct {
	Runs int `json:"runs"`
	// Faster are those whose requests took less than 1/HelpedFrom of what those of the moved run took before.
	Faster int `json:"faster"`
	// Latency is the mean of the moved run before the move, and the median of the later runs' means, seconds.
	Latency Change `json:"latency"`
}

// Change is a mean before and after.
type Change struct {
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	// Of says whose it is; empty: the plan's nodes'.
	Of string `json:"of,omitempty"`
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

// HelpedFrom is how many times as fast a move must make its nodes to have helped, or as slow to have harmed. Means over
// a minute differ by less without any move.
const HelpedFrom = 1.25

// Whose says of which nodes the effect is.
func (e *Effect) Whose() string {
	for _, c := range []*Change{e.Latency, e.Rate} {
		if c != nil && c.Of != "" {
			return c.Of
		}
	}
	return "its nodes"
}

// Span writes seconds as people read them: 18 s, 6m12, 2h05.
func Span(seconds float64) string {
	s := int64(seconds + 0.5)
	switch {
	case s < 100:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02d", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02d", s/3600, s/60%60)
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
		if text = "helped"; e.Later != nil {
			return text + ": " + e.Later.text()
		}
	case NoEffect:
		text = "no effect"
	case Worse:
		text = "worse than before"
	default:
		if text = "not known whether it helped: " + e.Why; e.Later != nil {
			text += "; " + e.Later.text()
		}
		return text
	}
	sep := ": "
	if e.HungSeconds > 0 {
		text += fmt.Sprintf("%s%s had waited %s without an answer", sep, e.Whose(), Span(e.HungSeconds))
		sep = ", "
	}
	if l := e.Latency; l != nil && l.Before <= 0 {
		text += fmt.Sprintf("%s%s latency now %s ms", sep, e.Class, Figure(l.After*1e3))
		sep = "; "
	} else if l != nil {
		whose := e.Whose() + "'"
		if !e.ByClients {
			whose = "its forwarders'"
		}
		text += fmt.Sprintf("%s%s %s latency %s", sep, whose, e.Class, fromTo(*l, milliseconds))
		sep = "; "
		by := l.Before / l.After
		if e.Gain != nil {
			by = e.Gain.Times
		}
		if by >= HelpedFrom {
			text += ", " + anomaly.Times(by) + " as fast"
			// What others became meanwhile is taken off, so that it is not the ratio of the two.
			if e.Gain != nil && e.Gain.Beside != "" {
				text += " beside " + e.Gain.Beside
			}
		}
		if e.Expected > 0 {
			text += " (expected " + anomaly.Times(e.Expected) + ")"
		}
	}
	if r := e.Rate; r != nil {
		who := e.Whose()
		if e.Job != "" {
			who = "job " + string(e.Job)
		}
		text += sep + who + " " + fromTo(*r, megabytes)
	}
	return text
}

// text says how later runs did.
func (l *LaterRuns) text() string {
	return fmt.Sprintf("%d of %s faster: %s", l.Faster, anomaly.Counted(l.Runs, "later run"),
		fromTo(l.Latency, milliseconds))
}

// fromTo writes a change with one unit for both.
func fromTo(c Change, unit func(v float64) (number, unit string)) string {
	before, _ := unit(c.Before)
	after, name := unit(c.After)
	return before + " -> " + after + " " + name
}

func milliseconds(s float64) (number, unit string) { return Figure(s * 1e3), "ms" }

func megabytes(bytes float64) (number, unit string) { return Figure(bytes / 1e6), "MB/s" }

// Figure writes a value with the two digits that a person reads.
func Figure(v float64) string {
	if v >= 10 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2g", v)
}
