package watch

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// clocked are four forwarders that time their own requests, with a client each.
type clocked struct {
	*Detectors
	board  *window.Board
	m      *Machine
	now    time.Time
	impact []anomaly.Impact // of the alarms of the last second
}

func newClocked() *clocked {
	c := &clocked{board: window.NewBoard(0), m: &Machine{Mapping: topology.Mapping{}},
		now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	c.Detectors = NewDetectors(c.board, failslow.DefaultSettings())
	return c
}

// live lets seconds pass, in which writes through f1 take server seconds there and outside seconds on the way, and
// returns the sentences of the alarms of the last one.
func (c *clocked) live(seconds int, server, outside float64) (alarms []string) {
	for range seconds {
		c.now = c.now.Add(time.Second)
		at := c.now.Add(-time.Second).UnixMilli()
		for i := range 4 {
			exec, way := 1e-3, 1e-3
			if i == 1 {
				exec, way = server, outside
			}
			fwd, cn := topology.NodeID(fmt.Sprint("f", i)), topology.NodeID(fmt.Sprint("cn", i))
			c.m.Mapping[cn] = topology.ForwarderID(fwd)
			c.board.Take([]collector.Frame{
				// an operation of a client is two requests
				{Node: cn, Role: topology.Compute, TimeMillis: at,
					Jobs: []collector.JobSamples{{Job: topology.JobID(fmt.Sprint("j", i))}}, Samples: samples(
						collector.WriteOps, 40.0,
						collector.WriteBytes, 1e7, collector.ClientWrite, way+2*(exec+1e-4))},
				{Node: fwd, Role: topology.Forwarder, TimeMillis: at, Samples: samples(collector.WriteOps, 80.0,
					collector.WriteBytes, 1e7, collector.WriteWait, 1e-4, collector.WriteExec, exec)},
			}, c.now)
		}
		alarms, c.impact = nil, nil
		for _, v := range c.Verdicts(c.now, c.m) {
			if v.Level == anomaly.Alarm {
				alarms = append(alarms, string(v.Node)+": "+v.Sentence)
				c.impact = append(c.impact, v.Impact...)
			}
		}
	}
	return alarms
}

// TestSlowWayToAForwarderWithAClock: a link that is capped shows in no time of the server's, and is found by what the
// clients wait beyond it; a slow server does not count as a slow link. Evidence outlives a restart.
func TestSlowWayToAForwarderWithAClock(t *testing.T) {
	c := newClocked()
	if a := c.live(120, 1e-3, 1e-3); len(a) > 0 {
		t.Fatalf("nothing is slow: %v", a)
	}
	a := c.live(60, 1e-3, 30e-3)
	if len(a) != 1 || !strings.HasPrefix(a[0], "f1:") || !strings.Contains(a[0], "the way between it and its clients") {
		t.Fatalf("a minute of a slow link: %v", a)
	}
	// Nearly all that its clients wait for is the way, of which its own clock knows nothing.
	if i := c.impact; len(i) != 1 || i[0].Job != "j1" || i[0].Share < 0.9 {
		t.Errorf("who suffers from a slow link: %+v", i)
	}
	// How slow it is shown is what the sentence says, not what its own clock does.
	shown := c.Now()
	if r := shown["f1"].Slow; !strings.Contains(a[0], anomaly.Times(r)+" slow") || !(shown["f2"].Slow < 1.5) {
		t.Errorf("%s: shown as %.1fx, its peer as %.1fx", a[0], r, shown["f2"].Slow)
	}
	state, err := c.State(c.now)
	if err != nil {
		t.Fatal(err)
	}
	again := newClocked()
	again.now = c.now
	if _, err := again.LoadState(bytes.NewReader(state), c.now, time.Hour); err != nil {
		t.Fatal(err)
	}
	if b := again.live(35, 1e-3, 30e-3); len(b) != 1 {
		t.Errorf("after a restart: %v", b)
	}
	other := newClocked()
	other.live(120, 1e-3, 1e-3)
	for range 60 {
		for _, s := range other.live(1, 30e-3, 1e-3) {
			if strings.Contains(s, "the way") {
				t.Fatalf("a slow server: %s", s)
			}
		}
	}
}
