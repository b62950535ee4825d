package screen

import (
	"context"
	"fmt"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"fairway/anomaly"
	"fairway/console/chart"
	"fairway/console/table"
	"fairway/webui/client"
)

// Listing is what a list shows: its objects and how a line of them looks.
type Listing[T any] struct {
	Screen string // as in the key table
	At     Address
	Ask    func(c *client.Client, ctx context.Context) ([]T, error)
	Head   string
	Line   func(s *State, row *T) string
	Title  func(s *State, rows []T) string
	Open   func(row *T) Address
	// In a terminal of less than Whole columns the first Narrow are shown, where a column of the list ends.
	Narrow, Whole int
	// Noun is what the rows are; Empty says what to do while there are none.
	Noun, Empty string
}

// List is one list: the rows in the server's order, a cursor, enter opens.
type List[T any] struct {
	Filter
	of     *Listing[T]
	rows   Load[[]T]
	cursor int
}

// NewList makes the screen of a list.
func NewList[T any](of *Listing[T]) *List[T] {
	return &List[T]{of: of, rows: Load[[]T]{Again: EverySecond}}
}

func (p *List[T]) Name() string { return p.of.Screen }

func (p *List[T]) Address(*State) Address {
	at := p.of.At
	at.Filter = p.Text
	return at
}

// Filtered is the list with a filter.
func (p *List[T]) Filtered(filter string) *List[T] {
	p.Text = filter
	return p
}

// Typed ends the filter; the cursor is on the first line that is left.
func (p *List[T]) Typed(s *State, ok bool) tea.Cmd {
	p.cursor = 0
	return p.Filter.Typed(s, ok)
}

// Unfilter takes the filter away; false without one.
func (p *List[T]) Unfilter() bool {
	p.cursor = 0
	return p.Filter.Unfilter()
}

// shown are the rows that the filter leaves.
func (p *List[T]) shown(s *State) []T {
	return Left(&p.Filter, p.rows.Value, func(row *T) string { return p.of.Line(s, row) })
}

func (p *List[T]) Refresh(s *State) tea.Cmd {
	return p.rows.Refresh(s, p.of.Noun+"s",
		func(ctx context.Context) ([]T, error) { return p.of.Ask(s.Server.Client, ctx) })
}

func (p *List[T]) Answer(_ *State, msg tea.Msg) tea.Cmd {
	p.rows.Take(msg)
	p.cursor = max(0, min(p.cursor, len(p.rows.Value)-1))
	return nil
}

func (p *List[T]) Act(s *State, a Action) tea.Cmd {
	rows := p.shown(s)
	switch {
	case a == ActFilter:
		p.Begin("filter:")
	case a == ActOpen && p.cursor < len(rows):
		return s.Host.Open(p.of.Open(&rows[p.cursor]))
	case a == ActOpen:
		s.Note = "no " + p.of.Noun + " to open"
	default:
		p.cursor = a.Moved(p.cursor, len(rows))
	}
	return nil
}

func (p *List[T]) Title(s *State, _ int) string {
	if !p.rows.Have {
		return " " + p.of.Noun + "s" // how many is not known
	}
	return p.of.Title(s, p.rows.Value) + p.Filter.Title()
}

func (p *List[T]) Body(s *State, w, h int) []string {
	rows := p.shown(s)
	switch {
	case !p.rows.Have:
		return p.rows.Missing(s, "the "+p.of.Noun+"s", w)
	case len(p.rows.Value) == 0:
		return append([]string{""}, chart.Paragraphs(w, p.of.Empty)...)
	case len(rows) == 0:
		return append([]string{""}, chart.Paragraphs(w, fmt.Sprintf("None of %s has that. Escape shows all again.",
			anomaly.Counted(len(p.rows.Value), p.of.Noun)))...)
	}
	return append([]string{s.Bold(chart.Clip(p.of.narrow(p.of.Head, w), w))},
		table.Lines(s.Palette, len(rows), min(p.cursor, len(rows)-1), w, h-1, "",
			func(i int) string { return p.of.narrow(p.of.Line(s, &rows[i]), w) })...)
}

// narrow leaves out the last columns of a line that do not fit.
func (l *Listing[T]) narrow(line string, w int) string {
	if w >= l.Whole {
		return line
	}
	return ansi.Truncate(line, l.Narrow, "")
}
