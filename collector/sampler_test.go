package collector

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A sampler that panics once is called again, and the panic is known.
func TestEveryGoesOnAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, bad := 0, []error{}
		end := every(100*time.Millisecond, func() {
			if calls++; calls == 2 {
				panic("index out of range")
			}
		}, func(err error) { bad = append(bad, err) })
		time.Sleep(450 * time.Millisecond)
		end()
		if calls != 4 {
			t.Errorf("%d calls, want 4", calls)
		}
		if p := (*Panicked)(nil); len(bad) != 1 || !errors.As(bad[0], &p) || len(p.Stack) == 0 ||
			p.Error() != "BUG: panic: index out of range" {
			t.Errorf("%v", bad)
		}
	})
}
