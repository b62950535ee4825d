package console

import (
	"fmt"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// requestsPage is the log of what this console asked of the server, the newest first.
type requestsPage struct{ top int }

func (p *requestsPage) name() string                           { return onRequests }
func (p *requestsPage) address(*State) Address                 { return Address{Page: "overview"} }
func (p *requestsPage) refresh(*State, *asker) tea.Cmd         { return nil }
func (p *requestsPage) answer(*State, *asker, tea.Msg) tea.Cmd { return nil }
func (p *requestsPage) title(*State, int) string               { return " requests this console sent" }

func (p *requestsPage) act(s *State, _ *asker, a action) tea.Cmd {
	p.top = max(0, min(p.top+steps[a], len(s.Requests)-1))
	return nil
}

func (p *requestsPage) body(s *State, w, h int) []string {
	if len(s.Requests) == 0 {
		return []string{"", clip(" None yet: the overview comes by itself, over one live connection.", w)}
	}
	lines := []string{s.Palette.paint(s.Palette.bold, clip(" TIME      TOOK    REQUEST", w))}
	for i := len(s.Requests) - 1 - p.top; i >= 0 && len(lines) < h; i-- {
		r := &s.Requests[i]
		result := "ok"
		if r.Err != nil {
			result = clean(r.Err.Error())
		}
		head := fmt.Sprintf(" %s  %6s  ", clock(r.At), r.Took.Round(time.Millisecond))
		// a long question leaves room for its answer
		call := clip(clean(r.Call), max(20, w-len(head)-2-min(len(result), w/3)))
		lines = append(lines, clip(head+call+": "+result, w))
	}
	return lines
}
