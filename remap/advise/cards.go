package advise

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// Input is what cards are made of.
type Input struct {
	Situation *remap.Situation
	// Plans wait for a person, are on their way, or were moved within the last minutes.
	Plans []remap.Plan
	// Effect is what a plan under measurement has brought so far; nil: nobody measures.
	Effect func(plan string) *remap.Effect
	// JobsUnknown says that no batch system reports jobs: who waits is then counted in compute nodes.
	JobsUnknown bool
	// Late is by how much the daemon itself was late within the last seconds.
	Late time.Duration
	Now  time.Time
}

const (
	// Stays is how long what a move brought, or that a finding is over, stays among the cards.
	Stays = 10 * time.Minute
	// starvedFrom is how late the daemon must be for its own lateness to be the first thing on the screen.
	starvedFrom = 5 * time.Second
	// fullFrom is from which share of its peak on a forwarder is full.
	fullFrom = 0.8
)

// Cards are what a person is to know, what hurts most first: incidents that hurt somebody, moves under way and what
// they brought, links that hurt nobody yet, plans of no incident, what is over.
func Cards(in Input) []Card {
	b := newBoard(in)
	out := []Card{}
	if in.Late >= starvedFrom {
		out = append(out, Card{Stage: Starved, Victims: []Victim{}, Since: in.Now.Add(-in.Late).UTC(),
			Sentence: fmt.Sprintf("fairway's own daemon was %s late", remap.Span(in.Late.Seconds())),
			Second:   "the machine that it runs on is starved: what is slow below may be only that",
			Action:   &Action{Name: ActDoctor, Label: "Doctor", Filled: true}})
	}
	all := append(b.unheard(), b.incidents()...)
	slices.SortStableFunc(all, Compare)
	return append(out, all...)
}

// Compare orders cards, what hurts most first.
func Compare(x, y Card) int {
	return cmp.Or(cmp.Compare(rank(&x), rank(&y)), cmp.Compare(suffering(&y), suffering(&x)), x.Since.Compare(y.Since))
}

// board is what cards are drawn from, with look-ups.
type board struct {
	Input
	jobs    map[topology.JobID]*remap.Job
	clients map[topology.ForwarderID]map[topology.JobID]int // counted once somebody asks
	used    map[string]bool                                 // plans that a card names
}

func newBoard(in Input) *board {
	b := &board{Input: in, jobs: make(map[topology.JobID]*remap.Job, len(in.Situation.Jobs)), used: map[string]bool{}}
	for i := range in.Situation.Jobs {
		b.jobs[in.Situation.Jobs[i].ID] = &in.Situation.Jobs[i]
	}
	return b
}

// incidents are the cards of findings, then those of plans that no finding's card names.
func (b *board) incidents() (out []Card) {
	findings := b.Situation.Findings
	for i := range findings {
		if f := &findings[i]; b.wanted(f) {
			if c := b.card(f); !b.needless(f, &c) {
				b.used[c.Plan] = true
				out = append(out, c)
			}
		}
	}
	for i := range b.Plans {
		p := &b.Plans[i]
		if b.used[p.ID] {
			continue
		}
		if stage := b.stageOfPlan(p); stage != "" {
			out = append(out, b.planCard(p, stage))
		}
	}
	return out
}

// wanted says that a finding hurts somebody, or will hurt the next one who moves much, and nobody does anything about
// it yet; or that it was over only now.
func (b *board) wanted(f *anomaly.Finding) bool {
	switch {
	case f.State == anomaly.Dismissed:
		return false
	case b.moved(f) != nil:
		return true
	case f.Over():
		return f.Kind.Accuses() && !enteredAt(f, anomaly.Confirmed).IsZero() && b.Now.Sub(f.Changed) < Stays
	case f.State != anomaly.Suspect && f.State != anomaly.Confirmed, f.Owner != "", f.Silent(b.Now):
		return false
	}
	id := topology.ForwarderID(f.Node)
	inUse := b.Situation.Clients[id]+b.Situation.Sharing[id] > 0
	switch stage := stageOf(f); {
	case stage == Silent:
		return inUse
	case f.OfLink(), f.Kind == anomaly.TargetFull, stage != Slow && stage != Suspect && f.Kind.Accuses():
		return true
	case b.JobsUnknown && inUse && f.State == anomaly.Confirmed:
		return true
	}
	return slices.ContainsFunc(f.Impact, func(i anomaly.Impact) bool { return i.Share > 0 || i.CostSeconds > 0 })
}

// needless says that whom a finding hurt has ended: only a node that is confirmed, and so hurts the next job, too, one
// that a plan is to leave, or a link or agent that is gone, is still a person's matter.
func (b *board) needless(f *anomaly.Finding, c *Card) bool {
	if len(c.Victims) > 0 || c.Plan != "" || f.State == anomaly.Confirmed && f.Kind == anomaly.FailSlow || f.OfLink() ||
		f.Kind == anomaly.TargetFull {
		return false
	}
	return c.Stage == Suspect || c.Stage == Neighbour || c.Stage == BackEnd || c.Stage == Odd
}

// card is a finding's card.
func (b *board) card(f *anomaly.Finding) Card {
	c := Card{Finding: f.ID, Node: f.Node, Stage: stageOf(f), Sentence: Sentence(f),
		Second: Second(f, b.Now), Since: f.Since.UTC(), Factor: f.Factor, FactorNow: f.FactorNow, Cause: f.Cause,
		Victims: b.victims(f)}
	if p := b.moved(f); p != nil {
		c.Plan = p.ID
		b.follow(&c, p, f)
		c.Steps = steps(f, p, c.Stage)
		return c
	}
	done := b.newest(f, b.outcome)
	stage := c.Stage
	if done != nil {
		stage = b.outcome(done)
	}
	if c.Stage == Cleared {
		c.Since = f.From().UTC()
		c.Steps = steps(f, done, stage)
		return c
	}
	plan := b.waiting(f)
	if plan != nil {
		c.Plan = plan.ID
	}
	b.help(&c, f, plan)
	if plan == nil && !c.Waits() { // what was done against it stays done while it lasts
		c.Steps = steps(f, done, stage)
	} else {
		c.Steps = steps(f, plan, c.Stage)
	}
	return c
}

// OfPlan is the card that a plan belongs to: of the incident that it is to help against, else its own.
func OfPlan(p *remap.Plan, in Input) Card {
	b := newBoard(in)
	for i := range in.Situation.Findings {
		f := &in.Situation.Findings[i]
		helps := b.waiting(f)
		if p.State != remap.Proposed {
			helps = b.moved(f)
		}
		if helps != nil && helps.ID == p.ID {
			return b.card(f)
		}
	}
	return b.planCard(p, b.stageOfPlan(p))
}

// ReasonFor is the reason that is filled in where a plan is decided.
func ReasonFor(c *Card, p *remap.Plan) string {
	if c.Finding != "" {
		return c.Finding + ": " + c.Sentence
	}
	return p.Reason
}

// BackTo says where a roll back of a plan goes, and how that is.
func BackTo(p *remap.Plan, in Input) string { return newBoard(in).backText(p) }

// Of is a finding's card, also where it needs nobody.
func Of(f *anomaly.Finding, in Input) Card { return newBoard(in).card(f) }

// victims are the jobs that wait for a finding's node, or have waited and still run.
func (b *board) victims(f *anomaly.Finding) []Victim {
	out := []Victim{}
	on := b.behind(f.Node)
	for _, hurt := range f.Impact {
		v := Victim{Job: hurt.Job, Share: hurt.Share, CostSeconds: hurt.CostSeconds, Waiting: on[hurt.Job]}
		if j := b.jobs[hurt.Job]; j != nil {
			v.App, v.User, v.Nodes = j.App, j.User, len(j.Nodes)
			if b.left(j, f.Node) {
				v.Share = 0
			}
		} else if !f.Over() && (v.Share == 0 || len(b.jobs) > 0) {
			continue // it has ended
		}
		out = append(out, v)
	}
	if n := b.Situation.Clients[topology.ForwarderID(f.Node)]; b.JobsUnknown && len(out) == 0 && n > 0 && !f.Over() {
		out = append(out, Victim{Waiting: n, Wait: f.Evidence[anomaly.ClientsWait],
			PeersWait: f.Evidence[anomaly.PeersWait]})
	}
	for i := range out {
		out[i].Write()
	}
	return out
}

// left says that all nodes of a job use other forwarders than one: it waits for that no more, whatever the detectors
// have seen last.
func (b *board) left(j *remap.Job, node topology.NodeID) bool {
	if !b.Situation.IsForwarder(topology.ForwarderID(node)) {
		return false
	}
	return !slices.ContainsFunc(j.Nodes, func(n topology.NodeID) bool {
		on := b.Situation.On(n)
		return len(on) == 0 || slices.Contains(on, topology.ForwarderID(node))
	})
}

// behind counts the nodes of each job behind a forwarder, or behind the gateways of a back end.
func (b *board) behind(node topology.NodeID) map[topology.JobID]int {
	if b.clients == nil {
		b.clients = b.Situation.ClientsByJob()
	}
	if on := b.clients[topology.ForwarderID(node)]; on != nil {
		return on
	}
	out := map[topology.JobID]int{}
	for f, on := range b.clients {
		if b.Situation.Load[f].BackEnd == node {
			for id, n := range on {
				out[id] += n
			}
		}
	}
	return out
}

// help adds what helps against a finding: a waiting plan that moves nodes away, else what a person may do.
func (b *board) help(c *Card, f *anomaly.Finding, plan *remap.Plan) {
	look := Action{Name: ActLook, Label: "Evidence"}
	drain := Action{Name: remap.ActExclude, Label: "Drain", Text: "drain it"}
	waits := c.Waits()
	switch {
	case plan != nil:
		c.Action = &Action{Name: remap.ActApprove, Label: "Review plan " + plan.ID, Plan: plan.ID, Filled: true,
			Text: b.moveText(plan)}
		c.Others = []Action{look}
		return
	case c.Stage == Silent && !waits:
		c.Action = &Action{Name: ActDoctor, Label: "Doctor", Text: "see whether its agent runs"}
		return
	case f.Kind.OfJob() && !waits:
		c.Second += "; no job waits now: nothing to press"
		return
	case c.Accuses() && f.State == anomaly.Confirmed && !waits && len(c.Victims) > 0 && c.Victims[0].Job == "":
		c.Action = &Action{Name: ActPropose, Label: "Propose a move", Text: "move its nodes elsewhere"}
		c.Others = []Action{drain, look}
		return
	case c.Accuses() && f.State == anomaly.Confirmed && !waits:
		drain.Text = "no job waits now; drain it to keep the next one off"
		c.Action, c.Others = &drain, []Action{look}
		return
	case c.Accuses() && f.State == anomaly.Confirmed || f.Kind.OfJob():
		if full := b.full(f.Node); full != "" {
			c.Second += "; " + full
			break
		}
		c.Action = &Action{Name: ActPropose, Label: "Propose a move", Text: "move its nodes elsewhere", Filled: true}
		if f.Kind.OfJob() {
			c.Action.Text = "move the nodes that wait elsewhere"
		} else {
			c.Others = []Action{drain}
		}
		c.Others = append(c.Others, look)
		return
	case f.Kind == anomaly.TargetSlow:
		if gateways := besides(f.Node, b.Situation); len(gateways) > 0 {
			look.Text = "nodes of its gateways are better served by " + topology.FoldShort(gateways)
		}
	}
	look.Text = cmp.Or(look.Text, "look at its evidence")
	c.Action = &look
}

// full says that no move can help, for all others are full or not well; empty where one may take nodes.
func (b *board) full(slow topology.NodeID) string {
	others := 0
	for _, n := range b.Situation.Machine.ByRole(topology.Forwarder) {
		id := topology.ForwarderID(n.ID)
		if n.ID == slow {
			continue
		}
		others++
		load := b.Situation.Load[id]
		if busy := load.Busy(); b.Situation.State(id).Healthy() && (busy == nil || *busy < fullFrom) {
			return ""
		}
	}
	if others == 0 {
		return ""
	}
	return fmt.Sprintf("no move can help: all %d others are above %.0f %% or not well", others, 100*fullFrom)
}

// besides are the healthy gateways in front of other back ends than a slow one; none for another kind of node.
func besides(slow topology.NodeID, sit *remap.Situation) (gateways []topology.NodeID) {
	is := false
	for f, l := range sit.Load {
		_, sick := sit.SickBehind(f)
		switch {
		case l.BackEnd == slow:
			is = true
		case l.BackEnd != "" && !sick && sit.State(f).Healthy():
			gateways = append(gateways, f.Node())
		}
	}
	if !is {
		return nil
	}
	return gateways
}

// unheard is the card of the forwarders that report nothing and of which no finding says so: their numbers are missing
// from all that is shown.
func (b *board) unheard() []Card {
	if b.Late > 0 {
		return nil // it is the daemon
	}
	var names []topology.NodeID
	c := Card{Stage: Silent, Victims: []Victim{},
		Action: &Action{Name: ActDoctor, Label: "Doctor", Text: "see whether its agent runs"}}
	all := b.Situation.Machine.ByRole(topology.Forwarder)
	for _, n := range all {
		id := topology.ForwarderID(n.ID)
		if b.Situation.State(id) != remap.ForwarderStale {
			continue
		}
		if c.Node == "" {
			c.Node = id.Node()
		}
		names = append(names, id.Node())
		if seen := b.Situation.Load[id].LastSeen.UTC(); !seen.IsZero() && (c.Since.IsZero() || seen.Before(c.Since)) {
			c.Since = seen
		}
	}
	switch n := len(names); {
	case n == 0 || slices.ContainsFunc(b.Situation.Findings, func(f anomaly.Finding) bool {
		return n == 1 && f.Node == names[0] && f.Kind == anomaly.ForwarderSilent && f.Open()
	}):
		return nil
	case n == len(all) && n > 1:
		c.Stage, c.Node = AllSilent, ""
		c.Sentence = fmt.Sprintf("All %d forwarders are silent at once", n)
		c.Second = "so it is the daemon or the network, not they; no state is shown until data comes"
		c.Action.Filled, c.Action.Text = true, "see whether daemon and network are well"
	default:
		c.Sentence = fmt.Sprintf("%s silent: %s", anomaly.Counted(n, "forwarder"), topology.FoldShort(names))
	}
	return []Card{c}
}

// rank orders cards by what they are about: what hurts nobody stands below what hurts somebody.
func rank(c *Card) int {
	switch c.Stage {
	case AllSilent:
		return -1
	case Hung, Dead, Unreadable, Incomplete:
		return 0
	case Slow, Silent:
		if len(c.Victims) == 0 {
			return 5
		}
		return 0
	case Neighbour, BackEnd, Odd:
		if !c.Waits() {
			return 5
		}
		return 1
	case Moving, Measuring, InVain:
		return 2
	case Suspect:
		if len(c.Victims) == 0 {
			return 6
		}
		return 3
	case Helped, NotKnown:
		return 4
	case Waits:
		return 7
	}
	return 8
}

// suffering is the time that nodes lose in each second.
func suffering(c *Card) (sum float64) {
	for _, v := range c.Victims {
		sum += v.Share*float64(max(1, v.Waiting)) + min(v.CostSeconds, 1e6)*1e-9
	}
	return sum
}
