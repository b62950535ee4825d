package backend

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector/topology"
)

// site is two back ends with two gateways each, whose noise is drawn.
type site struct {
	t   *testing.T
	d   *Detector
	rnd *rand.Rand
	now time.Time
	// What is wrong: by how many times each back end takes longer, and each gateway's clients wait longer.
	back, gateway map[topology.NodeID]float64
	exec          float64 // healthy seconds in service
	bytes, ops    float64 // of a write; a second
	answer        map[topology.NodeID]float64
	levels        map[topology.NodeID]anomaly.Level // the worst since the last clear
	newest        map[topology.NodeID]anomaly.Verdict
}

var behindOf = map[topology.NodeID]topology.NodeID{"gw1": "be1", "gw2": "be2", "gw3": "be1", "gw4": "be2"}

func newSite(t *testing.T, seed uint64) *site {
	return &site{t: t, d: New(90 * 24 * time.Hour), rnd: rand.New(rand.NewPCG(seed, 1)),
		now: time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC), back: map[topology.NodeID]float64{},
		gateway: map[topology.NodeID]float64{}, exec: 1.4e-3, bytes: 64 << 10, ops: 200,
		answer: map[topology.NodeID]float64{}, levels: map[topology.NodeID]anomaly.Level{},
		newest: map[topology.NodeID]anomaly.Verdict{}}
}

func (s *site) noise(sigma float64) float64 { return math.Exp(sigma * s.rnd.NormFloat64()) }

func times(m map[topology.NodeID]float64, id topology.NodeID) float64 {
	if v, ok := m[id]; ok {
		return v
	}
	return 1
}

// run lets seconds pass.
func (s *site) run(seconds int) {
	for range seconds {
		s.now = s.now.Add(time.Second)
		var seconds []Second
		for _, b := range []topology.NodeID{"be1", "be2"} {
			one := Second{Node: b, Answer: 1e-3 * s.noise(0.3)}
			if a := s.answer[b]; a > 0 {
				one.Answer = a
			}
			slow := times(s.back, b)
			one.Class[failslow.Write] = failslow.ClassSecond{Ops: s.ops / slow, Bytes: s.bytes * s.ops / slow,
				Exec: s.exec * slow * s.noise(0.3)}
			seconds = append(seconds, one)
		}
		s.d.Take(s.now, seconds)
		var gateways []Gateway
		for _, g := range []topology.NodeID{"gw1", "gw2", "gw3", "gw4"} {
			x := Gateway{Node: g, Back: behindOf[g]}
			for c := range x.Slower {
				x.Slower[c] = math.NaN()
			}
			x.Slower[failslow.Write] = math.Log(times(s.gateway, g) * s.noise(0.3))
			gateways = append(gateways, x)
		}
		for _, v := range s.d.Judge(gateways) {
			s.levels[v.Node] = max(s.levels[v.Node], v.Level)
			s.newest[v.Node] = v
		}
	}
}

// accused wants exactly one back end accused, or none for "".
func (s *site) accused(who topology.NodeID) {
	s.t.Helper()
	for _, b := range []topology.NodeID{"be1", "be2"} {
		if got := s.levels[b] == anomaly.Alarm; got != (b == who) {
			s.t.Errorf("%s is accused: %v (level %d); want %q accused: %s", b, got, s.levels[b], who,
				s.newest[b].Sentence)
		}
	}
}

func TestASickBackEndIsAccused(t *testing.T) {
	for seed := range uint64(5) {
		s := newSite(t, seed)
		s.run(60)
		s.back["be1"], s.gateway["gw1"], s.gateway["gw3"] = 6, 4, 4
		s.run(45)
		s.accused("be1")
		v := s.newest["be1"]
		for _, want := range []string{"for a write, usually", "gw1 and gw3 wait for it"} {
			if !strings.Contains(v.Sentence, want) && !strings.Contains(v.Sentence, "through every gateway of be1") {
				t.Errorf("%q does not say %q", v.Sentence, want)
			}
		}
		if v.Kind != anomaly.TargetSlow || v.Kind.Accuses() {
			t.Errorf("kind %s would have a forwarder excluded", v.Kind)
		}
		clear(s.back)
		clear(s.gateway)
		s.run(60)
		if s.d.Sick("be1") {
			t.Errorf("seed %d: be1 is still accused a minute after it is well", seed)
		}
	}
}

func TestABackEndIsAccusedByItsGateways(t *testing.T) {
	for seed := range uint64(5) {
		s := newSite(t, seed)
		s.run(60)
		s.gateway["gw1"], s.gateway["gw3"], s.answer["be1"] = 3, 5, 0.04 // its process stops now and then
		s.run(45)
		s.accused("be1")
		if v := s.newest["be1"].Sentence; !strings.Contains(v, "every gateway of be1") ||
			!strings.Contains(v, "stopped") {
			t.Errorf("%q does not say what was seen", v)
		}
	}
}

func TestWhatIsNotABackEnds(t *testing.T) {
	for name, fault := range map[string]func(*site){
		"nothing":          func(*site) {},
		"one slow gateway": func(s *site) { s.gateway["gw1"] = 10 },
		"all are slow":     func(s *site) { s.back["be1"], s.back["be2"] = 5, 5; s.all(4) },
		"larger requests":  func(s *site) { s.bytes, s.exec, s.ops = 1<<20, 9e-3, 40 },
		"more load":        func(s *site) { s.ops, s.exec = 4000, 6e-3 },
		"small times":      func(s *site) { s.exec = 1e-4; s.back["be1"] = 7 },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				s := newSite(t, seed)
				s.run(120)
				fault(s)
				s.run(300)
				s.accused("")
			}
		})
	}
}

func (s *site) all(slower float64) {
	for g := range behindOf {
		s.gateway[g] = slower
	}
}

func TestHealthyBackEndsAreNotAccused(t *testing.T) {
	s := newSite(t, 7)
	s.run(24 * 3600)
	s.accused("")
}

func TestWhatABackEndExplains(t *testing.T) {
	s := newSite(t, 1)
	s.run(60)
	if s.d.Explains("be1", failslow.Write, 1<<20, 0.2) {
		t.Error("a healthy back end explains a slow write")
	}
	s.back["be1"] = 5 // 5.6 ms more for 64 KiB
	s.run(2)
	for _, c := range []struct {
		back        topology.NodeID
		class       failslow.Class
		bytes, took float64
		want        bool
	}{
		{"be1", failslow.Write, 1 << 20, 0.1, true},    // 16 requests of 5.6 ms more, one after the other at most
		{"be1", failslow.Write, 64 << 10, 0.1, false},  // one request
		{"be1", failslow.Read, 1 << 20, 0.1, false},    // its reads are well
		{"be2", failslow.Write, 1 << 20, 0.1, false},   // another back end
		{"other", failslow.Write, 1 << 20, 0.1, false}, // not known
	} {
		if got := s.d.Explains(c.back, c.class, c.bytes, c.took); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	s.run(60)
	if !s.d.Explains("be1", failslow.Meta, 0, 10) {
		t.Error("an accused back end does not explain everything")
	}
}

// TestALateAnswerExplainsWhereItIsUnusual: on a host with other work each second answer to the agent takes long and
// explains nothing that clients wait for; one that takes far longer than those does.
func TestALateAnswerExplainsWhereItIsUnusual(t *testing.T) {
	for _, c := range []struct {
		name               string
		median, sway, late float64 // seconds, log, seconds
	}{{"a quiet host", 5e-4, 0.3, 0.05}, {"a busy host", 12e-3, 1.3, 2}} {
		t.Run(c.name, func(t *testing.T) {
			s, explained := newSite(t, 7), 0
			const seconds = 400
			for i := range 2 * seconds {
				s.answer["be1"] = c.median * s.noise(c.sway)
				s.run(1)
				if i >= seconds && s.d.Explains("be1", failslow.Write, s.bytes, 0.06) {
					explained++
				}
			}
			if explained > seconds/10 {
				t.Errorf("its usual answers explain %d of %d seconds", explained, seconds)
			}
			s.answer["be1"] = c.late
			s.run(1)
			if !s.d.Explains("be1", failslow.Write, s.bytes, 0.06) {
				t.Errorf("an answer after %g s explains nothing", c.late)
			}
		})
	}
}

func TestTheStateIsKept(t *testing.T) {
	s := newSite(t, 3)
	s.run(60)
	s.back["be1"] = 6
	s.run(40)
	b, err := s.d.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	d := New(90 * 24 * time.Hour)
	if err := d.UnmarshalBinary(b); err != nil || !d.Sick("be1") || d.Sick("be2") {
		t.Errorf("%v; be1 is accused: %v, be2: %v", err, d.Sick("be1"), d.Sick("be2"))
	}
	if err := d.UnmarshalBinary(b[:len(b)/2]); err == nil || !d.Sick("be1") {
		t.Errorf("half a state: %v; be1 is accused: %v", err, d.Sick("be1"))
	}
	if err := d.UnmarshalBinary(nil); err != nil {
		t.Errorf("no state: %v", err)
	}
}

// TestWhatIsForgottenIsProvenAnew: who has shown that it is well is neither accused nor in doubt by what was before.
func TestWhatIsForgottenIsProvenAnew(t *testing.T) {
	s := newSite(t, 3)
	s.run(60)
	s.back["be1"], s.gateway["gw1"], s.gateway["gw3"] = 6, 4, 4
	s.run(45)
	s.accused("be1")
	clear(s.back)
	clear(s.gateway)
	s.d.Forget("be1")
	s.d.Forget("nobody")
	s.run(1)
	if v := s.newest["be1"]; v.Level != anomaly.Clean {
		t.Errorf("level %d, score %.2f: %s", v.Level, v.Score, v.Sentence)
	}
}
