package incident

import (
	"math"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// How many times its peers' a value was says something of what is worth a name: a queue beside peers whose queues are
// empty most of the time, or a wait beside microseconds, counts by one request and a tenth of a millisecond.
func TestRatiosToAlmostNothing(t *testing.T) {
	from := time.Unix(1_000_000, 0)
	span := Span{From: from, To: from.Add(2 * time.Second)}
	r := reader{series: &Series{Span: span, StepSeconds: 1}, asked: Compared{Node: "f0", Accused: span}}
	for _, c := range []struct {
		metric      collector.Metric
		node, peers float64
		want        string
	}{
		{collector.QueueLen, 8, 0.01, "8x"},
		{collector.QueueLen, 0.5, 0.001, ""},
		{collector.QueueLen, 40, 4, "10x"},
		{collector.ClientWrite, 0.036, 0.0036, "10x"},
		{collector.ClientWrite, 0.0001, 1e-9, ""},
		{collector.ClientWrite, 1, 1e-6, "over 100x"},
		{collector.WriteBytes, 1e8, 1, ""}, // work done
		{collector.QueueLen, 8, math.NaN(), ""},
	} {
		got := r.chart(c.metric, map[topology.NodeID][]float64{"f0": {c.node, c.node}, "f1": {c.peers, c.peers},
			"f2": {c.peers, c.peers}})
		if got.Says != c.want {
			t.Errorf("%v: %g beside %g says %q, want %q", c.metric, c.node, c.peers, got.Says, c.want)
		}
	}
}
