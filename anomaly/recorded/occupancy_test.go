package recorded

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// TestOccupancyOfEachDay: seconds at 80 % of the peak count, whether the peak is set or learnt on the way;
// a row after a gap, a second row of one second and a reset counter do not.
func TestOccupancyOfEachDay(t *testing.T) {
	const day = 17000 * daySeconds
	var b strings.Builder
	b.WriteString(header)
	row := func(at int64, node string, bytes float64) {
		fmt.Fprintf(&b, "%d,%d,%s,%.0f,0,100,0,0,0,5,0,0,500,0,0\n", at, at, node, bytes)
	}
	for i := range int64(100) { // f1 is occupied in 10 of 100 s, f2 in 30, f3 in none
		speed := func(hit bool, v float64) float64 {
			if hit {
				return v
			}
			return 1e6
		}
		row(day+i, "f1", speed(i < 10, 800e6))
		row(day+i, "f2", speed(i < 30, 1000e6))
		row(day+i, "f3", speed(i < 50, 799e6))
		row(day+i, "f3", speed(i < 50, 900e6)) // arrived twice
		row(day+i, "f4", speed(i == 99, 1000e6))
	}
	row(day+110, "f1", 8000e6) // over a gap of eleven
	row(day+111, "f1", 1e13)   // a reset
	row(day+daySeconds, "f1", 1)
	row(day+daySeconds+1, "f1", 900e6)
	dir := t.TempDir()
	write(t, dir, "samples.csv", b.String())
	for _, peak := range []float64{1000e6, 0} {
		set := DefaultSettings()
		set.Occupancy, set.FailSlow.PeakBytesPerSec = true, peak
		got := ""
		_, err := Detect(context.Background(), dir, set, func(e Event) error {
			if e.Type == "occupancy" {
				got += fmt.Sprintf("%d %s %s\n", e.Start-day, e.Node, e.Detail)
			}
			return nil
		}, func(e *RowError) { t.Error(e) })
		want := `0 f1 0.1000 of 100 s
0 f2 0.3000 of 100 s
0 f3 0.0000 of 100 s
0 f4 0.0100 of 100 s
0 * min 0.0000 mean 0.1025 max 0.3000 imbalance 1.18 over 4 forwarders
86400 f1 1.0000 of 1 s
86400 * min 1.0000 mean 1.0000 max 1.0000 imbalance 0.00 over 1 forwarders
`
		if err != nil || got != want {
			t.Errorf("peak %g: %v\n%swant\n%s", peak, err, got, want)
		}
	}
}
