package live

import (
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb/window"
	"fairway/webui/api"
)

// A forwarder's page says of each number that never comes from its kind of layer why, and names the batch system's
// jobs on compute nodes whose own counters know none.
func TestPageSaysWhyNumbersAreMissing(t *testing.T) {
	type sources = []collector.SourceStatus
	value := func(all ...collector.Metric) (out []collector.Sample) {
		for _, m := range all {
			out = append(out, collector.Sample{Metric: m, Value: 1})
		}
		return out
	}
	for _, c := range []struct {
		name      string
		forwarder collector.Frame
		client    []collector.Sample
		why       map[collector.Metric]string
		clients   string
	}{
		{"kernel NFS", collector.Frame{Samples: value(collector.Threads, collector.ReadBytes),
			Sources: sources{{Name: "procfs"}, {Name: "lustre"}}}, value(collector.ReadBytes),
			map[collector.Metric]string{collector.QueueLen: "nfsd does not count", collector.ServerTime: "no clock",
				collector.Errors: "no counter of it"}, ""},
		{"DVS", collector.Frame{Samples: value(collector.ReadOps), Sources: sources{{Name: "dvs"}, {Name: "lustre"}}},
			value(collector.MetaOps), map[collector.Metric]string{collector.QueueLen: "run the agent as root",
				collector.ServerTime: "from 2019 on", collector.ReadBytes: "switch source.lustre on"},
			"in the format flat"},
		{"LWFS", collector.Frame{Samples: value(collector.ReadOps), Sources: sources{{Name: "lwfs"}}}, nil,
			map[collector.Metric]string{collector.QueueLen: "one operation in 1,000"}, "LWFS keeps no counters"},
		{"a router", collector.Frame{Samples: value(collector.RoutedBytes), Sources: sources{{Name: "lnet"}}}, nil,
			map[collector.Metric]string{collector.ReadBytes: "does not know which bytes are read",
				collector.MetaOps: "knows no files", collector.ServerTime: "transit"}, "source.lustre on them would"},
		{"GPFS", collector.Frame{Samples: value(collector.ReadBytes), Sources: sources{{Name: "gpfs"}}}, nil,
			map[collector.Metric]string{collector.QueueLen: "counts no requests", collector.ServerTime: "histograms",
				collector.MetaWait: "counts no requests", collector.Errors: "no counter of it"},
			"source.procfs on them would, of their NFS mounts"},
		{"Lustre client", collector.Frame{Sources: sources{{Name: "lustre"}}}, nil,
			map[collector.Metric]string{collector.ReadBytes: "mount the file system",
				collector.MetaOps: "fairway-agent check on gw1"}, "source.procfs or source.lustre"},
	} {
		now := time.Now()
		board := window.NewBoard(0)
		f := c.forwarder
		f.Node, f.Role, f.TimeMillis = "gw1", topology.Forwarder, now.UnixMilli()-1000
		board.Take([]collector.Frame{f, {Node: "cn1", Role: topology.Compute, TimeMillis: f.TimeMillis,
			Samples: c.client}}, now)
		sit := remap.BuildSituation(remap.SituationParts{At: now,
			Machine: &topology.Machine{Nodes: []topology.Node{{ID: "gw1", Role: topology.Forwarder},
				{ID: "cn1", Role: topology.Compute}},
				Default: map[topology.NodeID]topology.ForwarderID{"cn1": "gw1"}},
			Load: map[topology.ForwarderID]remap.Load{"gw1": {LastSeen: now}},
			Jobs: []remap.Job{{ID: "7", Nodes: []topology.NodeID{"cn1"}}}})
		p := New(Config{Board: board, Situation: func() *remap.Situation { return sit }})
		d, err := p.Forwarder(t.Context(), "gw1", false)
		if err != nil {
			t.Fatal(err)
		}
		for m, want := range c.why {
			if got := d.Unreported[m.String()]; !strings.Contains(got, want) {
				t.Errorf("%s, %s: %q, want %q", c.name, m, got, want)
			}
		}
		if got := d.ClientsUnreported; !strings.Contains(got, c.clients) || (got == "") != (c.clients == "") {
			t.Errorf("%s: of its compute nodes %q, want %q", c.name, got, c.clients)
		}
		if len(d.ClientNodes) != 1 || d.ClientNodes[0].Job != "7" {
			t.Errorf("%s: the batch system has job 7 on cn1: %+v", c.name, d.ClientNodes)
		}
	}
}

// Of a node with two jobs nobody knows whose its I/O is, and what a node reports of its job itself is kept.
func TestJobsOfSharedNodesAreNotGuessed(t *testing.T) {
	rows := []api.ClientRow{{ID: "cn1"}, {ID: "cn2"}, {ID: "cn3", Job: "9"}, {ID: "cn4"}}
	nameJobs(rows, []remap.Job{{ID: "7", Nodes: []topology.NodeID{"cn1", "cn2", "cn3"}},
		{ID: "8", Nodes: []topology.NodeID{"cn1"}}})
	for i, want := range []topology.JobID{"", "7", "9", ""} {
		if rows[i].Job != want {
			t.Errorf("%s: job %q, want %q", rows[i].ID, rows[i].Job, want)
		}
	}
}

// A gateway's page names its back end, and the finding of one that is slow.
func TestPageNamesTheBackEnd(t *testing.T) {
	now := time.Now()
	m := &topology.Machine{Nodes: []topology.Node{{ID: "gw1", Role: topology.Forwarder}}}
	for want, finds := range map[string][]anomaly.Finding{
		"be1": nil,
		"be1 takes 45 ms for a read, usually 1.1 ms (F-1: a forwarder in front of another one helps)": {{ID: "F-1",
			Node: "be1", Kind: anomaly.TargetSlow, State: anomaly.Confirmed,
			Sentence: "be1 takes 45 ms for a read, usually 1.1 ms"}},
	} {
		sit := remap.BuildSituation(remap.SituationParts{At: now, Machine: m, Findings: finds,
			Load: map[topology.ForwarderID]remap.Load{"gw1": {LastSeen: now, BackEnd: "be1"}}})
		p := New(Config{Board: window.NewBoard(0), Situation: func() *remap.Situation { return sit }})
		if d, err := p.Forwarder(t.Context(), "gw1", false); err != nil || d.BackEnd != want {
			t.Errorf("%q, %v; want %q", d.BackEnd, err, want)
		}
	}
}
