package history

import (
	"fmt"
	"math"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"

	"fairway/cmd/lab/conform/storetest"
	"fairway/tsdb/engine"
)

// collected is a store in which two of three nodes write 10 MB/s for 20 s, pause, and read for 5 s,
// with a gap of two seconds; the third does nothing.
func collected(t *testing.T, start time.Time, queue bool) *engine.DB {
	t.Helper()
	db, err := engine.Open(t.TempDir(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	var frames []collector.Frame
	for sec := range 60 {
		at := start.UnixMilli() + int64(sec)*1000
		for n := range 3 {
			f := collector.Frame{Node: topology.NodeID(fmt.Sprintf("c%d", n)), Role: topology.Compute, TimeMillis: at}
			v := map[collector.Metric]float64{collector.ReadBytes: 0, collector.WriteBytes: 0, collector.MetaOps: 0}
			switch {
			case n == 2:
			case sec < 20:
				v[collector.WriteBytes], v[collector.WriteOps] = 10e6, 10
				v[collector.MetaOps], v[collector.ClientMeta] = 100, 0.02
			case sec >= 50 && sec < 55:
				v[collector.ReadBytes], v[collector.ReadOps] = 40e6, 50
			}
			if n == 0 && (sec == 5 || sec == 6) {
				continue // not reported
			}
			if sec%10 == 5 { // the first look is of the time before, too
				v[collector.CPUBusyRatio], v[collector.MemoryUsedRatio] = 0.5+0.2*float64(n), 0.1+0.1*float64(n)
				if sec < 10 {
					v[collector.CPUBusyRatio] = 0
				}
			}
			for m, x := range v {
				f.Samples = append(f.Samples, collector.Sample{Metric: m, Value: x})
			}
			frames = append(frames, f)
		}
		if queue {
			frames = append(frames, collector.Frame{Node: "f1", Role: topology.Forwarder, TimeMillis: at,
				Samples: []collector.Sample{{Metric: collector.MetaQueueLen, Value: 7}}})
		}
	}
	if err := db.Append(t.Context(), frames); err != nil {
		t.Fatal(err)
	}
	return db
}

func theRun(start time.Time) Run {
	return Run{Job: "1", Nodes: 3, NodeList: []topology.NodeID{"c0", "c1", "c2"}, Start: start,
		End:        start.Add(59 * time.Second),
		Forwarders: []topology.ForwarderID{"f1", "f2"}}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*max(1, math.Abs(want)) {
		t.Errorf("%s = %g, want %g", what, got, want)
	}
}

func TestProfileFromWhatWasCollected(t *testing.T) {
	db := collected(t, epoch, false)
	p, err := Build(t.Context(), db, theRun(epoch), 0)
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	// Two nodes, 20 s, less the two seconds of one node that nobody reported.
	near(t, "write_bytes", p.WriteBytes, 38*10e6)
	near(t, "read_bytes", p.ReadBytes, 2*5*40e6)
	near(t, "peak", p.PeakBytesPerSec, 80e6)
	near(t, "peak of a node", p.PeakNodeBytesPerSec, 40e6)
	near(t, "peak ops", p.PeakOpsPerSec, 100)
	near(t, "meta ops", p.MetaOps, 3800)
	near(t, "I/O seconds", p.IOSeconds, 25)
	near(t, "coverage", p.Coverage, 178.0/180)
	if p.CPUBusy == nil || p.MemoryUsed == nil {
		t.Fatal("what its nodes used is not known")
	}
	near(t, "CPU", *p.CPUBusy, 0.7)
	near(t, "memory", *p.MemoryUsed, 0.3)
	if p.IONodes != 2 || p.Mode != "" || p.From != FromCollectors || p.StepSeconds != 1 {
		t.Errorf("profile %+v", p)
	}
	if len(p.Phases) != 2 || p.Phases[0].Seconds != 20 || p.Phases[1].AtSeconds != 50 || p.Phases[1].Seconds != 5 ||
		p.Phases[1].ReadBytes != 400e6 {
		t.Errorf("phases %+v", p.Phases)
	}
	// Little: 100 operations a second for 20 ms are 2 under way a node, over 2 forwarders, in 20 of 25 s.
	if p.MetaQueue == nil {
		t.Fatal("the metadata queue is not known")
	}
	near(t, "metadata queue", *p.MetaQueue, 38.0/2*2/25)
	for served, want := range map[float64]float64{26: (38.0*2 - 26) / 2 / 25, 100: 0} {
		if p, err = Build(t.Context(), db, theRun(epoch), served); err != nil || p.MetaQueue == nil {
			t.Fatal(p, err)
		}
		near(t, "metadata queue less what is in service", *p.MetaQueue, want)
	}
}

// Metadata operations that nobody timed leave the queue unknown, also where most seconds have none.
func TestUntimedMetadataIsNotTakenForNone(t *testing.T) {
	for _, timed := range []bool{false, true} {
		var store storetest.Frames
		for sec := range 30 {
			f := collector.Frame{Node: "c0", Role: topology.Compute, TimeMillis: epoch.UnixMilli() + int64(sec)*1000,
				Samples: []collector.Sample{{Metric: collector.ReadBytes}, {Metric: collector.WriteBytes, Value: 10e6}}}
			ops := collector.Sample{Metric: collector.MetaOps}
			if sec == 3 {
				ops.Value = 50
				if timed {
					f.Samples = append(f.Samples, collector.Sample{Metric: collector.ClientMeta, Value: 0.01})
				}
			}
			f.Samples = append(f.Samples, ops)
			store = append(store, f)
		}
		r := theRun(epoch)
		r.Nodes, r.NodeList, r.End = 1, r.NodeList[:1], epoch.Add(29*time.Second)
		p, err := Build(t.Context(), store, r, 0)
		if err != nil || p == nil || (p.MetaQueue != nil) != timed {
			t.Errorf("timed %v: %+v, %v", timed, p, err)
		}
	}
}

func TestProfilePrefersTheForwardersQueue(t *testing.T) {
	p, err := Build(t.Context(), collected(t, epoch, true), theRun(epoch), 30)
	if err != nil || p.MetaQueue == nil || *p.MetaQueue != 7 {
		t.Errorf("profile %+v, %v", p, err)
	}
}

// Where nobody counts the queue and no node knows how long its metadata took, the forwarders' own rates and waits say
// how many operations waited, to a factor of two.
func TestProfileEstimatesTheQueueByForwardersWaits(t *testing.T) {
	db, err := engine.Open(t.TempDir(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	frame := func(n topology.NodeID, r topology.Role, sec int, v ...collector.Sample) collector.Frame {
		return collector.Frame{Node: n, Role: r, TimeMillis: epoch.UnixMilli() + int64(sec)*1000, Samples: v}
	}
	var frames []collector.Frame
	for sec := range 60 {
		frames = append(frames, frame("c0", topology.Compute, sec,
			collector.Sample{Metric: collector.ReadBytes, Value: 1e6},
			collector.Sample{Metric: collector.WriteBytes, Value: float64(sec)}),
			frame("f2", topology.Forwarder, sec, collector.Sample{Metric: collector.MetaOps, Value: 0}))
		if sec%2 == 0 { // a second without a sample says nothing
			frames = append(frames, frame("f1", topology.Forwarder, sec,
				collector.Sample{Metric: collector.MetaOps, Value: 600},
				collector.Sample{Metric: collector.MetaWait, Value: 0.02}))
		}
	}
	if err := db.Append(t.Context(), frames); err != nil {
		t.Fatal(err)
	}
	p, err := Build(t.Context(), db, theRun(epoch), 0)
	if err != nil || p == nil || p.MetaQueue == nil || p.MetaQueueWithin != 2 {
		t.Fatalf("profile %+v, %v", p, err)
	}
	near(t, "metadata queue", *p.MetaQueue, 12*30.0/90) // 12 at one forwarder in 30 seconds, 0 at the other in 60
}

// Forwarders that report how many operations they got and not how long these waited leave the queue unknown in
// seconds without any; what they have in service does not wait.
func TestProfileOfForwardersWithoutWaits(t *testing.T) {
	for _, timed := range []bool{false, true} {
		db, err := engine.Open(t.TempDir(), engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		var frames []collector.Frame
		for sec := range 60 {
			client := collector.Frame{Node: "c0", TimeMillis: epoch.UnixMilli() + int64(sec)*1000,
				Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: 1e6}}}
			gateway := collector.Frame{Node: "f1", Role: topology.Forwarder, TimeMillis: client.TimeMillis,
				Samples: []collector.Sample{{Metric: collector.MetaOps, Value: 600 * float64(sec%2)}}}
			if timed {
				client.Samples = append(client.Samples, collector.Sample{Metric: collector.MetaOps, Value: 100},
					collector.Sample{Metric: collector.ClientMeta, Value: 0.02})
				gateway.Samples = append(gateway.Samples, collector.Sample{Metric: collector.ClientMeta, Value: 0.005})
			}
			frames = append(frames, client, gateway)
		}
		if err := db.Append(t.Context(), frames); err != nil {
			t.Fatal(err)
		}
		p, err := Build(t.Context(), db, theRun(epoch), 0)
		if err != nil || p == nil || (p.MetaQueue != nil) != timed {
			t.Fatalf("timed %v: profile %+v, %v", timed, p, err)
		}
		if timed { // 2 under way; of 100 a second 0.5 are in service in the seconds in which the gateway had some
			near(t, "metadata queue", *p.MetaQueue, (2-0.25)/2)
			near(t, "its factor", p.MetaQueueWithin, 2)
		}
	}
}

func TestProfileOfALongRunKeepsItsVolume(t *testing.T) {
	db := collected(t, epoch, false)
	r := theRun(epoch)
	r.End = epoch.Add(30 * time.Hour)
	p, err := Build(t.Context(), db, r, 0)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "write_bytes", p.WriteBytes, 38*10e6)
	near(t, "read_bytes", p.ReadBytes, 400e6)
	near(t, "meta ops", p.MetaOps, 3800)
	if p.StepSeconds != 6 || p.Coverage > 0.001 || p.IONodes != 2 {
		t.Errorf("profile %+v", p)
	}
}

// A run that computes and does no I/O has a profile that can be kept, and its queue is unknown.
func TestARunWithoutIOHasAProfile(t *testing.T) {
	for _, queue := range []bool{false, true} {
		r := theRun(epoch)
		r.Nodes, r.NodeList = 1, []topology.NodeID{"c2"}
		p, err := Build(t.Context(), collected(t, epoch, queue), r, 0)
		if err != nil || p == nil {
			t.Fatal(p, err)
		}
		if p.MetaQueue != nil || p.IOSeconds != 0 {
			t.Errorf("queue %v in %v s of I/O", orZero(p.MetaQueue), p.IOSeconds)
		}
		r.Profile = p
		if err := r.check(); err != nil {
			t.Error(err)
		}
	}
}

func TestNothingCollectedIsNoProfile(t *testing.T) {
	p, err := Build(t.Context(), collected(t, epoch, false), theRun(epoch.Add(5*time.Hour)), 0)
	if p != nil || err != nil {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestPhasesAreBounded(t *testing.T) {
	b := builder{step: 1, to: 20000, sum: make([]second, 20000)}
	for i := 0; i < len(b.sum); i += 20 {
		b.sum[i].write = 1
	}
	p := b.profile(1)
	if len(p.Phases) == 0 || len(p.Phases) > maxPhases || p.WriteBytes != 1000 {
		t.Errorf("%d phases, %g bytes", len(p.Phases), p.WriteBytes)
	}
}

// BenchmarkPredict asks a history of a million runs.
func BenchmarkPredict(b *testing.B) {
	s := &Store{memory: memory{idx: index{series: map[Key]*series{}}}}
	for i := range 1_000_000 {
		r := Run{User: fmt.Sprint("u", i%500), App: fmt.Sprint("app", i%20000), Nodes: 64,
			End: epoch.Add(time.Duration(i) * time.Second), Profile: &Profile{WriteBytes: float64(i)}}
		s.idx.learn(&r, 0)
	}
	b.ResetTimer()
	for i := range b.N {
		if _, ok := s.Predict(Key{User: fmt.Sprint("u", i%500), App: fmt.Sprint("app", i%20000), Nodes: 64}); !ok {
			b.Fatal("no prediction")
		}
	}
}
