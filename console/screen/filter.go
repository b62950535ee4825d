package screen

import (
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
)

// Filter leaves of a list the lines that have every word of it. While it is typed its field holds it.
type Filter struct {
	Text  string
	field *Input
}

// Field is where the filter is typed; nil while it is not.
func (f *Filter) Field() *Input { return f.field }

// Left is how the list is left.
func (f *Filter) Left() Kept { return Kept{Filter: f.Text} }

// Restore is how it was left.
func (f *Filter) Restore(k Kept) { f.Text = k.Filter }

// Begin opens the field.
func (f *Filter) Begin(label string) { f.field = &Input{Label: label, Text: f.Text} }

// Typed ends the filter: enter keeps it, escape takes it away.
func (f *Filter) Typed(_ *State, ok bool) tea.Cmd {
	f.Text = ""
	if ok {
		f.Text = strings.TrimSpace(f.field.Text)
	}
	f.field = nil
	return nil
}

// Unfilter takes the filter away; false without one.
func (f *Filter) Unfilter() bool {
	had := f.Text != ""
	f.Text = ""
	return had
}

// words are what lines must have now; nil: all stay.
func (f *Filter) words() []string {
	if f.field != nil {
		return strings.Fields(strings.ToLower(f.field.Text))
	}
	return strings.Fields(strings.ToLower(f.Text))
}

// Narrows says whether lines may be left out.
func (f *Filter) Narrows() bool { return len(f.words()) > 0 }

// Keeps says that a line has every word.
func (f *Filter) Keeps(line string) bool {
	text := strings.ToLower(ansi.Strip(line))
	return !slices.ContainsFunc(f.words(), func(w string) bool { return !strings.Contains(text, w) })
}

// Left are the rows whose lines have every word.
func Left[T any](f *Filter, rows []T, line func(*T) string) []T {
	if !f.Narrows() {
		return rows
	}
	var out []T
	for i := range rows {
		if f.Keeps(line(&rows[i])) {
			out = append(out, rows[i])
		}
	}
	return out
}

// Title is the filter as titles have it.
func (f *Filter) Title() string {
	if f.Text == "" {
		return ""
	}
	return fmt.Sprintf("   with %q (esc clears)", f.Text)
}
