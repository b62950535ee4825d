package webui_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/cmd/lab/simsite"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/webui/api"
)

func target(id string, ops, write, latency float64) collector.TargetSamples {
	return collector.TargetSamples{Target: topology.TargetID(id),
		Samples: []collector.Sample{{Metric: collector.WriteOps, Value: ops},
			{Metric: collector.WriteBytes, Value: write}, {Metric: collector.ClientWrite, Value: latency}}}
}

// storageWords is a forwarder's storage in a line a row.
func storageWords(v api.StorageView) string {
	var out []string
	for _, r := range v.Rows {
		word := func(p *float64, unit float64) string {
			if p == nil {
				return "-"
			}
			return fmt.Sprintf("%.3g", *p*unit)
		}
		out = append(out, fmt.Sprintf("%s %s/s %s+%s MB/s %s ms (%s) %v", r.Target, word(r.RequestsPerSec, 1),
			word(r.ReadBytesPerSec, 1e-6), word(r.WriteBytesPerSec, 1e-6), word(r.LatencySeconds, 1e3),
			word(r.PeersLatency, 1e3), r.Estimated))
	}
	return strings.Join(append(out, v.By+v.Unknown), "; ")
}

// What a forwarder asks of storage: by its own counters, by the servers' shares of jobs, or not known;
// the numbers are worked out by hand.
func TestStorageOfAForwarder(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	report := func(frames ...collector.Frame) {
		now := time.Now()
		for i := range frames {
			f := &frames[i]
			f.TimeMillis = now.Add(-time.Second).UnixMilli()
			if f.Role == topology.Compute {
				f.RoutesComplete, f.Routes = true,
					[]collector.Route{{Client: f.Node, Forwarder: s.Machine.Routes[f.Node]}}
			}
			f.Samples = append(f.Samples, collector.Sample{Metric: collector.QueueLen, Value: 1})
		}
		s.Take(frames, now)
	}
	job := func(id string, read, write float64) []collector.JobSamples {
		return []collector.JobSamples{{Job: topology.JobID(id),
			Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: read},
				{Metric: collector.WriteBytes, Value: write}}}}
	}
	fwd := func(n int, targets ...collector.TargetSamples) collector.Frame {
		return collector.Frame{Node: topology.NodeID(fmt.Sprintf("fwd%03d", n)), Role: topology.Forwarder,
			Targets: targets}
	}
	want := func(id, words string) {
		t.Helper()
		got := ""
		eventually(t, words, func() bool {
			got = storageWords(get[api.ForwarderDetail](s, "/api/v1/forwarders/"+id).Storage)
			if got != words {
				t.Log(got)
			}
			return got == words
		})
	}
	report(fwd(0), fwd(1))
	want("fwd000", "not reported by this layer")

	both := target("OST43", 100, 40e6, 0.038)
	both.Samples = append(both.Samples, collector.Sample{Metric: collector.ReadOps, Value: 300},
		collector.Sample{Metric: collector.ReadBytes, Value: 20e6}, collector.Sample{Metric: collector.ClientRead,
			Value: 0.002})
	idle := fwd(3)
	idle.Sources = []collector.SourceStatus{{Name: "lustre"}}
	report(fwd(0, target("OST44", 50, 90e6, 0.010), both), fwd(1, target("OST43", 10, 1e6, 0.009)),
		fwd(2, target("OST43", 10, 1e6, 0.011), target("OST44", 1, 1, 0.008)), idle)
	// (100 * 38 + 300 * 2) / 400 ms; the peers' medians of two and of one
	want("fwd000", "OST44 50/s -+90 MB/s 10 ms (8) false; OST43 400/s 20+40 MB/s 11 ms (10) false; forwarder")
	want("fwd003", "no request to a storage target in this second")

	server := func(id string, exec float64, jobs []collector.JobSamples) collector.Frame {
		return collector.Frame{Node: topology.NodeID(id), Role: topology.Storage, Jobs: jobs,
			Samples: []collector.Sample{{Metric: collector.WriteExec, Value: exec}}}
	}
	report(fwd(0), fwd(1), fwd(2), collector.Frame{Node: "c00000", Role: topology.Compute, Jobs: job("a", 0, 30e6)},
		collector.Frame{Node: "c00004", Role: topology.Compute, Jobs: job("a", 0, 10e6)},
		server("oss0", 0.004, job("a", 0, 40e6)), server("oss1", 0.002, nil))
	want("fwd000", "oss0 -/s 0+30 MB/s 4 ms (2) true; servers")
	want("fwd002", "no bytes of its jobs at a storage server in this second")

	past := get[api.ForwarderDetail](s, "/api/v1/forwarders/fwd000?at=-1s")
	if past.Storage.Unknown != "not kept of the past" {
		t.Errorf("of the past: %+v", past.Storage)
	}
}

// A forwarder's page has the life of its open finding and the earlier ones, from the journal.
func TestTheLifeOfAForwarder(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(0)
	eventually(t, "the picture has the forwarders",
		func() bool { return len(get[api.Overview](s, "/api/v1/overview").Forwarders) == 8 })
	life := func() *api.ForwarderLife {
		return get[api.ForwarderDetail](s, "/api/v1/forwarders/fwd001").Life
	}
	if l := life(); l == nil || len(l.Steps) != 0 || l.Earlier != 0 || l.Last != nil || l.Next != "" {
		t.Errorf("of a healthy one: %+v", l)
	}
	s.Says.Detector = simsite.Accuse("fwd001")
	now := time.Now().Add(-10 * time.Second)
	step := func(n int) {
		for range n {
			now = now.Add(time.Second)
			if err := s.Loop.Step(t.Context(), now); err != nil {
				t.Fatal(err)
			}
		}
	}
	step(2)
	if l := life(); len(l.Steps) != 1 || l.Steps[0].State != anomaly.Suspect ||
		l.Next != "confirmed after 5 s of alarm" {
		t.Errorf("suspect: %+v", l)
	}
	step(5)
	if l := life(); len(l.Steps) != 2 || l.Steps[1].State != anomaly.Confirmed || l.Next != "a person drains it" {
		t.Errorf("confirmed: %+v", l)
	}
	if res, b := post(s, "/api/v1/findings/F-0001/dismiss", simsite.OperatorSecret,
		api.Decision{Reason: "its array is being rebuilt"}); res.StatusCode != 200 {
		t.Fatalf("%s", b)
	}
	l := life()
	if len(l.Steps) != 0 || l.Earlier != 1 || l.Last == nil || l.Last.ID != "F-0001" ||
		l.Last.State != anomaly.Dismissed {
		t.Errorf("dismissed: %+v", l)
	}
	if l := get[api.ForwarderDetail](s, "/api/v1/forwarders/fwd001?at=-1h").Life; l == nil || l.Earlier != 0 {
		t.Errorf("an hour ago: %+v", l)
	}
}
