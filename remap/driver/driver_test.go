package driver

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
)

func moves(n int) (out []remap.Move) {
	for i := range n {
		out = append(out, remap.Move{Node: topology.NodeID(fmt.Sprint(i)), From: "a", To: "b"})
	}
	return out
}

func TestFanTriesBacksOffAndBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Fan{Parallel: 3, Tries: 3, Backoff: time.Second, Timeout: time.Minute}
		var together, most atomic.Int32
		begun := time.Now()
		results := make(chan remap.Result, 12)
		err := f.Each(t.Context(), moves(12), func(context.Context, remap.Move) error {
			if n := together.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer together.Add(-1)
			time.Sleep(time.Second)
			return errors.New("busy")
		}, func(r remap.Result) { results <- r })
		// Four rounds of three moves, each 1+1+1+2+1 seconds.
		if took := time.Since(begun); err != nil || took != 24*time.Second {
			t.Errorf("took %s, %v", took, err)
		}
		if most.Load() != 3 || len(results) != 12 {
			t.Errorf("%d together, %d results", most.Load(), len(results))
		}
		if r := <-results; r.OK || r.Tries != 3 || r.Error != "busy" || r.Took != 6*time.Second {
			t.Errorf("%+v", r)
		}
	})
}

func TestFanOutcomes(t *testing.T) {
	hang := func(ctx context.Context, _ remap.Move) error { <-ctx.Done(); return ctx.Err() }
	n := 0
	second := func(context.Context, remap.Move) error {
		if n++; n < 2 {
			return errors.New("once")
		}
		return nil
	}
	for _, c := range []struct {
		name  string
		one   func(context.Context, remap.Move) error
		ok    bool
		tries int
		err   string
	}{
		{"at once", func(context.Context, remap.Move) error { return nil }, true, 1, ""},
		{"at the second try", second, true, 2, ""},
		{"a refusal is final", func(context.Context, remap.Move) error { return fmt.Errorf("%w: no", ErrPermanent) },
			false, 1, "refused: no"},
		{"no answer", hang, false, 3, "no answer within 5s: context deadline exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := Fan{Parallel: 1, Tries: 3, Backoff: time.Second, Timeout: 5 * time.Second}
				err := f.Each(t.Context(), moves(1), c.one, func(r remap.Result) {
					if r.OK != c.ok || r.Tries != c.tries || r.Error != c.err {
						t.Errorf("%+v", r)
					}
				})
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestUnassignedRefusesEveryCall(t *testing.T) {
	var d Unassigned
	_, e1 := d.Preview(t.Context(), remap.Plan{})
	_, e2 := d.Observe(t.Context(), nil)
	e3 := d.Apply(t.Context(), remap.Plan{}, nil)
	e4 := d.Restore(t.Context(), remap.Plan{}, nil)
	for _, err := range []error{e1, e2, e3, e4} {
		if !errors.Is(err, ErrNoDriver) {
			t.Errorf("error %v", err)
		}
	}
}
