package remap

import "testing"

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
				"I/O, as the last run like it did (8 known); 6 of 7 times it did as the run before",
			"I/O time 4 s for 98.5 GB, 24.6 GB/s at its peak: 0.80x of the last run's per byte",
		},
		{&Ledger{Predicted: last, Runs: 1, DefaultIOSeconds: seconds(31), PlannedIOSeconds: seconds(31)},
			"no more bandwidth than by default, but healthy forwarders: 197 GB by 480 nodes in 10 s of I/O, as the " +
				"last run like it did (1 known)", ""},
		{&Ledger{Measured: &IOFigures{VolumeBytes: 1e9, IOSeconds: 2, PeakBytesPerSec: 5e8}},
			"not known: no run like this one was measured", "I/O time 2 s for 1 GB, 500 MB/s at its peak"},
		{&Ledger{Predicted: &IOFigures{}, Measured: &IOFigures{}},
			"",
			"I/O time 0 s for 0 B, 0 B/s at its peak"},
	} {
		if e, o := c.ledger.Expected(), c.ledger.Outcome(); e != c.expected || o != c.outcome {
			t.Errorf("%+v:\n%s\n%s\nwant\n%s\n%s", c.ledger, e, o, c.expected, c.outcome)
		}
	}
}
