// Package chart draws text for a terminal: widths, numbers and times as people read them, colours, and plots in
// characters that every terminal has.
package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"fairway/collector"
)

// Missing is how a value that is not known looks; it can never be confused with a 0.
const Missing = "-"

// Clean makes text that came from outside safe for a terminal: no control character survives, so
// no finding, reason or job name can move the cursor or change the title.
func Clean(s string) string {
	if plain(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, ansi.Strip(s))
}

// plain says that text has only characters to show.
func plain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) })
}

// lookAt is the length of the look that a text begins with; looks are the only control sequences that a screen holds.
func lookAt(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	end := 2 + len(s[2:]) - len(strings.TrimLeft(s[2:], "0123456789;"))
	if end == len(s) || s[end] != 'm' {
		return 0
	}
	return end + 1
}

// Harmless is the last gate before the terminal: should a page have forgotten to clean a text from
// outside, nothing but looks gets through.
func Harmless(line string) string {
	var out strings.Builder
	text := 0 // where what is not yet written begins
	for at := 0; at < len(line); {
		n := lookAt(line[at:])
		if n > 0 {
			out.WriteString(Clean(line[text:at]))
			out.WriteString(line[at : at+n])
			text = at + n
		}
		at += max(1, n)
	}
	out.WriteString(Clean(line[text:]))
	return out.String()
}

// width is how wide text is. Most of a screen is ASCII, whose characters need not be looked up.
func width(s string) int {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return ansi.StringWidth(s)
		}
	}
	return len(s)
}

// Clip shortens text to w columns and says so with two dots.
func Clip(s string, w int) string {
	if w <= 0 {
		return ""
	}
	if width(s) <= w {
		return s
	}
	if w <= 2 {
		return ansi.Truncate(s, w, "")
	}
	return ansi.Truncate(s, w, "..")
}

// Left pads or clips text to exactly w columns.
func Left(s string, w int) string {
	s = Clip(s, w)
	return s + strings.Repeat(" ", max(0, w-width(s)))
}

// Right is left, aligned to the right.
func Right(s string, w int) string {
	s = Clip(s, w)
	return strings.Repeat(" ", max(0, w-width(s))) + s
}

// Row sets texts side by side in columns of these widths, aligned to the left where they are below 0.
func Row(widths []int, texts ...string) string {
	line := ""
	for i, text := range texts {
		if w := widths[i]; w < 0 {
			line += Left(text, -w)
		} else {
			line += Right(text, w)
		}
	}
	return line
}

// Ends puts a at the left and b at the right end of a line of w columns; a gives way.
func Ends(a, b string, w int) string {
	return Left(a, w-ansi.StringWidth(b)) + b
}

// Clauses is as much of a text as fits w columns and ends where a clause does, outside of brackets; empty where the
// first clause is longer.
func Clauses(s string, w int) string {
	if width(s) <= w {
		return s
	}
	end, depth := 0, 0
	for i, r := range s {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		ends := strings.HasPrefix(s[i:], ", ") || strings.HasPrefix(s[i:], "; ") || strings.HasPrefix(s[i:], ". ") ||
			strings.HasPrefix(s[i:], " (")
		if ends && depth == 0 && width(s[:i]) <= w {
			end = i
		}
	}
	return s[:end]
}

// Wrap breaks text at spaces into lines of at most w columns.
func Wrap(s string, w int) []string {
	if w < 1 {
		return nil
	}
	return strings.Split(ansi.Wrap(s, w, ""), "\n")
}

// WrapItems sets items side by side in lines of at most w columns; none is broken unless it is longer
// than a line.
func WrapItems(items []string, w int) (lines []string) {
	line := ""
	for _, one := range items {
		switch {
		case line == "":
			line = one
		case ansi.StringWidth(line)+3+ansi.StringWidth(one) <= w:
			line += "   " + one
		default:
			lines = append(lines, line)
			line = one
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	for i := 0; i < len(lines); i++ {
		if ansi.StringWidth(lines[i]) > w {
			lines = slices.Replace(lines, i, i+1, Wrap(lines[i], w)...)
		}
	}
	return lines
}

// Known is a value as text has it, or the sign for a missing one.
func Known(v *float64, text func(float64) string) string {
	if v == nil {
		return Missing
	}
	return text(*v)
}

// Mega is bytes/s as MB/s (1e6), without decimals above 10.
func Mega(v *float64) string { return Known(v, func(v float64) string { return Number(v / 1e6) }) }

// Ratio is 0..1 as percent without its sign.
func Ratio(v *float64) string { return Known(v, func(v float64) string { return Fixed(v*100, 0) }) }

// Count is a plain number.
func Count(v *float64) string { return Known(v, Number) }

// Millis is seconds as milliseconds.
func Millis(v *float64) string { return Known(v, func(v float64) string { return Number(v * 1e3) }) }

// Metric is a value of a metric in its unit on screens.
func Metric(m collector.Metric, v *float64) string {
	u := m.Info().Unit.Info()
	return Known(v, func(v float64) string {
		if u.Digits == 0 {
			return Fixed(v*u.Scale, 0)
		}
		return Number(v * u.Scale)
	})
}

// Number shows one decimal below 10 and none above: digits that move every second inform nobody and
// cost bytes on the wire. A count from a million on has a letter, never a power of ten.
func Number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return Missing
	case a == 0:
		return "0"
	case a < 9.95:
		return Fixed(v, 1)
	case a < 1e6:
		return Fixed(v, 0)
	}
	size, sign := 1e6, 0
	for math.Abs(v) >= 1e3*size && sign < 3 {
		size, sign = 1e3*size, sign+1
	}
	return Number(v/size) + "MGTP"[sign:sign+1]
}

// Thousands is a count in as few letters as it takes: 812, 3.6k, 41k.
func Thousands(v *float64) string {
	switch {
	case v == nil:
		return Missing
	case *v >= 1e3 && *v < 1e6:
		return Number(*v/1e3) + "k"
	}
	return Number(*v)
}

// Fixed is a number of 0 or 1 decimals. It rounds halves away from 0, as the browser does and
// strconv does not: the same value reads the same in both faces.
func Fixed(v float64, decimals int) string {
	if decimals == 0 {
		return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	}
	// the only halves of a tenth that a float64 holds
	if _, part := math.Modf(math.Abs(v)); part == 0.25 || part == 0.75 {
		v = math.Nextafter(v, math.Copysign(math.Inf(1), v))
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

// Age is a duration as operators say it: 4s, 3m, 2h10m, 5d.
func Age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02d", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Clock is a time of day in the operator's zone; nothing for the zero time.
func Clock(t time.Time) string {
	if t.IsZero() {
		return Missing
	}
	return t.Local().Format("15:04:05")
}

// Moment is a time of day, or day and time when it is not of the last 20 hours.
func Moment(t, now time.Time) string {
	if t.IsZero() || now.Sub(t).Abs() < 20*time.Hour {
		return Clock(t)
	}
	return t.Local().Format("Jan 02 15:04")
}

// indent sets lines one column in.
func indent(lines []string, w int) []string {
	for i, l := range lines {
		lines[i] = Clip(" "+l, w)
	}
	return lines
}

// Paragraphs wraps texts into lines that begin one column in.
func Paragraphs(w int, texts ...string) (lines []string) {
	for _, text := range texts {
		lines = append(lines, indent(Wrap(text, max(1, w-2)), w)...)
	}
	return lines
}

// Labelled wraps a text behind a label.
func Labelled(label, text string, w int) []string {
	return labelled(label, Wrap(text, max(1, w-12)), w)
}

// LabelledItems sets items side by side behind a label.
func LabelledItems(label string, items []string, w int) []string {
	return labelled(label, WrapItems(items, max(1, w-12)), w)
}

// labelled puts a label before the first of lines.
func labelled(label string, text []string, w int) (lines []string) {
	for _, l := range text {
		lines = append(lines, Clip(" "+Left(label, 10)+l, w))
		label = ""
	}
	return lines
}

// OrMissing is a text from outside, or the sign for a missing one.
func OrMissing(s string) string {
	if s == "" {
		return Missing
	}
	return Clean(s)
}

// Names are names from outside, side by side.
func Names[T ~string](all []T) string {
	clean := make([]string, len(all))
	for i, name := range all {
		clean[i] = Clean(string(name))
	}
	return strings.Join(clean, " ")
}

// Rule is a line across the screen.
func (p *Palette) Rule(w int) string {
	return " " + p.Paint(p.Frame, strings.Repeat(p.Glyph("─", "-"), max(0, w-2)))
}
