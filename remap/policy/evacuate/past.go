package evacuate

import (
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// Would is what the rules would have done about one job behind a forwarder.
type Would struct {
	At        time.Time            `json:"at"`
	Finding   string               `json:"finding"`
	Forwarder topology.ForwarderID `json:"forwarder"`
	Condition anomaly.Condition    `json:"condition"`
	Ratio     float64              `json:"ratio,omitempty"`
	Job       topology.JobID       `json:"job"`
	App       string               `json:"app,omitempty"`
	User      string               `json:"user,omitempty"`
	Nodes     int                  `json:"nodes"` // of the whole job
	// Rule is empty where no rule is about it; Does is propose, act, or why an act became a proposal.
	Rule string `json:"rule,omitempty"`
	Does string `json:"does"`
}

// Tested is what the rules would have done in a span of the past. Where nodes would have gone is not known: the load
// of the other forwarders is not looked up.
type Tested struct {
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Would []Would   `json:"would"`
}

// Test says what the site's rules would have done about changes of findings. Errors are those of the history.
func (p *Policy) Test(changes []anomaly.Change) ([]Would, error) {
	return would(p.cfg.Rules, changes, p.cfg.Running)
}

// would says what rules would have done about changes of findings, in the order of time. running returns the jobs that
// ran at an instant.
func would(rules []Rule, changes []anomaly.Change, running func(time.Time) ([]remap.Job, error)) ([]Would, error) {
	changes = slices.Clone(changes)
	slices.SortStableFunc(changes, func(a, b anomaly.Change) int { return a.At.Compare(b.At) })
	out := []Would{}
	for i := range changes {
		c := &changes[i]
		f := &c.Finding
		if f.State != anomaly.Confirmed || c.From == anomaly.Confirmed || !slices.Contains(evacuated, f.Condition) {
			continue
		}
		jobs, err := running(c.At)
		if err != nil {
			return nil, err
		}
		for k := range jobs {
			j := &jobs[k]
			if !slices.ContainsFunc(f.Impact, func(i anomaly.Impact) bool { return i.Job == j.ID }) {
				continue
			}
			w := Would{At: c.At, Finding: f.ID, Forwarder: topology.ForwarderID(f.Node), Condition: f.Condition,
				Ratio: ratioOf(f), Job: j.ID, App: j.App, User: j.User, Nodes: len(j.Nodes), Does: Propose}
			if r := find(rules, f, j, c.At); r != nil {
				w.Rule = r.Name
				if r.Action == Act {
					w.At, w.Does = c.At.Add(r.For), does(r, f.ID, c.At, changes[i+1:], out)
				}
			}
			out = append(out, w)
		}
	}
	return out, nil
}

// does says what a rule that acts would have done: its time may not have come, or its bound was reached.
func does(r *Rule, id string, at time.Time, later []anomaly.Change, before []Would) string {
	due := at.Add(r.For)
	for i := range later {
		if l := &later[i]; l.Finding.ID == id && l.Finding.State != anomaly.Confirmed && l.At.Before(due) {
			return "propose: it was " + string(l.Finding.State) + " after " + l.At.Sub(at).Round(time.Second).String()
		}
	}
	acted := 0
	for i := range before {
		if w := &before[i]; w.Rule == r.Name && w.Does == Act && due.Sub(w.At) < day {
			acted++
		}
	}
	if acted >= r.atMost() {
		return "propose: it had acted " + anomaly.Counted(acted, "time") + " in 24 hours"
	}
	return Act
}
