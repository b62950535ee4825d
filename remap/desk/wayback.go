package desk

import (
	"context"
	"fmt"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

// noWayBack says which forwarder the plan's nodes would go back to that is not well; empty: all of them are.
func (d *runs) noWayBack(e *entry, s *remap.Situation, now time.Time) string {
	seen := map[topology.ForwarderID]bool{}
	for i := range e.Moves {
		for _, f := range e.Moves[i].Sources() {
			if seen[f] {
				continue
			}
			seen[f] = true
			if why := d.unfit(f, s, now); why != "" {
				return remap.StayText(why, inWords(d.cfg.Settings.ReturnAfter))
			}
		}
	}
	return ""
}

// NoWayBack says why a plan's nodes would wait with their way back; empty: they would not. Errors: ErrNotFound.
func (d *answers) NoWayBack(ctx context.Context, id string) (why string, err error) {
	s := d.cfg.Situation()
	err = d.rec.do(ctx, func() error {
		e, err := d.rec.state.plans.get(id)
		if err == nil {
			why = d.runs.noWayBack(e, s, time.Now())
		}
		return err
	})
	return why, err
}

// unfit says why nodes are not brought back to a forwarder at present; empty: they may be.
func (d *runs) unfit(f topology.ForwarderID, s *remap.Situation, now time.Time) string {
	if out, excluded := d.rec.state.exclusions.of[f]; excluded {
		return fmt.Sprintf("%s is excluded: %s", f, out.Words())
	}
	if c := s.OutOfService(f); c != "" {
		return fmt.Sprintf("%s is %s", f, c)
	}
	if g, accused := d.rec.state.findings.accuses(f); accused {
		return remap.Accusation(g)
	}
	for g := range d.rec.state.findings.on(f.Node()) {
		if !wasConfirmed(g) || g.State == anomaly.Dismissed {
			continue
		}
		if well := now.Sub(g.Changed); well < d.cfg.Settings.ReturnAfter {
			return fmt.Sprintf("%s has been well for %s only (%s)", f, age(well), g.ID)
		}
	}
	if load, reported := s.Load[f]; reported && s.At.Sub(load.LastSeen) > remap.StaleAfter {
		return fmt.Sprintf("%s has not reported for %s", f, age(s.At.Sub(load.LastSeen)))
	}
	return ""
}

// wasConfirmed says whether a finding accused its node and was ever more than a suspicion.
func wasConfirmed(f *anomaly.Finding) bool {
	return f.Kind.Accuses() && slices.ContainsFunc(f.Steps, func(s anomaly.Step) bool {
		return s.State == anomaly.Confirmed || s.State == anomaly.Excluded
	})
}

// goBack begins a roll back that has waited, once all forwarders that nodes go to are well and no later
// plan holds them.
func (d *runs) goBack(e *entry, now time.Time) {
	if later, _ := d.rec.state.plans.movedOn(e); later != "" || d.noWayBack(e, d.cfg.Situation(), now) != "" {
		return
	}
	if d.step(e, &journal.Record{At: now, Kind: journal.StepRollBack, State: remap.RollingBack, Goal: e.Back.Goal,
		Reason: "asked by " + e.Back.By + "; where its nodes come from is well again"}) {
		d.advance(e, now)
	}
}
