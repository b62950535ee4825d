package console_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/console"
)

// TestListsOpenAsTheyWereLeft: order, columns and filter of each list, in another console of the same person; what an
// address names comes first, and of a damaged file nothing is kept.
func TestListsOpenAsTheyWereLeft(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "lists.json")
	left := func(t *testing.T) *script {
		s := newScript(t, 8, 120, 36)
		console.Keep(s.model.(*console.Model), file)
		s.second()
		return s
	}
	atNoon(t, func(t *testing.T) {
		s := left(t)
		s.sees("vSLOW 10s", "MB/s")
		s.press(">", ">", ">", "r", "-", "/", "fwd00", "enter", "2", "/", "ana", "enter")
	})
	atNoon(t, func(t *testing.T) {
		s := left(t)
		s.press("g")
		s.sees("^OCC", `with "fwd00" (esc clears)`)
		if head := line(s.screen(), "NODE"); strings.Contains(head, "MB/s") {
			t.Errorf("the hidden column is shown: %q", head)
		}
		s.press("2")
		s.sees(`with "ana" (esc clears)`)
		s.press("esc", "esc", "+")
		if head := line(s.screen(), "NODE"); !strings.Contains(head, "MB/s") {
			t.Errorf("all columns are not shown: %q", head)
		}
	})
	atNoon(t, func(t *testing.T) {
		s := left(t)
		s.press("2")
		s.lacks("esc clears")
		if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		s = left(t)
		s.sees("vSLOW 10s")
		s.lacks("esc clears")
	})
}

// line is the first line of a screen that has a text.
func line(screen, text string) string {
	for l := range strings.Lines(screen) {
		if strings.Contains(l, text) {
			return l
		}
	}
	return ""
}
