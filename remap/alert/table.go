package alert

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"fairway/collector/appendlog"
	"fairway/collector/topology"
	"fairway/remap/journal"
)

// phase is what a receiver has been given of an alert.
type phase uint8

const (
	nothing phase = iota
	firing
	resolved
)

const (
	tableVersion = 1
	// maxAlerts bounds the table: with a receiver that is away for weeks the oldest alerts that have ended go first.
	maxAlerts = 10_000
	// keepEnded is how long an alert that has ended everywhere is remembered: a finding that comes back within
	// it is the same alert.
	keepEnded = time.Hour
	// keepUndelivered is how long news is kept for a receiver that does not take it.
	keepUndelivered = 7 * 24 * time.Hour
	// sameFor is how long a message without an answer is given again as it was; then it is made anew, for some of
	// it may have ended.
	sameFor = time.Minute
	// testLasts is how long a test alert is firing.
	testLasts = time.Minute
	// panicLasts is how long after the newest panic its alert is firing.
	panicLasts = time.Hour
	// lateCalls is from which lateness of the daemon people are called, lateLasts how long it must have been on time.
	lateCalls = 5 * time.Second
	lateLasts = 5 * time.Minute
	// ruleNews is how long it is news that a rule has acted.
	ruleNews = time.Hour
	// maxBatch bounds the alerts of one message.
	maxBatch = 100
)

// table is every alert that is open or not yet delivered, and how far the journal has been read. It has no
// clock and no I/O beside load and save.
type table struct {
	Version int                         `json:"version"`
	Journal uint64                      `json:"journal"` // the last record that was taken
	Alerts  map[string]*Alert           `json:"alerts"`
	Given   map[string]map[string]phase `json:"given"` // by receiver, by alert
	Dropped uint64                      `json:"dropped"`
	// Sending are the messages that have been begun and not been answered, by receiver.
	Sending map[string]*message `json:"sending"`
}

func newTable() *table {
	return &table{Version: tableVersion, Alerts: map[string]*Alert{}, Given: map[string]map[string]phase{},
		Sending: map[string]*message{}}
}

// loadTable reads the table at path. A missing file is a new table; so is one that cannot be used, with the error
// that says why.
func loadTable(path string) (*table, error) {
	t := newTable()
	if err := appendlog.ReadNote(path, t); err != nil {
		return newTable(), err
	}
	if t.Version != tableVersion || t.Alerts == nil || t.Given == nil || t.Sending == nil {
		return newTable(), fmt.Errorf("read %s: version %d: want %d", path, t.Version, tableVersion)
	}
	for name, m := range t.Sending {
		if m == nil || len(m.Alerts) == 0 {
			return newTable(), fmt.Errorf("read %s: the message to %q is damaged", path, name)
		}
	}
	for id, a := range t.Alerts {
		if a == nil || a.ID != id {
			return newTable(), fmt.Errorf("read %s: alert %q is damaged", path, id)
		}
	}
	return t, nil
}

// take folds the next record of the journal in and reports whether it concerns an alert.
func (t *table) take(r *journal.Record, user func(topology.JobID) string) bool {
	t.Journal = r.Seq
	switch {
	case r.Finding != nil:
		t.takeFinding(&r.Finding.Finding, r.At, user)
	case r.Plan != "" && (r.Proposed != nil || r.State != ""):
		t.takePlan(r)
	default:
		return false
	}
	return true
}

// news returns what a receiver is to be given at now, the most urgent first.
func (t *table) news(r *Receiver, now time.Time) (out []*Alert) {
	given := t.Given[r.Name]
	for _, a := range t.Alerts {
		if r.wants(a) && t.pending(a, given[a.ID], now) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(x, y *Alert) int {
		return cmp.Or(cmp.Compare(y.Severity.rank(), x.Severity.rank()), x.Since.Compare(y.Since),
			cmp.Compare(x.ID, y.ID))
	})
	return out[:min(len(out), maxBatch)]
}

func (t *table) pending(a *Alert, had phase, now time.Time) bool {
	switch {
	case now.Before(a.Due) || now.Before(a.Silenced):
		return false
	case a.Ended.IsZero():
		return had != firing
	case had == nothing && a.Kind == PlanWaiting:
		return false // answered before anybody was called
	}
	return had != resolved
}

// firing returns the alerts that a receiver has and that are still open.
func (t *table) firing(r *Receiver, now time.Time) (out []*Alert) {
	for id, p := range t.Given[r.Name] {
		if a := t.Alerts[id]; a != nil && p == firing && a.Ended.IsZero() && !now.Before(a.Silenced) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(x, y *Alert) int { return cmp.Compare(x.ID, y.ID) })
	return out
}

// next returns what a receiver is to be given at now: the message that it has not answered, or the news; nil: nothing.
func (t *table) next(r *Receiver, site string, now time.Time) *message {
	if m := t.Sending[r.Name]; m != nil && now.Sub(m.At) < sameFor {
		return m
	}
	delete(t.Sending, r.Name)
	return newMessage(site, t.news(r, now), now)
}

func newMessage(site string, alerts []*Alert, now time.Time) *message {
	if len(alerts) == 0 {
		return nil
	}
	m := &message{Version: 1, Site: site, ID: strings.ToLower(rand.Text()), At: now, Alerts: make([]Alert, len(alerts))}
	for i, a := range alerts {
		m.Alerts[i] = *a
		m.Alerts[i].Hurt = slices.Clone(a.Hurt)
	}
	return m
}

// delivered notes that a receiver has what a message says.
func (t *table) delivered(receiver string, m *message) {
	delete(t.Sending, receiver)
	batch := m.Alerts
	if t.Given[receiver] == nil {
		t.Given[receiver] = map[string]phase{}
	}
	for i := range batch {
		t.Given[receiver][batch[i].ID] = phaseOf(&batch[i])
	}
}

func phaseOf(a *Alert) phase {
	if a.Ended.IsZero() {
		return firing
	}
	return resolved
}

func (t *table) forgetGiven(id string) {
	for _, g := range t.Given {
		delete(g, id)
	}
}

// clean drops what has ended and concerns no receiver any more, receivers that the settings do not name, and, past
// maxAlerts, the oldest.
func (t *table) clean(receivers []Receiver, now time.Time) {
	gone := func(name string) bool {
		return !slices.ContainsFunc(receivers, func(r Receiver) bool { return r.Name == name })
	}
	maps.DeleteFunc(t.Given, func(name string, _ map[string]phase) bool { return gone(name) })
	maps.DeleteFunc(t.Sending, func(name string, _ *message) bool { return gone(name) })
	ended := make([]*Alert, 0, len(t.Alerts))
	for _, a := range t.Alerts {
		if a.Ended.IsZero() && (a.Kind == Test && now.Sub(a.Since) > testLasts ||
			a.Kind == RuleActed && now.Sub(a.Since) > ruleNews ||
			a.Kind == DaemonPanicked && now.Sub(a.Due) > panicLasts ||
			a.Kind == DaemonLate && now.Sub(a.Due) > lateLasts) {
			a.Ended = now
		}
		if a.Ended.IsZero() {
			continue
		}
		ended = append(ended, a)
		age := now.Sub(a.Ended)
		waiting := slices.ContainsFunc(receivers, func(r Receiver) bool {
			return r.wants(a) && t.pending(a, t.Given[r.Name][a.ID], now)
		})
		switch {
		case waiting && age > keepUndelivered:
			t.Dropped++
			t.drop(a)
		case !waiting && age > keepEnded:
			t.drop(a)
		}
	}
	if over := len(t.Alerts) - maxAlerts; over > 0 {
		slices.SortFunc(ended, func(x, y *Alert) int { return x.Ended.Compare(y.Ended) })
		for _, a := range ended[:min(over, len(ended))] {
			t.Dropped++
			t.drop(a)
		}
	}
}

func (t *table) drop(a *Alert) {
	delete(t.Alerts, a.ID)
	t.forgetGiven(a.ID)
}

// line says an alert in one line.
func line(a *Alert) string {
	var b strings.Builder
	state := "firing"
	if !a.Ended.IsZero() {
		state = "ended"
	}
	fmt.Fprintf(&b, "%s %s %s: %s", a.ID, state, a.Severity, a.Summary)
	if len(a.Hurt) > 0 {
		fmt.Fprintf(&b, "; hurts %s", hurtWords(a.Hurt))
	}
	if a.Owner != "" {
		fmt.Fprintf(&b, "; %s takes care of it", a.Owner)
	}
	if a.URL != "" {
		fmt.Fprintf(&b, "; %s", a.URL)
	}
	return topology.Clean(b.String())
}

const hurtShown = 5

func hurtWords(hurt []Hurt) string {
	var words []string
	for _, h := range hurt[:min(len(hurt), hurtShown)] {
		w := "job " + string(h.Job)
		if h.User != "" {
			w += " of " + h.User
		}
		if h.Share > 0 {
			w += fmt.Sprintf(" (waits %.0f %%)", 100*h.Share)
		}
		words = append(words, w)
	}
	if more := len(hurt) - hurtShown; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return strings.Join(words, ", ")
}
