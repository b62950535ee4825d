package console_test

import (
	"testing"
)

// TestSlowToApprovedInTwoKeys: A opens the decision with its reason filled in, A again approves; enter approves
// nowhere. From then on the card asks for nothing: it measures, and says where a roll back goes.
func TestSlowToApprovedInTwoKeys(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.accuse()
		s.propose("fwd004")
		s.second()
		s.sees("! SLOW", "A  review plan P-000001", "move c[00004-00007] to fwd004")
		s.press("A")
		s.sees("Approve P-000001: 4 compute nodes change their forwarder. A again does it",
			"reason: F-0001: fwd001 is 9.8x slow at writing")
		s.press("wait", "enter") // leaves the page
		s.asked()
		s.press("A", "wait", "A")
		s.asked("approve P-000001")
		s.press("wait", "esc")
		s.second()
		s.lacks("review plan")
		s.seconds(3)
		s.sees("MEASURING", "Moved", "Does it help?")
		s.lacks("review plan")
		s.press("n", "A")
		s.press("4", "enter", "B")
		s.sees("Roll back P-000001: 4 compute nodes go back to fwd001, which is slow, once it is well")
		s.press("wait", "enter")
		s.asked("approve P-000001")
	})
}

// TestUndoAsksOnce: Z says what was done last and what takes it back, Z again does it, any other key does not.
func TestUndoAsksOnce(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.accuse()
		s.press("Z")
		s.sees("refused:", "the audit has no act of olga in the last day")
		s.press("3", "enter", "a", "wait", "Z")
		s.sees("you judged F-0001: acknowledged. give F-0001 back? Z does it, any other key does not.")
		s.press("wait", "j", "Z", "Z")
		s.asked("ack F-0001")
		s.press("wait", "Z")
		s.asked("ack F-0001", "POST /api/v1/undo")
		s.sees("done: give F-0001 back", "no more acknowledged by olga: taken back")
		s.press("W", "<b>its fan</b>", "enter")
		s.asked("ack F-0001", "POST /api/v1/undo", "notes F-0001")
		s.sees("note        olga        note: <b>its fan</b>")
		s.press("Z")
		s.sees("you judged F-0001: note: <b>its fan</b>: a note stays; write another one")
	})
}
