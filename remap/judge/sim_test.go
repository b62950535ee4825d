package judge

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/anomaly/interference"
	"fairway/cmd/fairway-demo/simmachine"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/remap/driver"
	"fairway/tsdb/window"
)

// simSite is a judge over a simulated machine that lives one second a step.
type simSite struct {
	*Judge
	t     *testing.T
	m     *simmachine.Machine
	board *window.Board
	now   time.Time
	moved map[topology.NodeID]int // seconds at work
}

func newSimSite(t *testing.T, cfg simmachine.Config, mode anomaly.Mode) *simSite {
	m, err := simmachine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &simSite{t: t, m: m, board: window.NewBoard(0), moved: map[topology.NodeID]int{},
		now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	desk, _, err := desk.Open(desk.Config{Settings: desk.DefaultSettings(),
		Path: filepath.Join(t.TempDir(), "journal"), Driver: driver.Unassigned{}, Situation: s.situation})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { desk.Close() })
	set := anomaly.DefaultSettings()
	set.Mode = mode
	watch := NewWatch(s.board, failslow.DefaultSettings(), interference.DefaultSettings())
	if s.Judge, err = New(t.Context(), Config{Settings: set, Desk: desk, Situation: s.situation,
		Detector: watch}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *simSite) situation() *remap.Situation {
	p := remap.SituationParts{At: s.now, Machine: s.m.Machine(), Routes: s.board.Routes(s.now),
		Load: map[topology.ForwarderID]remap.Load{}}
	for _, n := range p.Machine.ByRole(topology.Forwarder) {
		p.Load[topology.ForwarderID(n.ID)] = remap.Load{LastSeen: s.now, WriteBytesPerSec: 1e9}
	}
	if s.Judge != nil {
		p.Findings = s.Findings()
	}
	return remap.BuildSituation(p)
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
	c.StorageBytesPerSec, c.MetaOpsPerSec = 40e9, 100e3
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
		if err := s.m.Inject(simmachine.Fault{Kind: simmachine.Hard, Forwarder: slow,
			Start: s.now.Add(time.Second)}); err != nil {
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
