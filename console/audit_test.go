package console_test

import (
	"testing"

	"fairway/console/screen"
)

// The audit is filtered in the page and by its address; the address means the same tomorrow.
func TestAuditIsFiltered(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.second()
		s.propose("fwd004")
		s.press(":", "fwd000", "enter", "e", "disk errors since the night", "enter", "wait", "A")
		s.press("5", "/", "actor=olga from=11:00", "enter")
		s.sees("actor=olga from=2026-11-21 11:00:00", "1 match", "fwd000")
		s.lacks("P-000001")
		s.press("y")
		want := "/audit?actor=olga&from=2026-11-21T11%3A00%3A00Z"
		if s.copied != want {
			t.Errorf("copied %q, want %q", s.copied, want)
		}
		a, err := screen.ParseAddress("https://fairway.site" + s.copied)
		if err != nil || a.String() != want {
			t.Fatalf("%s is read as %+v, %v", s.copied, a, err)
		}
		s.show(layout{w: 120, h: 36, open: a})
		s.look()
		s.sees("actor=olga", "1 match", "fwd000")

		s.press("enter") // what it is about
		s.sees(" fwd000 ")
		s.press("backspace", "/", "ctrl+u", "actor=nobody", "enter")
		s.sees("No entry matches actor=nobody.", "A name must be whole")
		s.press("/", "ctrl+u", "enter")
		s.sees("who did what, newest first", "P-000001", "fwd000")
	})
}

// What is not a filter is refused where it is typed, with the reason.
func TestAnAuditFilterThatIsNone(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.second()
		s.propose("fwd004")
		for typed, why := range map[string]string{
			"sam":              `"sam": say of what, such as actor=sam`,
			"from=yesterday":   "from=yesterday is not a time such as 11:42",
			"actor=sam to=4pm": "to=4pm is not a time",
			"who=sam":          `"who=sam": say of what`,
		} {
			s.press("1", "5", "/", typed, "enter")
			s.sees(why, "filter (actor=")
			s.press("esc")
			s.sees("P-000001")
		}
		for _, bad := range []string{"/audit?from=noon", "/audit?to=-2", "/audit?from=11:42"} {
			if _, err := screen.ParseAddress(bad); err == nil {
				t.Errorf("%q was taken for an address", bad)
			}
		}
		if a, err := screen.ParseAddress("/audit?from=-2h&subject=P-000142"); err != nil || a.From != "-2h" ||
			a.Subject != "P-000142" {
			t.Errorf("%+v, %v", a, err)
		}
	})
}
