package console

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
	"fairway/webui/api"
)

// helpPage lists the keys that work on the page it was called from, out of the key table.
type helpPage struct {
	screen.Place
	of   string
	keys *Keys
	top  int
	find screen.Filter
}

func (p *helpPage) Refresh(*screen.State) tea.Cmd         { return nil }
func (p *helpPage) Answer(*screen.State, tea.Msg) tea.Cmd { return nil }
func (p *helpPage) Title(*screen.State, int) string       { return " keys on this screen (" + p.of + ")" }
func (p *helpPage) Field() *screen.Input                  { return p.find.Field() }

// Typed ends the search: enter keeps it, escape takes it away.
func (p *helpPage) Typed(s *screen.State, ok bool) tea.Cmd {
	p.top = 0
	return p.find.Typed(s, ok)
}

func (p *helpPage) Act(s *screen.State, a screen.Action) tea.Cmd {
	if a == screen.ActFilter {
		p.find.Begin("a key or a word:")
		return nil
	}
	p.top = max(0, p.top+a.Step())
	return nil
}

// helpGroup is a part of the help, as its heading says it.
type helpGroup string

// The groups.
const (
	looks   helpGroup = "look"
	acts    helpGroup = "act: no compute node is moved by these"
	changes helpGroup = "change the machine: each asks once, enter never does"
)

// groupOf is the group of a key.
func groupOf(b *binding) helpGroup {
	switch {
	case b.changes:
		return changes
	case screen.ChangesMachine[b.act] || b.act == screen.ActNote:
		return acts
	}
	return looks
}

func (p *helpPage) Body(s *screen.State, w, h int) []string {
	var lines []string
	for _, group := range []helpGroup{changes, acts, looks} {
		head := []string{"", s.Bold(chart.Clip(" "+string(group), w))}
		for i := range p.keys.table {
			b := &p.keys.table[i]
			keys := p.keys.shownOn(p.of, b)
			if keys == "" || !b.works(p.of) || groupOf(b) != group || !p.find.Keeps(keys+" "+b.does) {
				continue
			}
			lines, head = append(lines, head...), nil
			for i, l := range chart.Wrap(b.does, max(1, w-14)) {
				if i > 0 {
					keys = ""
				}
				lines = append(lines, chart.Clip(" "+chart.Left(keys, 12)+l, w))
			}
		}
	}
	if replayed[p.of] || s.Replays() {
		lines = append(lines, "", " In a replay ("+s.Key(screen.ActHistory)+"):")
		for i := range p.keys.replay {
			b := &p.keys.replay[i]
			if b.show == "" || !p.find.Keeps(b.show+" "+b.does) {
				continue
			}
			lines = append(lines, chart.Clip(" "+chart.Left(b.show, 14)+b.does, w))
		}
		for _, gap := range s.Shown.NotKept {
			for _, l := range chart.Wrap("of the second shown, "+gap, w-2) {
				lines = append(lines, " "+strings.TrimSpace(l))
			}
		}
	}
	text := "first column: . idle, 0-9 tenths of full, - not known. Second: ! slow, ?! suspect, x drained, d " +
		"dedicated, > touched by a waiting plan, ? silent. A silent or drained cell has no level. Rates in MB/s (1e6)."
	words := append([]api.Term{{Word: "cells", Means: text}}, api.Glossary()...)
	head := []string{"", s.Bold(" signs and words")}
	for _, one := range words {
		if !p.find.Keeps(one.Word + " " + one.Means) {
			continue
		}
		lines, head = append(lines, head...), nil
		lines = append(lines, chart.Labelled(one.Word, one.Means, w)...)
	}
	return table.Scroll(lines, &p.top, h)
}
