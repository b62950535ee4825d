package watch

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// TestSlowStorageServer: of six storage servers the one whose service is three times as slow is named, in one
// finding though it is slow in two classes, and it is not excluded from allocation.
func TestSlowStorageServer(t *testing.T) {
	board, now := window.NewBoard(0), time.Unix(1_800_000_000, 0)
	w := NewDetectors(board, failslow.DefaultSettings())
	s := &Machine{}
	named := ""
	for second := range 1500 {
		now = now.Add(time.Second)
		if second > 700 && second%100 == 0 { // the daemon starts again and again: what it saw is not forgotten
			saved, err := w.State(now)
			if err != nil {
				t.Fatal(err)
			}
			w = NewDetectors(board, failslow.DefaultSettings())
			if _, err := w.LoadState(bytes.NewReader(saved), now, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 6 {
			x := 1e-3
			if i == 2 && second >= 700 {
				x *= 3
			}
			board.Take([]collector.Frame{{Node: topology.NodeID(fmt.Sprint("oss", i)), Role: topology.Storage,
				TimeMillis: now.Add(-time.Second).UnixMilli(),
				Samples:    samples(collector.ReadExec, x, collector.WriteExec, 2*x)}}, now)
		}
		byNode := map[topology.NodeID]int{}
		for _, v := range w.Verdicts(now, s) {
			byNode[v.Node]++
			if v.Level == anomaly.Alarm {
				named = fmt.Sprint(v.Node, " ", v.Kind, " ", v.Kind.Accuses())
				if second < 700 || second > 1200 {
					t.Fatalf("named after %d s: %+v", second, v)
				}
			}
		}
		for n, count := range byNode {
			if count > 1 {
				t.Fatalf("%d verdicts about %s in one second", count, n)
			}
		}
		if named != "" {
			break
		}
	}
	if named != "oss2 target_slow false" {
		t.Errorf("named: %q", named)
	}
}
