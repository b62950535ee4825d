package desk

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// makePreview is the pure part of a preview: what the plan would do in situation s beside the
// other plans of the desk.
func makePreview(p remap.Plan, s *remap.Situation, others []remap.Plan, set Settings) remap.Preview {
	p.Moves = slices.Clone(p.Moves)
	if p.State == remap.Proposed {
		for i, m := range p.Moves {
			p.Moves[i].From = s.Observed[m.Node]
		}
	}
	v := remap.Preview{Plan: p, Title: remap.Title(&p), Lines: moveLines(p.Moves)}
	targets := remap.Targets(p.Moves)
	v.Checks = slices.Concat(
		checkFresh(targets, s),
		checkTargets(targets, p, s),
		checkAlone(targets, p, s),
		checkSources(p, s),
		checkFloor(targets, p, s, set),
		checkOthers(p, others),
	)
	v.Needs = approvalsNeeded(v, set)
	return v
}

// seal computes the hash once every check is there. Only what matters for the decision goes in: the
// moves and the level of each check, not ages and loads, which change every second.
func seal(v *remap.Preview) {
	type check struct {
		Name  string
		Level remap.CheckLevel
	}
	facts := struct {
		ID               string
		Job              topology.JobID
		Moves            []remap.Move
		Force, Dedicated bool
		Checks           []check
		Needs            int
	}{ID: v.Plan.ID, Job: v.Plan.Job, Moves: v.Plan.Moves, Force: v.Plan.Force, Dedicated: v.Plan.Dedicated,
		Needs: v.Needs}
	for _, c := range v.Checks {
		facts.Checks = append(facts.Checks, check{c.Name, c.Level})
	}
	b, err := json.Marshal(facts)
	if err != nil {
		panic("BUG: preview cannot be encoded: " + err.Error())
	}
	sum := sha256.Sum256(b)
	v.Hash = hex.EncodeToString(sum[:16])
}

// red returns the texts of the checks that forbid the plan.
func red(v *remap.Preview) (why []string) {
	for _, c := range v.Checks {
		if c.Level == remap.Red {
			why = append(why, c.Text)
		}
	}
	return why
}

// approvalsNeeded is two for a big or doubtful plan (docs/plans.md).
func approvalsNeeded(v remap.Preview, set Settings) int {
	amber := slices.ContainsFunc(v.Checks, func(c remap.Check) bool { return c.Level == remap.Amber })
	if set.TwoPersons && (amber || len(v.Plan.Moves) > set.BigPlan) {
		return 2
	}
	return 1
}

// diff says in words how a preview differs from an older one.
func diff(v, old *remap.Preview) string {
	var out []string
	for i, m := range v.Plan.Moves {
		if i < len(old.Plan.Moves) && old.Plan.Moves[i] != m {
			out = append(out, fmt.Sprintf("%s was on %s and is on %s", m.Node, orUnknown(old.Plan.Moves[i].From),
				orUnknown(m.From)))
		}
		if len(out) == 5 {
			out = append(out, "and more")
			break
		}
	}
	was := map[string]remap.CheckLevel{}
	for _, c := range old.Checks {
		was[c.Name] = c.Level
	}
	for _, c := range v.Checks {
		if was[c.Name] != c.Level {
			out = append(out, fmt.Sprintf("%s is %s: %s", c.Name, c.Level, c.Text))
		}
	}
	if v.Needs != old.Needs {
		out = append(out, fmt.Sprintf("needs %d approvals, needed %d", v.Needs, old.Needs))
	}
	return strings.Join(out, "; ")
}

// moveLines groups moves of the same way, in the order of their first node.
func moveLines(moves []remap.Move) []string {
	type way struct{ from, to topology.ForwarderID }
	var order []way
	nodes := map[way][]topology.NodeID{}
	for _, m := range moves {
		w := way{m.From, m.To}
		if nodes[w] == nil {
			order = append(order, w)
		}
		nodes[w] = append(nodes[w], m.Node)
	}
	lines := make([]string, 0, len(order))
	for _, w := range order {
		verb := fmt.Sprintf("  %s -> %s", orUnknown(w.from), w.to)
		if w.from == w.to {
			verb = fmt.Sprintf("  stay on %s", w.to)
		}
		lines = append(lines, foldNodes(nodes[w])+verb)
	}
	return lines
}

// foldNodes names nodes so shortly that the way behind them is seen in a narrow terminal: as ranges, or
// the first ones where these say no less than all names.
func foldNodes(nodes []topology.NodeID) string {
	const most = 40 // letters
	if len(nodes) == 1 {
		return string(nodes[0])
	}
	if text := fmt.Sprintf("%s (%d)", topology.FoldHostList(nodes), len(nodes)); len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s %s and %d more", nodes[0], nodes[1], len(nodes)-2)
}

// shorten lists up to eight names.
func shorten(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], " "), len(names)-most)
}

func orUnknown(f topology.ForwarderID) string {
	if f == "" {
		return "(not known)"
	}
	return string(f)
}

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
	var healthy []string
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
			c.Level, c.Text = remap.Red, accusation(f)
		case accused:
			c.Level, c.Text = remap.Amber, accusation(f)
		default:
			healthy = append(healthy, string(id))
			continue
		}
		checks = append(checks, c)
	}
	switch n := len(healthy); {
	case n == 1:
		checks = append(checks, remap.Check{Name: "targets", Level: remap.Green, Text: healthy[0] + " is healthy"})
	case n > 1:
		checks = append(checks, remap.Check{Name: "targets", Level: remap.Green,
			Text: fmt.Sprintf("%d targets are healthy: %s", n,
				shorten(healthy))})
	}
	return checks
}

func oneCheck(name string, level remap.CheckLevel, text string) []remap.Check {
	return []remap.Check{{Name: name, Level: level, Text: text}}
}

// accusation is a finding that holds its forwarder responsible, as a check says it.
func accusation(f anomaly.Finding) string {
	return fmt.Sprintf("%s is %s: %s (%s)", f.Node, f.State, remap.KindWords(f.Kind), f.ID)
}

// checkAlone asks that nobody else's compute nodes use a forwarder that is to be dedicated.
func checkAlone(targets []topology.ForwarderID, p remap.Plan, s *remap.Situation) []remap.Check {
	if !p.Dedicated {
		return nil
	}
	wanted := map[topology.ForwarderID]bool{} // those that serve anybody
	for _, f := range targets {
		if s.Clients[f] > 0 {
			wanted[f] = true
		}
	}
	for _, j := range s.Jobs {
		if j.ID == p.Job || len(wanted) == 0 {
			continue
		}
		for _, n := range j.Nodes {
			if f := s.Observed[n]; wanted[f] {
				return oneCheck("alone", remap.Red, fmt.Sprintf("%s serves %s of job %s and cannot be dedicated", f, n,
					j.ID))
			}
		}
	}
	return oneCheck("alone", remap.Green, "no other job uses the targets")
}

// checkSources asks that every node's present forwarder is known, since it is the way back.
func checkSources(p remap.Plan, s *remap.Situation) []remap.Check {
	var unknown, stay, lingering []string
	for _, m := range p.Moves {
		switch r := s.Routes[m.Node]; {
		case m.From == "":
			unknown = append(unknown, string(m.Node))
		case m.From == m.To:
			stay = append(stay, string(m.Node))
		case len(r.Lingering) > 0:
			lingering = append(lingering, string(m.Node))
		}
	}
	switch {
	case len(unknown) > 0:
		return oneCheck("source", remap.Red, "present forwarder not known: "+shorten(unknown))
	case len(stay) == len(p.Moves):
		return oneCheck("source", remap.Red, "nothing to do: every node is there already")
	case len(stay) > 0:
		return oneCheck("source", remap.Green, "already there: "+shorten(stay))
	case len(lingering) > 0:
		return oneCheck("source", remap.Green, "old connections remain: "+shorten(lingering))
	}
	return oneCheck("source", remap.Green, "the way back is known for every node")
}

func checkFloor(targets []topology.ForwarderID, p remap.Plan, s *remap.Situation, set Settings) []remap.Check {
	left := s.ForEverybody(s.Owner, nil)
	text := fmt.Sprintf("%s for everybody (floor %d)", remap.Counted(left, "healthy forwarder"), set.HealthyFloor)
	if p.Dedicated {
		now := left
		left = s.ForEverybody(s.Owner, targets)
		_, idle := s.Healthy()
		text = fmt.Sprintf("healthy forwarders for everybody %d -> %d (floor %d), idle %d", now, left, set.HealthyFloor,
			idle)
	}
	if left < set.HealthyFloor {
		return oneCheck("floor", remap.Red, text)
	}
	return oneCheck("floor", remap.Green, text)
}

// checkOthers refuses to move a node that another plan is moving.
func checkOthers(p remap.Plan, others []remap.Plan) []remap.Check {
	mine := map[topology.NodeID]bool{}
	for _, m := range p.Moves {
		mine[m.Node] = true
	}
	for _, o := range others {
		if o.ID == p.ID || !o.State.Moving() {
			continue
		}
		for _, m := range o.Moves {
			if mine[m.Node] {
				return oneCheck("others", remap.Red, fmt.Sprintf("%s is being moved by %s (%s)", m.Node, o.ID, o.State))
			}
		}
	}
	return oneCheck("others", remap.Green, "no other plan is moving these nodes")
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
