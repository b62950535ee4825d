package screen

import (
	"context"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/console/chart"
	"fairway/console/table"
)

// Listing is what a list shows: its objects and how a line of them looks.
type Listing[T any] struct {
	Screen string // as in the key table
	At     Address
	Ask    func(ctx context.Context, b Backend) ([]T, error)
	Head   string
	Line   func(s *State, row *T) string
	Title  func(s *State, rows []T) string
	Open   func(row *T) Address
	// Noun is what the rows are; Empty says what to do while there are none.
	Noun, Empty string
}

// List is one list: the rows in the server's order, a cursor, enter opens.
type List[T any] struct {
	of     *Listing[T]
	rows   Load[[]T]
	cursor int
}

// NewList makes the screen of a list.
func NewList[T any](of *Listing[T]) *List[T] {
	return &List[T]{of: of, rows: Load[[]T]{Again: EverySecond}}
}

func (p *List[T]) Name() string           { return p.of.Screen }
func (p *List[T]) Address(*State) Address { return p.of.At }

func (p *List[T]) Refresh(s *State) tea.Cmd {
	return p.rows.Refresh(s, p.of.Noun+"s",
		func(ctx context.Context) ([]T, error) { return p.of.Ask(ctx, s.Server) })
}

func (p *List[T]) Answer(_ *State, msg tea.Msg) tea.Cmd {
	p.rows.Take(msg)
	p.cursor = max(0, min(p.cursor, len(p.rows.Value)-1))
	return nil
}

func (p *List[T]) Act(s *State, a Action) tea.Cmd {
	switch {
	case a == ActOpen && p.cursor < len(p.rows.Value):
		return s.Host.Open(p.of.Open(&p.rows.Value[p.cursor]))
	case a == ActOpen:
		s.Note = "no " + p.of.Noun + " to open"
	default:
		p.cursor = a.Moved(p.cursor, len(p.rows.Value))
	}
	return nil
}

func (p *List[T]) Title(s *State, _ int) string {
	if !p.rows.Have {
		return " " + p.of.Noun + "s" // how many is not known
	}
	return p.of.Title(s, p.rows.Value)
}

func (p *List[T]) Body(s *State, w, h int) []string {
	rows := p.rows.Value
	switch {
	case !p.rows.Have:
		return p.rows.Missing(s, "the "+p.of.Noun+"s", w)
	case len(rows) == 0:
		return append([]string{""}, chart.Paragraphs(w, p.of.Empty)...)
	}
	return append([]string{s.Bold(chart.Clip(p.of.Head, w))},
		table.Lines(s.Palette, len(rows), p.cursor, w, h-1, "",
			func(i int) string { return p.of.Line(s, &rows[i]) })...)
}
