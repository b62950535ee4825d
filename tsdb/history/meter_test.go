package history

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/engine"
)

// A run that is watched has the phases, the volume and the waits that it would have afterwards.
func TestMeterAddsUpWhatARunDoes(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	m := NewMeter(start, 4)
	if m.Profile() != nil || m.Waits() != nil {
		t.Fatal("a profile before the first second")
	}
	for i := 1; i <= 100; i++ {
		tick := Tick{At: start.Add(time.Duration(i) * time.Second), Seconds: 1, Nodes: 4, Timed: 4,
			Waiting: map[topology.ForwarderID]float64{"f1": 0, "f2": 0}}
		if i > 20 && i <= 30 || i > 60 && i <= 80 {
			tick.Write, tick.Ops, tick.PeakNode = 2e9, 50, 6e8
			tick.Waiting["f1"], tick.Waiting["f2"] = 2, 0.4
		}
		if i%10 == 3 { // of two nodes; the first look is of the time before, too
			tick.Looks, tick.Busy, tick.Memory = 2, 0.5+0.9, float64(i)/200
		}
		m.Add(&tick)
		if p := m.Profile(); i < 13 && p.CPUBusy != nil || i < 3 && p.MemoryUsed != nil {
			t.Errorf("%d: CPU %v, memory %v", i, p.CPUBusy, p.MemoryUsed)
		}
	}
	p := m.Profile()
	if p.CPUBusy == nil || math.Abs(*p.CPUBusy-0.7) > 1e-9 || p.MemoryUsed == nil || *p.MemoryUsed != 93.0/200 {
		t.Errorf("CPU %v, memory %v", p.CPUBusy, p.MemoryUsed)
	}
	if p.WriteBytes != 60e9 || p.IOSeconds != 30 || p.PeakBytesPerSec != 2e9 || p.PeakNodeBytesPerSec != 6e8 ||
		p.Coverage != 1 || p.From != FromWatching {
		t.Errorf("%+v", p)
	}
	if len(p.Phases) != 2 || p.Phases[0] != (Phase{AtSeconds: 20, Seconds: 10, WriteBytes: 20e9}) ||
		p.Phases[1] != (Phase{AtSeconds: 60, Seconds: 20, WriteBytes: 40e9}) {
		t.Errorf("phases %+v", p.Phases)
	}
	// 30 s of 100, two and 0.4 of four nodes.
	if w := p.Waits; len(w) != 2 || w[0].Forwarder != "f1" || math.Abs(w[0].Share-0.15) > 1e-9 ||
		math.Abs(w[1].Share-0.03) > 1e-9 {
		t.Errorf("waits %+v", w)
	}
}

// A run that does I/O again and again keeps its volume in at most maxPhases phases.
func TestMeterBoundsItsPhases(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	m := NewMeter(start, 1)
	for i := 1; i <= 60*900; i++ {
		tick := Tick{At: start.Add(time.Duration(i) * time.Second), Seconds: 1, Nodes: 1}
		if i%60 == 0 {
			tick.Read = 1
		}
		m.Add(&tick)
	}
	p, sum := m.Profile(), 0.0
	for i, ph := range p.Phases {
		sum += ph.ReadBytes
		if i > 0 && ph.AtSeconds < p.Phases[i-1].AtSeconds+p.Phases[i-1].Seconds {
			t.Errorf("phase %d begins before the one before ends", i)
		}
	}
	if len(p.Phases) > maxPhases || sum != 900 || p.ReadBytes != 900 || p.Waits != nil {
		t.Errorf("%d phases of %v bytes, waits %v", len(p.Phases), sum, p.Waits)
	}
}

// Runs of the same user, application, project and size are found, the newest first, also after a restart.
func TestRunsOfTheSameThing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	s, _, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Unix(1_000_000, 0).UTC()
	add := func(id string, app string, nodes int, after time.Duration, p *Profile) {
		t.Helper()
		r := Run{Job: topology.JobID(id), User: "wei", App: app, Nodes: nodes, Start: end.Add(after - time.Minute),
			End: end.Add(after), Profile: p}
		if err := s.End(r); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 30 {
		add(fmt.Sprint(i), "ROMS", 480, time.Duration(i)*time.Hour, &Profile{WriteBytes: float64(i)})
		add(fmt.Sprint("other", i), "WRF", 480, time.Duration(i)*time.Hour, &Profile{})
	}
	add("small", "ROMS", 8, time.Hour, &Profile{})
	add("unknown", "ROMS", 480, time.Hour, nil)
	add("imported", "ROMS", 480, 90*time.Minute, &Profile{WriteBytes: 7}) // an old log that comes late
	for range 2 {
		runs, all, err := s.Like(Key{User: "wei", App: "ROMS", Nodes: 480}, 29)
		if err != nil || all != 31 || len(runs) != 29 || runs[0].Job != "29" || runs[1].Job != "28" ||
			runs[27].Job != "2" || runs[28].Job != "imported" {
			t.Fatalf("%d of %d: %v", len(runs), all, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, _, err = Open(path); err != nil {
			t.Fatal(err)
		}
	}
	if runs, all, err := s.Like(Key{User: "nobody"}, 5); err != nil || all != 0 || len(runs) != 0 {
		t.Errorf("%v of %d, %v", runs, all, err)
	}
}

// TestARunThatHangsDoesIO: the time in which a run waits for an answer is time of its I/O, while it is watched and from
// the store, and does not part one phase into two.
func TestARunThatHangsDoesIO(t *testing.T) {
	db, err := engine.Open(t.TempDir(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	m := NewMeter(epoch, 1)
	var frames []collector.Frame
	for sec := range 100 {
		at := epoch.Add(time.Duration(sec) * time.Second)
		bytes, underWay := 0.0, 0.0
		switch {
		case sec < 10, sec >= 85 && sec < 90:
			bytes, underWay = 1e6, 0.5
		case sec < 85:
			underWay = 1
		}
		frames = append(frames, collector.Frame{Node: "c0", Role: topology.Compute, TimeMillis: at.UnixMilli(),
			Samples: []collector.Sample{{Metric: collector.WriteBytes, Value: bytes},
				{Metric: collector.ReadBytes, Value: 0}, {Metric: collector.WriteOps, Value: bytes / 1e5},
				{Metric: collector.InFlight, Value: underWay}}})
		m.Add(&Tick{At: at.Add(time.Second), Seconds: 1, Nodes: 1, Write: bytes, UnderWay: underWay})
	}
	if err := db.Append(t.Context(), frames); err != nil {
		t.Fatal(err)
	}
	built, err := Build(t.Context(), db, Run{Job: "1", Nodes: 1, NodeList: []topology.NodeID{"c0"}, Start: epoch,
		End: epoch.Add(99 * time.Second)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for from, p := range map[string]*Profile{"store": built, "watching": m.Profile()} {
		if p.IOSeconds != 90 || len(p.Phases) != 1 || p.Phases[0].Seconds != 90 || p.WriteBytes != 15e6 {
			t.Errorf("from %s: %+v", from, p)
		}
	}
}
