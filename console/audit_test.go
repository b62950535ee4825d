package console_test

import (
	"testing"

	"fairway/console/screen"
)

// The audit is filtered in the page and by its address; the address means the same tomorrow.
func TestAuditIsFiltered(t *testing.T) {
	s := newScript(t, 240, 120, 36)
	s.second()
	s.press("5", "/", "actor=sam from=11:00", "enter")
	s.sees("actor=sam from=2026-11-21 11:00:00", "1 match", "fwd059")
	s.lacks("P-000140", "P-000142")
	s.press("y")
	want := "/audit?actor=sam&from=2026-11-21T11%3A00%3A00Z"
	if s.copied != want {
		t.Errorf("copied %q, want %q", s.copied, want)
	}
	a, err := screen.ParseAddress("https://fairway.site" + s.copied)
	if err != nil || a.String() != want {
		t.Fatalf("%s is read as %+v, %v", s.copied, a, err)
	}
	again := newScriptAt(t, a)
	again.second()
	again.sees("actor=sam", "1 match", "fwd059")

	s.press("enter") // what it is about
	s.sees(" fwd059 ")
	s.press("backspace", "/", "ctrl+u", "actor=nobody", "enter")
	s.sees("No entry matches actor=nobody.", "A name must be whole")
	s.press("/", "ctrl+u", "enter")
	s.sees("who did what, newest first", "P-000142", "fwd059", "P-000140")
}

// What is not a filter is refused where it is typed, with the reason.
func TestAnAuditFilterThatIsNone(t *testing.T) {
	s := newScript(t, 240, 120, 36)
	s.second()
	for typed, why := range map[string]string{
		"sam":              `"sam": say of what, such as actor=sam`,
		"from=yesterday":   "from=yesterday is not a time such as 11:42",
		"actor=sam to=4pm": "to=4pm is not a time",
		"who=sam":          `"who=sam": say of what`,
	} {
		s.press("1", "5", "/", typed, "enter")
		s.sees(why, "filter (actor=")
		s.press("esc")
		s.sees("P-000142")
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
}
