package webui_test

import (
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/cmd/lab/simsite"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// TestTheLastActIsTakenBack does each kind of act and takes it back: what it says first, what is so after, and why not
// where it cannot.
func TestTheLastActIsTakenBack(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(0)
	eventually(t, "routes are known", func() bool { return len(s.Board.Routes(time.Now())) == 32 })
	last := func(secret string) (status int, a api.LastAct) {
		t.Helper()
		res, b := s.Ask("GET", "/api/v1/undo", secret, nil)
		if res.StatusCode == 200 {
			a = decode[api.LastAct](t, b)
		}
		return res.StatusCode, a
	}
	if status, _ := last(simsite.OperatorSecret); status != 404 {
		t.Errorf("before any act: %d, want 404", status)
	}
	if status, _ := last(simsite.ViewerSecret); status != 403 {
		t.Errorf("a viewer: %d, want 403", status)
	}
	s.Says.Detector = simsite.Accuse("fwd001")
	now := time.Now().Add(-10 * time.Second)
	for i := range 7 {
		if err := s.Loop.Step(t.Context(), now.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	do := func(secret, path string, body any) []byte {
		t.Helper()
		res, b := post(s, path, secret, body)
		if res.StatusCode != 200 {
			t.Fatalf("POST %s: %d %s", path, res.StatusCode, b)
		}
		return b
	}
	move := func(from, to topology.ForwarderID) string {
		t.Helper()
		return decode[api.PlanView](t, do(simsite.OperatorSecret, "/api/v1/plans", api.ManualRemap{
			Nodes: s.Machine.Topo.Default.Clients(from)[:1], To: to, Reason: "to see it taken back"})).ID
	}
	state := func(plan string) remap.PlanState { return get[api.PlanView](s, "/api/v1/plans/"+plan).State }
	finding := func() anomaly.Finding { return get[api.FindingView](s, "/api/v1/findings/F-0001").Finding }
	drained := func() bool { return len(get[remap.Feed](s, "/api/v1/exclusions").Exclusions) == 1 }
	var waits, lands, held string
	for _, c := range []struct {
		what   string
		secret string
		act    func()
		undo   string // part of the words; of why it cannot be where so is nil
		so     func() bool
	}{
		{"a proposal", simsite.OperatorSecret, func() { waits = move("fwd003", "fwd004") }, "withdraw P-",
			func() bool { return state(waits) == remap.Withdrawn }},
		{"a withdrawal", simsite.OperatorSecret, func() {}, "no key takes that back", nil},
		{"an acknowledgement", simsite.OperatorSecret,
			func() { do(simsite.OperatorSecret, "/api/v1/findings/F-0001/ack", api.Decision{}) }, "give F-0001 back",
			func() bool { return finding().Owner == "" }},
		{"a silence", simsite.OperatorSecret,
			func() { do(simsite.OperatorSecret, "/api/v1/findings/F-0001/silence", api.Silence{For: "4h"}) },
			"end the silence of F-0001", func() bool { return finding().Silenced.IsZero() }},
		{"a note", simsite.OperatorSecret,
			func() { do(simsite.OperatorSecret, "/api/v1/findings/F-0001/notes", api.Note{Text: "a loud fan"}) },
			"a note stays", nil},
		{"a drain", simsite.OperatorSecret, func() {
			if res, b := s.Ask("PUT", "/api/v1/exclusions/fwd002", simsite.OperatorSecret,
				api.Exclude{Reason: "its fan is loud", TTL: "4h"}, "Idempotency-Key", "drain"); res.StatusCode != 200 {
				t.Fatalf("%d %s", res.StatusCode, b)
			}
		}, "take fwd002 back", func() bool { return !drained() }},
		{"a return", simsite.OperatorSecret, func() {}, "drain fwd002 for ", drained},
		{"an applied plan", simsite.AdminSecret, func() {
			lands = move("fwd003", "fwd004")
			approve(s, lands)
		}, "roll back P-", func() bool { return state(lands) == remap.RolledBack }},
		{"a plan off a slow forwarder", simsite.AdminSecret, func() {
			held = move("fwd001", "fwd004")
			approve(s, held)
		}, "fwd001 is ", nil},
	} {
		c.act()
		_, a := last(c.secret)
		if c.so == nil {
			res, b := post(s, "/api/v1/undo", c.secret, api.Undo{Seq: a.Seq})
			if a.Undo != "" || !strings.Contains(a.WhyNot, c.undo) || res.StatusCode != 409 {
				t.Errorf("%s: %+v, taken back with %d %s; want no way: %q", c.what, a, res.StatusCode, b, c.undo)
			}
			continue
		}
		if !strings.Contains(a.Undo, c.undo) || a.WhyNot != "" || a.Did == "" {
			t.Errorf("%s: %+v, want %q", c.what, a, c.undo)
			continue
		}
		if res, _ := post(s, "/api/v1/undo", c.secret, api.Undo{Seq: a.Seq - 1}); res.StatusCode != 412 {
			t.Errorf("%s: an older act is taken back with %d, want 412", c.what, res.StatusCode)
		}
		do(c.secret, "/api/v1/undo", api.Undo{Seq: a.Seq})
		eventually(t, c.what+" is taken back", c.so)
	}
}

// approve has another person approve a plan and waits until it has moved.
func approve(s *simsite.Site, id string) {
	s.T.Helper()
	_, b := s.Ask("GET", "/api/v1/plans/"+id, simsite.AdminSecret, nil)
	v := decode[api.PlanView](s.T, b)
	if res, b := post(s, "/api/v1/plans/"+id+"/approve", simsite.AdminSecret, api.Decision{PreviewHash: v.PreviewHash,
		Reason: "to see it taken back"}); res.StatusCode != 200 {
		s.T.Fatalf("%d %s", res.StatusCode, b)
	}
	eventually(s.T, id+" has moved", func() bool {
		return get[api.PlanView](s, "/api/v1/plans/"+id).State.Moved()
	})
}

// TestANoteIsKept: with its author, in the finding's life and the audit, at its moment among the marks, and also once
// the finding is over.
func TestANoteIsKept(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(0)
	since := s.AccuseInThePast()
	about := since.Add(time.Second).UTC().Truncate(time.Second)
	hostile := `<b onmouseover=alert(1)>fan & "bearing"</b>`
	for _, c := range []struct {
		secret string
		note   api.Note
		status int
	}{
		{simsite.ViewerSecret, api.Note{Text: "no"}, 403}, {simsite.OperatorSecret, api.Note{Text: "  "}, 400},
		{simsite.OperatorSecret, api.Note{Text: "a\x1b[2J"}, 400},
		{simsite.OperatorSecret, api.Note{Text: "later", At: time.Now().Add(time.Hour)}, 400},
		{simsite.OperatorSecret, api.Note{Text: hostile, At: about}, 200},
	} {
		if res, b := post(s, "/api/v1/findings/F-0001/notes", c.secret, c.note); res.StatusCode != c.status {
			t.Errorf("%+v: %d %s, want %d", c.note, res.StatusCode, b, c.status)
		}
	}
	if res, b := post(s, "/api/v1/findings/F-0001/dismiss", simsite.OperatorSecret,
		api.Decision{Reason: "its fan was changed"}); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, b)
	}
	if res, b := post(s, "/api/v1/findings/F-0001/notes", simsite.AdminSecret,
		api.Note{Text: "the fan, indeed"}); res.StatusCode != 200 {
		t.Fatalf("a finding that is over takes no note: %d %s", res.StatusCode, b)
	}
	v := get[api.FindingView](s, "/api/v1/findings/F-0001")
	first, after := v.Changes[len(v.Changes)-3], v.Changes[len(v.Changes)-1]
	if first.By != "olga" || first.Why != "note: "+hostile || !first.Noted.Equal(about) {
		t.Errorf("the note is %+v", first)
	}
	if after.Why != "note: the fan, indeed" || v.State != anomaly.Dismissed {
		t.Errorf("the note on the finding that is over is %+v, its state %s", after, v.State)
	}
	if v.Notes != 2 || !strings.HasSuffix(v.Note, ": the fan, indeed") {
		t.Errorf("it has %d notes, the newest %q", v.Notes, v.Note)
	}
	audit := get[[]api.AuditEntry](s, "/api/v1/audit?subject=F-0001&actor=olga")
	if len(audit) != 2 || audit[1].Reason != "note: "+hostile {
		t.Errorf("audit: %+v", audit)
	}
	marks := get[[]remap.Mark](s, "/api/v1/marks?from=-1h")
	found := false
	for _, m := range marks {
		found = found || m.Kind == "note" && m.ID == "F-0001" && m.At.Equal(about) && strings.Contains(m.Text, hostile)
	}
	if !found {
		t.Errorf("no mark of the note at %s: %+v", about, marks)
	}
	for _, path := range []string{"/api/v1/findings/F-0001/incident?format=html", "/api/v1/report?format=html"} {
		_, b := s.Ask("GET", path, simsite.OperatorSecret, nil)
		if text := string(b); strings.Contains(text, "<b onm") || !strings.Contains(text, "the fan, indeed") {
			t.Errorf("%s has the note as markup, or not at all:\n%.3000s", path, text)
		}
	}
}
