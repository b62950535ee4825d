package desk

import (
	"fmt"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

// state is what the journal's records add up to, a table a noun. Only take changes it, at replay and live alike,
// so that a restart ends where the last record left off.
type state struct {
	plans      planTable
	exclusions exclusionTable
	standings  standingTable
	findings   findingTable
	keys       keyTable
	trust      trustTable
}

func newState() *state {
	return &state{plans: newPlanTable(), exclusions: newExclusionTable(),
		findings: findingTable{at: map[string]int{}, ofNode: map[topology.NodeID][]int{}}, keys: keyTable{}}
}

// draft is what the first records of a batch will have changed when a later one comes.
type draft struct {
	states   map[string]remap.PlanState
	proposed int
	excluded map[topology.ForwarderID]bool
	standing map[string]bool
}

// note adds a record to the draft.
func (d *draft) note(r *journal.Record) {
	if d.states == nil {
		*d = draft{states: map[string]remap.PlanState{}, excluded: map[topology.ForwarderID]bool{},
			standing: map[string]bool{}}
	}
	switch {
	case r.Exclusion != nil:
		d.excluded[r.Exclusion.Forwarder] = r.Kind != journal.StepReturn
	case r.Standing != nil:
		d.standing[r.Standing.ID] = r.Kind == journal.StepAllow
	case r.Kind == journal.StepPropose:
		d.proposed++
		d.states[r.Plan] = r.Proposed.State
	case r.State != "":
		d.states[r.Plan] = r.State
	}
}

// check says which record of a batch does not follow from the state and the records before it.
func (s *state) check(recs []*journal.Record) error {
	var d draft
	for i, r := range recs {
		var err error
		switch r.Kind {
		case journal.StepExclude, journal.StepReturn, journal.StepMaintenance:
			err = s.exclusions.check(r, &d)
		case journal.StepFinding:
			err = s.findings.check(r)
		case journal.StepAllow, journal.StepRevoke:
			err = s.standings.check(r, &d)
		case journal.StepRevokeNodes, journal.StepRevoked:
			err = s.trust.check(r)
		case journal.StepCanary, journal.StepCanaryDone, journal.StepEnrol:
		default:
			err = s.plans.check(r, &d)
		}
		if err != nil {
			return fmt.Errorf("step %s does not fit: %w", r.Kind, err)
		}
		if i < len(recs)-1 {
			d.note(r)
		}
	}
	return nil
}

// take makes a checked record part of the state.
func (s *state) take(r *journal.Record) {
	s.keys.take(r)
	switch r.Kind {
	case journal.StepExclude, journal.StepReturn, journal.StepMaintenance:
		s.exclusions.take(r)
	case journal.StepFinding:
		s.findings.take(r)
	case journal.StepAllow, journal.StepRevoke:
		s.standings.take(r)
	case journal.StepRevokeNodes, journal.StepRevoked:
		s.trust.take(r)
	case journal.StepCanary, journal.StepCanaryDone, journal.StepEnrol:
		// Nothing follows from it but its place in the audit.
	default:
		s.plans.take(r)
	}
}

// replay takes a record that is in the journal already.
func (s *state) replay(r *journal.Record) error {
	if err := s.check([]*journal.Record{r}); err != nil {
		return err
	}
	s.take(r)
	return nil
}
