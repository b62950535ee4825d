package webui_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/webui"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap/dispatch"
	"fairway/webui/live"
)

// Two jobs on two forwarders: job a writes 30 by fwd000 and 10 by fwd001, job b reads 60 by fwd001.
// The numbers are worked out by hand.
func TestFlowAndInterference(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	job := func(id string, read, write float64) collector.JobSamples {
		return collector.JobSamples{Job: topology.JobID(id),
			Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: read},
				{Metric: collector.WriteBytes, Value: write}}}
	}
	report := func(frames ...collector.Frame) {
		now := time.Now()
		for i := range frames {
			f := &frames[i]
			f.TimeMillis = now.Add(-time.Second).UnixMilli()
			if f.Role == topology.Compute {
				f.RoutesComplete, f.Routes = true,
					[]collector.Route{{Client: f.Node, Forwarder: s.Machine.Routes[f.Node]}}
			} else {
				f.Samples = []collector.Sample{{Metric: collector.ReadBytes, Value: 1}}
			}
		}
		s.Take(frames, now)
	}
	frames := []collector.Frame{
		{Node: "c00000", Role: topology.Compute, Jobs: []collector.JobSamples{job("a", 0, 20e6)}},
		{Node: "c00001", Role: topology.Compute, Jobs: []collector.JobSamples{job("a", 0, 10e6)}},
		{Node: "c00004", Role: topology.Compute, Jobs: []collector.JobSamples{job("a", 0, 10e6)}},
		{Node: "c00005", Role: topology.Compute, Jobs: []collector.JobSamples{job("b", 60e6, 0)}},
		// the mounts' word counts
		{Node: "fwd000", Role: topology.Forwarder, Jobs: []collector.JobSamples{job("a", 0, 99e6)}},
		{Node: "fwd001", Role: topology.Forwarder},
		{Node: "fwd002", Role: topology.Forwarder, Jobs: []collector.JobSamples{job("c", 5e6, 0)}},
	}
	report(frames...)
	s.FindMu.Lock()
	s.Find = []anomaly.Finding{{ID: "F-0007", Node: "fwd001", Kind: anomaly.HighBandwidth, State: anomaly.Confirmed,
		Jobs: []topology.JobID{"b"}}}
	s.FindMu.Unlock()
	flow := func(query string) string {
		f := get[webui.FlowView](s, "/api/v1/flow"+query)
		var out []string
		for _, l := range f.Links {
			out = append(out, fmt.Sprintf("%s>%s %.0f+%.0f %s", l.Job, l.Forwarder, l.ReadBytesPerSec/1e6,
				l.WriteBytesPerSec/1e6, l.By))
		}
		for _, l := range f.Storage {
			out = append(out, fmt.Sprintf("%s>%s>%s %.0f+%.0f %v", l.Job, l.Forwarder, l.Server, l.ReadBytesPerSec/1e6,
				l.WriteBytesPerSec/1e6, l.Estimated))
		}
		if f.Left > 0 {
			out = append(out, fmt.Sprint("left ", f.Left))
		}
		return strings.Join(append(out, f.StorageUnknown), "; ")
	}
	const links = "b>fwd001 60+0 clients; a>fwd000 0+30 clients; a>fwd001 0+10 clients; c>fwd002 5+0 forwarder; "
	eventually(t, "the flow is counted",
		func() bool { return strings.HasPrefix(flow(""), links+"no storage server reports") })
	if got := flow("?job=a&limit=2"); !strings.HasPrefix(got,
		"b>fwd001 60+0 clients; a>fwd000 0+30 clients; left 1; ") {
		t.Errorf("of job a: %s", got)
	}
	storage := []collector.Frame{{Node: "oss1", Role: topology.Storage}}
	report(append(frames, storage...)...)
	eventually(t, "a server without shares leads no further",
		func() bool { return strings.HasPrefix(flow(""), links+"the storage servers report no shares") })
	storage[0].Jobs = []collector.JobSamples{job("a", 0, 40e6), job("b", 50e6, 0), job("z", 1e6, 0)}
	report(append(frames, storage...)...)
	eventually(t, "job shares of a server go on from the forwarder", func() bool {
		return flow("") == links+
			"b>fwd001>oss1 50+0 false; a>fwd000>oss1 0+30 true; a>fwd001>oss1 0+10 true; z>>oss1 1+0 false; "
	})
	m := get[live.Interference](s, "/api/v1/interference")
	got := map[string]live.Cell{}
	for _, c := range m.Cells {
		got[string(c.Job)+string(c.By)] = c
	}
	for pair, want := range map[string][2]float64{ // share, pressure in MB/s of peak
		"aa": {0.75 + 0.25*10.0/70, 0.75*30 + 0.25*10}, "ab": {0.25 * 60.0 / 70, 0.25 * 60}, "ba": {10.0 / 70, 10},
		"bb": {60.0 / 70, 60}, "cc": {1, 5},
	} {
		if c := got[pair]; math.Abs(c.Share-want[0]) > 1e-9 || c.Pressure == nil ||
			math.Abs(*c.Pressure-want[1]*1e6/simsite.ForwarderPeak) > 1e-9 {
			t.Errorf("%s: %+v, want %v", pair, c, want)
		}
	}
	if len(m.Jobs) != 3 || m.Jobs[0] != "b" || len(m.Cells) != 5 || m.Left != 0 || got["ab"].Finding != "F-0007" ||
		got["ba"].Finding != "" || got["bb"].Finding != "" {
		t.Errorf("matrix %+v", m)
	}
}

// What a job moves at a storage target: its nodes' own counts, a gateway's as its jobs' bytes there, else the server's.
func TestUsesOfATarget(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	moves := func(read, write float64) []collector.Sample {
		return []collector.Sample{{Metric: collector.ReadBytes, Value: read}, {Metric: collector.WriteBytes,
			Value: write}}
	}
	at := func(target string, read, write float64) []collector.TargetSamples {
		return []collector.TargetSamples{{Target: topology.TargetID(target), Samples: moves(read, write)}}
	}
	job := func(id string, read, write float64) []collector.JobSamples {
		return []collector.JobSamples{{Job: topology.JobID(id), Samples: moves(read, write)}}
	}
	for id, nodes := range map[topology.JobID][]topology.NodeID{"a": {"c00000", "c00001"}, "b": {"c00002"}} {
		if _, err := s.Jobs.Dispatch(t.Context(), dispatch.Request{Job: id, User: "olga", Nodes: nodes}); err != nil {
			t.Fatal(err)
		}
	}
	server := collector.Frame{Node: "oss1", Role: topology.Storage,
		Jobs: append(job("a", 0, 40e6), job("elsewhere", 0, 90e6)...)}
	client := func(n topology.NodeID, target string, read float64) collector.Frame {
		return collector.Frame{Node: n, Role: topology.Compute, Targets: at(target, read, 0)}
	}
	gateway := collector.Frame{Node: "fwd002", Role: topology.Forwarder, Targets: at("oss1", 30e6, 9e6),
		Jobs: append(job("a", 1e6, 0), job("b", 2e6, 0)...)}
	both := []collector.Frame{server, client("c00000", "oss1", 7e6), client("c00001", "oss1", 4e6),
		client("c00002", "ost9", 3e6), client("c00003", "oss1", 5e6)}
	for name, c := range map[string]struct {
		frames []collector.Frame
		want   string
	}{
		"nobody counts":                        {nil, "not known"},
		"a server counts the jobs that run":    {[]collector.Frame{server}, "a 0+40 servers"},
		"clients do; one node is of no job":    {both, "a 11+0 ;  5+0 "},
		"they ask only gateways":               {[]collector.Frame{client("c00000", "fwd002", 7e6)}, "not known"},
		"a gateway's, as its jobs' bytes are":  {[]collector.Frame{gateway}, "b 20+0 ; a 10+0 ;  0+9 "},
		"clients count, and it is not touched": {[]collector.Frame{client("c00000", "ost9", 7e6)}, ""},
	} {
		got := ""
		eventually(t, name+": "+c.want, func() bool {
			now := time.Now()
			all := map[topology.NodeID]collector.Frame{"oss1": {Node: "oss1", Role: topology.Storage}}
			for _, n := range s.Machine.Topo.Nodes { // forgets the case before
				all[n.ID] = collector.Frame{Node: n.ID, Role: n.Role}
			}
			for _, f := range c.frames {
				all[f.Node] = f
			}
			frames := slices.Collect(maps.Values(all))
			for i := range frames {
				frames[i].TimeMillis = now.UnixMilli()
			}
			s.Take(frames, now)
			v := get[webui.FlowView](s, "/api/v1/flow?target=oss1&target=ost8")
			var out []string
			for _, u := range v.Targets {
				out = append(out, fmt.Sprintf("%s %.0f+%.0f %s", u.Job, u.ReadBytesPerSec/1e6, u.WriteBytesPerSec/1e6,
					u.By))
			}
			if got = strings.Join(out, "; "); v.Targets == nil {
				got = "not known"
			}
			return got == c.want
		})
	}
}
