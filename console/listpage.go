package console

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"
)

// listing is what one list page shows: its objects and how a line of them looks.
type listing[T any] struct {
	page  string // as in the key table
	addr  Address
	ask   func(*asker) tea.Cmd // answered with answer[[]T]
	head  string
	line  func(s *State, row *T) string
	title func(s *State, rows []T) string
	// open makes the page of a row; nil where rows have none.
	open func(row *T) page
	// noun is what the rows are; empty says what to do while there is none.
	noun, empty string
}

// listPage is one list: the rows in the server's order, a cursor, enter opens.
type listPage[T any] struct {
	of     *listing[T]
	rows   []T
	have   bool
	err    error
	asking bool
	cursor int
}

func listOf[T any](of *listing[T]) *listPage[T] { return &listPage[T]{of: of} }

func (p *listPage[T]) name() string           { return p.of.page }
func (p *listPage[T]) address(*State) Address { return p.of.addr }

func (p *listPage[T]) refresh(_ *State, ask *asker) tea.Cmd {
	if p.asking {
		return nil
	}
	p.asking = true
	return p.of.ask(ask)
}

func (p *listPage[T]) answer(_ *State, _ *asker, msg tea.Msg) tea.Cmd {
	a, ok := msg.(answer[[]T])
	if !ok {
		return nil
	}
	p.asking = false
	if p.err = a.req.Err; p.err == nil {
		p.rows, p.have = a.value, true
		p.cursor = max(0, min(p.cursor, len(p.rows)-1))
	}
	return nil
}

func (p *listPage[T]) act(s *State, ask *asker, a action) tea.Cmd {
	switch {
	case a == actOpen && p.cursor < len(p.rows) && p.of.open != nil:
		if page := p.of.open(&p.rows[p.cursor]); page != nil {
			return s.open(ask, page)
		}
	case a == actOpen:
		s.Note = "there is no " + p.of.noun + " to open"
	default:
		p.cursor = max(0, min(p.cursor+steps[a], len(p.rows)-1))
	}
	return nil
}

func (p *listPage[T]) title(s *State, _ int) string {
	if !p.have {
		return " " + p.of.noun + "s" // how many is not known
	}
	return p.of.title(s, p.rows)
}

func (p *listPage[T]) body(s *State, w, h int) []string {
	switch {
	case !p.have && p.err != nil:
		return s.failed(p.err, w)
	case !p.have:
		return []string{"", fmt.Sprintf(" Asking for the %ss.", p.of.noun)}
	case len(p.rows) == 0:
		lines := []string{""}
		for _, l := range wrap(p.of.empty, max(1, w-2)) {
			lines = append(lines, clip(" "+l, w))
		}
		return lines
	}
	lines := []string{s.Palette.paint(s.Palette.bold, clip(p.of.head, w))}
	return append(lines, s.scrolled(len(p.rows), p.cursor, w, h-1, "",
		func(i int) string { return p.of.line(s, &p.rows[i]) })...)
}
