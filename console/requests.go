package console

import (
	"fmt"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// requestsPage is the log of what this console asked of the server, the newest first.
type requestsPage struct {
	sent *[]Request
	top  int
}

func (p *requestsPage) Name() string                   { return onRequests }
func (p *requestsPage) Address(*State) Address         { return Address{Page: "overview"} }
func (p *requestsPage) Refresh(*State) tea.Cmd         { return nil }
func (p *requestsPage) Answer(*State, tea.Msg) tea.Cmd { return nil }
func (p *requestsPage) Title(*State, int) string       { return " requests this console sent" }

func (p *requestsPage) Act(_ *State, a Action) tea.Cmd {
	p.top = a.Moved(p.top, len(*p.sent))
	return nil
}

func (p *requestsPage) Body(s *State, w, h int) []string {
	if len((*p.sent)) == 0 {
		return []string{"", clip(" None yet: the overview comes by itself, over one live connection.", w)}
	}
	lines := []string{s.Bold(clip(" TIME      TOOK    REQUEST", w))}
	for i := len((*p.sent)) - 1 - p.top; i >= 0 && len(lines) < h; i-- {
		r := &(*p.sent)[i]
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
