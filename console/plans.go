package console

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/remap"
)

// plansPage lists the plans, the newest first as the server gives them.
type plansPage struct {
	rows   []PlanRow
	have   bool
	err    error
	asking bool
	cursor int
}

func (p *plansPage) name() string           { return onPlans }
func (p *plansPage) address(*State) Address { return Address{Page: "plans"} }

func (p *plansPage) refresh(_ *State, ask *asker) tea.Cmd {
	if p.asking {
		return nil
	}
	p.asking = true
	return ask.plans()
}

func (p *plansPage) answer(_ *State, _ *asker, msg tea.Msg) tea.Cmd {
	a, ok := msg.(answer[[]PlanRow])
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

func (p *plansPage) act(s *State, ask *asker, a action) tea.Cmd {
	steps := map[action]int{actUp: -1, actDown: 1, actPageUp: -10, actPageDown: 10}
	switch a {
	case actOpen:
		if p.cursor < len(p.rows) {
			return s.open(ask, newPlanPage(p.rows[p.cursor].ID))
		}
		s.Note = "there is no plan to open"
	default:
		p.cursor = max(0, min(p.cursor+steps[a], len(p.rows)-1))
	}
	return nil
}

func (p *plansPage) title(s *State, _ int) string {
	return fmt.Sprintf(" plans   %d waiting for a person", len(s.Shown.Waiting))
}

func (p *plansPage) body(s *State, w, h int) []string {
	switch {
	case !p.have && p.err != nil:
		return []string{"", clip(" "+clean(p.err.Error()), w), " " + adviceFor(p.err)}
	case !p.have:
		return []string{"", " Asking for the plans."}
	case len(p.rows) == 0:
		return []string{"", clip(" No plan was ever proposed here. p on a forwarder or a client proposes one.", w)}
	}
	lines := []string{s.Palette.paint(s.Palette.bold, clip(" PLAN         STATE          AGE  EXPIRES   WHAT", w))}
	room := h - 1
	shown := room
	if len(p.rows) > room {
		shown = room - 1
	}
	first := window(p.cursor, len(p.rows), shown)
	for i := first; i < min(len(p.rows), first+shown); i++ {
		r := &p.rows[i]
		expires := ""
		if r.State == remap.Proposed {
			expires = age(r.Expires.Sub(s.Now))
		}
		line := " " + left(clean(r.ID), 12) + " " + left(clean(string(r.State)), 13) + right(age(s.Now.Sub(r.Created)), 5) + right(expires, 9) + "   " + clean(r.Title)
		line = clip(line, w)
		if i == p.cursor {
			line = s.selected(line, w)
		}
		lines = append(lines, line)
	}
	if len(p.rows) > shown && room > 0 {
		lines = append(lines, clip(fmt.Sprintf(" : %d more of %d; move down", len(p.rows)-shown, len(p.rows)), w))
	}
	return lines
}
