package console

import (
	"testing"
	"time"
)

func TestReplayRunsAtItsSpeedAndNeverAheadOfTheAnswers(t *testing.T) {
	start := time.Unix(1000, 0)
	s := &State{newest: Overview{At: start.Add(time.Hour)}, replay: &replay{at: start, speed: 10}, Palette: NewPalette(NoAttributes), pages: []page{&overviewPage{}}}
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
