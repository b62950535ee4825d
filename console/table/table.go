// Package table draws lists and texts that may be longer than the screen: columns, their order, the cursor's line.
package table

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"fairway/anomaly"
	"fairway/console/chart"
)

// Column is one column of a list of rows R. Width holds the space before it.
type Column[R any] struct {
	Name  string
	Title string
	Width int
	Text  func(r *R) string
	// Number is what the column sorts by; nil sorts by text.
	Number func(r *R) *float64
}

// Numbered is a column that sorts by a number and shows it as text has it.
func Numbered[R any](name, title string, width int, text func(*float64) string, of func(*R) *float64) Column[R] {
	return Column[R]{Name: name, Title: title, Width: width, Number: of,
		Text: func(r *R) string { return text(of(r)) }}
}

// Pick is the columns with these names, in the order of all.
func Pick[R any](all []Column[R], names ...string) []Column[R] {
	out := make([]Column[R], 0, len(names))
	for _, c := range all {
		if slices.Contains(names, c.Name) {
			out = append(out, c)
		}
	}
	return out
}

// Sorting is the order of a list, the largest number first unless reversed, and the columns that it is without.
type Sorting struct {
	Column  string
	Reverse bool
	Hidden  []string
}

// Shown are the columns that are not hidden.
func Shown[R any](all []Column[R], o Sorting) []Column[R] {
	return slices.DeleteFunc(slices.Clone(all), func(c Column[R]) bool { return slices.Contains(o.Hidden, c.Name) })
}

// ParseSort reads an address's sort; an unknown column leaves the order as it is.
func ParseSort[R any](o *Sorting, all []Column[R], text string) {
	name, reverse := strings.CutPrefix(text, "-")
	if slices.ContainsFunc(all, func(c Column[R]) bool { return c.Name == name }) {
		o.Column, o.Reverse = name, reverse
	}
}

func (o Sorting) String() string {
	if o.Reverse {
		return "-" + o.Column
	}
	return o.Column
}

// StepSort moves the order to a neighbouring column among those shown.
func StepSort[R any](o *Sorting, shown []Column[R], by int) {
	i := slices.IndexFunc(shown, func(c Column[R]) bool { return c.Name == o.Column })
	o.Column = shown[(max(i, 0)+by+len(shown))%len(shown)].Name
}

// Sort puts rows in an order, the unknown last either way.
func Sort[R any](rows []*R, all []Column[R], o Sorting) {
	i := slices.IndexFunc(all, func(c Column[R]) bool { return c.Name == o.Column })
	if i < 0 {
		return
	}
	by := all[i]
	// Each row's key is worked out once and not at each comparison.
	type keyed struct {
		row    *R
		text   string
		number *float64
	}
	keys := make([]keyed, len(rows))
	for i, r := range rows {
		keys[i].row = r
		if by.Number == nil {
			keys[i].text = by.Text(r)
		} else {
			keys[i].number = by.Number(r)
		}
	}
	slices.SortStableFunc(keys, func(a, b keyed) int {
		order := strings.Compare(a.text, b.text)
		switch {
		case a.number != nil && b.number != nil:
			order = cmp.Compare(*b.number, *a.number)
		case a.number != nil:
			return -1
		case b.number != nil:
			return 1
		}
		if o.Reverse {
			return -order
		}
		return order
	})
	for i, k := range keys {
		rows[i] = k.row
	}
}

// Heading is a list's column titles, the sorted one marked v or ^.
func Heading[R any](cols []Column[R], o Sorting) string {
	line := " "
	for i, c := range cols {
		title := c.Title
		if c.Name == o.Column {
			if o.Reverse {
				title = "^" + title
			} else {
				title = "v" + title
			}
		}
		line += c.cell(title, i == len(cols)-1)
	}
	return line
}

// Cells is a row's line.
func Cells[R any](r *R, cols []Column[R]) string {
	line := ""
	for i, c := range cols {
		line += c.cell(c.Text(r), i == len(cols)-1)
	}
	return line
}

// cell aligns text to the left and numbers to the right.
func (c *Column[R]) cell(text string, last bool) string {
	switch {
	case c.Number != nil:
		return " " + chart.Right(text, c.Width-1)
	case last:
		return "  " + chart.Clip(text, c.Width-2)
	}
	return chart.Left(chart.Clip(text, c.Width-1), c.Width)
}

// Texts are the rows of a list under its titles; unknown values are empty.
func Texts[R any](cols []Column[R], rows []*R) [][]string {
	out := make([][]string, 1, len(rows)+1)
	for _, c := range cols {
		out[0] = append(out[0], c.Title)
	}
	for _, r := range rows {
		var line []string
		for _, c := range cols {
			text := c.Text(r)
			if text == chart.Missing {
				text = ""
			}
			line = append(line, text)
		}
		out = append(out, line)
	}
	return out
}

// Window is the first line shown so that the selected one of n is among h.
func Window(selected, n, h int) int {
	if h <= 0 || n <= h || selected < h {
		return 0
	}
	return min(selected-h+1, n-h)
}

// Lines draws the lines of a list of n in a height, the cursor's line among them and marked; a cursor below 0 is
// none. The last line counts what does not fit; hint says what else helps there.
func Lines(p *chart.Palette, n, cursor, w, h int, hint string, line func(i int) string) []string {
	shown := max(0, h)
	if n > h {
		shown = max(0, h-1)
	}
	first := Window(max(cursor, 0), n, shown)
	var out []string
	for i := first; i < min(n, first+shown); i++ {
		l := chart.Clip(line(i), w)
		if i == cursor {
			l = Selected(p, l, w)
		}
		out = append(out, l)
	}
	if n > shown && h > 0 {
		out = append(out, chart.Clip(fmt.Sprintf(" : %d more of %d; move down%s", n-shown, n, hint), w))
	}
	return out
}

// Scroll shows lines from *top on in a height, and says how many are left below.
func Scroll(lines []string, top *int, h int) []string {
	if len(lines) <= h || h < 2 {
		*top = 0
		return lines
	}
	*top = max(0, min(*top, len(lines)-h+1))
	lines = lines[*top:]
	if len(lines) > h {
		lines = append(lines[:h-1:h-1], fmt.Sprintf(" : %s; move down", anomaly.Counted(len(lines)-h+1, "more line")))
	}
	return lines
}

// Selected marks the line under the cursor: a sign, and reverse video where there is.
func Selected(p *chart.Palette, line string, w int) string {
	line = ansi.Strip(line)
	return p.Paint(p.Reverse, chart.Left(">"+line[min(1, len(line)):], w))
}
