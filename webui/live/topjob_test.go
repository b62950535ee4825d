package live

import (
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/tsdb/window"
	"fairway/webui/api"
)

// Bytes name a forwarder's top job; where none move, metadata operations do. What does nothing is not
// named: it may be over, and its mounts only not have reported it yet.
func TestTopJobDoesMost(t *testing.T) {
	for name, c := range map[string]struct {
		jobs  map[topology.JobID]did
		top   topology.JobID
		share float64 // of bytes; 0: none
	}{
		"bytes": {map[topology.JobID]did{"1": {didWrite: 30, didMeta: 900}, "2": {didWrite: 90}}, "2",
			0.75},
		"metadata": {map[topology.JobID]did{"3": {}, "6": {didMeta: 2000}, "7": {didMeta: 10}},
			"6", 0},
		"the same":                   {map[topology.JobID]did{"9": {didWrite: 5}, "8": {didWrite: 5}}, "8", 0.5},
		"nothing, as of an old job":  {map[topology.JobID]did{"3": {}, "6": {}}, "", 0},
		"a writer beside operations": {map[topology.JobID]did{"3": {didWrite: 1}, "6": {didMeta: 1e6}}, "3", 1},
	} {
		var row api.ForwarderRow
		nameTopJob(&row, c.jobs)
		if row.TopJob != c.top || (row.TopJobShare == nil) != (c.share == 0) || row.TopJobShare != nil &&
			*row.TopJobShare != c.share {
			t.Errorf("%s: %q %v, want %q %v", name, row.TopJob, row.TopJobShare, c.top, c.share)
		}
	}
	samples := func(bytes, ops float64) []collector.Sample {
		return []collector.Sample{{Metric: collector.WriteBytes, Value: bytes}, {Metric: collector.MetaOps, Value: ops}}
	}
	f := collector.Frame{Jobs: []collector.JobSamples{{Job: "3", Samples: samples(0, 0)},
		{Job: "6", Samples: samples(0, 7)}}}
	if top := topOf(&f); top.job != "6" || top.did[didMeta] != 7 {
		t.Errorf("of a node: %+v", top)
	}
}

// A slow forwarder that finished nothing in the second shown names the job that waits for it; one that is silent, has
// a top job or whose victims wait no more stays as it is.
func TestASlowForwarderNamesWhoWaits(t *testing.T) {
	need := func(node topology.NodeID, share float64) advise.Card {
		return advise.Card{Node: node, Victims: []advise.Victim{{Job: "5", Share: share}, {Job: "6", Share: share / 2}}}
	}
	rows := []api.ForwarderRow{{ID: "slow"}, {ID: "busy", TopJob: "1"}, {ID: "silent", State: remap.ForwarderStale},
		{ID: "over"}, {ID: "other"}}
	nameSufferers(rows, []advise.Card{need("slow", 0.8), need("busy", 0.8), need("silent", 0.8), need("over", 0),
		{Node: "other", Victims: []advise.Victim{}}})
	for i, want := range []topology.JobID{"5", "1", "", "", ""} {
		if rows[i].TopJob != want || rows[i].TopJobShare != nil {
			t.Errorf("%s: %q %v, want %q", rows[i].ID, rows[i].TopJob, rows[i].TopJobShare, want)
		}
	}
}

// Where the counters of compute nodes know no jobs, the batch system's are named.
func TestTopJobOfTheBatchSystem(t *testing.T) {
	now := time.Now()
	board := window.NewBoard(0)
	node := func(id topology.NodeID, role topology.Role, bytes float64) collector.Frame {
		return collector.Frame{Node: id, Role: role, TimeMillis: now.UnixMilli() - 1000,
			Samples: []collector.Sample{{Metric: collector.WriteBytes, Value: bytes}}}
	}
	board.Take([]collector.Frame{node("gw1", topology.Forwarder, 40), node("cn1", topology.Compute, 10),
		node("cn2", topology.Compute, 30), node("cn3", topology.Compute, 90)}, now)
	m := &topology.Machine{Default: map[topology.NodeID]topology.ForwarderID{}}
	m.Nodes = append(m.Nodes, topology.Node{ID: "gw1", Role: topology.Forwarder})
	for _, n := range []topology.NodeID{"cn1", "cn2", "cn3"} {
		m.Nodes = append(m.Nodes, topology.Node{ID: n, Role: topology.Compute})
		m.Default[n] = "gw1"
	}
	sit := remap.BuildSituation(remap.SituationParts{At: now, Machine: m,
		Load: map[topology.ForwarderID]remap.Load{"gw1": {LastSeen: now}},
		Jobs: []remap.Job{{ID: "7", Nodes: []topology.NodeID{"cn1"}}, {ID: "8", Nodes: []topology.NodeID{"cn2"}}}})
	p := New(Config{Board: board, Situation: func() *remap.Situation { return sit }})
	row := p.Snapshot().Overview.Forwarders[0]
	if row.TopJob != "8" || row.TopJobShare == nil || *row.TopJobShare != 0.75 {
		t.Errorf("%q %v", row.TopJob, row.TopJobShare)
	}
}
