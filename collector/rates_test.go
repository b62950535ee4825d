package collector

import (
	"math"
	"testing"
	"time"
)

func TestRates(t *testing.T) {
	type step struct {
		after time.Duration
		v     uint64
		want  float64 // NaN: no rate
	}
	none := math.NaN()
	for name, c := range map[string]struct {
		wrap   bool
		steps  []step
		resets int
	}{
		"the first snapshot makes no rate": {steps: []step{{time.Second, 1000, none},
			{time.Second, 1500, 500}}},
		"a rate is over the real interval": {steps: []step{{time.Second, 0, none},
			{1250 * time.Millisecond, 1000, 800}}},
		"one missed second is averaged over two": {steps: []step{{time.Second, 0, none}, {2 * time.Second, 1000, 500},
			{time.Second, 1000, 0}}},
		"a long gap is not smeared over": {steps: []step{{time.Second, 0, none},
			{60 * time.Second, 6000, none}, {time.Second, 6100, 100}}},
		"backwards is a reset, never negative": {steps: []step{{time.Second, 900, none}, {time.Second, 10, none},
			{time.Second, 30, 20}}, resets: 1},
		"without the option a wrap is a reset": {steps: []step{{time.Second, 1<<32 - 10, none},
			{time.Second, 20, none}}, resets: 1},
		"a 32-bit counter wraps": {wrap: true, steps: []step{{time.Second, 1<<32 - 10, none},
			{time.Second, 20, 30}}},
		"a small step back of 32 bits is a reset": {wrap: true,
			steps: []step{{time.Second, 5000, none}, {time.Second, 20, none}}, resets: 1},
		"a 64-bit value with the option is normal": {wrap: true,
			steps: []step{{time.Second, 1 << 40, none}, {time.Second, 1<<40 + 7, 7}}},
		"0 for one reading counts nothing": {steps: []step{{time.Second, 1 << 50, none}, {time.Second, 1<<50 + 9, 9},
			{time.Second, 0, none}, {time.Second, 1<<50 + 20, none}, {time.Second, 1<<50 + 25, 5}}, resets: 2},
		"and for several": {steps: []step{{time.Second, 1 << 50, none}, {time.Second, 0, none}, {time.Second, 0, 0},
			{time.Second, 1 << 50, none}, {time.Second, 1<<50 + 3, 3}}, resets: 2},
		"a counter that began anew at 0 counts on": {steps: []step{{time.Second, 900, none}, {time.Second, 0, none},
			{time.Second, 30, 30}, {time.Second, 2000, 1970}}, resets: 1},
		"0 after 32 bits: a reset": {wrap: true, steps: []step{{time.Second, 1<<32 - 10, none}, {time.Second, 0, none},
			{time.Second, 1<<32 - 5, none}, {time.Second, 20, 25}}, resets: 2},
		"0 before a gap": {steps: []step{{time.Second, 500, none}, {time.Second, 0, none}, {time.Minute, 700, none},
			{time.Second, 710, 10}}, resets: 2},
		"the clock stood still": {steps: []step{{time.Second, 1, none}, {0, 5, none}, {time.Second, 9, 4}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Rates[string]{Wrap32: c.wrap}
			at := time.Unix(1_795_000_000, 0)
			resets := 0
			for i, s := range c.steps {
				at = at.Add(s.after)
				r.Begin(at)
				got, ok := r.Rate("k", s.v)
				resets += r.Resets
				if ok != !math.IsNaN(s.want) || ok && got != s.want {
					t.Errorf("step %d: got %v, %v; want %v", i, got, ok, s.want)
				}
			}
			if resets != c.resets {
				t.Errorf("%d resets, want %d", resets, c.resets)
			}
		})
	}
}

// A step back of a counter of 32 bits is a reset where one beside it went back: its sum is not known then.
func TestAResetBesideIsNoWrap(t *testing.T) {
	r := Rates[string]{Wrap32: true}
	at := time.Unix(1_795_000_000, 0)
	for i, c := range []struct {
		v     uint64
		reset bool
		want  float64
		ok    bool
	}{{3_500_000_000, false, 0, false}, {900, true, 0, false}, {1_900, false, 1000, true}} {
		r.Begin(at.Add(time.Duration(i) * time.Second))
		if c.reset {
			r.RestartOf("k", "another")
		}
		var total Total
		r.AddTo(&total, "k", c.v)
		if got, ok := total.Value(); got != c.want || ok != c.ok {
			t.Errorf("step %d: %v, %v; want %v, %v", i, got, ok, c.want, c.ok)
		}
		if (r.Resets == 1) != c.reset {
			t.Errorf("step %d: %d resets", i, r.Resets)
		}
	}
}

func TestTotalOverCountersThatComeAndGo(t *testing.T) {
	var r Rates[string]
	at := time.Unix(0, 0)
	sum := func(vs map[string]uint64) (float64, bool) {
		at = at.Add(time.Second)
		r.Begin(at)
		var total Total
		for k, v := range vs {
			r.AddTo(&total, k, v)
		}
		return total.Value()
	}
	for i, c := range []struct {
		in   map[string]uint64
		want float64
		ok   bool
	}{
		{map[string]uint64{"sda": 100}, 0, false},
		{map[string]uint64{"sda": 150, "sdb": 9000}, 50, true}, // what sdb did before is not of this second
		{map[string]uint64{"sda": 160, "sdb": 9005}, 15, true},
		{map[string]uint64{"sda": 170, "sdb": 3}, 0, false}, // sdb was reset: the sum is unknown
		{map[string]uint64{"sdb": 4}, 1, true},
		{map[string]uint64{"sda": 400, "sdb": 6}, 2, true}, // sda came back: its old value is forgotten
	} {
		if got, ok := sum(c.in); got != c.want || ok != c.ok {
			t.Errorf("snapshot %d: got %v, %v; want %v, %v", i, got, ok, c.want, c.ok)
		}
	}
}

func TestRatesReuseMemory(t *testing.T) {
	var r Rates[string]
	keys := []string{"a", "b", "c", "d"}
	at := time.Unix(0, 0)
	snapshot := func() {
		at = at.Add(time.Second)
		r.Begin(at)
		for _, k := range keys {
			r.Rate(k, uint64(at.Unix()))
		}
	}
	snapshot()
	snapshot()
	if n := testing.AllocsPerRun(100, snapshot); n > 0 {
		t.Errorf("%v allocations per snapshot, want 0", n)
	}
}

func TestCountersBornBetweenSnapshots(t *testing.T) {
	r := Rates[string]{FromZero: func(k string) bool { return k != "unread" }}
	at := time.Unix(0, 0)
	r.Begin(at)
	if _, ok := r.Rate("old", 500); ok {
		t.Error("the first snapshot made a rate: what was counted before is not of this second")
	}
	r.Begin(at.Add(time.Second))
	if v, ok := r.Rate("new", 70); !ok || v != 70 {
		t.Errorf("got %v, %v; want 70", v, ok)
	}
	if v, ok := r.Rate("unread", 70); ok {
		t.Errorf("a counter that could not be read before made a rate of %v", v)
	}
	r.Begin(at.Add(time.Hour))
	if _, ok := r.Rate("newer", 9); ok {
		t.Error("a rate over a gap of an hour")
	}
}
