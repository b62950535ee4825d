package live

import (
	"testing"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/webui/api"
)

// Bytes name a forwarder's top job; where none move, metadata operations do. What does nothing is not
// named: it may be over, and its mounts only not have reported it yet.
func TestTopJobDoesMost(t *testing.T) {
	for name, c := range map[string]struct {
		jobs  map[topology.JobID]work
		top   topology.JobID
		share float64 // of bytes; 0: none
	}{
		"bytes": {map[topology.JobID]work{"1": {bytes: 30, ops: 900}, "2": {bytes: 90}}, "2",
			0.75},
		"metadata":                   {map[topology.JobID]work{"3": {}, "6": {ops: 2000}, "7": {ops: 10}}, "6", 0},
		"the same":                   {map[topology.JobID]work{"9": {bytes: 5}, "8": {bytes: 5}}, "8", 0.5},
		"nothing, as of an old job":  {map[topology.JobID]work{"3": {}, "6": {}}, "", 0},
		"a writer beside operations": {map[topology.JobID]work{"3": {bytes: 1}, "6": {ops: 1e6}}, "3", 1},
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
	if top := topOf(&f); top.job != "6" || top.did.ops != 7 {
		t.Errorf("of a node: %+v", top)
	}
}

// A slow forwarder that finished nothing in the second shown names the job that waits for it; one that is silent, has
// a top job or whose victims wait no more stays as it is.
func TestASlowForwarderNamesWhoWaits(t *testing.T) {
	need := func(node topology.NodeID, share float64) api.Need {
		return api.Need{Node: node, Victims: []api.Victim{{Job: "5", Share: share}, {Job: "6", Share: share / 2}}}
	}
	rows := []api.ForwarderRow{{ID: "slow"}, {ID: "busy", TopJob: "1"}, {ID: "silent", State: api.StateStale},
		{ID: "over"}, {ID: "other"}}
	nameSufferers(rows, []api.Need{need("slow", 0.8), need("busy", 0.8), need("silent", 0.8), need("over", 0),
		{Node: "other", Victims: []api.Victim{}}})
	for i, want := range []topology.JobID{"5", "1", "", "", ""} {
		if rows[i].TopJob != want || rows[i].TopJobShare != nil {
			t.Errorf("%s: %q %v, want %q", rows[i].ID, rows[i].TopJob, rows[i].TopJobShare, want)
		}
	}
}
