package remap

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
)

// Slowness is by how much longer than through its peers operations of one class take through a forwarder that a finding
// accuses. Who leaves it for one of the peers can expect as much.
type Slowness struct {
	Finding string `json:"finding"`
	Class   string `json:"class,omitempty"` // as a finding has it; "" of all operations
	// Ratio is how many times as long as through the peers; Seconds and Peers the times, 0 where the finding has none.
	Ratio   float64 `json:"ratio"`
	Seconds float64 `json:"seconds,omitempty"`
	Peers   float64 `json:"peers_seconds,omitempty"`
}

// slownessOf reads the evidence of the open findings that accuse a forwarder: each class that is visibly slow, the
// slowest first. Evidence is of one moment; where the finding has a headline the slowest class has that, and the others
// are in proportion, as logarithms.
func slownessOf(findings []anomaly.Finding, id topology.ForwarderID) (out []Slowness) {
	for i := range findings {
		f := &findings[i]
		if f.Kind != anomaly.FailSlow || !f.Open() || topology.ForwarderID(f.Node) != id {
			continue
		}
		classes, steady := 0, 1.0
		if now := max(f.Evidence["read_ratio"], f.Evidence["write_ratio"], f.Evidence["meta_ratio"]); f.Factor > 0 &&
			now > 1 {
			steady = math.Log(f.Factor) / math.Log(now)
		}
		for _, class := range []string{"read", "write", "meta"} {
			if ratio, known := f.Evidence[class+"_ratio"]; known {
				classes++
				ratio = math.Pow(ratio, steady)
				took := f.Evidence[class+"_seconds"]
				out = append(out, Slowness{Finding: f.ID, Class: class, Ratio: ratio, Seconds: took,
					Peers: took / max(ratio, 1)})
			}
		}
		if took, peers := f.Evidence["took_seconds"], f.Evidence["peers_seconds"]; classes == 0 && peers > 0 {
			out = append(out, Slowness{Finding: f.ID, Class: f.Class, Ratio: took / peers, Seconds: took, Peers: peers})
		}
	}
	out = slices.DeleteFunc(out, func(s Slowness) bool { return !(s.Ratio >= HelpedFrom) })
	slices.SortStableFunc(out, func(a, b Slowness) int { return cmp.Compare(b.Ratio, a.Ratio) })
	return out
}

// Relief says in words what the findings about the forwarders that moves leave predict for the nodes that leave them;
// empty where none accuses them with a ratio.
func (f *Frozen) Relief(moves []Move) string {
	leave := map[topology.ForwarderID]int{}
	for i := range moves {
		for _, from := range moves[i].Sources() {
			leave[from]++
		}
	}
	var parts []string
	for _, from := range slices.Sorted(maps.Keys(leave)) {
		slow := f.Forwarders[from].Slow
		if len(slow) == 0 {
			continue
		}
		words := make([]string, len(slow))
		for i := range slow {
			words[i] = slow[i].text()
		}
		text := fmt.Sprintf("%s as fast as through %s (%s)", strings.Join(words, " and "), from, slow[0].Finding)
		if n := leave[from]; n < len(moves) {
			text = fmt.Sprintf("for %d of %s: %s", n, anomaly.Counted(len(moves), "node"), text)
		}
		parts = append(parts, text)
	}
	if more := len(parts) - shownReliefs; more > 0 {
		parts = append(parts[:shownReliefs], fmt.Sprintf("%d more leave slow forwarders", more))
	}
	return strings.Join(parts, "; ")
}

// shownReliefs is of how many forwarders a plan's expectation speaks.
const shownReliefs = 2

// text is a slowness turned round: what leaving it brings.
func (s *Slowness) text() string {
	what := anomaly.ClassWords(s.Class)
	if s.Class == "" {
		what = "its operations"
	}
	text := what + " " + anomaly.Times(s.Ratio)
	if s.Peers > 0 {
		text += " (" + fromTo(Change{Before: s.Seconds, After: s.Peers}, milliseconds) + ")"
	}
	return text
}

// Foresee notes in an effect of the plan what was expected of it.
func (p *Plan) Foresee(e *Effect) {
	if e.Latency != nil {
		e.Expected = p.Frozen.predicts(p.Moves, e.Class)
	}
}

// predicts returns how many times as fast operations of a class should be after the moves. It is the least over the
// forwarders that they leave, and 0 where a finding is missing for one of them.
func (f *Frozen) predicts(moves []Move, class string) (least float64) {
	for i := range moves {
		slow := f.Forwarders[moves[i].From].Slow
		k := slices.IndexFunc(slow, func(s Slowness) bool { return strings.HasPrefix(class, s.Class) })
		if k < 0 {
			return 0
		}
		if least == 0 || slow[k].Ratio < least {
			least = slow[k].Ratio
		}
	}
	return least
}

// Expected says in words what the plan should bring: by the findings it answers, else by the job's last run. It is
// empty where neither is known.
func (p *Plan) Expected() string { return p.expected(&p.Frozen) }

func (p *Plan) expected(f *Frozen) string {
	relief := f.Relief(p.Moves)
	switch {
	case relief == "":
		return p.Ledger.Expected()
	case p.Ledger == nil || p.Ledger.Predicted == nil:
		return relief
	}
	return relief + "; " + p.Ledger.Expected()
}

// Expected is the plan's; of one that waits by the findings as they are now.
func (v *Preview) Expected() string {
	if v.Plan.State == Proposed {
		return v.Plan.expected(&v.Frozen)
	}
	return v.Plan.Expected()
}

// Frozen is the part of a situation that a plan touches, kept with the plan for ever.
type Frozen struct {
	At         time.Time                                `json:"at"`
	Healthy    int                                      `json:"healthy"`
	Idle       int                                      `json:"idle"`
	Unknown    int                                      `json:"unknown,omitempty"` // forwarders of unknown load
	Forwarders map[topology.ForwarderID]FrozenForwarder `json:"forwarders,omitempty"`
	Generation map[topology.NodeID]uint64               `json:"generation,omitempty"` // of the mounts, where reported
}

// FrozenForwarder is one touched forwarder at that instant.
type FrozenForwarder struct {
	State   ForwarderState `json:"state"`
	Busy    *float64       `json:"busy"` // share of the peak, 0..1; null where it was not known
	Load    Load           `json:"load"`
	Clients int            `json:"clients"`
	// Slow is by how much operations took longer through it than through its peers, by the findings about it.
	Slow []Slowness `json:"slow,omitempty"`
}

// Freeze keeps what the situation says of the forwarders and nodes of moves.
func (s *Situation) Freeze(moves []Move) Frozen {
	f := Frozen{At: s.At, Forwarders: map[topology.ForwarderID]FrozenForwarder{},
		Generation: map[topology.NodeID]uint64{}}
	f.Healthy, f.Idle = s.Healthy()
	f.Unknown = s.Unknown()
	for _, m := range moves {
		for _, id := range append(m.Sources(), m.To) {
			if _, done := f.Forwarders[id]; !done && id != "" {
				load := s.Load[id]
				f.Forwarders[id] = FrozenForwarder{State: s.State(id), Busy: load.Busy(), Load: load,
					Clients: s.Clients[id], Slow: slownessOf(s.Findings, id)}
			}
		}
		if g := s.Routes[m.Node].Generation; g > 0 {
			f.Generation[m.Node] = g
		}
	}
	return f
}
