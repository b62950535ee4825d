package papers

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"fairway/anomaly"
)

// condition is what a section was measured under.
type condition struct {
	at   time.Time
	took time.Duration
	busy float64 // share of the processors' time that was used, by whatever ran; below 0: not known
}

// section is an experiment's part of the page.
func section(e *Experiment, rows []Row, c condition) string {
	var b strings.Builder
	fmt.Fprintf(&b, "`make results RESULTS=%s` on %s, %s; %.0f s", e.Name, c.at.Format("2006-01-02"), machine(),
		c.took.Seconds())
	if c.busy >= 0 {
		fmt.Fprintf(&b, " with the processors %.0f %% busy", 100*c.busy)
	}
	b.WriteString(".\n\n| effect | paper | measured: median (least..most, n) | aim |\n|---|---|---|---|\n")
	var why []string
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.Effect, r.Paper, r.measured(), r.Bar)
		if r.Why != "" && !slices.Contains(why, r.Why) {
			why = append(why, r.Why)
		}
	}
	if len(why) > 0 {
		b.WriteString("\nWhy they differ from the paper: " + strings.Join(why, "; ") + ".\n")
	}
	return b.String()
}

// measured is the median and the spread.
func (r *Row) measured() string {
	if len(r.Values) == 0 {
		return "not measured"
	}
	v := slices.Sorted(slices.Values(r.Values))
	digits := func(x float64) string {
		switch {
		case x >= 100 || x <= -100:
			return strconv.FormatFloat(x, 'f', 0, 64)
		case x >= 10 || x <= -10:
			return strconv.FormatFloat(x, 'f', 1, 64)
		}
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	text := digits(anomaly.Median(v)) + r.Unit
	if len(v) > 1 {
		text += fmt.Sprintf(" (%s..%s, %d)", digits(v[0]), digits(v[len(v)-1]), len(v))
	}
	return text
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// machine is this one in a few words.
func machine() string {
	text := fmt.Sprintf("%d processors", runtime.NumCPU())
	if proc, err := procfs.NewDefaultFS(); err == nil {
		if m, err := proc.Meminfo(); err == nil && m.MemTotal != nil {
			text += fmt.Sprintf(", %.0f GB", float64(*m.MemTotal)/1024/1024)
		}
	}
	return text
}

// busySeconds is the time that all processors have worked since the machine's start; below 0 where that is not known.
func busySeconds() float64 {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return -1
	}
	s, err := proc.Stat()
	if err != nil {
		return -1
	}
	c := s.CPUTotal
	return c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal
}

// partOf is that of the processors' time in a span; below 0: not known.
func partOf(seconds float64, span time.Duration) float64 {
	if seconds < 0 || span <= 0 {
		return -1
	}
	return min(1, seconds/span.Seconds()/float64(runtime.NumCPU()))
}
