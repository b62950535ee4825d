package console

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// evidenceLines are what the desk knew when the plan was proposed, or last approved: the forwarders that
// it touches as they were then beside what they are now, and the open findings about them.
func (p *planPage) evidenceLines(s *State, w int) []string {
	f := &p.plan.Value.Frozen
	if f.At.IsZero() {
		return labelled("EVIDENCE", "none was kept with this plan", w)
	}
	when := "proposed"
	if len(p.plan.Value.Approvals) > 0 {
		when = "last approved"
	}
	lines := labelled("EVIDENCE", fmt.Sprintf("as it was at %s, when the plan was %s: %s healthy, %d of them idle",
		moment(f.At, s.Now), when, api.Counted(f.Healthy, "forwarder"), f.Idle), w)
	head := " FORWARDER     THEN       READ  WRITE   OCC%     CN   NOW        READ  WRITE   OCC%     CN"
	wide := w >= len(head)
	if !wide {
		head = " FORWARDER     THEN       READ  WRITE   OCC%     CN   NOW"
	}
	lines = append(lines, s.Bold(clip(head, w)))
	ids := slices.Sorted(maps.Keys(f.Forwarders))
	for _, id := range ids {
		lines = append(lines, clip(p.thenAndNow(s, id, f.Forwarders[id], wide), w))
	}
	found := false
	for _, one := range openFindings(s.Shown.Findings) {
		if !slices.Contains(ids, topology.ForwarderID(one.Node)) {
			continue
		}
		found = true
		lines = append(lines, labelled(clean(one.ID), subject(one.Node)+" "+stateOf(s, &one)+": "+clean(one.Sentence),
			w)...)
	}
	if !found {
		lines = append(lines, labelled("FINDINGS", "none is open about these forwarders now", w)...)
	}
	return append(lines, clip(" Rates in MB/s, occupancy of the hour before. "+s.Key(actEvidence)+
		" goes back to the plan.", w))
}

// thenAndNow is one touched forwarder.
func (p *planPage) thenAndNow(s *State, id topology.ForwarderID, then remap.FrozenForwarder, wide bool) string {
	read, write, occupancy := &then.Load.ReadBytesPerSec, &then.Load.WriteBytesPerSec, &then.Load.Occupancy
	if then.State == remap.ForwarderStale || then.Load.LastSeen.IsZero() { // its numbers were old then, or none
		read, write, occupancy = nil, nil, nil
	}
	if then.Load.PeakBytesPerSec == 0 { // without a peak no second counts as occupied
		occupancy = nil
	}
	line := " " + left(clean(string(id)), 13) + " " + left(clean(string(then.State)), 9) + right(mega(read), 6) +
		right(mega(write), 7) + right(ratio(occupancy), 7) + right(strconv.Itoa(then.Clients), 7)
	now := s.Forwarder(id)
	if now == nil {
		return line + "   gone from the machine"
	}
	line += "   " + left(string(s.Standing(now)), 9)
	if !wide {
		return line
	}
	return line + right(mega(s.Value(now, now.ReadBytesPerSec)), 6) + right(mega(s.Value(now, now.WriteBytesPerSec)),
		7) +
		right(ratio(s.Value(now, now.Occupancy)), 7) + right(strconv.Itoa(now.Clients), 7)
}
