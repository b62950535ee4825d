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
		want, means string
	}{
		{collector.QueueLen, 8, 0.01, "8x", "8 requests, peers below 1"},
		{collector.QueueLen, 0.5, 0.001, "", ""},
		{collector.QueueLen, 40, 4, "10x", "40 requests, peers 4"},
		{collector.ClientWrite, 0.036, 0.0036, "10x", "36 ms, peers 3.6"},
		{collector.ClientWrite, 0.0001, 1e-9, "", ""},
		{collector.ClientWrite, 1, 1e-6, "over 100x", "1000 ms, peers below 0.1"},
		{collector.WriteBytes, 1e8, 1, "", ""}, // work done
		{collector.QueueLen, 8, math.NaN(), "", ""},
	} {
		got := r.chart(c.metric, map[topology.NodeID][]float64{"f0": {c.node, c.node}, "f1": {c.peers, c.peers},
			"f2": {c.peers, c.peers}})
		if got.Says != c.want || got.Means != c.means {
			t.Errorf("%v: %g beside %g says %q (%s), want %q (%s)", c.metric, c.node, c.peers, got.Says, got.Means,
				c.want, c.means)
		}
	}
}

// TestTheNamedMetricIsFirst: a storm's page begins with the metadata operations that its sentence counts, a pinned
// forwarder's with the service of its writes, whatever else differs from the peers.
func TestTheNamedMetricIsFirst(t *testing.T) {
	tenfold := 10.0
	for _, c := range []struct{ named, metric string }{{"meta_ops", "meta_ops"}, {"write_exec_seconds", "write_exec"}} {
		asked := Compared{Class: "read", Named: map[string]float64{c.named: 1}}
		named, of := asked.weight(&Chart{Metric: c.metric}), asked.weight(&Chart{Metric: "client_read", class: "read",
			Ratio: &tenfold})
		if named <= of {
			t.Errorf("%s weighs %v, a class that is tenfold %v", c.metric, named, of)
		}
	}
}
