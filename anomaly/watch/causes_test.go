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

// course is what nodes report of themselves second by second, and a finding about the first one.
type course struct {
	causes
	now   time.Time
	nodes int
	at    func(node, second int) []collector.Sample
}

var courseBegan = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func (c *course) live(seconds int) {
	for range seconds {
		second := int(c.now.Sub(courseBegan) / time.Second)
		for n := range c.nodes {
			c.take(&collector.Frame{Node: topology.NodeID(fmt.Sprint("f", n)), Role: topology.Forwarder,
				Samples: c.at(n, second)}, c.now.Unix())
		}
		c.now = c.now.Add(time.Second)
	}
}

// says is the sentence of a finding that f0 is slow since a second.
func (c *course) says(since int) string {
	v := anomaly.Verdict{Node: "f0", Kind: anomaly.FailSlow, Level: anomaly.Alarm, Sentence: "f0 is slow",
		Since: courseBegan.Add(time.Duration(since) * time.Second)}
	all := []anomaly.Verdict{v}
	c.explain(c.now, all)
	if named := len(all[0].Evidence) > 0; named != (all[0].Sentence != v.Sentence) {
		return "evidence and sentence do not agree"
	}
	more, cause := strings.TrimPrefix(all[0].Sentence, v.Sentence), all[0].Cause
	if more == "" && !strings.HasPrefix(cause, notKnown) || more != "" && more != "; "+cause {
		return "the cause is not what the sentence says: " + cause
	}
	return more
}

// step has the first nodes report a value of a metric from a second on, and the others another one.
func step(m collector.Metric, from, nodes int, value, others float64) func(node, second int) []collector.Sample {
	return func(node, second int) []collector.Sample {
		v := others
		if node < nodes && second >= from {
			v = value
		}
		return samples(m, v)
	}
}

// TestCauses: a sign that rose when a node became slow and that its peers have not is the cause, and no other one is.
func TestCauses(t *testing.T) {
	ramp := func(node, second int) []collector.Sample {
		return samples(collector.ThrottledRatio, max(0, min(0.6, 0.02*float64((second-90)*(1-min(node, 1))))))
	}
	for name, c := range map[string]struct {
		at    func(node, second int) []collector.Sample
		nodes int
		want  string // in the sentence after 150 s, of a node that is slow since 100; "": none
	}{
		"throttled": {step(collector.ThrottledRatio, 100, 1, 0.4, 0), 4,
			"; since it became slow its processors were throttled for 40 % of the time, its peers' for 0 %"},
		"connected anew": {step(collector.Reconnects, 100, 1, 0.1, 0), 4,
			"; since it became slow it had to connect to its servers anew 5 times, its peers' never"},
		"in recovery": {step(collector.Recovering, 100, 1, 2, 0), 4,
			"; since it became slow 2 of its targets were in recovery, 0 of its peers'"},
		"as it warms up":         {ramp, 4, "its processors were throttled for 5"},
		"8 s before":             {step(collector.ThrottledRatio, 92, 1, 0.4, 0), 4, "for 40 % of the time"},
		"8 s later":              {step(collector.ThrottledRatio, 108, 1, 0.4, 0), 4, "of the time"},
		"for long":               {step(collector.ThrottledRatio, 0, 1, 0.4, 0), 4, ""},
		"a minute before":        {step(collector.ThrottledRatio, 40, 1, 0.4, 0), 4, ""},
		"half a minute later":    {step(collector.ThrottledRatio, 130, 1, 0.9, 0), 4, ""},
		"all of them":            {step(collector.ThrottledRatio, 100, 4, 0.4, 0), 4, ""},
		"most of them":           {step(collector.ThrottledRatio, 100, 3, 0.4, 0), 4, ""},
		"a peer, too":            {step(collector.ThrottledRatio, 100, 2, 0.4, 0), 4, "for 40 %"},
		"less than matters":      {step(collector.ThrottledRatio, 100, 1, 0.04, 0), 4, ""},
		"nobody to compare with": {step(collector.ThrottledRatio, 100, 1, 0.4, 0), 1, ""},
		"twice what is usual":    {step(collector.ThrottledRatio, 100, 1, 0.4, 0.2), 4, ""},
		"events of an old kernel": {step(collector.ThrottleEvents, 100, 1, 0.5, 0), 4,
			"began to be throttled 25 times, its peers' never"},
		"one long throttling": {func(node, second int) []collector.Sample {
			if node == 0 && second == 101 {
				return samples(collector.ThrottledRatio, 0.0, collector.ThrottleEvents, 1.0)
			}
			return samples(collector.ThrottledRatio, 0.0, collector.ThrottleEvents, 0.0)
		}, 4, ""},
		"times and events": {func(node, second int) []collector.Sample {
			return append(step(collector.ThrottledRatio, 100, 1, 0.4, 0)(node, second),
				step(collector.ThrottleEvents, 100, 1, 9, 0)(node, second)...)
		}, 4, "for 0 %"},
		"link waits": {step(collector.LinkWaitTicks, 100, 1, 4e7, 1e6), 4,
			"had to wait before they could send, 40x as often as its peers'"},
		"link waits as ever": {step(collector.LinkWaitTicks, 100, 1, 4e5, 1e4), 4, ""},
		"loss": {step(collector.ResentRatio, 100, 1, 0.03, 0.0001), 4, "; since it became slow 3 % of the TCP " +
			"segments that it sent were sent again, 0.01 % at its peers"},
		"loss of a full link": {step(collector.ResentRatio, 100, 1, 0.001, 0), 4, ""},
		"errors of a bad cable": {step(collector.LinkErrors, 100, 1, 12, 0), 4,
			"counted 12 errors a second, its peers' 0"},
		"two causes": {func(node, second int) []collector.Sample {
			return append(step(collector.ThrottledRatio, 100, 1, 0.4, 0)(node, second),
				step(collector.ResentRatio, 100, 1, 0.03, 0)(node, second)...)
		}, 4, "for 0 %, and 3 % of the TCP"},
		"nothing is reported": {func(int, int) []collector.Sample { return nil }, 4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			co := &course{causes: newCauses(), now: courseBegan, nodes: c.nodes, at: c.at}
			co.live(150)
			if got := co.says(100); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestCauseLasts: the cause of a finding that is open for long is named while it is there, and no longer.
func TestCauseLasts(t *testing.T) {
	co := &course{causes: newCauses(), now: courseBegan, nodes: 4, at: step(collector.ThrottledRatio, 100, 1, 0.4, 0)}
	co.live(120)
	for range 60 { // judged all the while
		co.live(10)
		if got := co.says(100); !strings.Contains(got, "throttled for 40 %") {
			t.Fatalf("after %v: %q", co.now.Sub(courseBegan), got)
		}
	}
	if got := co.says(100); !strings.Contains(got, "in the last two minutes") {
		t.Errorf("%q", got)
	}
	co.at = step(collector.ThrottledRatio, 0, 0, 0, 0)
	co.live(150)
	if got := co.says(100); got != "" {
		t.Errorf("it is cool: %q", got)
	}
	if co.explain(co.now.Add(2*time.Minute), nil); len(co.cases) > 0 {
		t.Errorf("kept: %v", co.cases)
	}
}

// TestCauseAccusesNobody: whatever nodes report of themselves makes no verdict.
func TestCauseAccusesNobody(t *testing.T) {
	board := window.NewBoard(0)
	d := NewDetectors(board, failslow.DefaultSettings())
	now := courseBegan
	for second := range 300 {
		now = now.Add(time.Second)
		var frames []collector.Frame
		for n := range 4 {
			hot := 0.0
			if n == 0 && second > 100 {
				hot = 1
			}
			frames = append(frames, collector.Frame{Node: topology.NodeID(fmt.Sprint("f", n)), Role: topology.Forwarder,
				TimeMillis: now.Add(-time.Second).UnixMilli(), Samples: samples(collector.ThrottledRatio, hot,
					collector.ThrottleEvents, 90*hot, collector.LinkWaitTicks, 1e9*hot, collector.ResentRatio, hot,
					collector.LinkErrors, 1000*hot)})
		}
		board.Take(frames, now)
		for _, v := range d.Verdicts(now, &Machine{}) {
			if v.Level >= anomaly.Doubt {
				t.Fatalf("after %d s: %+v", second, v)
			}
		}
	}
}

// TestCausesOutliveARestart: what rose when a node became slow is known to the daemon that comes after.
func TestCausesOutliveARestart(t *testing.T) {
	d := NewDetectors(window.NewBoard(0), failslow.DefaultSettings())
	co := &course{causes: d.silence.causes, now: courseBegan, nodes: 4,
		at: step(collector.ThrottledRatio, 100, 1, 0.4, 0)}
	co.live(150)
	if co.says(100) == "" {
		t.Fatal("no cause")
	}
	saved, err := d.State(co.now)
	if err != nil {
		t.Fatal(err)
	}
	d = NewDetectors(window.NewBoard(0), failslow.DefaultSettings())
	if _, err := d.LoadState(bytes.NewReader(saved), co.now.Add(10*time.Second), time.Hour); err != nil {
		t.Fatal(err)
	}
	co.causes, co.now = d.silence.causes, co.now.Add(10*time.Second)
	co.live(20)
	if got := co.says(100); !strings.Contains(got, "throttled for 40 %") {
		t.Errorf("%q", got)
	}
}

// BenchmarkCauses is a second of 40,000 forwarders with thirty metrics each, a hundred of which are slow by all causes.
func BenchmarkCauses(b *testing.B) {
	c := newCauses()
	var frames []collector.Frame
	for n := range 40_000 {
		f := collector.Frame{Node: topology.NodeID(fmt.Sprint("f", n)), Role: topology.Forwarder}
		for m := range collector.Metrics() {
			if len(f.Samples) < 25 || m >= collector.LinkErrors {
				f.Samples = append(f.Samples, collector.Sample{Metric: m})
			}
		}
		frames = append(frames, f)
	}
	now := courseBegan
	take := func(seconds int, value float64) {
		for range seconds {
			now = now.Add(time.Second)
			for i := range frames {
				if i%400 == 0 {
					for k := range frames[i].Samples {
						frames[i].Samples[k].Value = value
					}
				}
				c.take(&frames[i], now.Unix())
			}
		}
	}
	take(45, 0)
	since := now
	take(15, 1e8)
	for b.Loop() {
		take(1, 1e8)
		var slow []anomaly.Verdict
		for n := 0; n < 40_000; n += 400 {
			slow = append(slow, anomaly.Verdict{Node: frames[n].Node, Kind: anomaly.FailSlow, Level: anomaly.Alarm,
				Since: since})
		}
		c.explain(now, slow)
		if slow[0].Sentence == "" {
			b.Fatal("nothing is explained")
		}
	}
}
