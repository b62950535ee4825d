package layout

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
)

// layer is routers that share a load, drawn: each message takes its router about took seconds.
type layer struct {
	g    *Group
	rng  *rand.Rand
	now  int64
	rows []Router
	took []float64
	last map[string]anomaly.Verdict
	// noise is the spread of a second's messages in a router, log.
	noise float64
}

func newLayer(routers int) *layer {
	l := &layer{g: NewGroup(500 * 24 * time.Hour), rng: rand.New(rand.NewPCG(3, 4)), now: 1e9,
		last: map[string]anomaly.Verdict{}, noise: 0.2}
	for i := range routers {
		l.rows = append(l.rows, Router{Node: topology.NodeID(fmt.Sprintf("r%d", i+1)), Group: "o2ib tcp", Messages: 800,
			Bytes: 180e6, BuffersFree: 0.99, Waiting: map[topology.TargetID]float64{}, Senders: 3})
		l.took = append(l.took, 2.5e-3)
	}
	return l
}

// run lets seconds pass and returns the first in which a verdict is an alarm, by kind and node.
func (l *layer) run(seconds int) map[string]int {
	first := map[string]int{}
	for s := range seconds {
		l.now++
		for i := range l.rows {
			r := &l.rows[i]
			r.Inside = r.Messages * l.took[i] * math.Exp(l.noise*l.rng.NormFloat64())
		}
		for _, v := range l.g.Second(time.Unix(l.now, 0), l.rows) {
			key := string(v.Kind) + " " + string(v.Node)
			l.last[key] = v
			if _, again := first[key]; !again && v.Level == anomaly.Alarm {
				first[key] = s + 1
			}
		}
	}
	return first
}

func TestASlowRouterIsAccusedAndCleared(t *testing.T) {
	for _, c := range []struct {
		slower float64
		within int
	}{{10, 20}, {2.3, 30}, {1.4, 120}} {
		l := newLayer(4)
		if first := l.run(600); len(first) > 0 {
			t.Fatalf("healthy: %v", first)
		}
		l.took[1] *= c.slower
		first := l.run(c.within)
		if len(first) != 1 || first["fail_slow r2"] == 0 {
			t.Errorf("%g times as slow: accused %v in %d s", c.slower, first, c.within)
		}
		if v := l.last["fail_slow r2"]; !strings.Contains(v.Sentence, "x slow: messages take") {
			t.Errorf("%q", v.Sentence)
		}
		l.took[1] = l.took[0]
		l.run(180)
		if v := l.last["fail_slow r2"]; v.Level != anomaly.Clean {
			t.Errorf("healed from %g: %+v", c.slower, v)
		}
	}
}

// What slows all routers alike, an older one, and a busier one are nobody's fault.
func TestNobodyIsAccusedOfWhatIsCommon(t *testing.T) {
	l := newLayer(4)
	l.took[3] *= 1.2
	first := l.run(1800)
	for i := range l.took {
		l.took[i] *= 8
	}
	for k, at := range l.run(300) {
		first[k] = at
	}
	l.rows[0].Messages, l.rows[0].Bytes = 3000, 700e6
	l.took[0] *= 3
	for k, at := range l.run(300) {
		first[k] = at
	}
	if len(first) > 0 {
		t.Errorf("accused %v: %v", first, l.last)
	}
}

// Where a queue stands for receivers that are asked for more than they take says nothing of a router; one that is slow
// besides is found, and one at which alone messages wait for them.
func TestAQueueForSlowReceiversAccusesNoRouter(t *testing.T) {
	receivers := []topology.TargetID{"c1", "c2", "c3"}
	waits := func(l *layer, i int, n float64) {
		r := &l.rows[i]
		r.Waiting = map[topology.TargetID]float64{}
		for _, id := range receivers {
			r.Waiting[id] = n
		}
		r.Sending = r.Waiting
		l.took[i] = 2.5e-3 + n*float64(len(receivers))/r.Messages
	}
	for _, c := range []struct {
		what   string
		others float64 // messages that wait for each receiver at the other routers
		slower float64 // the router's own time
		found  bool
	}{{"a queue that stands mostly at it", 0.3, 1, false}, {"slow besides", 0.3, 3, true},
		{"a queue at it alone", 0, 1, true}} {
		l := newLayer(4)
		l.noise = 0.05
		l.run(300)
		for i := range l.rows {
			waits(l, i, c.others)
		}
		waits(l, 0, 2)
		l.took[0] += (c.slower - 1) * 2.5e-3
		if at := l.run(300)["fail_slow r1"]; at > 0 != c.found {
			t.Errorf("%s: accused after %d s: %q", c.what, at, l.last["fail_slow r1"].Sentence)
		}
	}
}

// A router of older hardware, slower from the first second on, is not accused, however exactly it is compared with
// many; one that is much slower is, and one that becomes as slow as that later.
func TestARouterMayBeSlowerFromTheBeginning(t *testing.T) {
	const older, sick = 1.28, 2
	l := newLayer(14)
	l.noise = 0.05
	l.took[0] *= older
	l.took[1] *= sick
	first := l.run(900)
	if first["fail_slow r2"] == 0 || len(first) != 1 {
		t.Errorf("accused %v: %v", first, l.last["fail_slow r1"])
	}
	l.took[2] *= older
	if first := l.run(300); first["fail_slow r3"] == 0 {
		t.Errorf("one that becomes slow is not found: %v", l.last["fail_slow r3"])
	}
}

// One peer that takes messages slowly, and buffers that are too few, are named as what they are.
func TestWhatIsNotTheRoutersFaultIsNamed(t *testing.T) {
	l := newLayer(4)
	l.run(300)
	for i := range l.rows[:2] {
		l.rows[i].Waiting = map[topology.TargetID]float64{"10.0.0.7@tcp": 20, "10.0.0.8@tcp": 2}
		l.took[i] *= 5
	}
	if first := l.run(60); len(first) != 1 || first["receiver_slow 10.0.0.7@tcp"] == 0 {
		t.Errorf("a slow receiver: %v", first)
	}
	l = newLayer(4)
	l.run(300)
	l.rows[2].BuffersFree, l.took[2] = 0, 5*l.took[2]
	if first := l.run(60); len(first) != 1 || first["buffers_exhausted r3"] == 0 {
		t.Errorf("too few buffers: %v", first)
	}
	l.rows[2].BuffersFree, l.took[2] = 0.9, l.took[1]
	if l.run(20); l.last["buffers_exhausted r3"].Level != anomaly.Clean {
		t.Error("enough buffers again, and it still stands")
	}
}

func TestARouterThatStandsStill(t *testing.T) {
	l := newLayer(2)
	l.run(60)
	l.rows[0].Messages, l.rows[0].Bytes = 0, 0
	if first := l.run(15); first["fail_slow r1"] == 0 || first["fail_slow r1"] > 6 || len(first) != 1 {
		t.Errorf("accused %v", first)
	}
	l.rows[0].Messages, l.rows[0].Bytes = 800, 180e6
	if l.run(60); l.last["fail_slow r1"].Level != anomaly.Clean {
		t.Errorf("forwards again: %+v", l.last["fail_slow r1"])
	}
	l.rows[1].Messages, l.rows[1].Senders = 0, 0 // idle
	if first := l.run(60); len(first) > 0 {
		t.Errorf("an idle router: %v", first)
	}
	l.rows[1].Messages, l.rows[1].Inside, l.rows[1].Senders = math.NaN(), math.NaN(), 3 // its counters are unreadable
	if first := l.run(60); len(first) > 0 {
		t.Errorf("a router of which nothing is known: %v", first)
	}
}

// A router that stands still and runs again is what it was before: a healthy one is well, whatever piled up in it, and
// one that was accused as slow stays so while it is as slow.
func TestARouterThatRunsAgain(t *testing.T) {
	for _, c := range []struct {
		what          string
		before, after float64 // times as slow
		level         anomaly.Level
	}{{"healthy before and after", 1, 1, anomaly.Clean}, {"slow before and after", 3, 3, anomaly.Alarm},
		{"slow before", 3, 1, anomaly.Clean}, {"slow since", 1, 3, anomaly.Alarm}} {
		l := newLayer(4)
		l.run(300)
		l.took[0] *= c.before
		l.run(60)
		l.rows[0].Messages, l.rows[0].Bytes = 0, 0
		if l.run(12); l.last["fail_slow r1"].Condition != anomaly.Hung {
			t.Errorf("%s: stands still: %+v", c.what, l.last["fail_slow r1"])
		}
		l.rows[0].Messages, l.rows[0].Bytes = 800, 180e6
		l.took[0] *= c.after / c.before
		for s := range 120 {
			delete(l.last, "fail_slow r1")
			l.run(1)
			v, judged := l.last["fail_slow r1"]
			if judged && (v.Condition == anomaly.Hung || c.before == c.after && v.Level != c.level) {
				t.Errorf("%s: %d s after: %+v", c.what, s, v)
				break
			}
		}
		if v := l.last["fail_slow r1"]; v.Level != c.level {
			t.Errorf("%s: %+v, want level %d", c.what, v, c.level)
		}
	}
}

// A slow router at full load forwards smaller messages than its peers, because senders give their bulk to the others:
// it is accused all the same. One whose messages are larger than its peers' is not compared with them.
func TestSmallerMessagesTakeNoLonger(t *testing.T) {
	l := newLayer(4)
	l.run(300)
	l.took[1], l.rows[1].Bytes, l.rows[1].Messages = 4*l.took[1], 20e6, 300
	if first := l.run(30); len(first) != 1 || first["fail_slow r2"] == 0 {
		t.Errorf("smaller messages: accused %v", first)
	}
	l = newLayer(4)
	l.run(300)
	l.took[1], l.rows[1].Bytes = 4*l.took[1], 8*l.rows[1].Bytes
	if first := l.run(120); len(first) != 0 {
		t.Errorf("larger messages: accused %v", first)
	}
}

// Where routes are static, the programs behind some routers may send larger messages than those behind others. They
// take longer by as much, and nobody is accused. A router that takes longer than that is found.
func TestLargerMessagesTakeLonger(t *testing.T) {
	l := newLayer(4)
	l.run(300)
	for i := range l.rows[:2] {
		l.rows[i].Bytes, l.took[i] = 1.5*l.rows[i].Bytes, 1.45*l.took[i]
	}
	if first := l.run(600); len(first) != 0 {
		t.Errorf("larger messages: accused %v: %v", first, l.last)
	}
	l.took[1] *= 2
	if first := l.run(45); len(first) != 1 || first["fail_slow r2"] == 0 {
		t.Errorf("larger messages and a slow router: accused %v", first)
	}
}

// Where routes are static, what slows the routers of some clients alike is what these clients do, or a server that they
// send to most; one that is slower than the other of the same clients is found.
func TestRoutersOfTheSameClientsAreCompared(t *testing.T) {
	l := newLayer(4)
	for i := range l.rows {
		l.rows[i].Sending = map[topology.TargetID]float64{"s1": 1, "s2": 0, "s3": 0}
		for c := range 4 {
			l.rows[i].Sending[topology.TargetID(fmt.Sprintf("c%d", 4*(i/2)+c))] = 1
		}
	}
	l.run(300)
	for i := range l.rows[:2] {
		l.took[i] *= 1.5
	}
	if first := l.run(600); len(first) != 0 {
		t.Errorf("clients with other messages: accused %v: %v", first, l.last)
	}
	l.took[1] *= 2
	if first := l.run(45); len(first) != 1 || first["fail_slow r2"] == 0 {
		t.Errorf("a slow router: accused %v: %v", first, l.last)
	}
}

// Messages wait for a processor before LNet counts them: that time is the router's, too, and the sentence says so.
func TestARouterShortOfCPU(t *testing.T) {
	l := newLayer(4)
	l.run(300)
	l.rows[2].Starved = 2
	if first := l.run(45); len(first) != 1 || first["fail_slow r3"] == 0 {
		t.Errorf("accused %v", first)
	}
	if s := l.last["fail_slow r3"].Sentence; !strings.Contains(s, "short of CPU") {
		t.Errorf("%q", s)
	}
	l = newLayer(4)
	for i := range l.rows { // all of them are alike
		l.rows[i].Starved = 2
	}
	if first := l.run(300); len(first) != 0 {
		t.Errorf("accused %v", first)
	}
}
