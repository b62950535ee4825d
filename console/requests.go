package console

import (
	"fmt"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/console/chart"
	"fairway/console/screen"
)

// requestsPage is the log of what this console asked of the server, the newest first.
type requestsPage struct {
	screen.Place
	sent *[]screen.Request
	top  int
}

func (p *requestsPage) Refresh(*screen.State) tea.Cmd         { return nil }
func (p *requestsPage) Answer(*screen.State, tea.Msg) tea.Cmd { return nil }
func (p *requestsPage) Title(*screen.State, int) string       { return " requests this console sent" }

func (p *requestsPage) Act(_ *screen.State, a screen.Action) tea.Cmd {
	p.top = a.Moved(p.top, len(*p.sent))
	return nil
}

func (p *requestsPage) Body(s *screen.State, w, h int) []string {
	if len((*p.sent)) == 0 {
		return []string{"", chart.Clip(" None yet: the overview comes by itself, over one live connection.", w)}
	}
	lines := []string{s.Bold(chart.Clip(" TIME      TOOK    REQUEST", w))}
	for i := len((*p.sent)) - 1 - p.top; i >= 0 && len(lines) < h; i-- {
		r := &(*p.sent)[i]
		result := "ok"
		if r.Err != nil {
			result = chart.Clean(r.Err.Error())
		}
		head := fmt.Sprintf(" %s  %6s  ", chart.Clock(r.At), r.Took.Round(time.Millisecond))
		// a long question leaves room for its answer
		call := chart.Clip(chart.Clean(r.Call), max(20, w-len(head)-2-min(len(result), w/3)))
		lines = append(lines, chart.Clip(head+call+": "+result, w))
	}
	return lines
}
