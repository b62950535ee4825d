package dispatch

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
)

// TestWhatABackEndServesDoesNotWait: of a job's metadata operations under way those in service of the servers behind
// its gateways are none that wait, to its part of what all compute nodes ask there. Gateways that report their time in
// service have their back end's in it.
func TestWhatABackEndServesDoesNotWait(t *testing.T) {
	const seconds = 20
	meta := func(rate float64, m collector.Metric, took float64) []collector.Sample {
		return []collector.Sample{{Metric: collector.MetaOps, Value: rate}, {Metric: m, Value: took},
			{Metric: collector.ReadBytes}}
	}
	for _, c := range []struct {
		name    string
		server  topology.NodeID
		gateway []collector.Sample
		exec    float64 // seconds in service of the server, 1000 a second
		want    float64 // of three nodes with five under way each
		further float64 // operations a second of another node at the gateway
	}{
		{"its part of 4", "be0", meta(500, collector.MetaWait, 1), 0.004, 15 - 3, 100},
		{"the server does not report its times", "be0", meta(500, collector.MetaWait, 1), 0, 15, 100},
		{"more than is under way", "be0", meta(500, collector.MetaWait, 1), 1, 0, 100},
		{"a node that asks for less than nothing", "be0", meta(500, collector.MetaWait, 1), 0, 15, -300},
		{"a server that the gateway is not a client of", "be1", meta(500, collector.MetaWait, 1), 0.004, 15, 100},
		{"a gateway with a clock", "be0", meta(500, collector.MetaExec, 0.01), 0.004, 15 - 300*0.01, 100},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(8, 2, 0)
			m.behind = map[topology.ForwarderID]topology.NodeID{"f0": "be0", "f1": "be1"}
			s := newSite(t, m, remap.ModeApprove)
			s.dispatch(t, "1", "STORM", cns(0, 3)) // on f0
			var all []collector.Frame
			for range seconds {
				at := time.Now().UnixMilli()
				frames := []collector.Frame{{Node: c.server, Role: topology.Storage, TimeMillis: at,
					Samples: meta(1000, collector.MetaExec, c.exec)},
					{Node: "f0", Role: topology.Forwarder, TimeMillis: at, Samples: c.gateway}}
				for i, rate := range []float64{100, 100, 100, c.further, 100} { // the last one has another gateway
					frames = append(frames, collector.Frame{Node: cn(i), Role: topology.Compute, TimeMillis: at,
						Samples: meta(rate, collector.ClientMeta, 0.05)})
				}
				s.mu.Lock()
				s.frames = frames
				s.mu.Unlock()
				s.d.watch(time.Now())
				all = append(all, frames...)
				time.Sleep(time.Second)
			}
			clocked := c.gateway[1].Metric == collector.MetaExec // what a neighbour does now is all under way there
			if got := s.d.jobs["1"].live.MetaQueue; !clocked && math.Abs(got-c.want) > 0.01 {
				t.Errorf("%s: %g metadata operations wait while it runs, want %g", c.name, got, c.want)
			}
			if _, err := s.d.End(t.Context(), "1"); err != nil {
				t.Fatal(err)
			}
			s.mu.Lock()
			s.frames = all
			s.mu.Unlock()
			time.Sleep(10 * time.Second)
			profiler{s.d}.buildDue(t.Context())
			r, _, err := s.d.Job("1")
			if err != nil || r.Profile == nil || r.Profile.MetaQueue == nil {
				t.Fatalf("%s: %+v, %v", c.name, r.Profile, err)
			}
			if got := *r.Profile.MetaQueue; math.Abs(got-c.want) > 0.01 {
				t.Errorf("%s: %g metadata operations waited, want %g", c.name, got, c.want)
			}
		})
	}
}
