package watch

import (
	"math"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

func samples(pairs ...any) (out []collector.Sample) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, collector.Sample{Metric: pairs[i].(collector.Metric), Value: pairs[i+1].(float64)})
	}
	return out
}

// TestEveryJobOfANodeCounts: the time of a node's operations goes to the jobs that did them.
func TestEveryJobOfANodeCounts(t *testing.T) {
	whole := samples(collector.WriteOps, 10.0, collector.WriteBytes, 4e6, collector.ClientWrite, 0.05,
		collector.MetaOps, 5.0, collector.ClientMeta, 0.01)
	for _, tc := range []struct {
		name string
		jobs []collector.JobSamples
		ran  []Job
		want map[topology.JobID][3]float64
	}{
		{"one job has all", []collector.JobSamples{{Job: "a"}}, nil,
			map[topology.JobID][3]float64{"a": {0, 0.5, 0.05}}},
		{"it has the node for itself", nil, []Job{{"a", []topology.NodeID{"cn0", "cn1"}}},
			map[topology.JobID][3]float64{"a": {0, 0.5, 0.05}}},
		{"of two jobs neither is known", nil, []Job{{"a", []topology.NodeID{"cn1"}}, {"b", []topology.NodeID{"cn1"}}},
			nil},
		{"its source knows better", []collector.JobSamples{{Job: "b"}}, []Job{{"a", []topology.NodeID{"cn1"}}},
			map[topology.JobID][3]float64{"b": {0, 0.5, 0.05}}},
		{"each says its own", []collector.JobSamples{{Job: "a",
			Samples: samples(collector.WriteOps, 2.0, collector.ClientWrite, 0.01)},
			{Job: "b", Samples: samples(collector.WriteOps, 8.0, collector.ClientWrite, 0.06)}}, nil,
			map[topology.JobID][3]float64{"a": {0, 0.02, 0}, "b": {0, 0.48, 0}}},
		{"by their bytes", []collector.JobSamples{{Job: "a", Samples: samples(collector.WriteBytes, 1e6)},
			{Job: "b", Samples: samples(collector.WriteBytes, 3e6)}}, nil,
			map[topology.JobID][3]float64{"a": {0, 0.125, 0}, "b": {0, 0.375, 0}}},
	} {
		sums := clientSums{jobs: map[topology.JobID]*jobSums{}}
		f := &collector.Frame{Node: "cn1", Role: topology.Compute, Samples: whole, Jobs: tc.jobs}
		var ran ranOn
		for _, j := range tc.ran { // the same jobs before they were put back into the queue
			ran.take([]Job{{j.ID, []topology.NodeID{"cn9"}}})
		}
		ran.take(tc.ran)
		sums.addJobs(f, ran.jobsOf(f), 1)
		if len(sums.jobs) != len(tc.want) {
			t.Errorf("%s: %d jobs waited, want %d", tc.name, len(sums.jobs), len(tc.want))
		}
		for id, want := range tc.want {
			got := sums.jobs[id]
			if got == nil || got.nodes != 1 {
				t.Errorf("%s: job %s: %+v", tc.name, id, got)
				continue
			}
			for c := range want {
				if math.Abs(got.took[c]-want[c]) > 1e-9 {
					t.Errorf("%s: job %s spent %v, want %v", tc.name, id, got.took, want)
				}
			}
		}
	}
}

// TestWhatIsInServiceDoesNotWait: a server that reports both shows which requests have no worker.
// Clients' losses are summed by their forwarder, and a full link may lose some.
func TestWhatIsInServiceDoesNotWait(t *testing.T) {
	const peak = 100e6
	for _, tc := range []struct {
		name          string
		forwarder     []collector.Sample
		serving, lost float64
	}{
		{"calm", samples(collector.InFlight, 6.0, collector.QueueLen, 0.5, collector.WriteBytes, 0.3*peak), 5.5,
			0.02},
		{"of waiting ones alone", samples(collector.QueueLen, 6.0, collector.WriteBytes, 0.3*peak), 0, 0.02},
		{"in flight alone", samples(collector.InFlight, 6.0, collector.WriteBytes, 0.3*peak), 0, 0.02},
		{"full link", samples(collector.QueueLen, 6.0, collector.WriteBytes, 0.9*peak), 0, 0.01},
	} {
		set := failslow.DefaultSettings()
		set.PeakBytesPerSec = peak
		w := NewDetectors(window.NewBoard(0), set)
		sums := &clientSums{}
		sums.add(&collector.Frame{Node: "cn1", Samples: samples(collector.WriteBytes, 0.3*peak, collector.PathLossRatio,
			0.03)}, [3]bool{}, false)
		sums.add(&collector.Frame{Node: "cn2", Samples: samples(collector.ReadBytes, 0.15*peak, collector.PathLossRatio,
			0.0)}, [3]bool{}, false)
		w.clients.of["fwd1"] = sums
		o := w.observation(&collector.Frame{Node: "fwd1", Role: topology.Forwarder, Samples: tc.forwarder})
		if got := o.Lost / o.Packets; o.Serving != tc.serving || math.Abs(got-tc.lost) > 1e-9 {
			t.Errorf("%s: %v in service, %v lost, want %v and %v", tc.name, o.Serving, got, tc.serving, tc.lost)
		}
	}
}

// TestWaitingOutsideIsNoStorm: a metadata storm holds the server's threads. Operations that wait in busy
// compute nodes, or on the way, do not; nor do those that wait for others, or that the server spends on writes. A
// server that does not report what it holds gets no verdict.
func TestWaitingOutsideIsNoStorm(t *testing.T) {
	metas := samples(collector.MetaOps, 900.0, collector.ClientMeta, 9e-3)
	both := append(samples(collector.WriteOps, 300.0, collector.WriteBytes, 3e7, collector.ClientWrite, 36e-3),
		metas...)
	for _, tc := range []struct {
		name          string
		client        []collector.Sample
		writes        float64
		queue, waits  float64
		quiet, stormy bool
	}{
		{"in the server", metas, 0, 7.2, 0, false, true},
		{"outside", metas, 0, 0.2, 0, false, false},
		{"behind others of its queue", metas, 0, 7.2, 5, false, false},
		{"beside writes that hold as much as there is", both, 300, 6.5, 0, false, false},
		{"a server that does not report it", metas, 0, 0, 0, true, false},
	} {
		board := window.NewBoard(0)
		w := NewDetectors(board, failslow.DefaultSettings())
		s := &Machine{}
		s.Mapping = topology.Mapping{"cn1": "fwd1"}
		server := samples(collector.MetaOps, 900.0)
		if tc.writes > 0 {
			server = append(server, samples(collector.WriteOps, tc.writes, collector.WriteBytes, 1e5*tc.writes)...)
		}
		if !tc.quiet {
			server = append(server, samples(collector.ServerTime, tc.queue/(900+tc.writes), collector.InFlight,
				tc.queue, collector.QueueLen, tc.waits)...)
		}
		now, stormy := time.Unix(1_700_000_000, 0), false
		for range 10 {
			now = now.Add(time.Second)
			at := now.Add(-time.Second).UnixMilli()
			board.Take([]collector.Frame{
				{Node: "cn1", Role: topology.Compute, TimeMillis: at, Samples: tc.client},
				{Node: "fwd1", Role: topology.Forwarder, TimeMillis: at, Samples: server},
			}, now)
			stormy = false
			for _, v := range w.Verdicts(now, s) {
				if v.Kind == anomaly.MetaStorm {
					stormy = true
					if held := v.Evidence["meta_thread_share"]; math.Abs(held-tc.queue/16) > 0.01 {
						t.Errorf("%s: %s", tc.name, v.Sentence)
					}
				}
			}
		}
		if stormy != tc.stormy {
			t.Errorf("%s: a metadata storm: %v, want %v", tc.name, stormy, tc.stormy)
		}
	}
}

// TestClientsThatGatherAccuseNobody: where a forwarder's threads are known, what its clients wait for a thread is
// their number and not its fault, whichever class suffers most. One that needs longer for an operation is accused
// however many wait there.
func TestClientsThatGatherAccuseNobody(t *testing.T) {
	type load struct{ writes, write, metas, meta float64 }
	calm := load{400, 7e-3, 45, 1e-3}
	gathered := load{850, 14.2e-3, 95, 8.2e-3} // 12.8 under way
	for _, tc := range []struct {
		name    string
		now     load
		threads float64
		accused bool
	}{
		{"gathered", gathered, 6, false},
		{"gathered, as many threads as calls", gathered, 16, true}, // then none waits
		{"gathered, threads not reported", gathered, 0, true},
		{"slow at all", load{210, 36e-3, 23, 29e-3}, 6, true},
		{"gathered, and slow", load{210, 75e-3, 23, 68e-3}, 6, true},
	} {
		d := NewDetectors(window.NewBoard(0), failslow.DefaultSettings())
		m := &Machine{Mapping: topology.Mapping{"cn1": "f1", "cn2": "f2", "cn3": "f3", "cn4": "f4"}}
		now, accused := time.Unix(1_800_000_000, 0), false
		const healthy, watched = 120, 60
		for second := range healthy + watched {
			now = now.Add(time.Second)
			for cn, f := range m.Mapping {
				l := calm
				if f == "f1" && second >= healthy {
					l = tc.now
				}
				served := samples(collector.WriteOps, l.writes, collector.WriteBytes, 5e5*l.writes,
					collector.MetaOps, l.metas)
				at, client := now.Add(-time.Second).UnixMilli(), append(samples(collector.ClientWrite, l.write,
					collector.ClientMeta, l.meta), served...)
				if tc.threads > 0 {
					served = append(served, samples(collector.Threads, tc.threads)...)
				}
				d.board.Take([]collector.Frame{{Node: cn, Role: topology.Compute, TimeMillis: at, Samples: client},
					{Node: f.Node(), Role: topology.Forwarder, TimeMillis: at, Samples: served}}, now)
			}
			for _, v := range d.Verdicts(now, m) {
				if v.Level == anomaly.Alarm && (v.Node != "f1" || second < healthy) {
					t.Errorf("%s: second %d: %s", tc.name, second, v.Sentence)
				}
				accused = accused || v.Level == anomaly.Alarm
			}
		}
		if accused != tc.accused {
			t.Errorf("%s: accused %v, want %v", tc.name, accused, tc.accused)
		}
	}
}

// TestSharesWaitByTheirPart: what a node of several forwarders waits is each one's by its part, and accuses none of
// them; they all serve its job.
func TestSharesWaitByTheirPart(t *testing.T) {
	now := time.Unix(1795000000, 0)
	d := NewDetectors(window.NewBoard(0), failslow.DefaultSettings())
	d.board.Take([]collector.Frame{{Node: "cn1", Role: topology.Compute, TimeMillis: now.UnixMilli() - 1000,
		Samples: samples(collector.WriteOps, 10.0, collector.ClientWrite, 0.1),
		Jobs:    []collector.JobSamples{{Job: "a"}}}},
		now)
	m := &Machine{Mapping: topology.Mapping{}, Jobs: []Job{{ID: "a", Nodes: []topology.NodeID{"cn1"}}},
		Spread: map[topology.NodeID][]topology.Share{"cn1": {{Forwarder: "r1", Part: 0.75},
			{Forwarder: "r2", Part: 0.25}}}}
	d.sumClients(now, m)
	for f, part := range map[topology.ForwarderID]float64{"r1": 0.75, "r2": 0.25} {
		sums := d.clients.of[f]
		if sums == nil || sums.ops[failslow.Write] != 0 || sums.jobs["a"].nodes != part ||
			math.Abs(sums.jobs["a"].took[failslow.Write]-part) > 1e-9 {
			t.Fatalf("%s: %+v", f, sums)
		}
	}
	served := 0
	m.over("cn1", func(topology.ForwarderID, float64) { served++ })
	if served != 2 {
		t.Errorf("%d forwarders serve it", served)
	}
}

// Frames that are late do not say that a job has stopped waiting: what was known of it fades.
func TestLateFramesDoNotEndAWait(t *testing.T) {
	d := NewDetectors(window.NewBoard(0), failslow.DefaultSettings())
	d.clients.lost["f1"] = &losses{of: map[topology.JobID]loss{"7": {share: 0.9}}}
	before := 0.9
	for second := range 30 {
		v := anomaly.Verdict{Node: "f1", Level: anomaly.Alarm}
		d.addImpact(time.Unix(int64(second), 0), &v)
		if len(v.Impact) != 1 || !(v.Impact[0].Share < before) || !(v.Impact[0].Share > 0.8*before) {
			t.Fatalf("second %d without its clients' frames: %+v after %g", second, v.Impact, before)
		}
		before = v.Impact[0].Share
	}
}

// TestASilentForwarderIsJudged: its clients judge a forwarder whose agent is starved or cut off, each second of theirs
// once; not one that nobody has seen report, nor one with a clock of its own.
func TestASilentForwarderIsJudged(t *testing.T) {
	board, now := window.NewBoard(0), time.Unix(1_800_000_000, 0)
	d := NewDetectors(board, failslow.DefaultSettings())
	m := &Machine{Mapping: topology.Mapping{"cn1": "f1", "cn2": "f2"}}
	second := func(reports, clients bool) (rows int) {
		now = now.Add(time.Second)
		var frames []collector.Frame
		for n, role := range map[topology.NodeID]topology.Role{"f1": topology.Forwarder, "cn1": topology.Compute,
			"cn2": topology.Compute} {
			if role == topology.Forwarder && !reports || role == topology.Compute && !clients {
				continue
			}
			f := collector.Frame{Node: n, Role: role, TimeMillis: now.Add(-time.Second).UnixMilli(),
				Samples: samples(collector.WriteOps, 50.0, collector.WriteBytes, 5e6, collector.ClientWrite, 0.02)}
			if role == topology.Forwarder {
				f.Samples = samples(collector.WriteOps, 50.0, collector.WriteBytes, 5e6, collector.Threads, 8.0)
			}
			frames = append(frames, f)
		}
		board.Take(frames, now)
		d.Verdicts(now, m)
		for i := range d.second.byClients {
			if o := &d.second.byClients[i]; o.Node != "f1" || o.Class[failslow.Write].Exec != 0.02 {
				t.Errorf("judged %+v", o)
			}
		}
		return len(d.second.byClients)
	}
	for i, c := range []struct {
		reports, clients bool
		rows             int
	}{{false, true, 0}, {true, true, 1}, {false, true, 1}, {false, true, 1}, {false, false, 0}} {
		if rows := second(c.reports, c.clients); rows != c.rows {
			t.Errorf("second %d: %d forwarders are judged, want %d", i, rows, c.rows)
		}
	}
}

// TestOnlyWhoFoundNoThreadWaited: what is under way beyond a server's threads waits for one of them, but for the share
// of requests that the server counted as finding one idle: those are on their way.
func TestOnlyWhoFoundNoThreadWaited(t *testing.T) {
	c := &clientSums{ops: [3]float64{0, 20, 0}, took: [3]float64{0, 24, 0}} // 1.2 s an operation
	for name, f := range map[string]struct {
		samples []collector.Sample
		want    float64
	}{
		"not counted": {samples(collector.Threads, 8.0), 0.4},
		"none waited": {samples(collector.Threads, 8.0, collector.NoThreadRatio, 0.0), 1.2},
		"half did":    {samples(collector.Threads, 8.0, collector.NoThreadRatio, 0.5), 0.8},
		"no threads":  {nil, 1.2},
	} {
		got := c.execOf(failslow.Write, threadsOf(&collector.Frame{Samples: f.samples}))
		if math.Abs(got-f.want) > 1e-9 {
			t.Errorf("%s: %g s, want %g", name, got, f.want)
		}
	}
}
