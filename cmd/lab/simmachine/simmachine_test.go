package simmachine

import (
	"context"
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func mustNew(t testing.TB, c Config) *Machine {
	t.Helper()
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// live steps through seconds and hands each second's frames to look.
func live(m *Machine, from, n int, look func(sec int, frames []collector.Frame)) {
	for s := from; s < from+n; s++ {
		look(s, m.Step(t0.Add(time.Duration(s)*time.Second)))
	}
}

func value(f *collector.Frame, m collector.Metric) float64 {
	v, _ := f.Value(m)
	return v
}

func TestSameSeedSameFrames(t *testing.T) {
	record := func(seed uint64) []float64 {
		var out []float64
		live(mustNew(t, Small(seed)), 0, 120, func(_ int, frames []collector.Frame) {
			for i := range frames {
				for _, s := range frames[i].Samples {
					out = append(out, s.Value)
				}
			}
		})
		return out
	}
	a, b, c := record(1), record(1), record(2)
	if !reflect.DeepEqual(a, b) {
		t.Error("the same seed gave other frames")
	}
	if reflect.DeepEqual(a, c) {
		t.Error("another seed gave the same frames")
	}
}

func TestEverySecondIsSane(t *testing.T) {
	cfg := Small(3)
	m := mustNew(t, cfg)
	var moved, idle, seconds float64
	live(m, 0, 900, func(sec int, frames []collector.Frame) {
		var fwd, cn float64
		for i := range frames {
			f := &frames[i]
			if want := t0.Add(time.Duration(sec-1) * time.Second).UnixMilli(); f.TimeMillis != want {
				t.Fatalf("%s is dated %d, want %d", f.Node, f.TimeMillis, want)
			}
			for _, s := range f.Samples {
				if s.Value < 0 || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
					t.Fatalf("second %d: %s %v = %v", sec, f.Node, s.Metric, s.Value)
				}
			}
			bytes := value(f, collector.ReadBytes) + value(f, collector.WriteBytes)
			switch f.Role {
			case topology.Forwarder:
				if bytes > cfg.ForwarderBytesPerSec*1.001 {
					t.Fatalf("%s moved %g bytes, more than its peak", f.Node, bytes)
				}
				if bytes == 0 {
					idle++
				}
				seconds++
				fwd += bytes
			case topology.Compute:
				cn += bytes
			}
		}
		if math.Abs(fwd-cn) > 0.01*fwd+1000 {
			t.Fatalf("second %d: forwarders moved %g, compute nodes %g", sec, fwd, cn)
		}
		moved += fwd
	})
	if moved == 0 || idle/seconds < 0.3 {
		t.Errorf("moved %g bytes with %.0f%% idle forwarder seconds: nothing like a machine that is mostly idle", moved,
			100*idle/seconds)
	}
}

// TestFaultShowsAndRemapHelps gives one forwarder a tenth of its speed and moves its clients away.
func TestFaultShowsAndRemapHelps(t *testing.T) {
	cfg := Small(5)
	exec := func(m *Machine, from int) (atFault float64) {
		n := 0.0
		live(m, from, 400, func(_ int, frames []collector.Frame) {
			if v, ok := frames[0].Value(collector.WriteExec); ok {
				atFault += v
				n++
			}
		})
		return atFault / n
	}
	healthy, sick := mustNew(t, cfg), mustNew(t, cfg)
	if err := sick.Slow("fwd000", t0); err != nil {
		t.Fatal(err)
	}
	if a, b := exec(healthy, 0), exec(sick, 0); b < 3*a {
		t.Errorf("writes take %.4f s on the slow forwarder and %.4f s on the healthy one", b, a)
	}
	for _, n := range sick.Machine().ByRole(topology.Compute) {
		if r, err := sick.Route(n.ID); err != nil || r.Forwarder == "fwd000" {
			if err := sick.Remap(n.ID, "fwd007"); err != nil {
				t.Fatal(err)
			}
		}
	}
	live(sick, 400, 60, func(_ int, frames []collector.Frame) {
		if b := value(&frames[0], collector.WriteBytes) + value(&frames[0], collector.ReadBytes); b != 0 {
			t.Fatalf("fwd000 moved %g bytes after all its clients left", b)
		}
		if n := value(&frames[0], collector.Connections); n != 0 {
			t.Fatalf("fwd000 has %g connections", n)
		}
	})
}

func TestRemapRefusals(t *testing.T) {
	m := mustNew(t, Small(1))
	if m.Remap("nobody", "fwd000") == nil || m.Remap("c00000", "fwd999") == nil {
		t.Error("a remap of nothing succeeded")
	}
	if err := m.Remap("c00000", "fwd003"); err != nil {
		t.Fatal(err)
	}
	m.Remap("c00000", "fwd003")
	if r, _ := m.Route("c00000"); r.Generation != 2 || r.Forwarder != "fwd003" {
		t.Errorf("route %+v after one remap and its repetition", r)
	}
	if m.Slow("x", t0) == nil {
		t.Error("a forwarder that does not exist became slow")
	}
}

func TestRunnerObeysOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		frames := 0
		r := NewRunner(mustNew(t, Small(1)), func(f []collector.Frame) error { frames += len(f); return nil })
		ended := make(chan struct{})
		go func() { r.Run(ctx); close(ended) }()
		body, _ := json.Marshal(wire.RemapOrder{Node: "c00001", Forwarder: "fwd005"})
		b, err := r.Remap(ctx, wire.Order{ID: "1", Body: body})
		if err != nil || string(b) != `{"forwarder":"fwd005","generation":2}` {
			t.Errorf("answer %s, %v", b, err)
		}
		time.Sleep(3500 * time.Millisecond)
		cancel()
		<-ended
		if want := 3 * len(r.Machine.frames); frames != want {
			t.Errorf("%d frames in three seconds, want %d", frames, want)
		}
		if _, err := r.Route(ctx, wire.Order{Body: []byte(`{"node":"c00001"}`)}); err == nil {
			t.Error("an order after the end was answered")
		}
	})
}

// BenchmarkSecond prints the cost of one second of the machine at TaihuLight's size.
func BenchmarkSecond(b *testing.B) {
	m := mustNew(b, TaihuLight(1))
	s := 0
	b.ReportAllocs()
	for b.Loop() {
		m.Step(t0.Add(time.Duration(s) * time.Second))
		s++
	}
}

// Small is a machine of the same proportions for a quick look.
func Small(seed uint64) Config {
	c := TaihuLight(seed)
	c.Name, c.Compute, c.Forwarders, c.InService, c.Storage = "small-sim", 512, 8, 4, 4
	c.StorageBytesPerSec, c.JobSeconds = 8e9, 300
	return c
}
