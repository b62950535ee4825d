package live

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/place"
	"fairway/tsdb/window"
	"fairway/webui/api"
)

const mb = 1e6

// wrote are a second's samples: megabytes written and metadata operations.
func wrote(megabytes, meta float64) []collector.Sample {
	return []collector.Sample{{Metric: collector.WriteBytes, Value: megabytes * mb},
		{Metric: collector.MetaOps, Value: meta}}
}

func share(who topology.JobID, target topology.TargetID, megabytes, meta float64) collector.JobSamples {
	return collector.JobSamples{Job: who, Target: target, Samples: wrote(megabytes, meta)}
}

// usesPicture has a forwarder with four clients, and servers that count by job, not at all, and only at their clients.
func usesPicture(frames ...collector.Frame) *Picture {
	now := time.Now()
	for i := range frames {
		frames[i].TimeMillis = now.UnixMilli()
	}
	sit := &remap.Situation{Machine: &topology.Machine{Nodes: []topology.Node{{ID: "fwd1", Role: topology.Forwarder}}},
		Places: place.Places{Observed: topology.Mapping{}},
		Jobs:   []remap.Job{{ID: "7", Nodes: []topology.NodeID{"cn2"}}}}
	sit.Index = topology.NewIndex(sit.Machine)
	for _, cn := range []topology.NodeID{"cn1", "cn2", "login1"} {
		sit.Observed[cn] = "fwd1"
	}
	sit.Used = sit.Observed
	board := window.NewBoard(0)
	board.Take(frames, now)
	return New(Config{Board: board, Situation: func() *remap.Situation { return sit }})
}

func TestUses(t *testing.T) {
	const ost0, ost1 topology.TargetID = "fs-OST0000", "fs-OST0001"
	p := usesPicture(
		collector.Frame{Node: "fwd1", Role: topology.Forwarder, Samples: wrote(100, 50)},
		collector.Frame{Node: "cn1", Role: topology.Compute, Samples: wrote(45, 10),
			Jobs: []collector.JobSamples{share("24", "", 30, 10), share("25", "", 10, 0)}},
		collector.Frame{Node: "cn2", Role: topology.Compute, Samples: wrote(20, 20)},
		collector.Frame{Node: "login1", Role: topology.Compute, Samples: wrote(15, 5)},
		collector.Frame{Node: "oss1", Role: topology.Storage, Samples: wrote(90, 0), Jobs: []collector.JobSamples{
			share("24", ost0, 30, 0), share("24", ost1, 10, 0), share("@dd.1000", ost0, 20, 0),
			share("@odd id", ost1, 5, 0), share(collector.SmallJobs, ost1, 3, 0),
			share(collector.UncountedWork, ost0, 2, 0), share(collector.UncountedWork, ost1, 20, 0)},
			Sources: []collector.SourceStatus{{Name: "lustre", Note: "job_stats: means over 4 s"}}},
		collector.Frame{Node: "nfs1", Role: topology.Storage, Samples: wrote(70, 0)},
		collector.Frame{Node: "fwd2", Role: topology.Forwarder,
			Targets: []collector.TargetSamples{{Target: "nfs1", Samples: wrote(60, 0)},
				{Target: "far", Samples: wrote(1, 0)}}},
		collector.Frame{Node: "quiet", Role: topology.Storage},
	)
	for of, want := range map[topology.NodeID]string{
		"fwd1": "7 job 20/20 | 24 job 30/10 | login1 node 15/5 | 25 job 10/0 | cn1 node 5/0 | not attributed rest " +
			"20/15; 0.70",
		"oss1": "24 job 40/0 | dd.1000 user 20/0 | odd id id 5/0 | not attributed rest 22/0 | not attributed: small " +
			"rest 3/0; 0.72 job_stats: means over 4 s",
		topology.NodeID(ost0): "24 job 30/0 | dd.1000 user 20/0 | not attributed rest 2/0; 0.96 " +
			"job_stats: means over 4 s",
		"nfs1":   "fwd2 node 60/0 | not attributed rest 10/0; 0.86",
		"far":    "fwd2 node 1/0; 1.00 what it does in all is not known, so that there may be more",
		"quiet":  "; none neither it nor its clients count by whom",
		"nobody": "",
	} {
		u, ok := Uses(p, []topology.NodeID{of})[of]
		var rows []string
		for _, r := range u.Rows {
			rows = append(rows, fmt.Sprintf("%s %s %.0f/%.0f", r.Who, r.Kind, r.WriteBytesPerSec/mb, r.MetaOpsPerSec))
		}
		got := strings.Join(rows, " | ") + "; none"
		if u.Attributed != nil {
			got = strings.Replace(got, "none", fmt.Sprintf("%.2f", *u.Attributed), 1)
		}
		if got = strings.TrimSpace(got + " " + u.Unknown + u.Note); !ok {
			got = ""
		}
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", of, got, want)
		}
	}
}

// A forwarder's list of targets names who does most at each, of all that its server counts.
func TestMostAtTargets(t *testing.T) {
	p := usesPicture(collector.Frame{Node: "oss1", Role: topology.Storage, Jobs: []collector.JobSamples{
		share("24", "fs-OST0000", 30, 0), share("@dd.1000", "fs-OST0000", 90, 0),
		share(collector.UncountedWork, "fs-OST0001", 5, 0)}})
	rows := []api.StorageRow{{Target: "fs-OST0000"}, {Target: "fs-OST0001"}, {Target: "fs-OST0002"}}
	p.Snapshot().addMost(rows)
	if m := rows[0].Most; m == nil || m.Who != "dd.1000" || m.Part() != 0.75 || rows[1].Most != nil ||
		rows[2].Most != nil {
		t.Errorf("%+v", rows)
	}
}

// Whatever the counters say, the rows of a server are all that it does, none is negative, and nobody is counted twice.
func TestUsesSumUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		total, clients := 0.0, 0.0
		frames := []collector.Frame{}
		for _, cn := range []topology.NodeID{"cn1", "cn2", "login1"} {
			own, job := rng.Float64()*50, rng.Float64()*50
			frames = append(frames, collector.Frame{Node: cn, Role: topology.Compute, Samples: wrote(own, own),
				Jobs: []collector.JobSamples{share("24", "", job, job)}})
			clients += max(own, job)
		}
		total = rng.Float64() * 200
		frames = append(frames, collector.Frame{Node: "fwd1", Role: topology.Forwarder, Samples: wrote(total, total)})
		for i := range rng.IntN(2 * mostUses) {
			frames[0].Jobs = append(frames[0].Jobs, share(topology.JobID(fmt.Sprint("j", i)), "", 0.25, 0.25))
		}
		u := Uses(usesPicture(frames...), []topology.NodeID{"fwd1"})["fwd1"]
		sum, attributed := 0.0, 0.0
		for _, r := range u.Rows {
			if r.WriteBytesPerSec < 0 || r.MetaOpsPerSec < 0 {
				t.Fatalf("%+v", r)
			}
			if sum += r.WriteBytesPerSec / mb; r.Kind != api.UseRest {
				attributed += r.WriteBytesPerSec / mb
			}
		}
		if want := max(total, attributed); math.Abs(sum-want) > 1e-9*want || len(u.Rows) > mostUses+2 {
			t.Fatalf("%d rows have %v, the server %v, its clients %v", len(u.Rows), sum, total, clients)
		}
		if math.Abs(*u.Attributed-attributed/sum) > 1e-9 {
			t.Fatalf("attributed %v, want %v", *u.Attributed, attributed/sum)
		}
	}
}

func TestUsersOfIDs(t *testing.T) {
	for id, want := range map[string]bool{"dd.1000": true, "1000@login1": true, "ann@login1": true, "bash:0:host": true,
		":1000:login1": true, "kworker/1:2.0": true, "my prog.1000": true, "odd": false, "": false, "1000": false,
		"genius_uge_70": false, "a.b": false, "x:": false} {
		if got := isUser(id); got != want {
			t.Errorf("%q names a user: %v, want %v", id, got, want)
		}
	}
}
