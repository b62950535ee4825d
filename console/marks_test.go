package console_test

import "testing"

// TestMarkedClientsMoveTogether: a mark stays while the cursor moves on, and the proposal is about all that are marked.
func TestMarkedClientsMoveTogether(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.second()
		s.press(":", "fwd001", "enter", "s")
		s.sees("no client is selected")
		s.press("down", "s", "down", "s")
		s.sees("*c00004", "*c00006")
		s.press("p")
		s.sees("2 compute nodes leave fwd001")
		s.press("esc", "up", "s")
		s.lacks("*c00006")
		s.press("p")
		s.sees("c00004 leaves fwd001")
	})
}
