package console_test

import (
	"fmt"
	"testing"

	"fairway/console/screen"
	"fairway/webui/api"
)

func TestCalendarGoesThroughItsSpans(t *testing.T) {
	s := newScript(t, 240, 120, 36)
	s.second()
	s.press("6")
	s.sees("occupancy over the last 30 days, by day", "80 % of its peak",
		"Not counted because their peak is not known: 1 of", "2026-11-21 Sat", "no second is stored")
	s.press("y")
	if s.copied != "/occupancy?span=month" {
		t.Errorf("copied %q", s.copied)
	}
	s.press("m")
	s.sees("the last hour, by minute", "2026-11-21 12:04")
	s.press("m", "down", "down")
	s.sees("the last day, by hour", ">2026-11-21 10:00")
	s.press("enter") // what was then
	s.sees("REPLAY 10:00:00")
	a, err := screen.ParseAddress("https://fairway.site/occupancy?span=day")
	if err != nil {
		t.Fatal(err)
	}
	again := newScriptAt(t, a)
	again.second()
	again.sees("the last day, by hour")
}

func TestAnEmptyCalendarSaysWhatToDo(t *testing.T) {
	s := newScript(t, 0, 80, 24)
	s.second()
	s.press("6")
	s.sees("No second is stored in this range yet", "fairway doctor")
	s.press("enter")
	s.sees("there is nothing to replay")
	s.fake.Lose(fmt.Errorf("%w: connection refused", api.ErrUnreachable))
	s.press("m")
	s.sees("connection refused")
}
