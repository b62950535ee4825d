package prometheus_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"fairway/cmd/lab/conform/storetest"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/prometheus"
)

func TestContractOfThanos(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() tsdb.Store {
		c := startThanos(t, week)
		return opened(t, prometheus.Config{WriteURL: c.writeURL, ReadURL: c.readURL},
			func(context.Context) error { c.settle(t, 3); return nil })
	})
}

// TestThanosLosesAReceiver: a full machine's 240 forwarders report 300 seconds; meanwhile a receiver is killed and
// comes back, then the one that is written to. Reads answer all the time, and nothing that was acknowledged is lost.
func TestThanosLosesAReceiver(t *testing.T) {
	c := startThanos(t, week)
	s, err := prometheus.Open(prometheus.Config{WriteURL: c.writeURL, ReadURL: c.readURL, SpoolDir: t.TempDir(),
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const nodes, seconds = 240, 300
	base := time.Now().Unix() - seconds
	var names []topology.NodeID
	for n := range nodes {
		names = append(names, topology.NodeID(fmt.Sprintf("fwd%d", n)))
	}
	metrics := []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.MetaOps, collector.MetaWait}
	value := func(n, m int, sec int64) float64 { return float64(sec*1000) + float64(n) + float64(m)/4 }
	report := func(from, to int64) {
		t.Helper()
		for sec := from; sec < to; sec++ {
			frames := make([]collector.Frame, nodes)
			for n := range frames {
				frames[n] = collector.Frame{Node: names[n], Role: topology.Forwarder, TimeMillis: (base + sec) * 1000}
				for m, metric := range metrics {
					sample := collector.Sample{Metric: metric, Value: value(n, m, sec)}
					frames[n].Samples = append(frames[n].Samples, sample)
				}
			}
			if err := s.Append(t.Context(), frames); err != nil {
				t.Fatal(err)
			}
		}
	}
	flush := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if err := s.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	// check reads the first seconds of everything.
	check := func(when string, until int64) {
		t.Helper()
		for m, metric := range metrics {
			got, err := s.Select(t.Context(), tsdb.Query{Nodes: names, Metric: metric, FromMillis: base * 1000,
				ToMillis: (base + until) * 1000})
			if err != nil || len(got) != nodes {
				t.Fatalf("%s: %d nodes, %v", when, len(got), err)
			}
			for n, series := range got {
				if len(series.Points) != int(until) {
					t.Fatalf("%s: %s of %s has %d seconds, want %d", when, metric, series.Node,
						len(series.Points), until)
				}
				for sec, p := range series.Points {
					if p.TimeMillis != (base+int64(sec))*1000 || p.Value != value(n, m, int64(sec)) {
						t.Fatalf("%s: %s of %s is %v at second %d", when, metric, series.Node, p, sec)
					}
				}
			}
		}
	}
	report(0, 100)
	flush()
	c.settle(t, 3)
	check("all are there", 100)
	report(100, 130)
	c.kill(1)
	report(130, 200)
	check("one is dead", 100)
	flush() // two of three are enough
	check("one is dead, and what came since is there", 200)
	c.restart(t, 1)
	c.settle(t, 3)
	check("it is back", 200)
	report(200, 230)
	c.kill(0)
	report(230, seconds)
	check("the one that is written to is dead", 200)
	c.restart(t, 0)
	flush()
	c.settle(t, 3)
	check("all are back", seconds)
}
