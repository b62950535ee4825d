package console

import (
	"fmt"
	"strings"
)

// life is how far the open finding has come and what it waits for, and what was found before.
func (p *forwarderPage) life(s *State, w int) []string {
	l := p.detail.Value.Life
	if l == nil {
		return nil
	}
	var steps []string
	if !s.Replays() {
		steps = []string{"healthy"}
		for _, one := range l.Steps {
			steps = append(steps, fmt.Sprintf("%s %s", clean(string(one.State)), moment(one.At, s.Now)))
		}
		if l.Next != "" {
			next := clean(l.Next)
			if !l.NextFrom.IsZero() {
				next += " " + moment(l.NextFrom, s.Now)
			}
			steps = append(steps, "("+next+")")
		}
	}
	history := "history: no earlier finding"
	if f := l.Last; f != nil {
		history = fmt.Sprintf("history: %d earlier, %s %s %s, %s", l.Earlier, clean(f.ID), findingTitle(f),
			f.Since.Local().Format("2006-01-02"), age(f.Changed.Sub(f.Since)))
		if !f.Open() && f.State != "returned" {
			history += ", " + stateWords(f)
		}
	}
	items := []string{history}
	if len(steps) > 0 {
		items = []string{strings.Join(steps, " -> "), history}
	}
	return labelledLines("STATE", wrapItems(items, max(1, w-12)), w)
}
