package ingest

import (
	"testing"
	"time"
)

// TestSteadyStreamsAreAnsweredInPasses: the first messages, a replay and one after which nothing comes do not wait for
// what a steady stream waits for; nothing waits longer than the bound.
func TestSteadyStreamsAreAnsweredInPasses(t *testing.T) {
	var a owedAck
	now, sent, seq := time.Unix(1e9, 0), 0, uint64(0)
	message := func(after time.Duration) bool {
		now, seq = now.Add(after), seq+1
		if !a.add(seq, 1, now) {
			return false
		}
		sent++
		if got := a.take(now); got != seq {
			t.Fatalf("message %d is answered with %d", seq, got)
		}
		return true
	}
	for range promptAcks {
		if !message(time.Second) {
			t.Fatalf("message %d waits", seq)
		}
	}
	sent = 0
	for range 400 {
		message(time.Second)
		if a.due(now.Add(time.Second)) {
			t.Fatalf("message %d: the sweep answers a steady stream beside its own messages", seq)
		}
	}
	if sent != 100 {
		t.Errorf("400 seconds have %d answers, want 100", sent)
	}
	sent = 0
	for range 10 * manyUnsaid {
		message(time.Millisecond)
	}
	if sent != 10 {
		t.Errorf("%d replayed messages have %d answers, want 10", 10*manyUnsaid, sent)
	}
	message(time.Second)
	if a.due(now.Add(pauseAfter-time.Millisecond)) || !a.due(now.Add(pauseAfter)) {
		t.Error("a stream that pauses is not answered")
	}
	a.take(now)
	if a.due(now.Add(time.Hour)) {
		t.Error("nothing is owed, and yet due")
	}
}

// TestWhoWaitsForEachAnswerGetsItAtOnce: an agent that sends nothing before it was answered waits once, not each time.
func TestWhoWaitsForEachAnswerGetsItAtOnce(t *testing.T) {
	var a owedAck
	now, waited := time.Unix(1e9, 0), 0
	for seq := range uint64(1000) {
		now = now.Add(10 * time.Millisecond)
		if !a.add(seq+1, 1, now) {
			waited++
			if now = now.Add(pauseAfter); !a.due(now) {
				t.Fatalf("message %d is never answered", seq+1)
			}
		}
		a.take(now)
	}
	if waited > 4 {
		t.Errorf("of 1,000 messages sent one by one %d waited for others, want 4 at most", waited)
	}
}
