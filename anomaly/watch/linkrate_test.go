package watch

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// rated are forwarders that do nothing and report what their links run at.
type rated struct {
	*Detectors
	board   *window.Board
	tracker *anomaly.Tracker
	now     time.Time
	links   []port
	says    map[string]string // of the last second's alarms and clean verdicts
}

// port is a forwarder's link: Gb/s and lanes; none reports nothing.
type port struct{ gigabits, lanes float64 }

func newRated(links ...port) *rated {
	r := &rated{board: window.NewBoard(0), now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), links: links}
	r.tracker = anomaly.NewTracker(anomaly.DefaultSettings(), nil)
	r.Detectors = NewDetectors(r.board, failslow.DefaultSettings())
	return r
}

// live lets seconds pass and returns after how many of them a forwarder was first accused, by forwarder.
func (r *rated) live(seconds int) map[string]int {
	first := map[string]int{}
	for i := range seconds {
		r.now = r.now.Add(time.Second)
		var frames []collector.Frame
		for f, l := range r.links {
			if l.gigabits > 0 {
				frames = append(frames, collector.Frame{Node: topology.NodeID(fmt.Sprint("f", f)),
					Role: topology.Forwarder, TimeMillis: r.now.Add(-time.Second).UnixMilli(),
					Samples: samples(collector.LinkRateBits, l.gigabits*1e9, collector.LinkLanes, l.lanes)})
			}
		}
		r.board.Take(frames, r.now)
		r.says = map[string]string{}
		verdicts := r.Verdicts(r.now, &Machine{})
		r.tracker.Step(r.now, verdicts, anomaly.Pool{Forwarders: len(r.links), Healthy: len(r.links)})
		for _, v := range verdicts {
			if v.Kind != anomaly.FailSlow {
				continue
			}
			r.says[string(v.Node)] = fmt.Sprint(v.Level == anomaly.Clean, v.Sentence)
			if v.Level == anomaly.Alarm && first[string(v.Node)] == 0 {
				first[string(v.Node)] = i + 1
			}
		}
	}
	return first
}

// TestLinkThatFell: a forwarder whose link falls from four lanes to one is named within seconds, without any load,
// until the rate is back; a restart of the daemon does not forget what it was.
func TestLinkThatFell(t *testing.T) {
	full, quarter := port{100, 4}, port{25, 1}
	r := newRated(full, full, full, full)
	if a := r.live(300); len(a) > 0 {
		t.Fatalf("nothing fell: %v", a)
	}
	r.links[3] = quarter
	a := r.live(10)
	if len(a) != 1 || a["f3"] != lowFor ||
		r.says["f3"] != "falsethe links of f3 run at 25 Gb/s, at 100 Gb/s before: an InfiniBand port runs on one lane" {
		t.Fatalf("f3 fell: %v, %v", a, r.says)
	}
	if found := r.tracker.Findings(r.now); len(found) != 1 || found[0].State != anomaly.Confirmed ||
		found[0].Changed.After(r.now.Add(-2*time.Second)) {
		t.Errorf("after 10 s: %+v", found)
	}
	state, err := r.State(r.now)
	if err != nil {
		t.Fatal(err)
	}
	again := newRated(quarter, quarter, quarter, quarter) // no peer of now says what was
	again.links = r.links
	again.now = r.now
	if _, err := again.LoadState(bytes.NewReader(state), r.now, time.Hour); err != nil {
		t.Fatal(err)
	}
	if a := again.live(settled + lowFor); len(a) != 1 || a["f3"] == 0 || !strings.Contains(again.says["f3"], "before") {
		t.Errorf("after a restart: %v, %v", a, again.says)
	}
	r.links[3] = full
	if a := r.live(10); len(a) > 0 || !strings.HasPrefix(r.says["f3"], "true") {
		t.Errorf("its rate is back: %v, %v", a, r.says)
	}
	r.live(anomaly.DefaultSettings().ClearSeconds)
	if found := r.tracker.Findings(r.now.Add(-time.Minute)); len(found) != 1 || found[0].State != anomaly.Returned {
		t.Errorf("a minute after its rate is back: %+v", found)
	}
	r.live(afterSilence)
	if len(r.says) > 0 {
		t.Errorf("long after: %v", r.says)
	}
}

// TestLinkThatWasNeverWhole: nobody saw it with four lanes, and its peers have them.
func TestLinkThatWasNeverWhole(t *testing.T) {
	r := newRated(port{100, 4}, port{100, 4}, port{100, 4}, port{25, 1})
	if a := r.live(settled + 10); len(a) != 1 || a["f3"] == 0 ||
		!strings.Contains(r.says["f3"],
			"those of 3 other forwarders at 100 Gb/s: an InfiniBand port runs on one lane") {
		t.Errorf("f3 has one lane: %v, %v", a, r.says)
	}
}

// TestLinksByDesign: sites whose forwarders have unlike links, or change all of them, or start, accuse nobody.
func TestLinksByDesign(t *testing.T) {
	full, half, quarter := port{100, 4}, port{50, 2}, port{25, 1}
	slow := port{25, 0} // Ethernet has no lanes
	for name, c := range map[string]struct {
		links []port
		later []port // after five minutes
		for_  int    // seconds of that
		last  []port
	}{
		"mixed by design":              {links: []port{full, full, full, full, half, half, slow, slow}},
		"one of Ethernet":              {links: []port{full, full, full, full, slow}},
		"half its lanes":               {links: []port{full, full, full, full, half}},
		"one lane, and no three alike": {links: []port{full, full, {56, 4}, {56, 4}, quarter}},
		"one lane, few are alike":      {links: []port{full, full, full, {56, 4}, {40, 4}, quarter}},
		"one lane, and two others":     {links: []port{full, full, quarter}},
		"one lane, all have one":       {links: []port{{100, 1}, {100, 1}, {100, 1}, quarter}},
		"one lane, as its peers":       {links: []port{quarter, quarter, quarter, quarter}},
		"the fabric fell": {[]port{full, full, full, full}, []port{half, half, half, full}, 60,
			[]port{full, full, full, full}},
		"trained again": {[]port{full, full, full, full}, []port{full, quarter, full, full}, lowFor - 1,
			[]port{full, full, full, full}},
		"a faster card": {[]port{half, half, half, half}, []port{full, half, half, half}, 300,
			[]port{full, full, full, full}},
		"management's card left": {[]port{{101, 4}, {101, 4}, {101, 4}}, []port{full, {101, 4}, {101, 4}}, 100,
			[]port{full, full, full}},
		"more for a moment": {[]port{full, full, full, full}, []port{{200, 4}, full, full, full}, settled / 2,
			[]port{full, full, full, full}},
		"links come up one by one": {[]port{full, full, full, full}, []port{full, {}, full, full}, 60,
			[]port{full, slow, full, full}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRated(c.links...)
			accused := r.live(300)
			if c.later != nil {
				r.links = c.later
				for f := range r.live(c.for_) {
					accused[f] = 1
				}
				r.links = c.last
				for f := range r.live(settled - 1) {
					accused[f] = 1
				}
			}
			if len(accused) > 0 {
				t.Errorf("%v are accused: %v", accused, r.says)
			}
		})
	}
}

// TestLowerRateByDesign: a rate that has lasted for a week is what the forwarder has.
func TestLowerRateByDesign(t *testing.T) {
	l, now := linkRates{}, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	frame := func(bits float64) *collector.Frame {
		return &collector.Frame{Node: "f0", Samples: samples(collector.LinkRateBits, bits)}
	}
	const step, day = 10, 24 * 3600 // seconds
	alarms := func(bits float64, seconds int) (n int) {
		for range seconds / step {
			now = now.Add(step * time.Second)
			l.take(frame(bits), now.Unix())
			for _, v := range l.verdicts(now) {
				if v.Level == anomaly.Alarm {
					n++
				}
			}
		}
		return n
	}
	if n := alarms(100e9, 300); n > 0 {
		t.Fatalf("%d alarms", n)
	}
	if n := alarms(50e9, 6*day); n != 6*day/step-1 {
		t.Errorf("%d alarms in six days", n)
	}
	alarms(50e9, day)
	if n := alarms(50e9, 300); n > 0 {
		t.Errorf("%d alarms after a week", n)
	}
}
