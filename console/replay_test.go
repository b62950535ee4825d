package console

import (
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/webui/api"
)

func TestReplayRunsAtItsSpeedAndNeverAheadOfTheAnswers(t *testing.T) {
	start := time.Unix(1000, 0)
	s := &State{newest: api.Overview{At: start.Add(time.Hour)}, replay: &replay{at: start, speed: 10},
		Palette: NewPalette(NoAttributes), pages: []page{&overviewPage{}}}
	ask := &asker{now: time.Now}
	if s.replayTick(ask) == nil || s.replay.at != start.Add(10*time.Second) {
		t.Fatalf("after a second it shows %s", s.replay.at)
	}
	if s.replayTick(ask) != nil { // the answer is under way
		t.Error("a second question before the first was answered")
	}
	if s.takePast(ask, pastMsg{}) == nil || s.replay.at != start.Add(20*time.Second) {
		t.Errorf("what was wanted meanwhile is not asked for: %s", s.replay.at)
	}
	s.goTo(ask, s.newest.At)
	if s.replay != nil || s.Paused {
		t.Error("the newest second is not live")
	}
}

func TestAgesInAReplayAreOfItsSecond(t *testing.T) {
	then := time.Unix(10000, 0)
	s := &State{Now: then.Add(time.Hour), replay: &replay{at: then}, Palette: NewPalette(NoAttributes),
		pages: []page{&overviewPage{}}}
	s.Shown.Findings = []anomaly.Finding{{ID: "F-0001", Node: "fwd001", Kind: anomaly.FailSlow,
		State: anomaly.Confirmed, Since: then.Add(-4 * time.Minute)}}
	s.Shown.Waiting = []api.PlanRow{{ID: "P-000001", Created: then.Add(-time.Minute)}}
	if got := s.needs(); got[0].tail != "  4m confirmed" || got[1].tail != "waits 1m" {
		t.Errorf("%q, %q", got[0].tail, got[1].tail)
	}
	s.keys = DefaultKeys()
	if got := s.nextLine(80); !strings.HasSuffix(got, "(n to open, 1 more)") {
		t.Errorf("where a line is short, how to open it goes first: %q", got)
	}
}
