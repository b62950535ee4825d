package situation

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb"
	"fairway/tsdb/window"
)

// busyHour is a store in which every forwarder was occupied for a quarter of the hour.
type busyHour struct{ tsdb.Store }

func (busyHour) Occupancy(_ context.Context, q tsdb.OccupancyQuery) (out []tsdb.NodeOccupancy, _ error) {
	for _, n := range q.Nodes {
		out = append(out, tsdb.NodeOccupancy{Node: n, Buckets: []tsdb.OccupancyBucket{{Occupied: 100, Seconds: 400}}})
	}
	return out, nil
}

type oneDedicated struct{}

func (oneDedicated) Owners() map[topology.ForwarderID]topology.JobID {
	return map[topology.ForwarderID]topology.JobID{"fwd1": "88231"}
}
func (oneDedicated) Promises() topology.Mapping { return nil }
func (oneDedicated) Excluded() map[topology.ForwarderID]string {
	return map[topology.ForwarderID]string{"fwd2": "slow"}
}

// A situation has what window, store, desk, detectors and batch system know, also of a forwarder that only clients
// name, and what the detectors' loop must know of it.
func TestASituationHasWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		board := window.NewBoard(0)
		b := New(Config{Machine: &topology.Machine{Name: "site", Nodes: []topology.Node{
			{ID: "fwd1", Role: topology.Forwarder, PeakBytesPerSec: 2e9}, {ID: "fwd2", Role: topology.Forwarder}}},
			PeakBytesPerSec: 1e9, Board: board, Store: busyHour{}})
		b.SetDesk(oneDedicated{})
		b.SetFindings(func() []anomaly.Finding { return []anomaly.Finding{{ID: "F-0001", Node: "fwd2"}} })
		b.SetJobs(func() []remap.Job { return []remap.Job{{ID: "88231", Nodes: []topology.NodeID{"cn1"}}} })
		at := now.Add(-time.Second).UnixMilli()
		board.Take([]collector.Frame{
			{Node: "fwd1", Role: topology.Forwarder, TimeMillis: at,
				Samples: []collector.Sample{{Metric: collector.WriteBytes, Value: 5e8}}},
			{Node: "cn1", Role: topology.Compute, TimeMillis: at,
				Routes: []collector.Route{{Client: "cn1", Forwarder: "fwd1"}}},
			{Node: "cn2", Role: topology.Compute, TimeMillis: at,
				Routes: []collector.Route{{Client: "cn2", Forwarder: "fwd3"}}},
		}, now)
		if err := b.countOccupancy(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		s := b.Situation()
		l := s.Load["fwd1"]
		if *l.WriteBytesPerSec != 5e8 || l.ReadBytesPerSec != nil || l.PeakBytesPerSec != 2e9 || *l.Occupancy != 0.25 ||
			l.Connections != 1 ||
			!l.LastSeen.Equal(now) {
			t.Errorf("the load of fwd1 is %+v", l)
		}
		if _, reports := s.Load["fwd3"]; reports || b.Role("fwd3") != topology.Forwarder || b.Peaks()["fwd3"] != 1e9 {
			t.Errorf("fwd3, which cn2 names: load %+v, role %s, peaks %v", s.Load["fwd3"], b.Role("fwd3"), b.Peaks())
		}
		if s.Owner["fwd1"] != "88231" || s.Excluded["fwd2"] != "slow" || len(s.Findings) != 1 ||
			s.Observed["cn2"] != "fwd3" {
			t.Errorf("the situation is %+v", s)
		}
		m := ForWatch(s, []remap.Exclusion{{Forwarder: "fwd2", By: "olga"}})
		if len(m.Forwarders) != 3 || m.Healthy != 1 || m.Excluded["fwd2"] != "olga" || m.Mapping["cn1"] != "fwd1" ||
			len(m.Jobs) != 1 || m.Jobs[0].Nodes[0] != "cn1" {
			t.Errorf("for the detectors: %+v", m)
		}
		if b.Situation() != s {
			t.Error("a second one at once was built anew")
		}
		if time.Sleep(2 * situationAtMost); b.Situation() == s {
			t.Error("one of three seconds ago is still given out")
		}
	})
}
