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
		s.sees("Roll back P-000001: 4 compute nodes go back to fwd001, which is slow")
		s.press("wait", "enter")
		s.asked("approve P-000001")
	})
}
