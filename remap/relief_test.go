package remap

import (
	"math"
	"strings"
	"testing"

	"fairway/anomaly"
	"fairway/collector/topology"
)

// What a finding measured is what its nodes can expect when they leave.
func TestAPlanExpectsWhatTheFindingMeasured(t *testing.T) {
	f1 := func(kind anomaly.Kind, state anomaly.State, class string, evidence map[string]float64) []anomaly.Finding {
		return []anomaly.Finding{{ID: "F-1", Node: "f1", Kind: kind, State: state, Class: class, Evidence: evidence}}
	}
	off := func(from ...topology.ForwarderID) (moves []Move) {
		for _, id := range from {
			moves = append(moves, Move{Node: topology.NodeID("c" + string(id)), From: id, To: "f9"})
		}
		return moves
	}
	headline := func(findings []anomaly.Finding, factor float64) []anomaly.Finding {
		findings[0].Factor = factor
		return findings
	}
	writes := map[string]float64{"read_ratio": 1.1, "write_ratio": 10, "write_seconds": 0.036, "score": 3}
	for name, c := range map[string]struct {
		findings []anomaly.Finding
		moves    []Move
		ledger   *Ledger
		expected string
		predicts float64 // of writes
	}{
		"with times of its own": {f1(anomaly.FailSlow, anomaly.Confirmed, "write", writes), off("f1"), nil,
			"writing 10x (36 -> 3.6 ms) as fast as through f1 (F-1)", 10},
		"instead of a policy's that knows no run": {f1(anomaly.FailSlow, anomaly.Confirmed, "write", writes), off("f1"),
			&Ledger{Policy: "dfra"}, "writing 10x (36 -> 3.6 ms) as fast as through f1 (F-1)", 10},
		"before a policy's that knows one": {f1(anomaly.FailSlow, anomaly.Confirmed, "write", writes), off("f1"),
			&Ledger{Predicted: &IOFigures{VolumeBytes: 1e9, IONodes: 2, IOSeconds: 10}, Runs: 1},
			"writing 10x (36 -> 3.6 ms) as fast as through f1 (F-1); 1 GB by 2 nodes in 10 s of I/O, as the last run " +
				"like it did (1 known)", 10},
		"of two classes, the slower one first": {f1(anomaly.FailSlow, anomaly.Suspect, "",
			map[string]float64{"read_ratio": 3, "write_ratio": 400}), off("f1", "f1"), nil,
			"writing over 100x and reading 3x as fast as through f1 (F-1)", 400},
		"of all operations alike": {f1(anomaly.FailSlow, anomaly.Confirmed, "",
			map[string]float64{"took_seconds": 0.012, "peers_seconds": 0.003}), off("f1"), nil,
			"its operations 4x (12 -> 3 ms) as fast as through f1 (F-1)", 4},
		"as the headline has it": {headline(f1(anomaly.FailSlow, anomaly.Confirmed, "write", writes), 7),
			off("f1"), nil,
			"writing 7x (36 -> 5.1 ms) as fast as through f1 (F-1)", 7},
		"for those that leave it": {f1(anomaly.FailSlow, anomaly.Confirmed, "write", writes), off("f1", "f2", "f3"),
			nil, "for 1 of 3 nodes: writing 10x (36 -> 3.6 ms) as fast as through f1 (F-1)", 0},
		"nothing of a healthy one": {nil, off("f1"), nil, "", 0},
		"nothing of a neighbour's storm": {f1(anomaly.MetaStorm, anomaly.Confirmed, "", writes), off("f1"), nil,
			"", 0},
		"nothing of an old one": {f1(anomaly.FailSlow, anomaly.Returned, "write", writes), off("f1"), nil, "", 0},
		"nothing of lost packets": {f1(anomaly.FailSlow, anomaly.Confirmed, "", map[string]float64{"lost": 0.1}),
			off("f1"), nil, "", 0},
		"nothing of reads for writes": {f1(anomaly.FailSlow, anomaly.Confirmed, "read",
			map[string]float64{"read_ratio": 5, "write_ratio": 1}), off("f1"), nil,
			"reading 5x as fast as through f1 (F-1)", 0},
	} {
		s := &Situation{Findings: c.findings}
		s.Index = topology.NewIndex(&topology.Machine{})
		s.Machine = &topology.Machine{}
		p := Plan{Moves: c.moves, Ledger: c.ledger, Frozen: s.Freeze(c.moves)}
		if got := p.Expected(); got != c.expected {
			t.Errorf("%s: %q, want %q", name, got, c.expected)
		}
		e := Effect{Class: "write", Latency: &Change{Before: 0.036, After: 0.0041}}
		p.Foresee(&e)
		if math.Abs(e.Expected-c.predicts) > 1e-9 {
			t.Errorf("%s: %v times as fast, want %v", name, e.Expected, c.predicts)
		}
		// The findings of now count for a plan that waits, those of its approval for one that has moved.
		v := Preview{Plan: p}
		if v.Plan.State = Proposed; v.Expected() != (&Plan{Ledger: c.ledger}).Expected() {
			t.Errorf("%s: waiting: %q", name, v.Expected())
		}
		if v.Plan.State = Verified; v.Expected() != c.expected {
			t.Errorf("%s: moved: %q", name, v.Expected())
		}
	}
}

func TestAnEffectIsHeldBesideWhatWasExpected(t *testing.T) {
	e := Effect{Class: "write", ByClients: true, Verdict: Helped, Expected: 250,
		Latency: &Change{Before: 0.036, After: 0.0041}}
	const want = "helped: its nodes' write latency 36 -> 4.1 ms, 8.8x as fast (expected over 100x)"
	for beside, want := range map[string]string{"": want,
		"2 forwarders": strings.Replace(want, "fast (", "fast beside 2 forwarders (", 1)} {
		if e.Gain = (&Gain{Times: .036 / .0041, Beside: beside}); e.Text() != want {
			t.Errorf("beside %q: %q, want %q", beside, e.Text(), want)
		}
	}
	if e.Gain = nil; e.Text() != want {
		t.Errorf("%q, want %q", e.Text(), want)
	}
}
