package consoletest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

func row(p *api.PlanView) api.PlanRow {
	return api.PlanRow{ID: p.ID, Title: p.Title, State: p.State, Created: p.Created, Expires: p.Expires}
}

// AddPlan puts a plan on the fake desk as somebody else's proposal, waiting for approval.
func (f *Fake) AddPlan(m api.ManualRemap, proposer string) api.PlanView {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.wake()
	at := f.overview.SentAt
	p := &api.PlanView{Title: api.Counted(len(m.Nodes), "node") + " to " + string(m.To), PreviewHash: "hash-1",
		Needs: 1,
		Checks: []remap.Check{{Name: "fresh", Level: remap.Green, Text: "data is 0.4 s old"},
			{Name: "target", Level: remap.Amber, Text: string(m.To) + " was suspect 3 h ago"}}}
	p.Plan = remap.Plan{ID: fmt.Sprintf("P-%06d", len(f.plans)+1), Reason: m.Reason, Proposer: proposer, Created: at,
		Expires: at.Add(15 * time.Minute),
		State:   remap.Proposed, Changed: at, Force: m.Force, Moves: remap.MoveAll(m.Nodes, m.To)}
	read, write, occupancy, busy := 900e6, 812e6, 0.8, 0.6848
	p.Frozen = remap.Frozen{At: at, Healthy: 231, Idle: 126, Forwarders: map[topology.ForwarderID]remap.FrozenForwarder{
		"fwd001": {State: remap.ForwarderOK, Busy: &busy, Clients: 16, Load: remap.Load{LastSeen: at,
			ReadBytesPerSec: &read, WriteBytesPerSec: &write, Occupancy: &occupancy, PeakBytesPerSec: 2.5e9}},
		m.To: {State: remap.ForwarderIdle, Clients: 16, Load: remap.Load{LastSeen: at, PeakBytesPerSec: 2.5e9}},
	}}
	for i := range p.Moves {
		p.Moves[i].From = "fwd001"
		p.Lines = append(p.Lines, fmt.Sprintf("%s  fwd001 -> %s", p.Moves[i].Node, m.To))
	}
	f.plans = append(f.plans, p)
	return f.view(p)
}

// ChangePlan alters a plan as the machine would, between a preview and its approval.
func (f *Fake) ChangePlan(id string, change func(*api.PlanView)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.wake()
	for _, p := range f.plans {
		if p.ID == id {
			change(p)
		}
	}
}

// view is a plan as the caller sees it: who proposed may not approve.
func (f *Fake) view(p *api.PlanView) api.PlanView {
	v := *p
	if v.Proposer == f.overview.User {
		v.MayApprove = "you proposed it"
	}
	by := remap.Person{Name: f.overview.User, Role: remap.Role(f.overview.Role)}
	v.Options = remap.PlanOptions(by, v.State, v.MayApprove)
	v.Lines, v.Results = slices.Clone(p.Lines), slices.Clone(p.Results)
	return v
}

// Plans is console.Viewer's, the newest first.
func (f *Fake) Plans(context.Context) ([]api.PlanRow, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []api.PlanRow{}
	for _, p := range slices.Backward(f.plans) {
		out = append(out, row(p))
	}
	return out, f.lost
}

// Plan is console.Viewer's.
func (f *Fake) Plan(_ context.Context, id string) (api.PlanView, error) {
	return f.decide("", id, nil)
}

// decide finds a plan, notes the call and lets rule change it.
func (f *Fake) decide(verb, id string, rule func(*api.PlanView) error) (api.PlanView, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost != nil {
		return api.PlanView{}, f.lost
	}
	if verb != "" {
		f.Calls = append(f.Calls, verb+" "+id)
	}
	for _, p := range f.plans {
		if p.ID != id {
			continue
		}
		if rule != nil {
			if err := rule(p); err != nil {
				return api.PlanView{}, fmt.Errorf("plan %s: %w", id, err)
			}
			f.wake()
		}
		return f.view(p), nil
	}
	return api.PlanView{}, fmt.Errorf("plan %s: %w", id, api.ErrNotFound)
}

// Propose is console.Actor's.
func (f *Fake) Propose(_ context.Context, m api.ManualRemap) (api.PlanView, error) {
	f.mu.Lock()
	f.Calls = append(f.Calls, "propose "+string(m.To))
	lost, user := f.lost, f.overview.User
	f.mu.Unlock()
	if lost != nil {
		return api.PlanView{}, lost
	}
	return f.AddPlan(m, user), nil
}

// Approve is console.Actor's.
func (f *Fake) Approve(_ context.Context, id, hash, reason string) (api.PlanView, error) {
	return f.decide("approve", id, func(p *api.PlanView) error {
		switch {
		case p.State != remap.Proposed:
			return fmt.Errorf("%w: it is %s", api.ErrConflict, p.State)
		case p.Proposer == f.overview.User:
			return fmt.Errorf("%w: you proposed it", api.ErrNotAllowed)
		case hash != p.PreviewHash:
			return fmt.Errorf("%w: fwd200 went stale", api.ErrChanged)
		}
		p.Approvals = append(p.Approvals, remap.Approval{By: f.overview.User, At: f.overview.SentAt, Hash: hash,
			Reason: reason})
		p.State, p.Changed = f.Verify, f.overview.SentAt.Add(2*time.Second)
		for i, m := range p.Moves {
			r := remap.Result{Node: m.Node, OK: true, Tries: 1, Verified: f.Verify == remap.Verified}
			switch {
			case f.Verify == remap.Applying && i >= len(p.Moves)/2:
				continue
			case f.Verify == remap.Partial && i == 0:
				r = remap.Result{Node: m.Node, Tries: 3, Error: "mount does not answer"}
			}
			p.Results = append(p.Results, r)
		}
		return nil
	})
}

// Reject is console.Actor's.
func (f *Fake) Reject(_ context.Context, id, _ string) (api.PlanView, error) {
	return f.decide("reject", id, func(p *api.PlanView) error {
		if p.State != remap.Proposed {
			return fmt.Errorf("%w: it is %s", api.ErrConflict, p.State)
		}
		p.State = remap.Rejected
		return nil
	})
}

// RollBack is console.Actor's.
func (f *Fake) RollBack(_ context.Context, id, reason string) (api.PlanView, error) {
	return f.decide("roll back", id, func(p *api.PlanView) error {
		p.State, p.Goal = remap.RolledBack, remap.RolledBack
		p.Ended = &remap.Ended{By: f.overview.User, At: f.overview.SentAt, Reason: reason}
		moves := p.Moves
		if f.Verify == remap.RollingBack { // seen half way
			p.State, moves = remap.RollingBack, moves[:len(moves)/2]
		}
		for _, m := range moves {
			p.Undo = append(p.Undo, remap.Result{Node: m.Node, OK: true, Tries: 1, Verified: true})
		}
		return nil
	})
}

// Stop is console.Actor's.
func (f *Fake) Stop(_ context.Context, id, _ string) (api.PlanView, error) {
	return f.decide("stop", id, func(p *api.PlanView) error {
		p.State = remap.Partial
		return nil
	})
}

// Asked returns the writes that arrived so far.
func (f *Fake) Asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.Calls)
}
