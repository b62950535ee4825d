package watch

import (
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector/ingest"
	"fairway/tsdb/window"
)

// TestSecondSpeakerIsAFinding: whoever was refused for speaking as another node is reported, and nobody is accused by
// it.
func TestSecondSpeakerIsAFinding(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	d := NewDetectors(window.NewBoard(0), failslow.DefaultSettings())
	if v := d.Verdicts(now, &Machine{}); len(v) != 0 {
		t.Fatalf("an empty machine: %+v", v)
	}
	d.Speakers(func(since time.Time) []ingest.Intruder {
		if !since.Equal(now.Add(-speakerFor)) {
			t.Errorf("asked since %s", since)
		}
		return []ingest.Intruder{{Node: "cn5", Token: "agents", Remote: "10.0.0.9:4000", Owner: "10.0.0.5:4000",
			First: now.Add(-time.Minute), Last: now, Times: 3}}
	})
	v := d.Verdicts(now, &Machine{})
	if len(v) != 1 || v[0].Node != "cn5" || v[0].Kind != anomaly.SecondSpeaker || v[0].Level != anomaly.Alarm ||
		v[0].Kind.Accuses() || !v[0].Since.Equal(now.Add(-time.Minute)) {
		t.Fatalf("verdicts %+v", v)
	}
	for _, want := range []string{"10.0.0.9:4000", "10.0.0.5:4000", `"agents"`, "cn5", "3 times"} {
		if !strings.Contains(v[0].Sentence, want) {
			t.Errorf("%q does not say %s", v[0].Sentence, want)
		}
	}
}

// TestFindingsOfSpeakersHaveTheirOwnWhy: only who is slow is called slower than its peers.
func TestFindingsOfSpeakersHaveTheirOwnWhy(t *testing.T) {
	for kind, want := range map[anomaly.Kind]string{
		anomaly.SecondSpeaker: "somebody else spoke for it, and was refused",
		anomaly.LongList:      "it lists clients that cannot be, which are left out",
		anomaly.FailSlow:      "it is slower than its peers for longer than chance explains",
	} {
		l := newLoop(t, anomaly.ModeObserve)
		v := alarm("fwd1")
		v.Kind = kind
		if err := l.step(3, v); err != nil || len(l.journal.changes) == 0 || l.journal.changes[0].Why != want {
			t.Errorf("%s: %v, %+v", kind, err, l.journal.changes)
		}
	}
	d := NewDetectors(window.NewBoard(0), failslow.DefaultSettings())
	now := time.Unix(1_700_000_000, 0)
	d.Speakers(func(time.Time) []ingest.Intruder {
		return []ingest.Intruder{{Node: "fwd5", Token: "agents", Remote: "10.0.0.9:4000", First: now, Last: now,
			Times: 3}}
	})
	v := d.Verdicts(now, &Machine{})
	if len(v) != 1 || v[0].Kind != anomaly.LongList ||
		!strings.Contains(v[0].Sentence, "lists more clients of fwd5 than can be") {
		t.Errorf("%+v", v)
	}
}
