package console_test

import (
	"testing"
	"time"

	"fairway/cmd/lab/simsite"

	tea "github.com/charmbracelet/bubbletea"
)

func TestAForwarderIsExcludedOnItsScreen(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.second()
		s.press("H", "enter", "e")
		s.sees("refused: actions are off in a replay")
		s.press("L", "e")
		s.sees("Why: drain fwd000 for 4 h")
		s.press("its disk is dying", "enter")
		s.sees(
			"Drain fwd000 for 4 h? No job gets it, nobody is moved. A does it, any other key does " +
				"not.")
		for _, other := range []string{"down", "enter", "a", "2"} { // any other key takes the question back
			s.press("wait", other, "wait", "A")
			s.asked()
			s.press(":", "fwd000", "enter", "e", "its disk is dying", "enter")
		}
		s.press("A") // typed ahead: the question was not read
		s.asked()
		s.press("wait", "A")
		s.asked("exclude fwd000")
		s.sees("done: drain fwd000")
		s.second()
		s.press("wait", "A")
		s.sees("refused: nothing waits for it; e says first what, and why")
		s.pass(time.Minute)
		s.press("e")
		s.sees("refused: the data on screen is too old to decide by")
		s.asked("exclude fwd000")
	})
}

// Who may not decide learns it from the key, and not after typing a reason.
func TestAViewerIsNotAskedForReasons(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := asViewer(t, 120, 36)
		s.press("3")
		for _, key := range []string{"a", "s", "x", "e"} {
			s.press(key)
			s.sees("needs the role operator, vic is \"viewer\"")
		}
		s.asked()
		s.press(":", "silence")
		s.sees("refused: silence needs the role operator")
	})
}

func TestFindingsAreJudgedByKeys(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.accuse()
		s.press("n")
		s.sees(" F-0001   fwd001   slow writes   CONFIRMED", "next: e drain it", "EVIDENCE")
		s.press("a", "x", "planned", "enter")
		s.sees("(7 of 10 letters)")
		s.press(" rebuild of its array", "enter")
		s.second()
		s.press("3", "tab", "enter")
		s.sees("DISMISSED")
		s.press("e", "its disk is dying", "enter", "wait", "A", "1", "3", "e")
		s.second()
		s.asked("ack F-0001", "dismiss F-0001", "exclude fwd001")
		s.press("tab", "e")
		s.sees("Why: back into allocation with fwd001")
		s.press("its disk was replaced", "enter", "wait", "A")
		s.asked("ack F-0001", "dismiss F-0001", "exclude fwd001", "return fwd001")
	})
}

func TestAFindingIsSilencedForATimeThatIsAsked(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.accuse()
		s.machine(func(m *simsite.Machine) { m.Silent["fwd005"] = true })
		s.seconds(12)
		s.press("3", "s")
		s.sees("Silence F-0001 for how long, and why (30m, 4h, 2d; 0 ends it): 4h")
		s.send(tea.KeyMsg{Type: tea.KeyCtrlU})
		s.press("soon", "enter")
		s.asked()
		s.sees(`"soon" is not a time such as 30m, 4h or 2d`)
		s.send(tea.KeyMsg{Type: tea.KeyCtrlU})
		s.press("2d its array rebuilds", "enter")
		s.asked("silence F-0001")
		s.second()
		s.sees("1 open, 1 silent", "silent 1d")
		s.press("1", "n") // it does not alert
		s.sees(" fwd005   SILENT")
		s.press("1", "3", "s", "esc")
		s.asked("silence F-0001")
		s.press("1", "H", "3", "s")
		s.sees("refused: actions are off in a replay")
	})
}
