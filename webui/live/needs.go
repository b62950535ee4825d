package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// needs are what waits for a person at now: findings that hurt somebody, who suffers most first, links that are not
// what they were and hurt nobody yet, then the plans that belong to none of them. A finding that somebody looks after
// or has silenced is not among them.
func needs(sit *remap.Situation, plans []remap.Plan, now time.Time) []api.Need {
	out, used := []api.Need{}, map[string]bool{}
	var early []api.Need                                        // hurt nobody yet
	var clients map[topology.ForwarderID]map[topology.JobID]int // counted once somebody asks
	jobs := make(map[topology.JobID]*remap.Job, len(sit.Jobs))
	for i := range sit.Jobs {
		jobs[sit.Jobs[i].ID] = &sit.Jobs[i]
	}
	for i := range sit.Findings {
		f := &sit.Findings[i]
		if !urgent(f, sit, now) {
			continue
		}
		if clients == nil {
			clients = clientsByJob(sit)
		}
		n := need(f, jobs, behind(clients, f.Node, sit), plans, sit)
		slow := f.Kind == anomaly.FailSlow && f.State == anomaly.Confirmed // and hurts the next job, too
		if len(n.Victims) == 0 && !slow && !f.OfLink() && f.Kind != anomaly.ForwarderSilent {
			continue // whom it hurt has ended
		}
		if n.Plan != "" {
			used[n.Plan] = true
		}
		if f.OfLink() && len(n.Victims) == 0 {
			early = append(early, n)
		} else {
			out = append(out, n)
		}
	}
	for _, all := range [][]api.Need{out, early} {
		slices.SortStableFunc(all, func(a, b api.Need) int {
			return cmp.Or(cmp.Compare(gravity(&b), gravity(&a)), a.Since.Compare(b.Since))
		})
	}
	out = append(out, early...)
	for i := range plans {
		if p := &plans[i]; !used[p.ID] {
			n := api.Need{Plan: p.ID, State: "plan", What: remap.Title(p), Since: p.Created.UTC(),
				Victims: []api.Victim{}, Remedy: &api.Remedy{Plan: p.ID, Action: remap.ActApprove, Key: "A",
					Text: moveText(p, plans, sit)}}
			out = append(out, n)
		}
	}
	return out
}

// needsThen are the needs of a past second, of which no moves of plans are at hand.
func needsThen(o *api.Overview, sit *remap.Situation, end time.Time) []api.Need {
	out, used := needs(sit, nil, end), map[string]bool{}
	for i := range out {
		n := &out[i]
		k := slices.IndexFunc(o.Forwarders, func(r api.ForwarderRow) bool { return r.ID.Node() == n.Node })
		if k < 0 || o.Forwarders[k].Plan == "" {
			continue
		}
		n.Plan = o.Forwarders[k].Plan
		used[n.Plan] = true
		n.Remedy = &api.Remedy{Plan: n.Plan, Action: remap.ActApprove, Key: "A", Text: "look at the plan that waited"}
	}
	for _, p := range o.Waiting {
		if !used[p.ID] {
			out = append(out, api.Need{Plan: p.ID, State: "plan", What: p.Title, Since: p.Created,
				Victims: []api.Victim{}, Remedy: &api.Remedy{Plan: p.ID, Action: remap.ActApprove, Key: "A",
					Text: "look at the plan that waited"}})
		}
	}
	return append(out, silent(o.Forwarders)...)
}

// silent is the need of the forwarders that report nothing and of which no finding says so: their numbers are missing
// from all that is shown.
func silent(rows []api.ForwarderRow) []api.Need {
	n := api.Need{State: "silent", Victims: []api.Victim{},
		Remedy: &api.Remedy{Action: api.ActLook, Key: "n", Text: "see whether its agent runs"}}
	var names []string
	for i := range rows {
		r := &rows[i]
		if r.State != api.StateStale {
			continue
		}
		if n.Node == "" {
			n.Node = r.ID.Node()
		}
		names = append(names, string(r.ID))
		if !r.LastSeen.IsZero() && (n.Since.IsZero() || r.LastSeen.Before(n.Since)) {
			n.Since = r.LastSeen
		}
	}
	if len(names) == 0 {
		return nil
	}
	n.What = fmt.Sprintf("%s silent: %s", anomaly.Counted(len(names), "forwarder"), shortNodes(names))
	return []api.Need{n}
}

// bySuffering orders findings as the needs that they are, then what else is open, then what is over; of equals the
// newest first.
func bySuffering(all []anomaly.Finding, needs []api.Need) []anomaly.Finding {
	place := make(map[string]int, len(needs))
	for i := range needs {
		place[needs[i].Finding] = i - len(needs)
	}
	rank := func(f *anomaly.Finding) int {
		switch at, ok := place[f.ID]; {
		case ok:
			return at
		case !f.Open():
			return 2
		case !f.Kind.Accuses():
			return 1
		}
		return 0
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b anomaly.Finding) int {
		return cmp.Or(rank(&a)-rank(&b), b.Since.Compare(a.Since))
	})
	return all
}

// NeedOf is one finding as a need, also where it needs nobody; plans are those that wait.
func NeedOf(f *anomaly.Finding, sit *remap.Situation, plans []remap.Plan) api.Need {
	jobs := map[topology.JobID]*remap.Job{}
	for i := range sit.Jobs {
		jobs[sit.Jobs[i].ID] = &sit.Jobs[i]
	}
	return need(f, jobs, behind(clientsByJob(sit), f.Node, sit), plans, sit)
}

// behind counts the nodes of each job behind a forwarder, or behind the gateways of a back end.
func behind(clients map[topology.ForwarderID]map[topology.JobID]int, node topology.NodeID,
	sit *remap.Situation) map[topology.JobID]int {
	if on := clients[topology.ForwarderID(node)]; on != nil {
		return on
	}
	out := map[topology.JobID]int{}
	for f, on := range clients {
		if sit.Load[f].BackEnd == node {
			for id, n := range on {
				out[id] += n
			}
		}
	}
	return out
}

// need is a finding as a need; on counts the nodes of each job behind its node.
func need(f *anomaly.Finding, jobs map[topology.JobID]*remap.Job, on map[topology.JobID]int, plans []remap.Plan,
	sit *remap.Situation) api.Need {
	n := api.Need{Finding: f.ID, Node: f.Node, State: api.NeedState(f), Times: f.Times,
		What: cmp.Or(f.Sentence, string(f.Node)+": "+remap.KindWords(f.Kind)), Since: f.Since.UTC(),
		Victims: []api.Victim{}}
	for _, hurt := range f.Impact {
		v := api.Victim{Job: hurt.Job, Share: hurt.Share, CostSeconds: hurt.CostSeconds, Waiting: on[hurt.Job]}
		if j := jobs[hurt.Job]; j != nil {
			v.App, v.User, v.Nodes = j.App, j.User, len(j.Nodes)
		} else if v.Share == 0 || len(jobs) > 0 {
			continue // it has ended
		}
		v.Write()
		n.Victims = append(n.Victims, v)
	}
	n.Remedy = remedy(f, n.Waits(), plans, sit)
	n.Plan = n.Remedy.Plan
	return n
}

// urgent says that a finding hurts somebody, or will hurt the next one who moves much, and nobody does anything about
// it yet.
func urgent(f *anomaly.Finding, sit *remap.Situation, now time.Time) bool {
	switch {
	case f.State != anomaly.Suspect && f.State != anomaly.Confirmed, f.Owner != "", f.Silent(now):
		return false
	case f.Kind == anomaly.ForwarderSilent:
		id := topology.ForwarderID(f.Node)
		return sit.Clients[id]+sit.Sharing[id] > 0
	}
	return f.OfLink() ||
		slices.ContainsFunc(f.Impact, func(i anomaly.Impact) bool { return i.Share > 0 || i.CostSeconds > 0 })
}

// gravity orders needs: confirmed before suspected, then by the time that nodes lose in each second.
func gravity(n *api.Need) float64 {
	sum := 0.0
	for _, v := range n.Victims {
		sum += v.Share*float64(max(1, v.Waiting)) + min(v.CostSeconds, 1e6)*1e-9
	}
	switch n.State {
	case "slow", "silent":
		sum += 1e9
	case "suspect":
		sum -= 1e9
	}
	return sum
}

// clientsByJob counts the nodes of each job behind each forwarder; one that uses several counts at each.
func clientsByJob(sit *remap.Situation) map[topology.ForwarderID]map[topology.JobID]int {
	out := map[topology.ForwarderID]map[topology.JobID]int{}
	for i := range sit.Jobs {
		for _, n := range sit.Jobs[i].Nodes {
			on := sit.SpreadOf(n)
			if f, ok := sit.Observed[n]; ok {
				on = []topology.Share{{Forwarder: f, Part: 1}}
			}
			for _, over := range on {
				if id := over.Forwarder; out[id] == nil {
					out[id] = map[topology.JobID]int{}
				}
				out[over.Forwarder][sit.Jobs[i].ID]++
			}
		}
	}
	return out
}

// remedy is what helps against a finding: a waiting plan that moves nodes away, else what a person may do; waits says
// that some job waits for it now.
func remedy(f *anomaly.Finding, waits bool, plans []remap.Plan, sit *remap.Situation) *api.Remedy {
	for i := range plans {
		p := &plans[i]
		if slices.ContainsFunc(p.Moves, func(m remap.Move) bool { return leaves(&m, f.Node, sit) }) {
			return &api.Remedy{Plan: p.ID, Action: remap.ActApprove, Key: "A", Text: moveText(p, plans, sit)}
		}
	}
	switch {
	case f.Kind == anomaly.FailSlow && f.State == anomaly.Confirmed && !waits:
		return &api.Remedy{Action: remap.ActExclude, Key: "e",
			Text: "no job waits now; drain it to keep the next one off"}
	case f.Kind.OfJob() && !waits:
		return &api.Remedy{Action: api.ActNothing, Text: "no job waits now: nothing to press"}
	case f.Kind.Accuses() && f.State == anomaly.Confirmed:
		return &api.Remedy{Action: api.ActPropose, Key: "p", Text: "move its nodes elsewhere",
			Else: &api.Remedy{Action: remap.ActExclude, Key: "e", Text: "drain it"}}
	case f.Kind.OfJob():
		return &api.Remedy{Action: api.ActPropose, Key: "p", Text: "move the nodes that wait elsewhere"}
	case f.Kind == anomaly.TargetSlow:
		if gateways := besides(f.Node, sit); len(gateways) > 0 {
			return &api.Remedy{Action: api.ActLook, Key: "n",
				Text: "nodes of its gateways are better served by " + shortNodes(gateways)}
		}
	}
	return &api.Remedy{Action: api.ActLook, Key: "n", Text: "look at its evidence"}
}

// besides are the healthy gateways in front of other back ends than a slow one; none for another kind of node.
func besides(slow topology.NodeID, sit *remap.Situation) (gateways []string) {
	is := false
	for f, l := range sit.Load {
		_, sick := sit.SickBehind(f)
		switch {
		case l.BackEnd == slow:
			is = true
		case l.BackEnd != "" && !sick && sit.State(f).Healthy():
			gateways = append(gateways, string(f))
		}
	}
	if !is {
		return nil
	}
	return gateways
}

// leaves says that a waiting plan's move takes its node off a forwarder, or off the gateways of a back end: where the
// node is now counts, and not where it was when the plan was proposed, perhaps while the plan of the job before was
// still being taken back.
func leaves(m *remap.Move, slow topology.NodeID, sit *remap.Situation) bool {
	on := func(f topology.ForwarderID) bool { return f.Node() == slow || sit.Load[f].BackEnd == slow }
	if at, ok := sit.Observed[m.Node]; ok {
		return on(at) && !on(m.To)
	}
	return slices.ContainsFunc(m.Sources(), on) && !on(m.To)
}

// namedNodes is how many letters the names of a plan's nodes may take, for where to and the key to be seen behind them
// in the narrowest place of a face; of more nodes their number stands there.
const namedNodes = 24

// moveText says what a plan moves where, what is known of where, and which other plan that waits wants to go there.
func moveText(p *remap.Plan, plans []remap.Plan, sit *remap.Situation) string {
	nodes := make([]string, len(p.Moves))
	for i, m := range p.Moves {
		nodes[i] = string(m.Node)
	}
	targets := remap.Targets(p.Moves)
	to := anomaly.Counted(len(targets), "forwarder")
	rival := rivalOf(p, targets, plans)
	switch {
	case len(targets) == 1 && rival != "":
		to = fmt.Sprintf("%s (%s; %s wants it, too)", targets[0], sit.State(targets[0]).Text(nil), rival)
	case len(targets) == 1:
		to = fmt.Sprintf("%s (%s)", targets[0], sit.State(targets[0]).Text(nil))
	case rival != "":
		to += " (" + rival + " wants some of them, too)"
	}
	which := shortNodes(nodes)
	if len(which) > namedNodes {
		which = anomaly.Counted(len(nodes), "node")
	}
	return fmt.Sprintf("move %s to %s", which, to)
}

// rivalOf is another plan that waits and goes where a plan goes: once one of them is there, the target is not idle, and
// perhaps another job's alone.
func rivalOf(p *remap.Plan, targets []topology.ForwarderID, plans []remap.Plan) string {
	for i := range plans {
		q := &plans[i]
		goes := func(m remap.Move) bool { return slices.Contains(targets, m.To) }
		if q.ID != p.ID && slices.ContainsFunc(q.Moves, goes) {
			return q.ID
		}
	}
	return ""
}

// shortNodes lists nodes as batch systems do: cn[002-003,007].
func shortNodes(names []string) string {
	if len(names) == 0 {
		return "no node"
	}
	names = slices.Sorted(slices.Values(names))
	var out []string
	for i := 0; i < len(names); {
		head, first := splitName(names[i])
		group, from, last := []string{}, first, first
		add := func() {
			if from == last {
				group = append(group, from)
			} else {
				group = append(group, from+"-"+last)
			}
		}
		k := i + 1
		for ; k < len(names) && first != ""; k++ {
			h, d := splitName(names[k])
			if h != head || len(d) != len(first) {
				break
			}
			if d != next(last) {
				add()
				from = d
			}
			last = d
		}
		if k == i+1 {
			out = append(out, names[i])
		} else {
			add()
			out = append(out, head+"["+strings.Join(group[:min(len(group), 4)], ",")+more(len(group)-4)+"]")
		}
		i = k
	}
	return strings.Join(out[:min(len(out), 3)], ",") + more(len(out)-3)
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(",+%d", n)
}

// splitName cuts the digits off a name's end.
func splitName(name string) (head, digits string) {
	head = strings.TrimRight(name, "0123456789")
	return head, name[len(head):]
}

// next is the number after one of digits, with as many digits.
func next(digits string) string {
	b := []byte(digits)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i]++; b[i] <= '9' {
			break
		}
		b[i] = '0'
	}
	return string(b)
}
