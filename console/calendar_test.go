package console_test

import (
	"testing"

	"fairway/cmd/lab/simsite"
	"fairway/console/screen"
)

func TestCalendarGoesThroughItsSpans(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.second()
		s.press("6")
		s.sees("occupancy over the last 30 days, by day", "80 % of its peak", "2026-11-21 Sat")
		s.press("y")
		if s.copied != "/occupancy?span=month" {
			t.Errorf("copied %q", s.copied)
		}
		s.press("m")
		s.sees("the last hour, by minute", "2026-11-21 12:04")
		s.press("m", "down", "down")
		s.sees("the last day, by hour", ">2026-11-21 1")
		s.press("enter") // what was then
		s.sees("REPLAY 1")
		a, err := screen.ParseAddress("https://fairway.site/occupancy?span=day")
		if err != nil {
			t.Fatal(err)
		}
		s.show(layout{w: 120, h: 36, open: a})
		s.look()
		s.sees("the last day, by hour")
	})
}

func TestAnEmptyCalendarSaysWhatToDo(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := layout{Options: simsite.Options{Empty: true}, w: 80, h: 24}.start(t)
		s.second()
		s.press("6")
		s.sees("No second is stored in this range yet", "fairway doctor")
		s.press("enter")
		s.sees("there is nothing to replay")
		s.lose(true)
		s.press("m")
		s.sees("connection refused")
	})
}
