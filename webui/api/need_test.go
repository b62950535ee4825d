package api

import (
	"testing"

	"fairway/anomaly"
)

// Where nothing needs a person the words name a forwarder that the list shows as slow all the same.
func TestCalmNamesWhatLooksSlow(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	for name, c := range map[string]struct {
		rows     []ForwarderRow
		findings []anomaly.Finding
		want     string
	}{
		"nothing": {[]ForwarderRow{{ID: "f0", Slow: v(1)}, {ID: "f1", Slow: v(4.9)}, {ID: "f2"}}, nil,
			"Nothing is slow. 2 of 3 forwarders do I/O now and were compared."},
		"one looks slow": {[]ForwarderRow{{ID: "f0", Slow: v(6)}, {ID: "f1", Slow: v(19.2)}}, nil,
			"Nothing is slow. 2 of 2 forwarders do I/O now and were compared. " +
				"f1 takes 19x as long as its peers now, not for long enough to accuse it."},
		"one is accused": {[]ForwarderRow{{ID: "f1", Slow: v(19.2)}},
			[]anomaly.Finding{{ID: "F-1", Node: "f1", Kind: anomaly.FailSlow, State: anomaly.Suspect,
				Sentence: "f1 is slow"}},
			"Nothing needs you. f1 is slow (F-1); no job waits for it. 1 of 1 forwarder do I/O now and were compared."},
	} {
		o := Overview{Forwarders: c.rows, Findings: c.findings}
		if o.Quiet(); o.Calm != c.want {
			t.Errorf("%s: %q, want %q", name, o.Calm, c.want)
		}
	}
}
