package daemontest

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/webui/api"
)

// TestKilledDaemonLosesNoSecond kills the daemon with kill -9 while agents stream, keeps it away,
// starts it again, and wants every second of every node once, with its value. FAIRWAY_OUTAGE=60s
// makes the outages as long as that.
func TestKilledDaemonLosesNoSecond(t *testing.T) {
	t.Parallel() // it mostly waits
	outage := 1500 * time.Millisecond
	if text := os.Getenv("FAIRWAY_OUTAGE"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		outage = d
	}
	d := newRealDaemon(t, "")
	var agents []*testAgent
	for i := range 6 {
		agents = append(agents, newAgent(t, d, topology.NodeID(fmt.Sprintf("cn%d", i)), topology.Compute, "fwd1"))
	}
	// Seconds pass faster than the clock, so that a short test has many: they begin half an hour
	// ago, and do not reach the present before the test's end.
	pace := max(10*time.Millisecond, (2*outage+5*time.Second)/1500)
	first := time.Now().Add(-30 * time.Minute).Truncate(time.Second).UnixMilli()
	n := 0
	stream := func(for_ time.Duration) {
		for end := time.Now().Add(for_); time.Now().Before(end); n++ {
			for i, a := range agents {
				a.second(t, first+int64(n)*1000, valueOf(i, n))
			}
			time.Sleep(pace)
		}
	}
	stream(500 * time.Millisecond)
	for range 2 {
		d.kill()
		stream(outage)
		d.start()
		stream(800 * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, a := range agents {
		if err := a.client.Drain(ctx); err != nil {
			t.Fatalf("%s: %v (%+v)", a.node, err, a.client.State())
		}
	}
	d.kill() // what was acknowledged must be on disk
	d.start()
	for i, a := range agents {
		checkSeconds(t, d, a.node, first, n, func(k int) float64 { return valueOf(i, k) })
	}
	t.Logf("%d nodes, %d seconds each, two outages of %s", len(agents), n, outage)
}

func valueOf(node, second int) float64 { return float64(1e6*(node+1) + second) }

// checkSeconds wants n seconds from first on, each once and with its value.
func checkSeconds(t *testing.T, d *realDaemon, node topology.NodeID, first int64, n int, want func(int) float64) {
	t.Helper()
	var got api.SeriesAnswer
	path := fmt.Sprintf("/api/v1/series?node=%s&metric=read_bytes&step=1s&from=%d&to=%d", node, first-5000,
		first+int64(n+5)*1000)
	if err := d.ask(path, "", nil, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Series) != 1 {
		t.Fatalf("%s: %d series", node, len(got.Series))
	}
	seen := map[int64]bool{}
	for _, p := range got.Series[0].Points {
		k := int((p.TimeMillis - first) / 1000)
		switch {
		case p.Value == nil:
			t.Errorf("%s: seconds are missing from number %d of %d on", node, k, n)
		case seen[p.TimeMillis]:
			t.Errorf("%s: second %d twice", node, k)
		case *p.Value != want(k):
			t.Errorf("%s: second %d is %g, want %g", node, k, *p.Value, want(k))
		}
		if seen[p.TimeMillis] = true; t.Failed() {
			return
		}
	}
	if len(seen) != n {
		t.Errorf("%s: %d seconds, want %d", node, len(seen), n)
	}
}
