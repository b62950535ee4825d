package watch

import (
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
)

// TestALateDaemonAccusesNobody: what is late by seconds is late for a while after it, what is on time is not.
func TestALateDaemonAccusesNobody(t *testing.T) {
	begin := time.Unix(1_790_000_000, 0)
	for name, c := range map[string]struct {
		ticks []time.Duration // each was due a second after the one before
		late  time.Duration
	}{
		"on time":         {[]time.Duration{1e6, 1e9 + 9e8, 2e9, 3e9 + 1e9}, 0},
		"late":            {[]time.Duration{0, 2.6e9}, 1.6e9},
		"late, long ago":  {[]time.Duration{0, 3e9, 4e9, 5e9}, 2e9},
		"later and less":  {[]time.Duration{0, 9e9, 12e9}, 8e9},
		"the first alone": {[]time.Duration{0}, 0},
	} {
		var l Lateness
		now := begin.Add(c.ticks[0])
		for _, d := range c.ticks[1:] {
			l.Note(now.Add(time.Second), begin.Add(d))
			now = begin.Add(d)
		}
		if late := l.Within(now); late != c.late {
			t.Errorf("%s: late by %s, want %s", name, late, c.late)
		}
		text := l.Notice(now)
		if (text != "") != (c.late > 0) || c.late == 8e9 && !strings.Contains(text, "8.0 s late") {
			t.Errorf("%s: says %q", name, text)
		}
		if late := l.Within(now.Add(onTimeFor + 1)); late != 0 {
			t.Errorf("%s: late by %s after %s on time", name, late, onTimeFor)
		}
	}
}

// TestNothingIsRecordedWhileLate: the loop of a daemon that is late keeps its findings as they are.
func TestNothingIsRecordedWhileLate(t *testing.T) {
	l := newLoop(t, anomaly.ModeObserve)
	l.cfg.Lateness = &Lateness{}
	l.cfg.Lateness.Note(l.now, l.now.Add(3*time.Second))
	if err := l.step(17, alarm("fwd1")); err != nil || l.states() != "" {
		t.Errorf("while the daemon is late it has %q (%v)", l.states(), err)
	}
	if err := l.step(20, alarm("fwd1")); err != nil || l.states() != "F-0001 confirmed" {
		t.Errorf("after it there is %q (%v), want one that is confirmed", l.states(), err)
	}
	hurts := alarm("fwd1")
	hurts.Impact = []anomaly.Impact{{Job: "5", Share: 1}}
	if err := l.step(8, hurts); err != nil {
		t.Fatal(err)
	}
	l.cfg.Lateness.Note(l.now, l.now.Add(3*time.Second)) // what a job lost since the last record is not forgotten
	if err := l.step(17, hurts); err != nil || l.Findings()[0].Impact[0].CostSeconds < 8 {
		t.Errorf("while late again, a job that waited for 8 s has lost %+v (%v)", l.Findings()[0].Impact, err)
	}
}
