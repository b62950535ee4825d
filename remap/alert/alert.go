// Package alert carries findings and plans that need a person out of the daemon: to Alertmanager, a webhook, mail,
// syslog or a command of the site. It follows the journal, so that nothing which was recorded is missed, and
// remembers on disk what each receiver has been given.
package alert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/remap/journal"
)

// Severity says how urgent an alert is.
type Severity string

// The severities. An alert is critical when jobs lose time by it, or when a forwarder is silent.
const (
	Warning  Severity = "warning"
	Critical Severity = "critical"
)

func (s Severity) rank() int {
	if s == Critical {
		return 1
	}
	return 0
}

// The kinds of alerts about plans; those about findings have the finding's kind.
const (
	PlanWaiting = "plan_waiting" // a plan that nobody has approved or rejected
	PlanFailed  = "plan_failed"  // moves that were not made, to be completed or rolled back
	RuleActed   = "rule_acted"   // a plan that a rule of the site approved: nobody had a hand in it
	Test        = "test"         // that a person asked for
	// DaemonPanicked says that a request made a handler panic. It ends when none has for an hour.
	DaemonPanicked = "daemon_panicked"
	// DaemonLate says that the daemon gets too little of a processor. It ends when it has been on time for 5 minutes.
	DaemonLate = "daemon_late"
)

// Hurt is a job that loses time.
type Hurt struct {
	Job  topology.JobID `json:"job"`
	User string         `json:"user,omitempty"`
	// Share is the part of its nodes' time that the job loses, 0..1.
	Share float64 `json:"share"`
}

// Alert is one matter that needs a person.
type Alert struct {
	ID       string          `json:"id"` // of the finding or plan
	Kind     string          `json:"kind"`
	Severity Severity        `json:"severity"`
	Node     topology.NodeID `json:"node,omitempty"`
	Summary  string          `json:"summary"`
	Since    time.Time       `json:"since"`
	Ended    time.Time       `json:"ended,omitzero"`
	Hurt     []Hurt          `json:"hurt,omitempty"`
	Owner    string          `json:"owner,omitempty"` // who has acknowledged it
	Silenced time.Time       `json:"silenced_until,omitzero"`
	URL      string          `json:"url,omitempty"`

	// Due is when receivers may be given it: a plan that a rule approves at once concerns nobody.
	Due time.Time `json:"due"`
}

// planPatience is how long a proposal may wait before anybody is called: rules and the person who made it
// answer within seconds.
const planPatience = 10 * time.Second

// takeFinding makes or changes the alert of a finding.
func (t *table) takeFinding(f *anomaly.Finding, at time.Time, user func(topology.JobID) string) {
	a, known := t.Alerts[f.ID]
	if f.State == anomaly.Suspect && !known {
		return // nobody is called for a suspicion
	}
	if !known {
		if !f.Open() {
			return
		}
		a = &Alert{ID: f.ID, Kind: string(f.Kind), Node: f.Node, Since: f.Since, Due: at}
		t.Alerts[f.ID] = a
	}
	a.Summary, a.Owner, a.Silenced, a.Ended = advise.Sentence(f), f.Owner, f.Silenced, time.Time{}
	a.Hurt = a.Hurt[:0]
	for _, i := range f.Impact {
		a.Hurt = append(a.Hurt, Hurt{Job: i.Job, User: user(i.Job), Share: i.Share})
	}
	slices.SortStableFunc(a.Hurt, func(x, y Hurt) int { return cmp.Compare(y.Share, x.Share) })
	// The severity of an open alert only rises: a job that ends does not make the forwarder less slow.
	if a.Severity != Critical {
		a.Severity = Warning
		if f.Kind == anomaly.ForwarderSilent || f.Kind.Accuses() && len(f.Impact) > 0 {
			a.Severity = Critical
		}
	}
	if !f.Open() {
		a.Ended = at
	}
}

// takePlan makes or changes the alert of a plan.
func (t *table) takePlan(r *journal.Record) {
	a, known := t.Alerts[r.Plan]
	if r.Proposed != nil && !known {
		p := *r.Proposed
		a = &Alert{ID: r.Plan, Kind: PlanWaiting, Severity: Warning, Since: r.At, Due: r.At.Add(planPatience),
			Summary: fmt.Sprintf("%s waits for approval: %s (%s)", r.Plan, remap.Title(&p), p.Reason)}
		if p.Job != "" {
			a.Hurt = []Hurt{{Job: p.Job, User: p.User}}
		}
		t.Alerts[r.Plan] = a
		return
	}
	if by := r.Approval; by != nil && known && strings.HasPrefix(by.By, "rule ") && r.State == remap.Approved {
		a.Kind, a.Since, a.Due = RuleActed, r.At, r.At
		a.Summary = strings.Replace(a.Summary, "waits for approval", "was approved by "+by.By, 1)
		t.forgetGiven(a.ID)
		return
	}
	switch {
	case r.State == "" || r.State == remap.Proposed:
	case known && a.Kind == RuleActed && !r.State.Final() && r.State != remap.Partial && r.State != remap.Failed:
		// It is news for as long as what it moved is away, an hour at most.
	case r.State == remap.Partial || r.State == remap.Failed:
		if !known {
			a = &Alert{ID: r.Plan}
			t.Alerts[r.Plan] = a
		}
		a.Kind, a.Severity, a.Since, a.Due, a.Ended = PlanFailed, Critical, r.At, r.At, time.Time{}
		a.Summary = fmt.Sprintf("%s is %s: complete it or roll it back", r.Plan, r.State)
		if r.Error != "" {
			a.Summary += " (" + r.Error + ")"
		}
		t.forgetGiven(a.ID) // another matter than the approval that it waited for
	case known && a.Ended.IsZero():
		a.Ended = r.At
	}
}
