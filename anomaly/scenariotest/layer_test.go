package scenariotest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"fairway/anomaly/recorded"
	"fairway/collector/topology"
)

// The model's forwarder: 16 threads, 2.5 GB/s, first come first served.
const (
	threads  = 16
	peak     = 2.5e9
	epoch    = 1_600_000_000
	poolSet  = 8
	trickleB = 16000
)

// Layer plays a scenario. Truth is filled in as it plays.
type Layer struct {
	Scenario *Scenario
	Truth    []Truth // of each fault
	random   *rand.Rand
	now      int
	trickle  [][2]float64 // reads and writes a second that each node always has
	second   recorded.Second
	pools    [poolSet]float64
	on       []bool // the burst state of intermittent faults
	until    []int
	names    []topology.NodeID
	loads    []load
	loops    []loopState
	pressed  []pressure // of the newest second
}

// Truth is what a fault left to be seen.
type Truth struct {
	Info    float64 // sum over seconds of ln(exec/healthy)^2 over its variance, where it is at least 1.25
	Seconds int
	First   int
}

// load is what a node does in a second.
type load struct {
	ops, size, exec, wait [3]float64
	slower                [3]float64 // how many times as long as on a healthy node, without chance
	bytes                 float64
	queue                 float64
}

// NewLayer makes a layer at its first second.
func NewLayer(s *Scenario) *Layer {
	l := &Layer{Scenario: s, random: rand.New(rand.NewPCG(s.Seed, 0x5eed)), Truth: make([]Truth, len(s.Faults)),
		on: make([]bool, len(s.Faults)), until: make([]int, len(s.Faults)), loads: make([]load, s.Nodes),
		loops: newLoops(s.Loops), pressed: make([]pressure, s.Nodes)}
	for n := range s.Nodes {
		r, w := 5+60*l.random.Float64(), 20+150*l.random.Float64()
		if n >= s.Nodes-s.Reserve {
			r, w = 0.3, 0.6
		} else if s.Quiet > 0 && l.random.Float64() < s.Quiet {
			r, w = 0, 0
		}
		l.trickle = append(l.trickle, [2]float64{r, w})
		l.names = append(l.names, topology.NodeID(fmt.Sprintf("fwd%03d", n)))
	}
	return l
}

// Jobs are the scheduler's table.
func (l *Layer) Jobs() []recorded.Job {
	var out []recorded.Job
	for _, j := range l.Scenario.Jobs {
		out = append(out, recorded.Job{ID: j.ID, Start: epoch + int64(j.Start), End: epoch + int64(j.End),
			Nodes: l.names[j.First : j.First+j.Count]})
	}
	return append(out, l.loopJobs()...)
}

// Next plays one second; ok is false at the end.
func (l *Layer) Next() (*recorded.Second, bool) {
	if l.now >= l.Scenario.Seconds {
		return nil, false
	}
	s := &l.second
	*s = recorded.Second{RX: epoch + int64(l.now), Rows: s.Rows[:0], Pools: s.Pools[:0]}
	l.playBackend()
	for f := range l.Scenario.Faults {
		l.playBurst(f)
	}
	for n := range l.Scenario.Nodes {
		l.playNode(n)
		if !l.lost(n) {
			s.Rows = append(s.Rows, l.row(n))
		}
	}
	l.meet()
	l.now++
	return s, true
}

func (l *Layer) playBackend() {
	for i := range l.pools {
		l.pools[i] = math.Exp(0.08 * l.random.NormFloat64())
		for _, b := range l.Scenario.Brownouts {
			if l.now >= b.Start && l.now < b.End && (b.Pool < 0 || b.Pool == i) {
				l.pools[i] = max(l.pools[i], b.Times*math.Exp(0.08*l.random.NormFloat64()))
			}
		}
		l.second.Pools = append(l.second.Pools, l.pools[i]*900e-6)
	}
}

// playBurst switches an intermittent fault: 5 to 30 s on, 20 to 120 s off.
func (l *Layer) playBurst(f int) {
	if l.now < l.until[f] {
		return
	}
	if l.on[f] = !l.on[f]; l.on[f] {
		l.until[f] = l.now + 5 + l.random.IntN(26)
	} else {
		l.until[f] = l.now + 20 + l.random.IntN(101)
	}
}

// state is what is wrong with a node now.
type state struct {
	speed, read, write, link, loss, meta float64
	outside                              float64 // of the link between the clients and the node
	times                                float64 // as long as usual, back end included
	cold                                 bool
	fault                                int
}

func newState() state {
	return state{speed: 1, read: 1, write: 1, link: 1, meta: 1, outside: 1, times: 1, fault: -1}
}

func (l *Layer) state(n int) state {
	s := newState()
	for i, f := range l.Scenario.Faults {
		if f.Node != n || l.now < f.Start || l.now >= f.End {
			continue
		}
		s.fault = i
		switch f.Kind {
		case "hard", "mild":
			s.speed = f.Severity
		case "intermittent":
			if l.on[i] {
				s.speed = f.Severity
			}
		case "ramp":
			s.speed = 1 - (1-f.Severity)*float64(l.now-f.Start)/float64(f.End-f.Start)
		case "meta_slow":
			s.meta = f.Severity
		case "read_slow":
			s.read = f.Severity
		case "net_loss":
			s.loss, s.link = f.Severity, 0.5
		case "write_slow":
			s.write = f.Severity
		case "client_link":
			s.outside = f.Severity
		case "times":
			s.times = f.Severity
		case "link_cap":
			s.link = f.Severity
		}
	}
	for _, r := range l.Scenario.Reboot {
		s.cold = s.cold || r.Node == n && l.now >= r.End && l.now < r.End+120
	}
	return s
}

// lost says that the node's row does not arrive.
func (l *Layer) lost(n int) bool {
	for _, r := range l.Scenario.Restart {
		if l.now >= r.Start && l.now < r.End {
			return true
		}
	}
	for _, r := range l.Scenario.Reboot {
		if r.Node == n && l.now >= r.Start && l.now < r.End {
			return true
		}
	}
	for _, m := range l.Scenario.Missing {
		if m.Node == n && l.now >= m.Start && l.now < m.End && l.random.Float64() < m.Severity {
			return true
		}
	}
	return false
}
