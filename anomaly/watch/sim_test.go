package watch

import (
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/cmd/lab/simmachine"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// simSite is a loop over a simulated machine that lives one second a step.
type simSite struct {
	*Loop
	t     *testing.T
	m     *simmachine.Machine
	board *window.Board
	now   time.Time
	moved map[topology.NodeID]int // seconds at work

	detectors *Detectors
}

func newSimSite(t *testing.T, cfg simmachine.Config, mode anomaly.Mode) *simSite {
	m, err := simmachine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &simSite{t: t, m: m, board: window.NewBoard(0), moved: map[topology.NodeID]int{},
		now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	set := anomaly.DefaultSettings()
	set.Mode = mode
	s.detectors = NewDetectors(s.board, failslow.DefaultSettings())
	journal := &memory{}
	if s.Loop, err = New(t.Context(), Config{Settings: set, Recorder: journal, Detector: s.detectors,
		Machine: func() *Machine {
			m := &Machine{Excluded: journal.excluded(), Mapping: window.Mapping(s.board.Routes(s.now))}
			for _, n := range s.m.Machine().ByRole(topology.Forwarder) {
				m.Forwarders = append(m.Forwarders, topology.ForwarderID(n.ID))
			}
			m.Healthy = len(m.Forwarders) - len(m.Excluded)
			return m
		}}, s.now); err != nil {
		t.Fatal(err)
	}
	return s
}

// live lets the machine live; it returns early once done says so.
func (s *simSite) live(d time.Duration, done func() bool) (lived time.Duration) {
	s.t.Helper()
	for ; lived < d; lived += time.Second {
		s.now = s.now.Add(time.Second)
		frames := s.m.Step(s.now)
		s.board.Take(frames, s.now)
		for i := range frames {
			read, _ := frames[i].Value(collector.ReadOps)
			write, _ := frames[i].Value(collector.WriteOps)
			if frames[i].Role == topology.Forwarder && min(read, write) > 10 {
				s.moved[frames[i].Node]++
			}
		}
		if err := s.Step(s.t.Context(), s.now); err != nil {
			s.t.Fatal(err)
		}
		if done != nil && done() {
			return lived
		}
	}
	return lived
}

// accused are the forwarders that have an open finding against themselves, with its state.
func (s *simSite) accused() map[topology.NodeID]anomaly.State {
	out := map[topology.NodeID]anomaly.State{}
	for _, f := range s.Findings() {
		if f.Open() && f.Kind.Accuses() {
			out[f.Node] = f.State
		}
	}
	return out
}

// busiest is the forwarder that was at work most of the time.
func (s *simSite) busiest() (most topology.ForwarderID) {
	for _, n := range s.m.Machine().ByRole(topology.Forwarder) {
		if most == "" || s.moved[n.ID] > s.moved[most.Node()] {
			most = topology.ForwarderID(n.ID)
		}
	}
	return most
}

func simConfig(seed uint64) simmachine.Config {
	c := simmachine.TaihuLight(seed)
	c.Compute, c.Forwarders, c.InService, c.Storage, c.JobSeconds = 1024, 24, 16, 16, 300
	c.StorageBytesPerSec = 40e9
	return c
}

// TestSimulatedFailSlowForwarder injects one slow forwarder: it is excluded, nobody else is accused, and
// once the fault is over it is returned.
func TestSimulatedFailSlowForwarder(t *testing.T) {
	for _, seed := range []uint64{1} {
		s := newSimSite(t, simConfig(seed), anomaly.ModeAuto)
		s.live(15*time.Minute, nil)
		if a := s.accused(); len(a) > 0 {
			t.Errorf("seed %d: before any fault, accused are %v", seed, a)
		}
		slow := s.busiest()
		if err := s.m.Slow(slow, s.now.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		took := s.live(10*time.Minute, func() bool { return s.accused()[slow.Node()] == anomaly.Excluded })
		a := s.accused()
		t.Logf("seed %d: after %s accused are %v", seed, took, a)
		if len(a) != 1 || a[slow.Node()] != anomaly.Excluded {
			t.Fatalf("seed %d: accused are %v, slow is %s", seed, a, slow)
		}
		f := s.Findings()[0]
		if !strings.Contains(f.Sentence, string(slow)) || len(f.Impact) == 0 || f.Confidence < 0.5 {
			t.Errorf("seed %d: the finding is %+v", seed, f)
		}
		s.m.Clear(slow)
		took = s.live(time.Hour, func() bool { return len(s.accused()) == 0 })
		t.Logf("seed %d: returned %s after the fault", seed, took)
		// Ten minutes are its exclusion (hold), ten its trial; in the rest the evidence goes.
		if f := s.Findings()[0]; f.State != anomaly.Returned || took > 35*time.Minute {
			t.Errorf("seed %d: %s after the fault it is %s: %s", seed, took, f.State, f.Why)
		}
	}
}

// TestASlowForwarderIsNotALink: clients of a forwarder that is slow itself wait longer than its own clock shows. No
// sentence then blames the way between them, of which nothing is wrong, and the finding speaks of its clock throughout.
func TestASlowForwarderIsNotALink(t *testing.T) {
	c := simmachine.WorkingDay(1)
	c.Compute, c.Forwarders, c.InService, c.Storage = 4096, 24, 8, 8
	s := newSimSite(t, c, anomaly.ModeObserve)
	var slow topology.ForwarderID
	s.live(5*time.Minute, nil)
	s.live(time.Hour, func() (ok bool) { slow, ok = s.m.Busiest(); return ok })
	if err := s.m.Slow(slow, s.now); err != nil {
		t.Fatal(err)
	}
	beyond := 0
	s.live(90*time.Second, func() bool {
		for _, f := range s.Findings() {
			if f.Node == slow.Node() && f.State == anomaly.Confirmed {
				if strings.Contains(f.Sentence, "it is the way") {
					t.Fatalf("%s: %s", s.now, f.Sentence)
				}
				if strings.Contains(f.Sentence, "beyond") {
					t.Errorf("%s: the sentence has changed: %s", s.now, f.Sentence)
				}
			}
		}
		if s.detectors.clients.links.doubted[slow.Node()] {
			beyond++
		}
		return false
	})
	if s.accused()[slow.Node()] != anomaly.Confirmed || beyond == 0 {
		t.Errorf("accused are %v; for %d s its clients waited longer than its clock shows", s.accused(), beyond)
	}
}
