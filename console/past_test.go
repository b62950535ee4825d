package console_test

import (
	"testing"

	"fairway/cmd/lab/simsite"
	"fairway/console/screen"
)

// A replay shows the past, refuses every action, and goes back to the newest second.
func TestReplayShowsThePastAndActsOnNothing(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.second()
		s.press(":", "fwd000", "enter", "e", "disk errors since the night", "enter", "wait", "A", "1")
		s.asked("exclude fwd000")
		s.accuse()
		s.seconds(90)
		s.wire.calls = nil
		s.press("]")
		s.sees("this is live: [ goes to the mark before")
		s.press("[")
		s.sees("REPLAY 12:04:38", "F-0001 confirmed: the alarm held for 5 s")
		s.press("L")
		s.lacks("REPLAY")
		s.press("H")
		s.sees("REPLAY 12:05:08", "live is 1m ahead")
		s.press("?", "/", "mark", "enter")
		s.sees("of the second shown, ")
		s.press("q")
		s.press("left", "[")
		s.sees("REPLAY 12:04:38", "F-0001 confirmed: the alarm held for 5 s")
		s.sees("x", "! finding  P plan  x drained  > here")
		s.press("[", "[")
		s.sees("fwd000 excluded: disk errors")
		s.press("[")
		s.sees("nothing is marked before this on the line; { goes back further than")
		s.press("]", "]")
		s.sees("REPLAY 12:04:38")
		s.press("3")
		s.lacks("This page is of now")
		s.press("2")
		s.sees("This page is of now, not of 12:04:38: it is not kept.")
		s.press("1")
		s.lacks("This page is of now")
		s.press("p")
		s.sees("refused: actions are off in a replay")
		s.press("4", "enter", "A", "x")
		s.asked()
		s.press("+", "+", "y")
		s.sees("x2")
		if s.copied != "/plans?at=2026-11-21T12%3A04%3A38Z&speed=2" {
			t.Errorf("copied %q", s.copied)
		}
		s.press("L")
		s.sees("LIVE 12:06:08")
	})
}

// An address with a time opens the past as soon as there is a newest second.
func TestAnAddressOfThePast(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		a, err := screen.ParseAddress("https://fairway.site/forwarders/fwd003?at=2026-11-21T11:42:00Z")
		if err != nil {
			t.Fatal(err)
		}
		s := newScriptAt(t, a)
		s.second()
		s.sees(" fwd003", "REPLAY 11:42:00", "live is 22m ahead")
		s.press("y")
		if s.copied != "/forwarders/fwd003?at=2026-11-21T11%3A42%3A00Z" {
			t.Errorf("copied %q", s.copied)
		}
		s.press("L")
		s.sees("LIVE 12:04:30")
	})
}

func TestAnAddressOfHistory(t *testing.T) {
	for text, want := range map[string][]string{
		"/history":                                   {"REPLAY 12:03:30", "x0  live is 1m ahead"},
		"/history?at=-2m&speed=10":                   {"REPLAY 12:02:30", "x10  live is 2m ahead"},
		"/overview?at=-26h&speed=7":                  {"REPLAY Nov 20 10:04", "x0  live is 1d ahead", "Nov 14 12:04 |"},
		"/findings?at=2027-01-01T00:00:00Z&speed=10": {"LIVE 12:04:30", "this is live again"},
	} {
		t.Run(text, func(t *testing.T) {
			atNoon(t, func(t *testing.T) {
				a, err := screen.ParseAddress(text)
				if err != nil {
					t.Fatal(err)
				}
				s := newScriptAt(t, a)
				s.second()
				s.sees(want...)
			})
		})
	}
}

// A forwarder that has not reported yet has no time of its last report.
func TestForwarderThatWasNeverHeardOfSaysSo(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := layout{Options: simsite.Options{Forwarders: 8, Compute: 32, Mute: "fwd000"}, w: 120, h: 36}.start(t)
		s.second()
		s.press(":", "fwd000", "enter")
		s.sees(" fwd000   SILENT, never seen")
	})
}
