package budget

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestWhoAsksWithoutAPauseRests: two hundred requests of one caller that work for 50 ms each get an eighth of the
// processors; what another one asks for, and an operator, has no rest; who comes back after a pause has none either.
func TestWhoAsksWithoutAPauseRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, worked := New(Defaults(), 2), time.Duration(0)
		b.used = func() time.Duration { return worked }
		const each = 50 * time.Millisecond
		ask := func(who Who) (took time.Duration) {
			begun := time.Now()
			_, release, err := b.Take(t.Context(), Requests, who)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(each)
			worked += each
			release()
			return time.Since(begun)
		}
		evil := Who{"evil", Others}
		begun, answers := time.Now(), 0
		for time.Since(begun) < 20*time.Second {
			ask(evil)
			answers++
		}
		if got := float64(answers) * each.Seconds() / 20; got < .25 || got > .25+2.*atOnce.Seconds()/20 {
			t.Errorf("one who asks without a pause has %.2f of a processor, want a quarter", got)
		}
		for _, who := range []Who{{"dashboard", Others}, {"olga", Operators}} {
			for range 15 {
				if took := ask(who); took != each {
					t.Errorf("%s waited until %s", who.Key, took)
				}
			}
		}
		for range 100 {
			if took := ask(Who{"olga", Operators}); took != each {
				t.Fatalf("an operator waited until %s", took)
			}
		}
		time.Sleep(time.Minute)
		if took := ask(evil); took != each {
			t.Errorf("after a pause it waited until %s", took)
		}
	})
}

// TestPaceForgets: callers whose share is whole again are not remembered.
func TestPaceForgets(t *testing.T) {
	p, now := pace{share: 1, atMost: time.Second, paid: map[string]time.Time{}}, time.Unix(1e9, 0)
	for i := range 100 * manyCallers {
		now = now.Add(10 * time.Millisecond)
		if rest := p.rest(fmt.Sprint(i), time.Millisecond, now); rest > 0 {
			t.Fatalf("a rest of %s after one request", rest)
		}
	}
	if len(p.paid) > manyCallers {
		t.Errorf("%d callers are remembered", len(p.paid))
	}
}

func TestThreadTimeGrowsByWork(t *testing.T) {
	b := New(Defaults(), 2)
	worked := b.stopwatch()
	begun := b.used()
	for b.used()-begun < time.Millisecond {
	}
	if got := worked(); got < time.Millisecond {
		t.Errorf("after a millisecond of work: %s", got)
	}
	worked = b.stopwatch()
	time.Sleep(20 * time.Millisecond)
	if got := worked(); got > 10*time.Millisecond {
		t.Errorf("after a sleep of 20 ms: %s of work", got)
	}
}
