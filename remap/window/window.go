// Package window says when a job may do its I/O: intervals within a pattern that repeats, as a text that a job's
// environment can hold.
package window

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/remap/policy/periodic"
)

// Env is the variable of a job's environment that holds its window.
const Env = "FAIRWAY_IO_WINDOW"

// Window is open in some intervals of a pattern.
type Window struct {
	From  time.Time     `json:"from"` // when a pattern began; any will do
	Every time.Duration `json:"every"`
	// Open are the intervals, from the pattern's beginning; they begin within it, and the last may end after it.
	Open []Span `json:"open"`
}

// Span is from a start to an end.
type Span struct {
	Start time.Duration `json:"start"`
	End   time.Duration `json:"end"`
	// BytesPerSec is the job's mean bandwidth in it, of all its nodes; 0: not limited.
	BytesPerSec float64 `json:"bytes_per_sec,omitempty"`
}

// Of is the window of one application of a pattern that begins at a time: an interval for each instance, from the first
// of its I/O to the last. ok is false where the pattern does not have the application.
func Of(p periodic.Pattern, app string, from time.Time) (w Window, ok bool) {
	i := slices.IndexFunc(p.Apps, func(a periodic.Placed) bool { return a.Name == app })
	if i < 0 {
		return w, false
	}
	w = Window{From: from, Every: seconds(p.T)}
	for _, in := range p.Apps[i].Instances {
		if len(in.IO) == 0 {
			continue
		}
		first, last := in.IO[0], in.IO[len(in.IO)-1]
		s := Span{Start: seconds(first[0]), End: seconds(last[1])}
		if s.End <= s.Start { // over the end of the pattern
			s.End += w.Every
		}
		for _, io := range in.IO {
			s.BytesPerSec += (io[1] - io[0]) * io[2] * 1e9 / (s.End - s.Start).Seconds()
		}
		w.Open = append(w.Open, s)
	}
	slices.SortFunc(w.Open, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	return w, w.Check() == nil
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }

// Check refuses a window that never opens or does not fit its pattern.
func (w Window) Check() error {
	if w.Every <= 0 || w.From.IsZero() || len(w.Open) == 0 {
		return fmt.Errorf("window: it has no pattern or no interval")
	}
	for _, s := range w.Open {
		if s.Start < 0 || s.Start >= w.Every || s.End <= s.Start || s.End > s.Start+w.Every {
			return fmt.Errorf("window: %s to %s is not an interval of a pattern of %s", s.Start, s.End, w.Every)
		}
	}
	return nil
}

// RateAt is the bandwidth that an open window gives at a time, 0 for no limit; false where it is closed, and has been
// for longer than it may be late.
func (w Window) RateAt(now time.Time, late time.Duration) (bytesPerSec float64, open bool) {
	in := w.within(now)
	for _, s := range w.Open {
		for _, at := range []time.Duration{in, in + w.Every} { // one that runs over the end, too
			if at >= s.Start && at <= s.End+late {
				return s.BytesPerSec, true
			}
		}
	}
	return 0, false
}

// within is how far into a pattern a time is.
func (w Window) within(now time.Time) time.Duration {
	in := now.Sub(w.From) % w.Every
	if in < 0 {
		in += w.Every
	}
	return in
}

// Wait is how long to wait at a time before I/O: nothing while an interval is open of which half or more is left,
// otherwise until the next one opens.
func (w Window) Wait(now time.Time) time.Duration {
	in := w.within(now)
	least := time.Duration(math.MaxInt64)
	for _, s := range w.Open {
		for _, at := range []time.Duration{in, in + w.Every} { // one that runs over the end, too
			if at >= s.Start && at <= s.Start+(s.End-s.Start)/2 {
				return 0
			}
		}
		next := s.Start - in
		if next <= 0 {
			next += w.Every
		}
		least = min(least, next)
	}
	return least
}

// String is the window as Parse reads it, such as "90.000@1795430000.000 0.000-12.000*1500.000,40.000-52.000": the
// pattern's length and a time at which it began, Unix seconds, and the intervals, with the job's MB/s where limited.
func (w Window) String() string {
	spans := make([]string, len(w.Open))
	for i, s := range w.Open {
		spans[i] = fmt.Sprintf("%.3f-%.3f", s.Start.Seconds(), s.End.Seconds())
		if s.BytesPerSec > 0 {
			spans[i] += fmt.Sprintf("*%.3f", s.BytesPerSec/1e6)
		}
	}
	return fmt.Sprintf("%.3f@%.3f %s", w.Every.Seconds(), float64(w.From.UnixMilli())/1000, strings.Join(spans, ","))
}

// Parse reads what String wrote.
func Parse(text string) (Window, error) {
	bad := func(why string) (Window, error) {
		return Window{}, fmt.Errorf("window: %q: %s; want SECONDS@UNIX-SECONDS FROM-TO*MB/S,FROM-TO", text, why)
	}
	pattern, spans, found := strings.Cut(text, " ")
	every, from, at := strings.Cut(pattern, "@")
	if !found || !at {
		return bad("it has no pattern")
	}
	e, err1 := number(every)
	f, err2 := number(from)
	if err1 != nil || err2 != nil {
		return bad("its pattern is not two numbers")
	}
	w := Window{From: time.UnixMilli(int64(math.Round(f * 1000))), Every: seconds(e)}
	for s := range strings.SplitSeq(spans, ",") {
		times, rate, limited := strings.Cut(s, "*")
		a, b, _ := strings.Cut(times, "-")
		start, err1 := number(a)
		end, err2 := number(b)
		if err1 != nil || err2 != nil {
			return bad("an interval is not two numbers")
		}
		span := Span{Start: seconds(start), End: seconds(end)}
		if limited {
			megabytes, err := number(rate)
			if err != nil {
				return bad("a bandwidth is not a number")
			}
			span.BytesPerSec = megabytes * 1e6
		}
		w.Open = append(w.Open, span)
	}
	if err := w.Check(); err != nil {
		return Window{}, err
	}
	return w, nil
}

// number reads seconds, from 0 to what fits a time.
func number(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err == nil && !(v >= 0 && v < 9e9) {
		err = strconv.ErrRange
	}
	return v, err
}

// Words is the window in a sentence for people.
func (w Window) Words() string {
	text := make([]string, len(w.Open))
	for i, s := range w.Open {
		text[i] = Figure((s.End - s.Start).Seconds()) + " s"
	}
	return fmt.Sprintf("I/O window %s every %s s", strings.Join(text, " and "), Figure(w.Every.Seconds()))
}

// Figure is a number in three digits, or all those before the point.
func Figure(v float64) string {
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
