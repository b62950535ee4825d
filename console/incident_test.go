package console_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/watch"
	"fairway/cmd/lab/simsite"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
)

// TestOneIncidentOnAllSurfaces leads one incident through twenty minutes by a fake clock: suspected, confirmed, asked,
// approved, measured, helped, the answer still there nine minutes later, healed, over. At each moment the API, the
// first screen, the page of the finding, its list, the exported file and the page of the plan say the same sentence,
// letter by letter, in the same second; after the approval none of them asks for what was done.
func TestOneIncidentOnAllSurfaces(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.seconds(3)
		s.sees("Nothing is known to be slow")
		s.agrees(nil, "")

		s.site.Says.Detector = simsite.Accuse("fwd001")
		s.second()
		s.agrees([]advise.Stage{advise.Suspect}, "fwd001 may be slow at writing")
		s.seconds(8)
		s.agrees([]advise.Stage{advise.Slow}, "fwd001 is 9.8x slow at writing")
		s.sees("! SLOW")

		p := s.propose("fwd004")
		s.second()
		s.agrees([]advise.Stage{advise.Slow}, "fwd001 is 9.8x slow at writing")
		s.sees("A  review plan P-000001")
		s.press("A", "wait", "A")
		s.press("wait", "esc")
		s.second()
		s.agrees([]advise.Stage{advise.Moving, advise.Measuring}, "")
		s.seconds(4)
		s.agrees([]advise.Stage{advise.Measuring}, "")
		s.sees("Does it help?")
		s.lacks("review plan")

		e := &remap.Effect{Verdict: remap.Helped, AfterTo: time.Now(), Class: "write", ByClients: true, Expected: 10,
			Latency: &remap.Change{Before: 0.036, After: 0.0041}}
		if err := s.site.Desk.RecordEffect(t.Context(), p.ID, e); err != nil {
			t.Fatal(err)
		}
		s.seconds(2)
		s.agrees([]advise.Stage{advise.Helped}, "It helped: 8.8x as fast")
		s.sees("HELPED", "36 -> 4.1 ms (expected ~3.6 ms). fwd001 itself is still slow")
		s.seconds(9 * 60)
		s.agrees([]advise.Stage{advise.Helped}, "It helped: 8.8x as fast")
		s.seconds(90)
		s.agrees([]advise.Stage{advise.Slow}, "fwd001 is 9.8x slow at writing")

		s.site.Says.Detector = verdicts{{Node: "fwd001", Kind: anomaly.FailSlow, Level: anomaly.Clean}}
		s.seconds(400)
		s.agrees([]advise.Stage{advise.Cleared}, "fwd001 was slow, now among its peers")
		s.lacks("review plan", "drain", "roll back")
		s.seconds(11 * 60)
		s.sees("Nothing is known to be slow")
		s.agrees(nil, "")
	})
}

// verdicts are what a detector says each second.
type verdicts []anomaly.Verdict

func (verdicts) Forget(topology.NodeID) {}

func (v verdicts) Verdicts(time.Time, *watch.Machine) []anomaly.Verdict { return v }

// agrees says that the first card is in one of some stages with a sentence, and that all surfaces print it.
func (s *script) agrees(stages []advise.Stage, sentence string) {
	s.t.Helper()
	o, err := s.server.Overview(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if len(stages) == 0 {
		if len(o.Needs) > 0 || o.Calm == "" {
			s.t.Fatalf("%+v, %q", o.Needs, o.Calm)
		}
		return
	}
	if len(o.Needs) != 1 {
		s.t.Fatalf("%d cards: %+v", len(o.Needs), o.Needs)
	}
	c := &o.Needs[0]
	known := false
	for _, want := range stages {
		known = known || c.Stage == want
	}
	if !known || sentence != "" && c.Sentence != sentence {
		s.t.Fatalf("%s: %s; want %v: %s", c.Stage, c.Sentence, stages, sentence)
	}
	filled := 0
	for _, a := range append([]advise.Action{}, c.Others...) {
		if a.Filled {
			filled++
		}
	}
	if filled > 0 {
		s.t.Errorf("%s has a filled button beside the first: %+v", c.Stage, c.Others)
	}
	s.sees(c.Sentence)
	v, err := s.server.Finding(s.t.Context(), c.Finding)
	if err != nil {
		s.t.Fatal(err)
	}
	if v.Card.Sentence != c.Sentence || v.Card.Stage != c.Stage {
		s.t.Errorf("the finding's page says %s: %s; the first screen %s: %s", v.Card.Stage, v.Card.Sentence, c.Stage,
			c.Sentence)
	}
	for _, f := range o.Findings {
		if f.ID == c.Finding && f.Sentence != v.Sentence {
			s.t.Errorf("the list says %q, the finding %q", f.Sentence, v.Sentence)
		}
	}
	inc, err := s.server.Incident(s.t.Context(), c.Finding, false)
	if err != nil {
		s.t.Fatal(err)
	}
	var file bytes.Buffer
	if err := inc.HTML(&file); err != nil {
		s.t.Fatal(err)
	}
	if inc.Sentence != c.Sentence || !strings.Contains(file.String(), strings.ReplaceAll(c.Sentence, "'", "&#39;")) {
		s.t.Errorf("the export says %q, the first screen %q", inc.Sentence, c.Sentence)
	}
	if c.Plan != "" {
		p, err := s.server.Plan(s.t.Context(), c.Plan)
		if err != nil {
			s.t.Fatal(err)
		}
		if p.Card.Sentence != c.Sentence {
			s.t.Errorf("the plan's page says %q, the first screen %q", p.Card.Sentence, c.Sentence)
		}
	}
}
