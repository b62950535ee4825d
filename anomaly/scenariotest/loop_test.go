package scenariotest

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// queueSim plays single requests: clients with one request under way each, one queue, threads that are held while a
// request is served, and an optional barrier after every round.
type queueSim struct {
	random  *rand.Rand
	exec    float64
	think   float64
	threads int
	busy    int
	waiting []float64 // since when
	events  eventHeap
	done    int
	waited  float64
}

type event struct {
	at     float64
	finish bool
}

type eventHeap []event

func (h eventHeap) Len() int           { return len(h) }
func (h eventHeap) Less(i, k int) bool { return h[i].at < h[k].at }
func (h eventHeap) Swap(i, k int)      { h[i], h[k] = h[k], h[i] }
func (h *eventHeap) Push(x any)        { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any          { o := *h; x := o[len(o)-1]; *h = o[:len(o)-1]; return x }

func (s *queueSim) begin(now, since float64) {
	s.busy++
	s.waited += now - since
	heap.Push(&s.events, event{now + s.exec*math.Exp(0.3*s.random.NormFloat64()-0.045), true})
}

// run plays some seconds with clients and returns requests a second and their mean wait.
func (s *queueSim) run(clients int, seconds float64) (rate, wait float64) {
	for range clients {
		heap.Push(&s.events, event{s.random.Float64() * (s.think + s.exec), false})
	}
	for len(s.events) > 0 {
		e := heap.Pop(&s.events).(event)
		if e.at > seconds {
			break
		}
		if e.finish {
			s.busy--
			s.done++
			heap.Push(&s.events, event{e.at + s.think*s.random.ExpFloat64(), false})
			if len(s.waiting) > 0 {
				since := s.waiting[0]
				s.waiting = s.waiting[1:]
				s.begin(e.at, since)
			}
			continue
		}
		if s.busy < s.threads {
			s.begin(e.at, e.at)
		} else {
			s.waiting = append(s.waiting, e.at)
		}
	}
	return float64(s.done) / seconds, s.waited / float64(max(s.done, 1))
}

// TestLoopsAgreeWithSingleRequests: what the model says of a forwarder's rate and wait is what a simulation of single
// requests shows, within an eighth; a wait below a tenth of the service may be missed, for the model has no chance in
// it.
func TestLoopsAgreeWithSingleRequests(t *testing.T) {
	for _, c := range []struct {
		clients     int
		exec, think float64
	}{{1, 2e-3, 0}, {8, 2e-3, 0}, {16, 2e-3, 0}, {64, 2e-3, 0}, {512, 2e-3, 0}, {64, 20e-3, 0}, {64, 2e-3, 20e-3},
		{64, 2e-3, 1e-3}, {4, 1e-3, 10e-3}} {
		sim := queueSim{random: rand.New(rand.NewPCG(1, 2)), exec: c.exec, think: c.think, threads: threads}
		rate, wait := sim.run(c.clients, 20)
		one := crowd{underWay: float64(c.clients), limit: math.Inf(1), think: c.think, reads: 1,
			exec: [2]float64{c.exec}, size: [2]float64{4096}}
		p := settle([]crowd{one}, peak, peak)
		if got := one.rate(p); math.Abs(got/rate-1) > 0.125 || math.Abs(p.wait-wait) > 0.125*wait+0.1*c.exec {
			t.Errorf("%+v: model %.0f/s with a wait of %.2g s, single requests %.0f/s and %.2g s", c, got, p.wait, rate,
				wait)
		}
	}
}

// TestSlowForwarderHoldsBackItsJob: with lockstep and with a barrier after each phase, the healthy forwarders of a job
// move no more than the slow one, and their requests take no longer than ever.
func TestSlowForwarderHoldsBackItsJob(t *testing.T) {
	for _, lockstep := range []bool{true, false} {
		j := Loop{ID: "c", End: 400, Count: 4, UnderWay: 8, Reads: 0.5, Size: [2]float64{256e3, 256e3}, Cost: 1,
			Pools: []int{0, 1, 2, 3}, Lockstep: lockstep}
		if !lockstep {
			j.Bytes = 8e9
		}
		s := &Scenario{Seed: 3, Nodes: 5, Seconds: 400, Quiet: 0.999, Loops: []Loop{j},
			Faults: []Fault{{Node: 1, Kind: "times", Start: 200, End: 400, Severity: 5}}}
		l := NewLayer(s)
		var bytes, exec [2][5]float64
		for t := 0; ; t++ {
			second, ok := l.Next()
			if !ok {
				break
			}
			for n, o := range second.Rows {
				bytes[t/200][n] += o.Class[0].Bytes
				exec[t/200][n] += o.Class[0].Exec * o.Class[0].Ops
			}
		}
		for n := range 4 {
			slower := exec[1][n] / bytes[1][n] / (exec[0][n] / bytes[0][n])
			if pace := bytes[1][n] / bytes[0][n]; pace > 0.35 || pace < 0.1 {
				t.Errorf("lockstep %v: forwarder %d moved %.2f of what it moved before", lockstep, n, pace)
			}
			if n != 1 && math.Abs(slower-1) > 0.1 || n == 1 && slower < 3 {
				t.Errorf("lockstep %v: requests on forwarder %d take %.2f times as long as before", lockstep, n, slower)
			}
		}
		if bytes[0][4] != 0 {
			t.Error("a forwarder without jobs moved", bytes[0][4])
		}
	}
}

// TestScoreOfLoops plays closed loops: layers of FAIRWAY_NODES forwarders (8), FAIRWAY_SEEDS (20) from seed
// FAIRWAY_FIRST (101) on. FAIRWAY_FAULT makes all faults of one class: read_slow, write_slow or meta_slow.
func TestScoreOfLoops(t *testing.T) {
	if testing.Short() {
		t.Skip("minutes of simulated forwarders")
	}
	nodes, count, first := number("FAIRWAY_NODES", 8), number("FAIRWAY_SEEDS", 20), number("FAIRWAY_FIRST", 101)
	var all Score
	for seed := first; seed < first+count; seed++ {
		s := DrawLoops(uint64(seed), nodes)
		if kind := os.Getenv("FAIRWAY_FAULT"); kind != "" {
			s.oneClass(kind)
		}
		events, labels := Play(s, asDaemon())
		all.Add(fmt.Sprintf("seed %d", seed), labels, events, nodes, epoch, epoch+int64(s.Seconds))
	}
	t.Logf("%d forwarders in closed loops: %s", nodes, all.String())
	for _, f := range all.FalseAlarms {
		t.Log("false: ", f)
	}
	for _, f := range all.NotFound {
		t.Log("missed:", f)
	}
	if all.Precision() < 0.95 || all.Recall() < 0.8 {
		t.Errorf("precision %.2f, recall %.2f", all.Precision(), all.Recall())
	}
}

// oneClass makes all faults of a layer of one kind, and a third of its loops ask for metadata, too, where that is slow.
func (s *Scenario) oneClass(kind string) {
	r := rand.New(rand.NewPCG(s.Seed, 0x01c1a55))
	for i := range s.Faults {
		f := &s.Faults[i]
		f.Kind, f.Severity = kind, 0.1+0.2*r.Float64() // a third to a tenth of the speed
		if kind == "meta_slow" {
			f.Severity = 1 / f.Severity
		}
	}
	for i := range s.Loops {
		if j := &s.Loops[i]; kind == "meta_slow" && r.IntN(3) == 0 {
			j.Meta = 0.05 + 0.95*r.Float64()
		}
	}
}

// steady is a layer under steady load of closed loops, one forwarder of which becomes k times as slow.
func steady(nodes int, k float64, size float64, underWay float64, reads float64) *Scenario {
	seed := uint64(nodes) + uint64(k) + uint64(size) + uint64(number("FAIRWAY_FIRST", 0))
	s := &Scenario{Seed: seed, Nodes: nodes, Seconds: 2400, Quiet: 0.999,
		Faults: []Fault{{Node: 3 % nodes, Kind: "times", Start: 1200, End: 2400, Severity: k}}}
	for first := 0; first < nodes; first += 4 {
		s.Loops = append(s.Loops, Loop{ID: fmt.Sprint("c", first), End: s.Seconds, First: first,
			Count:    min(4, nodes-first),
			UnderWay: underWay, Reads: reads, Size: [2]float64{size, size}, Cost: 1,
			Pools: []int{0, 1, 2, 3, 4, 5, 6, 7}})
	}
	return s
}

// TestSteadyLoops: one forwarder of a layer under steady load, k times as slow, is found; no other is accused.
// FAIRWAY_NODES are the sizes of the layers, FAIRWAY_FIRST draws other seconds.
func TestSteadyLoops(t *testing.T) {
	if testing.Short() {
		t.Skip("minutes of simulated forwarders")
	}
	sizes := []int{8}
	if v := os.Getenv("FAIRWAY_NODES"); v != "" {
		sizes = nil
		for f := range strings.SplitSeq(v, ",") {
			n, _ := strconv.Atoi(f)
			sizes = append(sizes, n)
		}
	}
	for _, nodes := range sizes {
		var delays []int
		for _, k := range []float64{2, 3, 5, 10, 20} {
			for _, c := range []struct{ size, underWay, reads float64 }{
				{16e3, 4, 0.5}, {256e3, 16, 0.5}, {1e6, 64, 0.5}, {1e6, 4, 1}, {64e3, 16, 0}, {1e6, 16, 0}} {
				s := steady(nodes, k, c.size, c.underWay, c.reads)
				events, _ := Play(s, asDaemon())
				delay := s.Seconds
				for _, e := range events {
					switch {
					case e.Type != "fail_slow":
					case e.Node == "fwd003" && e.Start >= epoch+1200:
						delay = min(delay, int(e.Start-epoch-1200))
					default:
						t.Errorf("%d forwarders, %g times, %+v: false alarm: %s at %d: %s", nodes, k, c, e.Node,
							e.Start-epoch,
							e.Detail)
					}
				}
				if delays = append(delays, delay); delay > 180 {
					t.Errorf("%d forwarders, %g times, %+v: found after %d s", nodes, k, c, delay)
				}
			}
		}
		slices.Sort(delays)
		t.Logf("%d forwarders: delays %v", nodes, delays)
	}
}
