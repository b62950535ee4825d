package alert

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"fairway/anomaly"
)

// BenchmarkAlertLeaves is how long it takes from a finding's confirmation, which is on disk then, until a receiver has
// it, beside one that never answers.
func BenchmarkAlertLeaves(b *testing.B) {
	dir := b.TempDir()
	d := openDesk(b, dir)
	defer d.Close()
	good, goodServer := newCount(b)
	hung, hungServer := newCount(b)
	hung.slow = make(chan struct{})
	_, stop := start(b, d, dir, hook(b, "hung", hungServer.URL), hook(b, "good", goodServer.URL))
	defer stop()
	defer close(hung.slow)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		if err := d.RecordFindings(b.Context(),
			[]anomaly.Change{finding(i, anomaly.Confirmed, time.Now())}); err != nil {
			b.Fatal(err)
		}
		begun := time.Now()
		for key := fmt.Sprintf("F-%04d true", i); good.of(key) == 0; time.Sleep(100 * time.Microsecond) {
			if time.Since(begun) > time.Minute {
				b.Fatalf("%s does not arrive", key)
			}
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1e3, "ms-median")
	b.ReportMetric(took[len(took)-1].Seconds()*1e3, "ms-longest")
}
