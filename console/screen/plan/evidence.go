package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/remap"
	"fairway/webui/api"
)

// evidenceLines are what the desk knew when the plan was proposed, or last approved: the forwarders that
// it touches as they were then beside what they are now, and the open findings about them.
func (p *Screen) evidenceLines(s *screen.State, w int) []string {
	f := &p.plan.Value.Frozen
	if f.At.IsZero() {
		return chart.Labelled("EVIDENCE", "none was kept with this plan", w)
	}
	when := "proposed"
	if len(p.plan.Value.Approvals) > 0 {
		when = "last approved"
	}
	text := fmt.Sprintf("as it was at %s, when the plan was %s: %s healthy, %d of them idle",
		chart.Moment(f.At, s.Now), when, anomaly.Counted(f.Healthy, "forwarder"), f.Idle)
	if f.Unknown > 0 {
		text += fmt.Sprintf(", %d of unknown load", f.Unknown)
	}
	lines := chart.Labelled("EVIDENCE", text, w)
	head := " FORWARDER     THEN       READ  WRITE   OCC%     CN   NOW        READ  WRITE   OCC%     CN"
	wide := w >= len(head)
	if !wide {
		head = " FORWARDER     THEN       READ  WRITE   OCC%     CN   NOW"
	}
	lines = append(lines, s.Bold(chart.Clip(head, w)))
	ids := slices.Sorted(maps.Keys(f.Forwarders))
	for _, id := range ids {
		lines = append(lines, chart.Clip(p.thenAndNow(s, id, f.Forwarders[id], wide), w))
	}
	found := false
	for _, one := range screen.OpenFindings(s.Shown.Findings) {
		if !slices.Contains(ids, topology.ForwarderID(one.Node)) {
			continue
		}
		found = true
		lines = append(lines, chart.Labelled(chart.Clean(one.ID), screen.Subject(one.Node)+" "+screen.StateOf(s, &one)+
			": "+chart.Clean(one.Sentence),
			w)...)
	}
	if !found {
		lines = append(lines, chart.Labelled("FINDINGS", "none is open about these forwarders now", w)...)
	}
	return append(lines, chart.Clip(" Rates in MB/s, occupancy of the hour before. "+s.Key(screen.ActEvidence)+
		" goes back to the plan.", w))
}

// thenAndNow is one touched forwarder.
func (p *Screen) thenAndNow(s *screen.State, id topology.ForwarderID, then remap.FrozenForwarder, wide bool) string {
	read, write, occupancy := then.Load.ReadBytesPerSec, then.Load.WriteBytesPerSec, then.Load.Occupancy
	if then.State == remap.ForwarderStale || then.Load.LastSeen.IsZero() { // its numbers were old then, or none
		read, write, occupancy = nil, nil, nil
	}
	if then.Load.PeakBytesPerSec == 0 { // without a peak no second counts as occupied
		occupancy = nil
	}
	row := func(state string, read, write, occupancy *float64, clients int) string {
		return chart.Row([]int{-9, 6, 7, 7, 7}, state, chart.Mega(read), chart.Mega(write), chart.Ratio(occupancy),
			strconv.Itoa(clients))
	}
	line := " " + chart.Left(chart.Clean(string(id)), 13) + " " + row(chart.Clean(then.State.Text(then.Busy)), read,
		write, occupancy, then.Clients)
	now := s.Forwarder(id)
	switch {
	case now == nil:
		return line + "   gone from the machine"
	case !wide:
		return line + "   " + chart.Left(s.StandingText(now), 9)
	}
	return line + "   " + row(s.StandingText(now), s.Value(now, now.Value(collector.ReadBytes)),
		s.Value(now, now.Value(collector.WriteBytes)), s.Value(now, now.Occupancy), now.Clients)
}

// previewLines are what an approval is of.
func previewLines(v *api.PlanView) []string {
	lines := slices.Clone(v.Lines)
	for _, c := range v.Checks {
		lines = append(lines, string(c.Level)+" "+c.Name)
	}
	return lines
}

// diff lists what is only in was and only in is; the order of a preview carries no meaning.
func diff(was, is []string) []string {
	var out []string
	for _, l := range was {
		if !slices.Contains(is, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range is {
		if !slices.Contains(was, l) {
			out = append(out, "+ "+l)
		}
	}
	return out
}
