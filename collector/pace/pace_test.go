package pace

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestEvery: the first call comes when it should, a slow one is followed by one at once, and none after the end.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		ctx, stop := context.WithTimeout(t.Context(), 8*time.Second)
		defer stop()
		var at []float64
		Every(ctx, time.Second, 2*time.Second, func(now time.Time) {
			at = append(at, now.Sub(begun).Seconds())
			if len(at) == 2 {
				Wait(ctx, 3*time.Second)
			}
		})
		if got := fmt.Sprint(at); got != "[1 3 5 7]" {
			t.Error(got)
		}
		if d := time.Since(begun); d != 8*time.Second || Wait(ctx, 0) {
			t.Errorf("ended after %s", d)
		}
	})
}
