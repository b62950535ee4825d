package watch

import (
	"bytes"
	"math"
	"testing"
	"time"

	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// TestNoSecondIsLostUncounted: on a busy host the detectors miss ticks, and frames come late or twice. Every second
// that came is judged, late or skipped.
func TestNoSecondIsLostUncounted(t *testing.T) {
	begin := time.Unix(1795000020, 0) // a minute's start
	b := window.NewBoard(0)
	d := NewDetectors(b, failslow.DefaultSettings())
	came := 0
	send := func(now time.Time, age time.Duration) {
		b.Take([]collector.Frame{{Node: "fwd1", Role: topology.Forwarder,
			TimeMillis: now.Add(-age - time.Second).UnixMilli(), Samples: samples(collector.ReadOps, 1.0)}}, now)
		came++
	}
	at := func(second int) time.Time { return begin.Add(time.Duration(second) * time.Second) }
	for s := 1; s <= 10; s++ {
		send(at(s), 0)
		d.Verdicts(at(s), &Machine{})
	}
	for s := 11; s <= 14; s++ { // four seconds come before the next look
		send(at(s), 0)
	}
	d.Verdicts(at(14), &Machine{})
	send(at(15), 8*time.Second) // a spool is replayed, older than what is known
	send(at(15), 7*time.Second)
	d.Verdicts(at(15), &Machine{})
	b.Take([]collector.Frame{{Node: "fwd1", Role: topology.Forwarder, TimeMillis: at(13).UnixMilli()}}, at(15)) // again
	d.Verdicts(at(20), &Machine{})
	send(at(26), 5*time.Second) // the newest, and too old
	d.Verdicts(at(26), &Machine{})
	lately, all := d.Judged()
	want := Judged{Judged: 11, Skipped: 3, Late: 3}
	if !lately.Starting {
		t.Error("the daemon began half a minute ago")
	}
	lately.Starting = false
	if all != want || lately != want || all.Judged+all.Skipped+all.Late != uint64(came) {
		t.Errorf("of %d seconds: %+v, lately %+v, want %+v", came, all, lately, want)
	}
	d.Verdicts(at(26+judgedMinutes*60), &Machine{})
	if lately, _ := d.Judged(); lately != (Judged{}) {
		t.Errorf("ten minutes later: %+v", lately)
	}
}

// TestWhatComesLateAfterAStartIsOfTheStart: a minute that agents kept says nothing of the host that starts again.
func TestWhatComesLateAfterAStartIsOfTheStart(t *testing.T) {
	begin := time.Unix(1795000020, 0) // a minute's start
	var y tally
	for s := range 10 * 60 {
		y.begin(begin.Add(time.Duration(s) * time.Second))
		if s < 60 {
			y.count(Judged{Late: 1})
		}
		y.count(Judged{Judged: 1})
	}
	d := &Detectors{tally: y}
	lately, all := d.Judged()
	if want := (Judged{Judged: 8 * 60}); lately != want {
		t.Errorf("lately %+v, want %+v", lately, want)
	}
	if want := (Judged{Judged: 10 * 60, Late: 60}); all != want {
		t.Errorf("since the start %+v, want %+v", all, want)
	}
}

// TestRatesAreOfTheSecondAfterASkippedTick: agents report rates by the second; that the daemon looked three seconds
// late makes no forwarder look a third as busy.
func TestRatesAreOfTheSecondAfterASkippedTick(t *testing.T) {
	b := window.NewBoard(0)
	d := NewDetectors(b, failslow.DefaultSettings())
	for _, s := range []int64{0, 1, 4} {
		now := time.Unix(1795000000+s, 0)
		b.Take([]collector.Frame{{Node: "fwd1", Role: topology.Forwarder, TimeMillis: now.UnixMilli() - 1000,
			Samples: samples(collector.ReadOps, 90.0, collector.ReadBytes, 60e6, collector.ReadExec, 0.01)}}, now)
		d.Verdicts(now, &Machine{})
		if n := d.second.rows[0].Spans; n != 1 {
			t.Errorf("after %d s its counters cover %g s, want 1", s, n)
		}
	}
}

// TestHabitsOfRoutersOutliveARestart: so do the evidence against one, and clients that are slow by themselves.
func TestHabitsOfRoutersOutliveARestart(t *testing.T) {
	now := time.Unix(1795000000, 0)
	b := window.NewBoard(0)
	d := NewDetectors(b, failslow.DefaultSettings())
	second := func(d *Detectors, s int, slow float64) {
		at := now.Add(time.Duration(s) * time.Second)
		var frames []collector.Frame
		for _, r := range []topology.NodeID{"r1", "r2", "r3"} {
			inside := 1.0
			if r == "r2" {
				inside = slow
			}
			frames = append(frames, collector.Frame{Node: r, Role: topology.Forwarder,
				TimeMillis: at.UnixMilli() - 1000,
				Samples: samples(collector.RoutedOps, 1000.0, collector.RoutedBytes, 5e8, collector.InFlight,
					inside)})
		}
		b.Take(frames, at)
		d.Verdicts(at, &Machine{})
	}
	for s := range 300 {
		second(d, s, 1.2) // its habit
	}
	d.clients.slow.of["cn1"] = &[3]habitOfClient{{Longer: 1.5, Seconds: clientMemory}}
	saved, err := d.State(now.Add(300 * time.Second))
	if err != nil {
		t.Fatal(err)
	}
	e := NewDetectors(b, failslow.DefaultSettings())
	if _, err := e.LoadState(bytes.NewReader(saved), now.Add(301*time.Second), time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := e.clients.slow.of["cn1"]; got == nil || got[0] != (habitOfClient{1.5, clientMemory}) {
		t.Errorf("the slow client: %+v", got)
	}
	again, err := e.State(now.Add(300 * time.Second))
	if err != nil || len(again) != len(saved) {
		t.Errorf("%d bytes of state, saved again %d, %v", len(saved), len(again), err)
	}
	was, is := d.routers.group.Routers.Known("r2").Habit.Mean, e.routers.group.Routers.Known("r2").Habit.Mean
	if is != was || is < 0.1 {
		t.Errorf("its habit was %.3f and is %.3f", was, is)
	}
}

// What routers pass on is the layer's bandwidth, and how long messages are in one, against the others, is how slow it
// is shown: they know no clients' operations.
func TestRoutersHaveATrend(t *testing.T) {
	now := time.Unix(1795000000, 0)
	b := window.NewBoard(0)
	d := NewDetectors(b, failslow.DefaultSettings())
	for s := range 30 {
		at := now.Add(time.Duration(s) * time.Second)
		var frames []collector.Frame
		for i, r := range []topology.NodeID{"r1", "r2", "r3", "r4"} {
			frames = append(frames, collector.Frame{Node: r, Role: topology.Forwarder,
				TimeMillis: at.UnixMilli() - 1000,
				Samples: samples(collector.RoutedOps, 1000.0, collector.RoutedBytes, 1e8, collector.InFlight,
					2+3*float64(i/3))})
		}
		b.Take(frames, at)
		d.Verdicts(at, &Machine{})
	}
	_, layer, _ := d.Trend()
	if layer.Routed != 4e8 || !math.IsNaN(layer.Read) || layer.Waiting != 0 {
		t.Errorf("the layer is %+v, want 400 MB/s routed and nothing read", layer)
	}
	for r, want := range map[topology.ForwarderID]Wait{"r1": {Took: 0.002, Slow: 1}, "r4": {Took: 0.005, Slow: 2.5}} {
		got := d.Now()[r]
		if math.Abs(got.Took-want.Took) > 1e-9 || math.Abs(got.Slow-want.Slow) > 1e-6 || !got.Routed {
			t.Errorf("%s: %+v, want %+v", r, got, want)
		}
	}
}
