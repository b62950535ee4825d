package console

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/webui/api"
)

// undoing is the question whether what a person did last is taken back.
type undoing struct {
	screen.Question
	last api.LastAct
}

const undoCall = "undo"

// ask asks the server what was done last, and once that is on screen takes it back.
func (u *undoing) ask(s *screen.State) tea.Cmd {
	if u.Asked() != screen.ActUndo || !u.Again(s, screen.ActUndo) {
		return screen.Ask(s, "what you did last", s.Server.LastAct)
	}
	return screen.Ask(s, undoCall, screen.With(s.Server.Undo, u.last.Seq))
}

// answered says what would be taken back, what has been, or why nothing is.
func (u *undoing) answered(s *screen.State, a screen.Answer[api.LastAct]) {
	did := "you " + chart.Clean(a.Value.Did)
	switch {
	case a.Err != nil:
		s.Note = "refused: " + chart.Clean(a.Err.Error())
	case a.Call == undoCall:
		screen.Report(s, "done: "+chart.Clean(a.Value.Undo))
	case a.Value.WhyNot != "":
		s.Note = fmt.Sprintf("%s: %s", did, chart.Clean(a.Value.WhyNot))
	default:
		u.last = a.Value
		u.Again(s, screen.ActUndo) // asked from now on
		s.Note = fmt.Sprintf("%s. %s? %s does it, any other key does not.", did, chart.Clean(a.Value.Undo),
			s.Key(screen.ActUndo))
	}
}
