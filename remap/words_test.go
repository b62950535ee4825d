package remap

import (
	"fmt"
	"slices"
	"testing"

	"fairway/anomaly"
	"fairway/collector/topology"
)

func TestALedgerInWords(t *testing.T) {
	seconds := func(s float64) *float64 { return &s }
	last := &IOFigures{VolumeBytes: 197e9, IONodes: 480, IOSeconds: 10, PeakBytesPerSec: 19.2e9}
	for _, c := range []struct {
		ledger            *Ledger
		expected, outcome string
	}{
		{nil, "", ""},
		{&Ledger{Policy: "dfra"}, "not known: no run like this one was measured", ""},
		{&Ledger{Predicted: last, Runs: 1}, "197 GB by 480 nodes in 10 s of I/O, as the last run like it did (1 known)",
			""},
		{
			&Ledger{Predicted: last, Runs: 8, Own: Hits{7, 6}, DefaultIOSeconds: seconds(260),
				PlannedIOSeconds: seconds(52.4), Measured: &IOFigures{VolumeBytes: 98.5e9, IOSeconds: 4,
					PeakBytesPerSec: 24.6e9}},
			"I/O time ~0.20x: at least 52 s instead of 4m20s by peak bandwidths, for 197 GB by 480 nodes in 10 s of " +
				"I/O, as the last run like it did (8 known); such predictions for it were right 6 of 7 times",
			"I/O time 4 s for 98.5 GB, 24.6 GB/s at its peak: 0.80x of the last run's per byte",
		},
		{&Ledger{Predicted: last, Runs: 1, DefaultIOSeconds: seconds(31), PlannedIOSeconds: seconds(31)},
			"no more bandwidth than by default, but healthy forwarders: 197 GB by 480 nodes in 10 s of I/O, as the " +
				"last run like it did (1 known)", ""},
		{&Ledger{Measured: &IOFigures{VolumeBytes: 1e9, IOSeconds: 2, PeakBytesPerSec: 5e8}},
			"not known: no run like this one was measured", "I/O time 2 s for 1 GB, 0.5 GB/s at its peak"},
		{&Ledger{Predicted: &IOFigures{}, Measured: &IOFigures{}},
			"0 GB by 0 nodes in 0 s of I/O, as the last run like it did (0 known)",
			"I/O time 0 s for 0 GB, 0 GB/s at its peak"},
	} {
		if e, o := c.ledger.Expected(), c.ledger.Outcome(); e != c.expected || o != c.outcome {
			t.Errorf("%+v:\n%s\n%s\nwant\n%s\n%s", c.ledger, e, o, c.expected, c.outcome)
		}
	}
}

func TestChecksSayWhatATargetIsAccusedOf(t *testing.T) {
	for _, c := range []struct {
		state anomaly.State
		kind  anomaly.Kind
		level CheckLevel
		says  string
	}{
		{anomaly.Suspect, anomaly.FailSlow, Amber, "fwd2 is suspect: slow for its load (F-0007)"},
		{anomaly.Confirmed, anomaly.ForwarderSilent, Red, "fwd2 is confirmed: silent (F-0007)"},
	} {
		s := &Situation{Findings: []anomaly.Finding{{ID: "F-0007", Node: "fwd2", Kind: c.kind, State: c.state}}}
		if got := checkTargets([]topology.ForwarderID{"fwd2"}, Plan{}, s); len(got) != 1 || got[0].Level != c.level ||
			got[0].Text != c.says {
			t.Errorf("%+v, want %s %q", got, c.level, c.says)
		}
	}
}

// The way of a move must be seen in 80 columns, however many nodes go it.
func TestMovesInWords(t *testing.T) {
	var moves []Move
	for i := range 32 {
		moves = append(moves, Move{Node: topology.NodeID(fmt.Sprintf("c%05d", 519+i)), From: "fwd008", To: "fwd016"})
	}
	for i := range 16 {
		moves = append(moves, Move{Node: topology.NodeID(fmt.Sprintf("c%05d", 1000+7*i)), To: "fwd017"})
	}
	moves = append(moves, Move{Node: "login1", From: "fwd009", To: "fwd009"},
		Move{Node: "a", From: "fwd001", To: "fwd002"}, Move{Node: "b", From: "fwd001", To: "fwd002"})
	want := []string{"c[00519-00550] (32)  fwd008 -> fwd016", "c01000 c01007 and 14 more  (not known) -> fwd017",
		"login1  stay on fwd009", "a,b (2)  fwd001 -> fwd002"}
	if got := moveLines(moves); !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}
