package desk

import (
	"fmt"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

func checkFresh(targets []topology.ForwarderID, s *remap.Situation) []remap.Check {
	c := remap.Check{Name: "fresh", Level: remap.Green}
	var oldest struct {
		id  topology.ForwarderID
		age float64
	}
	for _, id := range targets {
		load, seen := s.Load[id]
		if !seen {
			return oneCheck("fresh", remap.Red, fmt.Sprintf("no data of %s", id))
		}
		if a := s.At.Sub(load.LastSeen); a.Seconds() >= oldest.age {
			oldest.id, oldest.age = id, a.Seconds()
			c.Text = fmt.Sprintf("data of %s is %s old", id, age(a))
		}
	}
	switch {
	case oldest.age > remap.StaleAfter.Seconds():
		c.Level = remap.Red
	case oldest.age > remap.LateAfter.Seconds():
		c.Level = remap.Amber
	default:
		c.Text = "fresh " + c.Text
	}
	return []remap.Check{c}
}

func checkTargets(targets []topology.ForwarderID, p remap.Plan, s *remap.Situation) []remap.Check {
	var checks []remap.Check
	var healthy []topology.ForwarderID
	for _, id := range targets {
		c := remap.Check{Name: "target " + string(id)}
		f, accused := s.Accused(id)
		owner, owned := s.Owner[id]
		switch {
		case s.Excluded[id] != "":
			c.Level, c.Text = remap.Red, fmt.Sprintf("%s is excluded: %s", id, s.Excluded[id])
		case owned && owner != p.Job:
			c.Level, c.Text = remap.Red, fmt.Sprintf("%s is dedicated to job %s", id, owner)
		case accused && f.State != anomaly.Suspect && f.State != anomaly.Probation:
			c.Level, c.Text = remap.Red, remap.Accusation(&f)
		case accused:
			c.Level, c.Text = remap.Amber, remap.Accusation(&f)
		case s.State(id) == remap.ForwarderUnknown:
			c.Level, c.Text = remap.Amber, fmt.Sprintf("what %s moves is not known: it may be full", id)
		default:
			healthy = append(healthy, id)
			continue
		}
		checks = append(checks, c)
	}
	switch n := len(healthy); {
	case n == 1:
		checks = append(checks, remap.Check{Name: "targets", Level: remap.Green,
			Text: string(healthy[0]) + " is healthy"})
	case n > 1:
		checks = append(checks, remap.Check{Name: "targets", Level: remap.Green,
			Text: fmt.Sprintf("%d targets are healthy: %s", n,
				shorten(healthy))})
	}
	return checks
}

// checkBackEnds asks that nobody is sent to where a back end is slow: from one forwarder of it to another
// that helps nobody.
func checkBackEnds(targets []topology.ForwarderID, p remap.Plan, s *remap.Situation) (checks []remap.Check) {
	for _, id := range targets {
		f, sick := s.SickBehind(id)
		if !sick {
			continue
		}
		c := remap.Check{Name: "back end of " + string(id), Level: remap.Amber,
			Text: fmt.Sprintf("%s is behind %s: %s", f.Node, id, remap.Accusation(&f))}
		for _, m := range p.Moves {
			if from := m.Sources(); m.To == id && len(from) > 0 && !slices.ContainsFunc(from,
				func(g topology.ForwarderID) bool { return s.Load[g].BackEnd != f.Node }) {
				c.Level = remap.Red
				c.Text = fmt.Sprintf("%s is behind %s and %s alike: %s; a move between them helps nobody", f.Node,
					fromText(m), id, remap.Accusation(&f))
				break
			}
		}
		checks = append(checks, c)
	}
	return checks
}

func oneCheck(name string, level remap.CheckLevel, text string) []remap.Check {
	return []remap.Check{{Name: name, Level: level, Text: text}}
}

// checkAlone asks that nobody else's compute nodes use a forwarder that is to be dedicated.
func checkAlone(targets []topology.ForwarderID, p remap.Plan, s *remap.Situation) []remap.Check {
	if !p.Dedicated {
		return nil
	}
	wanted := map[topology.ForwarderID]bool{} // those that serve anybody
	for _, f := range targets {
		if s.Clients[f]+s.Assumed[f]+s.Sharing[f] > 0 {
			wanted[f] = true
		}
	}
	for _, j := range s.Jobs {
		if j.ID == p.Job || len(wanted) == 0 {
			continue
		}
		for _, n := range j.Nodes {
			for _, over := range s.Over(n) {
				if f := over.Forwarder; wanted[f] {
					return oneCheck("alone", remap.Red,
						fmt.Sprintf("%s serves %s of job %s and cannot be dedicated", f, n, j.ID))
				}
			}
		}
	}
	return oneCheck("alone", remap.Green, "no other job uses the targets")
}

// checkSources asks that every node's present forwarder is known, since it is the way back.
func checkSources(p remap.Plan, s *remap.Situation) []remap.Check {
	var unknown, stay, lingering, spread []topology.NodeID
	for _, m := range p.Moves {
		switch r := s.Routes[m.Node]; {
		case m.Spread != "":
			spread = append(spread, m.Node)
		case m.From == "":
			unknown = append(unknown, m.Node)
		case m.From == m.To:
			stay = append(stay, m.Node)
		case len(r.Lingering) > 0:
			lingering = append(lingering, m.Node)
		}
	}
	switch {
	case len(unknown) > 0:
		return oneCheck("source", remap.Red, "present forwarder not known: "+shorten(unknown))
	case len(stay) == len(p.Moves):
		return oneCheck("source", remap.Red, "nothing to do: every node is there already")
	case len(stay) > 0:
		return oneCheck("source", remap.Green, "already there: "+shorten(stay))
	case len(spread) > 0:
		return oneCheck("source", remap.Green,
			"over several forwarders now, and over all of them again after a roll back: "+shorten(spread))
	case len(lingering) > 0:
		return oneCheck("source", remap.Green, "old connections remain: "+shorten(lingering))
	}
	return oneCheck("source", remap.Green, "the way back is known for every node")
}

func checkFloor(targets []topology.ForwarderID, p remap.Plan, s *remap.Situation, set *Settings) []remap.Check {
	left := s.ForEverybody(s.Owner, nil)
	text := fmt.Sprintf("%s for everybody (floor %d)", anomaly.Counted(left, "healthy forwarder"), set.HealthyFloor)
	if p.Dedicated {
		now := left
		left = s.ForEverybody(s.Owner, targets)
		_, idle := s.Healthy()
		text = fmt.Sprintf("healthy forwarders for everybody %d -> %d (floor %d), idle %d", now, left, set.HealthyFloor,
			idle)
	}
	if n := s.Unknown(); n > 0 {
		text += fmt.Sprintf("; not counted: %d of unknown load", n)
	}
	if left < set.HealthyFloor {
		return oneCheck("floor", remap.Red, text)
	}
	return oneCheck("floor", remap.Green, text)
}

// age writes a duration as screens do: "0.4s", "12s", "4m".
func age(d time.Duration) string {
	switch {
	case d < remap.LateAfter:
		return fmt.Sprintf("%.1fs", max(d, 0).Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	}
	return fmt.Sprintf("%.0fm", d.Minutes())
}

// checkHarm is the bound of harm: it is amber while the last judged plan of this kind made its job slower. The next one
// then waits for people.
func checkHarm(last *remap.Plan) []remap.Check {
	if last == nil {
		return nil
	}
	harm := last.Harm()
	if harm == "" {
		return oneCheck("harm", remap.Green, fmt.Sprintf("%s, the last plan of this kind, did no harm", last.ID))
	}
	return oneCheck("harm", remap.Amber, fmt.Sprintf(
		"%s, the last plan of %s for this program, did harm: %s", last.ID, last.Proposer, harm))
}
