package watch

import (
	"testing"

	"fairway/anomaly/failslow"
	"fairway/collector/topology"
)

// TestAFullForwarderIsNotSlow: what clients of a forwarder at its known peak wait for says nothing of it, nor in the
// second after; one that reaches no peak, or whose peak is not known, is judged.
func TestAFullForwarderIsNotSlow(t *testing.T) {
	f, peaks := full{}, map[topology.NodeID]float64{"a": 100, "b": 100}
	second := func(a, b, c float64) []failslow.Observation {
		rows := []failslow.Observation{{Node: "a"}, {Node: "b"}, {Node: "c"}}
		for i, v := range []float64{a, b, c} {
			rows[i].Class[failslow.Write].Bytes = v
		}
		f.mark(rows, peaks)
		return rows
	}
	for i, s := range []struct{ moved, full []float64 }{
		{[]float64{90, 50, 1000}, []float64{1, 0, 0}},
		{[]float64{10, 50, 1000}, []float64{1, 0, 0}},
		{[]float64{10, 84, 1000}, []float64{0, 0, 0}},
		{[]float64{10, 85, 1000}, []float64{0, 1, 0}},
	} {
		for k, o := range second(s.moved[0], s.moved[1], s.moved[2]) {
			if o.Full != (s.full[k] == 1) {
				t.Errorf("second %d, %s: full %v", i, o.Node, o.Full)
			}
		}
	}
	// One that was full and says nothing for a second is judged when it is back, and one that is gone is forgotten.
	second(90, 10, 10)
	f.mark(nil, peaks)
	if len(f) != 0 {
		t.Errorf("kept of forwarders that are gone: %v", f)
	}
	if rows := second(10, 10, 10); rows[0].Full {
		t.Error("it is excused for what was before it was gone")
	}
}
