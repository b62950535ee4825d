package watch

import (
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// What GPFS's longest waiter waits for is added to the cause of its node, and to nothing else.
func TestWaitersExplain(t *testing.T) {
	w := waiters{}
	frame := func(n topology.NodeID, age, disk float64, note string) {
		w.take(&collector.Frame{Node: n, Samples: samples(collector.WaiterAge, age, collector.DiskWaiterAge, disk),
			Sources: []collector.SourceStatus{{Name: "procfs", Note: "no"}, {Name: "gpfs", Note: note}}})
	}
	frame("lock", 73.2, 2, "RPC wait for getData")
	frame("disk", 12, 12, "for I/O completion")
	frame("short", 0.2, 0.2, "for I/O completion")
	v := []anomaly.Verdict{
		{Node: "lock", Kind: anomaly.FailSlow, Level: anomaly.Alarm, Cause: notKnown + "looked at links"},
		{Node: "disk", Kind: anomaly.FailSlow, Level: anomaly.Doubt, Cause: "since it became slow links lose",
			Evidence: map[string]float64{"ratio": 3}},
		{Node: "short", Kind: anomaly.FailSlow, Level: anomaly.Alarm, Cause: "slow"},
		{Node: "lock", Kind: anomaly.FailSlow, Cause: "well"},
		{Node: "lock", Kind: anomaly.HighBandwidth, Level: anomaly.Alarm, Cause: "others"},
	}
	w.explain(v)
	for i, want := range []string{"its longest waiter in GPFS waits 73 s: 'RPC wait for getData'",
		"since it became slow links lose; " +
			"its longest waiter in GPFS waits 12 s: 'for I/O completion', which is for the disks behind it",
		"slow", "well", "others"} {
		if v[i].Cause != want {
			t.Errorf("%d: %q, want %q", i, v[i].Cause, want)
		}
	}
	if v[1].Evidence["waiter_age"] != 12 || v[1].Evidence["ratio"] != 3 {
		t.Errorf("%v", v[1].Evidence)
	}
}

// A waiter alone accuses nobody, however long it waits, also where nothing ends: a node that flushes what a job has
// left looks so.
func TestAWaiterAloneAccusesNobody(t *testing.T) {
	board, now := window.NewBoard(0), time.Unix(1_800_000_000, 0)
	d := NewDetectors(board, failslow.DefaultSettings())
	m := &Machine{Mapping: topology.Mapping{"cn1": "gw1", "cn2": "gw1", "cn3": "gw2", "cn4": "gw3"}}
	for range 120 {
		now = now.Add(time.Second)
		var frames []collector.Frame
		add := func(n topology.NodeID, role topology.Role, s []collector.Sample) {
			frames = append(frames, collector.Frame{Node: n, Role: role, Samples: s,
				TimeMillis: now.Add(-time.Second).UnixMilli()})
		}
		for f, age := range map[topology.NodeID]float64{"gw1": 3600, "gw2": 0, "gw3": 0} {
			ended := 100.0
			if age > 0 {
				ended = 0
			}
			add(f, topology.Forwarder, samples(collector.WaiterAge, age, collector.DiskWaiterAge, age,
				collector.ReadOps, ended, collector.WriteOps, ended, collector.MetaOps, ended))
		}
		for n, f := range m.Mapping {
			ended := 100.0
			if f == "gw1" {
				ended = 0
			}
			add(n, topology.Compute, samples(collector.MetaOps, ended))
		}
		board.Take(frames, now)
		for _, v := range d.Verdicts(now, m) {
			if v.Level >= anomaly.Doubt {
				t.Fatalf("%s: %s", v.Node, v.Sentence)
			}
		}
	}
}
