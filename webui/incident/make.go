package incident

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/remap/journal"
	"fairway/webui/api"
)

// Sources is where an incident is put together from.
type Sources struct {
	Site, Version string
	Situation     *remap.Situation
	// Card is the finding in words, with its victims and what helps.
	Card advise.Card
	// Plan returns one plan, Brought what a plan under measurement has brought so far (nil: nobody measures).
	Plan    func(ctx context.Context, id string) (remap.Plan, error)
	Brought func(plan string) *remap.Effect
	// Records shows the journal's records of a subject, the newest first, Entry one as the audit shows it.
	Records func(journal.Wanted) iter.Seq2[*journal.Record, error]
	Entry   func(*journal.Record) api.AuditEntry
	Store   Selector
	// Shown is what the charts cover; zero: the time around the finding.
	Shown Span
}

const (
	mostPlans = 8
	// mostRecords is how far back plans are looked for, and how many lines of the audit one subject has.
	mostRecords = 5000
	mostAudit   = 60
	// mostSteps bounds the life that is shown: the newest.
	mostSteps = 40
)

// Make puts together what belongs to a finding; the parts that could not be read are named by the error
// beside what could.
func Make(ctx context.Context, s Sources, v *api.FindingView, now time.Time) (*Incident, error) {
	f := &v.Finding
	inc := &Incident{Site: s.Site, Version: s.Version, Made: now.UTC(), ID: f.ID, Node: f.Node, State: string(f.State),
		Model: f.Model, Card: s.Card, Accused: Span{f.Since.UTC(), now.UTC()},
		Plans: []Plan{}, Life: life(v.Changes), Audit: []api.AuditEntry{}}
	if !f.Open() {
		inc.Accused.To = healed(v.Changes, now).UTC()
	}
	planned, moved, perr := plans(ctx, s, f)
	inc.Plans = planned
	aerr := inc.audit(ctx, s)
	var serr error
	if beside := clients(s.Situation, f.Node); beside != nil {
		c := Compared{Node: f.Node, Class: f.Class, Times: f.Headline(), Named: f.Evidence, Accused: inc.Accused,
			Shown: s.Shown, Now: now, Clients: beside}
		c.Clients[f.Node] = append(c.Clients[f.Node], moved...)
		inc.Series, serr = Read(ctx, s.Store, c)
	} else {
		inc.Series = Series{Span: inc.Accused, StepSeconds: 1, Charts: []Chart{}, Peers: []Peer{}}
	}
	return inc, errors.Join(perr, aerr, serr)
}

// healed is when the trouble was over: when the finding left the states in which its node is slow.
func healed(changes []anomaly.Change, now time.Time) time.Time {
	end := now
	for _, c := range slices.Backward(changes) {
		switch c.Finding.State {
		case anomaly.Suspect, anomaly.Confirmed, anomaly.Excluded:
			return end
		}
		end = c.At
	}
	return end
}

func life(changes []anomaly.Change) []Step {
	out := []Step{}
	for i := range changes[max(0, len(changes)-mostSteps):] {
		c := &changes[max(0, len(changes)-mostSteps)+i]
		out = append(out, Step{At: c.At.UTC(), State: c.Finding.State, By: c.By, Why: c.Why,
			Noted: c.Noted})
	}
	return out
}

// clients are the compute nodes of each forwarder, or where the node is a back end of gateways, of each back end; nil
// where it is neither.
func clients(s *remap.Situation, node topology.NodeID) map[topology.NodeID][]topology.NodeID {
	out := map[topology.NodeID][]topology.NodeID{}
	at := topology.ForwarderID.Node
	if !s.IsForwarder(topology.ForwarderID(node)) {
		at = func(f topology.ForwarderID) topology.NodeID { return s.Load[f].BackEnd }
	}
	for _, f := range s.Machine.ByRole(topology.Forwarder) {
		if n := at(topology.ForwarderID(f.ID)); n != "" {
			out[n] = nil
		}
	}
	if _, is := out[node]; !is {
		return nil
	}
	for n, f := range s.Used {
		if of := at(f); of != "" {
			out[of] = append(out[of], n)
		}
	}
	for _, nodes := range out {
		slices.Sort(nodes)
	}
	return out
}

// plans are those that have moved nodes off the finding's node since it began, or wait to, and the nodes
// that they took.
func plans(ctx context.Context, s Sources, f *anomaly.Finding) (out []Plan, moved []topology.NodeID, err error) {
	out = []Plan{}
	var ids []string
	n := 0
	for rec, rerr := range s.Records(journal.Wanted{From: f.Since}) {
		if rerr != nil || ctx.Err() != nil {
			err = errors.Join(rerr, ctx.Err())
			break
		}
		if rec.Proposed != nil && slices.ContainsFunc(rec.Proposed.Moves, func(m remap.Move) bool {
			return m.About().Node() == f.Node || s.Situation.Load[m.From].BackEnd == f.Node
		}) {
			ids = append(ids, rec.Plan)
		}
		if n++; n >= mostRecords || len(ids) >= mostPlans {
			break
		}
	}
	for _, id := range ids {
		p, perr := s.Plan(ctx, id)
		if perr != nil {
			err = errors.Join(err, perr)
			continue
		}
		if p.Effect == nil && s.Brought != nil {
			p.Effect = s.Brought(id)
		}
		out = append(out, Plan{ID: id, Title: remap.Title(&p), State: p.State, Created: p.Created.UTC(),
			Reason: p.Reason, Effect: p.Effect, Brought: p.Effect.Text()})
		if p.State.Moved() && !p.Limits() {
			for _, m := range p.Moves {
				moved = append(moved, m.Node)
			}
		}
	}
	return out, moved, err
}

// audit takes what persons and the desk did about the finding, its node and its plans.
func (inc *Incident) audit(ctx context.Context, s Sources) error {
	subjects := []string{inc.ID}
	if inc.Node != "" {
		subjects = append(subjects, string(inc.Node))
	}
	for _, p := range inc.Plans {
		subjects = append(subjects, p.ID)
	}
	for _, subject := range subjects {
		n := 0
		for rec, err := range s.Records(journal.Wanted{Subject: subject, From: inc.Accused.From}) {
			if err = errors.Join(err, ctx.Err()); err != nil {
				return err
			}
			if rec.Kind == journal.StepFinding && rec.Actor == "" {
				continue // the finding's life shows it
			}
			inc.Audit = append(inc.Audit, s.Entry(rec))
			if n++; n >= mostAudit {
				break
			}
		}
	}
	slices.SortStableFunc(inc.Audit, func(a, b api.AuditEntry) int { return cmp.Compare(a.Seq, b.Seq) })
	return nil
}
