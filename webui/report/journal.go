package report

import (
	"cmp"
	"context"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/remap/journal"
)

// journal reads what was found and moved. The records come newest first, so that the first one about a finding is
// how it stood at the period's end.
func (r *Report) journal(ctx context.Context, s Sources) error {
	last, notes := map[string]bool{}, map[string][]string{}
	var plans []string
	var took []time.Duration
	// What a finding costs grows between its changes: in a period that reaches to now, the open ones are as they are
	// now, and say what their own pages do.
	for i := range s.Open {
		if f := &s.Open[i]; r.Made.Sub(r.To) < time.Minute && f.Since.Before(r.To) {
			last[f.ID] = true
			took = append(took, r.take(f)...)
		}
	}
	for rec, err := range s.Records(journal.Wanted{From: r.From, To: r.To}) {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		switch {
		case rec.Finding != nil:
			if c := rec.Finding; !c.Noted.IsZero() {
				notes[c.Finding.ID] = append([]string{c.By + ", " + c.Why}, notes[c.Finding.ID]...)
			}
			if f := &rec.Finding.Finding; !last[f.ID] {
				last[f.ID] = true
				took = append(took, r.take(f)...)
			}
		case rec.Kind == journal.StepPropose:
			plans = append(plans, rec.Plan)
		}
	}
	for i := range s.Open {
		if f := &s.Open[i]; !last[f.ID] && f.Since.Before(r.To) {
			took = append(took, r.take(f)...)
		}
	}
	for i := range r.Findings {
		r.Findings[i].Notes = notes[r.Findings[i].ID]
	}
	slices.SortFunc(r.Findings, func(a, b Slow) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.ID, b.ID))
	})
	if slices.Sort(took); len(took) > 0 {
		r.Record.ToConfirm = took[len(took)/2].Seconds()
	}
	slices.Reverse(plans)
	var made []remap.Plan
	for _, id := range plans {
		p, err := s.Plan(ctx, id)
		if err != nil {
			return err
		}
		r.Plans = append(r.Plans, movedBy(&p))
		s.brought.plan(&p)
		made = append(made, p)
	}
	r.Moves = remap.TrackOf(made)
	return nil
}

func movedBy(p *remap.Plan) Moved {
	return Moved{ID: p.ID, Title: remap.Title(p), Job: p.Job, User: p.User, Proposer: p.Proposer, Created: p.Created,
		State: p.State, Why: p.Why(), Expected: p.Expected(),
		Outcome: p.Ledger.Outcome(), Brought: p.Effect.Text()}
}

// take counts a finding as it last was in the period. It returns how long its confirmation took, if that was
// in the period.
func (r *Report) take(f *anomaly.Finding) (took []time.Duration) {
	if !f.Since.Before(r.From) {
		r.Record.Suspected++
	}
	confirmed, excluded := false, false
	for i, st := range f.Steps {
		in := !st.At.Before(r.From) && st.At.Before(r.To)
		switch st.State {
		case anomaly.Confirmed:
			if confirmed = true; in && (i == 0 || f.Steps[i-1].State != st.State) { // else in another condition
				r.Record.Confirmed++
				took = append(took, st.At.Sub(f.Steps[0].At))
			}
		case anomaly.Excluded:
			confirmed, excluded = true, true
		case anomaly.Dismissed:
			if in {
				r.Record.Dismissed++
			}
		case anomaly.Returned:
			if in && confirmed {
				r.Record.Returned++
			}
		}
	}
	if !confirmed {
		return took
	}
	s := Slow{ID: f.ID, Node: string(f.Node), Kind: f.Kind, State: f.State, Since: f.Since, Sentence: advise.AtWorst(f),
		Hurt: f.Impact, Excluded: excluded}
	end := r.end()
	if !f.Open() {
		s.Ended, s.Why = f.Changed, f.Why
		end = f.Changed
	}
	begin := f.Since
	if begin.Before(r.From) {
		begin = r.From
	}
	s.Seconds = max(0, end.Sub(begin).Seconds())
	r.Findings = append(r.Findings, s)
	return took
}
