package tables

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"fairway/collector/topology"
	"fairway/remap/policy/share"
	"fairway/remap/queue"
)

// Gathering is the all-gather as people see it. Shares are parts of what all queues together do.
type Gathering struct {
	Policy        string    `json:"policy"`
	LambdaSeconds float64   `json:"lambda_seconds"`
	At            time.Time `json:"at"` // of the newest round
	// Reachable says whether every job can have its share, Why why not.
	Reachable bool   `json:"reachable"`
	Why       string `json:"why,omitempty"`
	// Says is all that in sentences, and what there is to say of single queues.
	Says   []string        `json:"says"`
	Jobs   []GatheredJob   `json:"jobs"` // those with work, the largest share first
	Queues []GatheredQueue `json:"queues"`
}

// GatheredJob is one job's part; clients in no job are without a name.
type GatheredJob struct {
	Job   topology.JobID `json:"job"`
	User  string         `json:"user,omitempty"`
	Group string         `json:"group,omitempty"`
	// Share is what the policy gives, Reachable what the forwarders that the job uses allow of it, and Got
	// what the job had in the last intervals.
	Share      float64                `json:"share"`
	Reachable  float64                `json:"reachable"`
	Got        float64                `json:"got"`
	Forwarders []topology.ForwarderID `json:"forwarders"` // where it has work
}

// GatheredQueue is one queue: how it serves, and why that is not by global shares.
type GatheredQueue struct {
	Forwarder topology.ForwarderID `json:"forwarder"`
	By        queue.By             `json:"by"` // as last reported; empty when it does not answer
	Why       string               `json:"why,omitempty"`
}

// Gathering returns the result of the newest round; false before the first.
func (s *Sender) Gathering() (Gathering, bool) {
	s.gather.mu.Lock()
	defer s.gather.mu.Unlock()
	return s.gather.shown, !s.gather.shown.At.IsZero()
}

func (g *gatherer) show(at time.Time, tables map[topology.ForwarderID]queue.Table,
	answers map[topology.ForwarderID]answer, names []topology.ForwarderID, reports []share.Report, round share.Round) {
	v := Gathering{Policy: g.policy.String(), LambdaSeconds: g.lambda.Seconds(), At: at, Reachable: round.Reachable,
		Why: round.Why, Jobs: []GatheredJob{}, Queues: []GatheredQueue{}}
	total := 0.0
	for _, f := range names {
		for _, x := range g.members[f].served {
			total += x
		}
	}
	for k, j := range round.Jobs {
		row := GatheredJob{Job: topology.JobID(j.Name), User: j.User, Group: j.Group, Share: round.Shares[k],
			Reachable: round.Reached[k]}
		for i, f := range names {
			if !reports[i].Has(j.Name) {
				continue
			}
			row.Forwarders = append(row.Forwarders, f)
			if x := g.members[f].served[j.Name]; total > 0 {
				row.Got += x / total
			}
		}
		v.Jobs = append(v.Jobs, row)
	}
	slices.SortStableFunc(v.Jobs, func(a, b GatheredJob) int { return cmp.Compare(b.Share, a.Share) })
	for _, f := range slices.Sorted(maps.Keys(tables)) {
		v.Queues = append(v.Queues, queueOf(f, answers[f], len(names)))
	}
	v.Says = v.sentences()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shown = v
	g.rounds++
}

func queueOf(f topology.ForwarderID, a answer, inRound int) GatheredQueue {
	r := GatheredQueue{Forwarder: f, By: a.report.By}
	switch {
	case a.err != nil:
		r.By, r.Why = "", fmt.Sprintf("does not answer (%v); its jobs have their local shares there", a.err)
	case r.By == queue.ByArrival:
		r.Why = "serves in the order of arrival: it has no policy, or its lease has ended"
	case r.By == queue.ByLocal && inRound < 2:
		r.Why = "is alone in the all-gather, so its local shares are the global ones"
	case r.By == queue.ByLocal:
		r.Why = "has not served by global shares yet, or lost touch for a while"
	}
	return r
}

// maxRemarks is how many queues are named with a remark; the rest is counted.
const maxRemarks = 3

func (v *Gathering) sentences() []string {
	global, remarks := 0, []string{}
	for _, r := range v.Queues {
		if r.By == queue.ByGlobal {
			global++
		}
		if r.Why != "" {
			remarks = append(remarks, fmt.Sprintf("%s %s", r.Forwarder, r.Why))
		}
	}
	out := []string{fmt.Sprintf("in force: %s, %d of %d queues serve by global shares, gathered every %g s", v.Policy,
		global, len(v.Queues), v.LambdaSeconds)}
	switch {
	case len(v.Jobs) == 0:
		out = append(out, "no job has work now")
	case v.Reachable:
		out = append(out, "the placement of the work allows every job its global share")
	default:
		out = append(out, "the global shares cannot be reached: "+v.Why)
	}
	if n := len(remarks) - maxRemarks; n > 0 {
		remarks = append(remarks[:maxRemarks], fmt.Sprintf("and %d further queues are not served by global shares", n))
	}
	return append(out, remarks...)
}

// Of is a job's part; nil where it has no work.
func (v *Gathering) Of(j topology.JobID) *GatheredJob {
	for i := range v.Jobs {
		if v.Jobs[i].Job == j {
			return &v.Jobs[i]
		}
	}
	return nil
}
