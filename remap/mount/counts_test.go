package mount

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	report "fairway/collector/source/mount"
)

// TestUnderWay: what hangs counts while it hangs, and what an operation took is never counted twice or taken back,
// whenever the report is made.
func TestUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counts
		c.start()
		sum := func() (waited uint64, now report.UnderWay) {
			var r report.Report
			c.fill(&r)
			if !r.CountsUnderWay {
				t.Fatal("it does not say that it counts what is under way")
			}
			for _, o := range r.Ops {
				waited += o.Nanos + o.UnderWay.Nanos
				now.Count += o.UnderWay.Count
				now.Oldest = max(now.Oldest, o.UnderWay.Oldest)
			}
			return waited, now
		}
		hung := c.begin(context.Background(), opWrite)
		go func() {
			for range 90 {
				o := c.begin(context.Background(), opGetattr)
				time.Sleep(100 * time.Millisecond)
				c.end(o, 0, 0)
			}
		}()
		last := uint64(0)
		for i := 1; i <= 95; i++ {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			waited, now := sum()
			want := uint64(i+min(i, 90)) * uint64(100*time.Millisecond)
			if waited != want || waited < last || now.Oldest != uint64(i)*uint64(100*time.Millisecond) {
				t.Fatalf("after %d: waited %d, want %d; now %+v", i, waited, want, now)
			}
			last = waited
		}
		c.end(hung, 4096, 0)
		if waited, now := sum(); waited != last || now != (report.UnderWay{}) {
			t.Errorf("at the end: waited %d, want %d; now %+v", waited, last, now)
		}
	})
}
