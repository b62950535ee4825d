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

// TestANoteIsSeenInTheLists: the lists sign what a person wrote about, and say whose words they are.
func TestANoteIsSeenInTheLists(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.accuse()
		s.press("3")
		s.lacks("F-0001N", "N: 1 note")
		s.press("enter", "W", "its fan", "enter")
		s.seconds(2)
		s.press("3")
		s.sees("F-0001N", "N: 1 note, the newest by olga: its fan")
		s.press("1")
		s.sees("fwd001N")
		s.lacks("fwd002N")
	})
}
