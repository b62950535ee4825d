package alert

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/appendlog"
	"fairway/remap"
	"fairway/remap/journal"
)

func changed(seq int, c anomaly.Change) *journal.Record {
	return &journal.Record{Seq: uint64(seq), At: c.At, Kind: journal.StepFinding, Plan: c.Finding.ID, Finding: &c}
}

// TestEachAlertIsGivenOnce: over any order of findings, deliveries that fail, and restarts, a receiver is given each
// alert once while it is firing and once when it has ended.
func TestEachAlertIsGivenOnce(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		path := filepath.Join(t.TempDir(), "alerts")
		tab, now, seq := newTable(), time.Unix(1e9, 0), 0
		all := []Receiver{{Name: "a", Kind: kindSyslog}, {Name: "b", Kind: kindWebhook, Severity: Critical}}
		want, got := map[string]phase{}, map[string]int{}
		deliver := func(r *Receiver) {
			m := tab.next(r, "hpc1", now)
			if m == nil {
				return
			}
			for i := range m.Alerts {
				got[fmt.Sprint(r.Name, m.Alerts[i].ID, phaseOf(&m.Alerts[i]))]++
			}
			tab.delivered(r.Name, m)
		}
		for range 200 {
			now = now.Add(time.Second)
			switch id := rnd.IntN(20); rnd.IntN(6) {
			case 0, 1:
				seq++
				if name := fmt.Sprintf("F-%04d", id); want[name] == nothing {
					want[name] = firing
					tab.take(changed(seq, finding(id, anomaly.Confirmed, now)), olga)
				}
			case 2:
				seq++
				if name := fmt.Sprintf("F-%04d", id); want[name] == firing {
					want[name] = resolved
					tab.take(changed(seq, finding(id, anomaly.Returned, now)), olga)
				}
			case 3, 4:
				deliver(&all[rnd.IntN(2)])
			case 5:
				tab.clean(all, now)
				if err := appendlog.WriteNote(path, tab, 0o600); err != nil {
					t.Fatal(err)
				}
				var err error
				if tab, err = loadTable(path); err != nil {
					t.Fatal(err)
				}
			}
		}
		deliver(&all[0])
		deliver(&all[1])
		for id, p := range want {
			for _, r := range all {
				if n := got[fmt.Sprint(r.Name, id, p)]; n != 1 {
					t.Fatalf("seed %d: %s was given %s in phase %d %d times", seed, r.Name, id, p, n)
				}
				if n := got[fmt.Sprint(r.Name, id, firing)]; n > 1 {
					t.Fatalf("seed %d: %s was called %d times about %s", seed, r.Name, n, id)
				}
			}
		}
	}
}

// TestWhomAnAlertReaches: suspicions call nobody, neither do silent findings and plans that a rule approves at once.
func TestWhomAnAlertReaches(t *testing.T) {
	now := time.Unix(1e9, 0)
	r := &Receiver{Name: "a", Kind: kindSyslog}
	ids := func(tab *table, at time.Time) string {
		var out []string
		for _, a := range tab.news(r, at) {
			out = append(out, a.ID)
		}
		return strings.Join(out, " ")
	}
	tab := newTable()
	tab.take(changed(1, finding(1, anomaly.Suspect, now)), olga)
	tab.take(changed(2, finding(2, anomaly.Confirmed, now)), olga)
	silent := finding(3, anomaly.Confirmed, now)
	silent.Finding.Silenced = now.Add(time.Hour)
	tab.take(changed(3, silent), olga)
	plan := &remap.Plan{ID: "P-1", Job: "9", User: "otto", Reason: "a test",
		Moves: []remap.Move{{Node: "cn1", To: "fwd2"}}}
	tab.take(&journal.Record{Seq: 4, At: now, Kind: journal.StepPropose, Plan: "P-1", Proposed: plan}, olga)
	tab.take(&journal.Record{Seq: 5, At: now, Kind: journal.StepPropose, Plan: "P-2", Proposed: plan}, olga)
	tab.take(&journal.Record{Seq: 6, At: now, Kind: journal.StepApprove, Plan: "P-2", State: remap.Approved}, olga)
	for after, want := range map[time.Duration]string{0: "F-0002", planPatience: "F-0002 P-1",
		2 * time.Hour: "F-0002 F-0003 P-1"} {
		if got := ids(tab, now.Add(after)); got != want {
			t.Errorf("after %s: %q, want %q", after, got, want)
		}
	}
	// A plan that fails is another matter than its approval.
	tab.delivered("a", &message{Alerts: []Alert{*tab.Alerts["P-1"]}})
	tab.take(&journal.Record{Seq: 7, At: now, Kind: journal.StepFinish, Plan: "P-1", State: remap.Failed,
		Error: "1 of 1 moves failed"}, olga)
	if a := tab.Alerts["P-1"]; a.Kind != PlanFailed || !strings.Contains(ids(tab, now), "P-1") {
		t.Errorf("a plan that failed does not alert: %+v", a)
	}
	only := &Receiver{Name: "u", Users: []string{"otto"}}
	if only.wants(tab.Alerts["F-0002"]) || !only.wants(tab.Alerts["P-1"]) {
		t.Error("the users of hurt jobs make no difference")
	}
}

// TestWhatARuleDidIsNews: at once, whatever becomes of the plan, for an hour; where it fails that is another call.
func TestWhatARuleDidIsNews(t *testing.T) {
	at := time.Unix(1e9, 0)
	r := []Receiver{{Name: "a", Kind: kindSyslog}}
	approve := &journal.Record{At: at, Kind: journal.StepApprove, Plan: "P-1", State: remap.Approved,
		Approval: &remap.Approval{By: "rule night", Via: remap.ViaRule}}
	for _, c := range []struct {
		then  remap.PlanState
		after time.Duration
		want  string
	}{
		{remap.Applying, 0, "rule_acted firing"}, {remap.Verified, time.Second, "rule_acted firing"},
		{remap.Verified, ruleNews + time.Second, "rule_acted resolved"},
		{remap.Restored, time.Minute, "rule_acted resolved"}, {remap.Partial, time.Second, "plan_failed firing"},
	} {
		tab := newTable()
		tab.take(&journal.Record{At: at, Kind: journal.StepPropose, Plan: "P-1", Proposed: &remap.Plan{ID: "P-1",
			Job: "9", User: "otto", Reason: "fwd1 is dead", Moves: []remap.Move{{Node: "cn1", To: "fwd2"}}}}, olga)
		tab.take(approve, olga)
		m := tab.next(&r[0], "site", at)
		if m == nil || !strings.Contains(m.Alerts[0].Summary, "P-1 was approved by rule night") ||
			len(m.Alerts[0].Hurt) != 1 {
			t.Fatalf("the act is not news: %+v", m)
		}
		tab.delivered("a", m)
		tab.take(&journal.Record{At: at, Kind: journal.StepFinish, Plan: "P-1", State: c.then}, olga)
		tab.clean(r, at.Add(c.after))
		a, phase := tab.Alerts["P-1"], "firing"
		if !a.Ended.IsZero() {
			phase = "resolved"
		}
		if got := a.Kind + " " + phase; got != c.want {
			t.Errorf("%s, %s later: %s, want %s", c.then, c.after, got, c.want)
		}
	}
}

// TestTheTableIsBounded: a receiver that is away for ever costs bounded memory, and what was dropped is counted.
func TestTheTableIsBounded(t *testing.T) {
	now := time.Unix(1e9, 0)
	tab, all := newTable(), []Receiver{{Name: "a", Kind: kindSyslog}}
	for i := range maxAlerts + 50 {
		tab.take(changed(2*i, finding(i, anomaly.Confirmed, now)), olga)
		tab.take(changed(2*i+1, finding(i, anomaly.Returned, now.Add(time.Duration(i)*time.Millisecond))), olga)
	}
	if tab.clean(all, now.Add(time.Minute)); len(tab.Alerts) != maxAlerts || tab.Dropped != 50 {
		t.Errorf("%d alerts, %d dropped", len(tab.Alerts), tab.Dropped)
	}
	if tab.clean(all, now.Add(keepUndelivered+2*time.Minute)); len(tab.Alerts) != 0 {
		t.Errorf("%d alerts after a week", len(tab.Alerts))
	}
}

// FuzzTable: whatever stands in the file, the daemon starts.
func FuzzTable(f *testing.F) {
	f.Add([]byte(`{"version":1,"journal":3,"alerts":{"F-1":{"id":"F-1"}},"given":{"a":{"F-1":1}}}`))
	f.Add([]byte(`{"version":1,"alerts":{"F-1":null},"given":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "alerts")
		if err := writeFile(path, b); err != nil {
			t.Fatal(err)
		}
		tab, _ := loadTable(path)
		tab.take(changed(1, finding(1, anomaly.Confirmed, time.Unix(1e9, 0))), olga)
		tab.delivered("a", &message{})
		tab.clean([]Receiver{{Name: "a"}}, time.Unix(2e9, 0))
	})
}

// TestPanicsAreOneAlert: many panics call once, the newest is named, an hour without one ends it, and the next calls
// again.
func TestPanicsAreOneAlert(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	l := loop{Sender: s, table: newTable()}
	all := &Receiver{Name: "r"}
	at := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	calls := 0
	look := func(now time.Time) {
		l.takeOwn(now)
		l.table.clean([]Receiver{*all}, now)
		if m := l.table.next(all, "site", now); m != nil {
			calls++
			l.table.delivered(all.Name, m)
		}
	}
	for i := range 10 {
		s.Panicked("GET /a", "first", at)
		s.Panicked("GET /b", "then", at.Add(time.Duration(i)*time.Minute))
		look(at.Add(time.Duration(i) * time.Minute))
	}
	a := l.table.Alerts["panic"]
	if calls != 1 || a == nil || a.Kind != DaemonPanicked || a.Severity != Critical ||
		!strings.Contains(a.Summary, "GET /b panicked (then)") {
		t.Fatalf("%d calls: %+v", calls, a)
	}
	look(at.Add(70 * time.Minute))
	if calls != 2 || a.Ended.IsZero() {
		t.Fatalf("an hour later: %d calls: %+v", calls, a)
	}
	s.Panicked("GET /a", "again", at.Add(71*time.Minute))
	look(at.Add(71 * time.Minute))
	if calls != 3 || !l.table.Alerts["panic"].Ended.IsZero() {
		t.Errorf("the next one: %d calls", calls)
	}
}

// TestALateDaemonIsOneAlert: a lateness of seconds calls once, a short one nobody, and five minutes on time end it.
func TestALateDaemonIsOneAlert(t *testing.T) {
	by := 2 * time.Second
	s, err := New(Config{Late: func(time.Time) time.Duration { return by }})
	if err != nil {
		t.Fatal(err)
	}
	l := loop{Sender: s, table: newTable()}
	at := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	look := func(minute int, late time.Duration) *Alert {
		by = late
		now := at.Add(time.Duration(minute) * time.Minute)
		l.takeOwn(now)
		l.table.clean([]Receiver{{Name: "r"}}, now)
		return l.table.Alerts["late"]
	}
	if a := look(0, 2*time.Second); a != nil {
		t.Errorf("late by 2 s: %+v", a)
	}
	if a := look(1, 8*time.Second); a == nil || a.Kind != DaemonLate || !strings.Contains(a.Summary, "8 s late") {
		t.Fatalf("late by 8 s: %+v", a)
	}
	if a := look(4, 0); !a.Ended.IsZero() {
		t.Errorf("3 minutes on time: it has ended")
	}
	if a := look(7, 0); a.Ended.IsZero() {
		t.Errorf("6 minutes on time: it has not ended")
	}
}
