package advise

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// measured is how long the seconds after a move are measured, and longest where that does not decide (package effect).
const (
	measured = time.Minute
	longest  = 3 * time.Minute
)

// stageOfPlan is the stage of the card of a plan; empty where it needs no card any more.
func (b *board) stageOfPlan(p *remap.Plan) Stage {
	done := p.Changed
	if e := b.effectOf(p); e != nil && !e.AfterTo.IsZero() {
		done = e.AfterTo
	}
	if p.State.Moved() && b.Now.Sub(done) >= Stays {
		return ""
	}
	return b.outcome(p)
}

// outcome is how far a plan has come, however long ago; empty where it moved nobody.
func (b *board) outcome(p *remap.Plan) Stage {
	switch p.State {
	case remap.Proposed:
		return Waits
	case remap.Approved, remap.Applying, remap.RollingBack:
		return Moving
	case remap.Partial, remap.Failed:
		return Incomplete
	}
	if !p.State.Moved() || p.State == remap.RolledBack {
		return ""
	}
	e := b.effectOf(p)
	if e == nil || e.Verdict == remap.Measuring {
		if e == nil && (p.State == remap.Restored || b.Now.Sub(p.Changed) >= longest+measured) {
			return NotKnown // nobody measures it
		}
		return Measuring
	}
	switch e.Verdict {
	case remap.Helped:
		return Helped
	case remap.NoEffect, remap.Worse:
		return InVain
	}
	return NotKnown
}

// effectOf is what a plan has brought, so far or for good; nil where nobody has measured it.
func (b *board) effectOf(p *remap.Plan) *remap.Effect {
	if p.Effect != nil || b.Effect == nil {
		return p.Effect
	}
	return b.Effect(p.ID)
}

// moved is the newest plan that takes nodes off a finding's node, or took them off since it began and is not forgotten;
// nil where another one waits for an answer, or none is there.
func (b *board) moved(f *anomaly.Finding) *remap.Plan {
	newest := b.newest(f, b.stageOfPlan)
	if newest == nil {
		return nil
	}
	if w := b.waiting(f); w != nil && !samePlace(w, newest) {
		return nil
	}
	return newest
}

// newest is the newest plan that takes nodes off a finding's node, or took them off since it began, and has a stage.
func (b *board) newest(f *anomaly.Finding, stage func(*remap.Plan) Stage) (newest *remap.Plan) {
	for i := range b.Plans {
		p := &b.Plans[i]
		if p.State == remap.Proposed || p.Changed.Before(f.Since) || stage(p) == "" ||
			!slices.ContainsFunc(p.Moves, func(m remap.Move) bool {
				if m.Limit > 0 {
					return b.limits(p, &m, f)
				}
				return b.on(f.Node, m.From) && !b.on(f.Node, m.To)
			}) {
			continue
		}
		if newest == nil || p.Changed.After(newest.Changed) {
			newest = p
		}
	}
	return newest
}

// samePlace says that a waiting plan asks for what was done: all of its nodes were moved by one that was carried out.
func samePlace(w, done *remap.Plan) bool {
	to := make(map[topology.NodeID]bool, len(done.Moves))
	for _, m := range done.Moves {
		to[m.Node] = true
	}
	return !slices.ContainsFunc(w.Moves, func(m remap.Move) bool { return !to[m.Node] })
}

// on says that a forwarder is a node, or a gateway of the back end that the node is.
func (b *board) on(node topology.NodeID, f topology.ForwarderID) bool {
	return f != "" && (f.Node() == node || b.Situation.Load[f].BackEnd == node)
}

// waiting is the plan that waits and takes the most nodes off a finding's node, of equals the oldest; nil: none does.
func (b *board) waiting(f *anomaly.Finding) (most *remap.Plan) {
	for i, nodes := 0, 0; i < len(b.Plans); i++ {
		p, n := &b.Plans[i], 0
		for _, m := range p.Moves {
			if p.State == remap.Proposed && (b.limits(p, &m, f) || m.Limit == 0 && b.leaves(&m, f.Node)) {
				n++
			}
		}
		if n > nodes || n > 0 && n == nodes && p.Created.Before(most.Created) {
			most, nodes = p, n
		}
	}
	return most
}

// leaves says that a waiting plan's move takes its node off a forwarder, or off the gateways of a back end: where the
// node is now counts, and not where it was when the plan was proposed, perhaps while the plan of the job before was
// still being taken back.
func (b *board) leaves(m *remap.Move, slow topology.NodeID) bool {
	if at, ok := b.Situation.Observed[m.Node]; ok {
		return b.on(slow, at) && !b.on(slow, m.To)
	}
	return slices.ContainsFunc(m.Sources(), func(f topology.ForwarderID) bool { return b.on(slow, f) }) &&
		!b.on(slow, m.To)
}

// planCard is the card of a plan that belongs to no finding.
func (b *board) planCard(p *remap.Plan, stage Stage) Card {
	c := Card{Plan: p.ID, Stage: stage, Since: p.Created.UTC(), Victims: []Victim{}}
	if stage != Waits {
		b.follow(&c, p, nil)
		c.Steps = steps(nil, p, c.Stage)
		return c
	}
	c.Sentence, c.Second = remap.Title(p), p.Reason
	c.Action = &Action{Name: remap.ActApprove, Label: "Review plan " + p.ID, Plan: p.ID, Filled: true,
		Text: b.moveText(p)}
	return c
}

// follow makes the card that of a plan on its way, with what it has brought; f is the finding that it is to help
// against, or nil.
func (b *board) follow(c *Card, p *remap.Plan, f *anomaly.Finding) {
	c.Stage = b.stageOfPlan(p)
	c.Effect = b.effectOf(p)
	open := Action{Name: ActOpen, Label: "Open " + p.ID, Plan: p.ID}
	back := Action{Name: remap.ActRollBack, Label: "Roll back", Plan: p.ID, Text: b.undoText(p)}
	still, drain := b.still(f)
	n, ok, failed, seen := p.Progress()
	to := targets(p)
	switch c.Stage {
	case Moving:
		c.Sentence = fmt.Sprintf("Moving %s to %s", whose(p), to)
		switch back := p.State == remap.RollingBack; {
		case p.Limits() && back:
			c.Sentence = "Lifting: " + remap.Title(p)
		case p.Limits():
			c.Sentence = "Setting: " + remap.Title(p)
		case back:
			c.Sentence = fmt.Sprintf("Moving %s back %s", whose(p), b.backText(p))
		}
		if nodesKnown(p) {
			c.Second = fmt.Sprintf("%d done, %d under way, %d failed", ok, n-ok-failed, failed)
		}
		c.Action, c.Others = &Action{Name: remap.ActStop, Label: "Stop", Plan: p.ID}, []Action{back}
	case Incomplete:
		c.Sentence = fmt.Sprintf("%s is %s: %d of %s %s", p.ID, p.State, ok, anomaly.Counted(n, "node"),
			strings.ToLower(doneWord(p)))
		c.Second = cmp.Or(p.Error, "complete it or roll it back")
		c.Action, c.Others = &open, []Action{back}
		c.Action.Filled = true
	case Measuring:
		c.Sentence = fmt.Sprintf("%s %s ago. Does it help?", doneWord(p), remap.Span(b.Now.Sub(p.Changed).Seconds()))
		c.Second = leftText(b.Now.Sub(p.Changed))
		if text := changeText(c.Effect); text != "" {
			c.Second = "So far " + text + "; " + c.Second
		}
		if nodesKnown(p) && !p.Limits() {
			c.Second = fmt.Sprintf("%d of %s %s %s. %s", seen, anomaly.Counted(n, "node"),
				anomaly.VerbOf(n, "uses", "use"), to, c.Second)
		}
		c.Action, c.Others = &back, []Action{open}
	case Helped:
		c.Sentence = "It helped: " + helpText(c.Effect)
		c.Second = cmp.Or(changeText(c.Effect), "They answer again") + expectedText(c.Effect) + still
		c.Action, c.Others = drain, []Action{back, open}
		if drain == nil {
			c.Action, c.Others = &open, []Action{back}
		}
	case InVain:
		c.Sentence = "It did not help"
		if text := latencyText(c.Effect); text != "" {
			c.Sentence += ": " + text
		}
		c.Second = c.Effect.Whose() + " wait as before"
		if c.Effect.Verdict == remap.Worse {
			c.Second = c.Effect.Whose() + " wait longer than before"
		}
		if f != nil {
			c.Second += fmt.Sprintf(": the cause is not %s alone", subject(f))
		}
		back.Filled = true
		c.Action, c.Others = &back, []Action{{Name: ActLook, Label: "Evidence"}}
	default:
		c.Sentence = doneWord(p) + "; not known whether it helped"
		c.Second = "nobody measured it" + still
		if c.Effect != nil {
			c.Second = cmp.Or(c.Effect.Why, "its nodes did too little I/O before or after the move to compare") + still
		}
		c.Action, c.Others = &open, []Action{back}
	}
	switch {
	case p.Back == nil:
	case drain != nil && !strings.HasSuffix(c.Second, still):
		c.Second += still + "; " + p.Back.Until()
	case drain != nil, f != nil && f.Over():
		c.Second += "; " + p.Back.Until()
	default:
		c.Second += "; " + p.Back.Why
	}
	if p.State.Final() || p.Back != nil { // taken back at the job's end: where its nodes were; or about to be
		if c.Action != nil && c.Action.Name == remap.ActRollBack {
			c.Action = &open
		}
		c.Others = slices.DeleteFunc(c.Others, func(a Action) bool {
			return a.Name == remap.ActRollBack || c.Action != nil && a.Name == c.Action.Name
		})
	}
}

// leftText says how long it is still measured, so long after the move.
func leftText(since time.Duration) string {
	if left := measured - since; left > 0 {
		return remap.Span(left.Seconds()) + " left"
	}
	return "a minute did not decide; " + remap.Span(max(0, (longest-since).Seconds())) + " left"
}

// still says what the node that was left does now, and whether to drain it.
func (b *board) still(f *anomaly.Finding) (text string, drain *Action) {
	switch {
	case f == nil || !f.Kind.Accuses():
		return "", nil
	case f.Over():
		return fmt.Sprintf(". %s is among its peers again", subject(f)), nil
	case f.State != anomaly.Confirmed:
		return "", nil
	}
	return fmt.Sprintf(". %s itself is still %s", subject(f), stageOf(f)),
		&Action{Name: remap.ActExclude, Label: "Drain", Text: "drain it to keep the next job off"}
}

// undoText says what a roll back does.
func (b *board) undoText(p *remap.Plan) string {
	if p.Limits() {
		return "undo lifts the limit"
	}
	return "undo moves them back " + b.backText(p)
}

// backText says where a roll back goes, how that is, and what nodes wait for: to fwd001, which is 10x slow, once it
// is well.
func (b *board) backText(p *remap.Plan) string {
	if p.Limits() {
		return "without a limit"
	}
	var from []topology.ForwarderID
	for i := range p.Moves {
		for _, f := range p.Moves[i].Sources() {
			if !slices.Contains(from, f) {
				from = append(from, f)
			}
		}
	}
	switch len(from) {
	case 0:
		return "to where they were"
	case 1:
		text := "to " + string(from[0])
		if f, ok := b.Situation.Accused(from[0]); ok && !f.Over() {
			how := string(stageOf(&f))
			if f.Factor > 0 {
				how = f.Headline() + " slow"
			}
			return text + ", which is " + how + ", once it is well"
		}
		return text
	}
	return "to " + anomaly.Counted(len(from), "forwarder")
}

// nodesKnown says that the nodes of a plan are at hand; of the past only whence and where to are.
func nodesKnown(p *remap.Plan) bool { return len(p.Moves) > 0 && p.Moves[0].Node != "" }

// whose names the nodes of a plan.
func whose(p *remap.Plan) string {
	nodes := anomaly.Counted(len(p.Moves), "node")
	if !nodesKnown(p) {
		nodes = "nodes"
	}
	switch {
	case p.App != "":
		return fmt.Sprintf("%s's %s", p.App, nodes)
	case p.Job != "":
		return fmt.Sprintf("job %s's %s", p.Job, nodes)
	}
	return nodes
}

// targets names where a plan goes.
func targets(p *remap.Plan) string {
	to := remap.Targets(p.Moves)
	if len(to) == 1 {
		return string(to[0])
	}
	return anomaly.Counted(len(to), "forwarder")
}

// namedNodes is how many letters the names of a plan's nodes may take, for where to and the key to be seen behind them
// in the narrowest place of a face; of more nodes their number stands there.
const namedNodes = 24

// moveText says what a plan moves where, what is known of where, and which other plan that waits wants to go there.
func (b *board) moveText(p *remap.Plan) string {
	if !nodesKnown(p) {
		return "look at the plan that waited"
	}
	if p.Limits() {
		return remap.Title(p)
	}
	nodes := make([]topology.NodeID, len(p.Moves))
	for i, m := range p.Moves {
		nodes[i] = m.Node
	}
	targets := remap.Targets(p.Moves)
	to := anomaly.Counted(len(targets), "forwarder")
	rival := rivalOf(p, targets, b.Plans)
	switch {
	case len(targets) == 1 && rival != "":
		to = fmt.Sprintf("%s (%s; %s wants it, too)", targets[0], b.Situation.State(targets[0]).Text(nil), rival)
	case len(targets) == 1:
		to = fmt.Sprintf("%s (%s)", targets[0], b.Situation.State(targets[0]).Text(nil))
	case rival != "":
		to += " (" + rival + " wants some of them, too)"
	}
	which := topology.FoldShort(nodes)
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
		if q.ID != p.ID && q.State == remap.Proposed && slices.ContainsFunc(q.Moves, goes) {
			return q.ID
		}
	}
	return ""
}

// latencyText is a change of latency: 36 -> 4.1 ms; empty where none was measured.
func latencyText(e *remap.Effect) string {
	if e == nil || e.Latency == nil {
		return ""
	}
	if e.HungSeconds > 0 {
		return fmt.Sprintf("no answer for %s -> %s ms", remap.Span(e.HungSeconds), remap.Figure(1e3*e.Latency.After))
	}
	text := fmt.Sprintf("%s -> %s ms", remap.Figure(1e3*e.Latency.Before), remap.Figure(1e3*e.Latency.After))
	if e.Verdict == remap.Helped && e.Gain != nil && e.Gain.Beside != "" {
		text += " (" + anomaly.Times(e.Gain.Times) + " beside " + e.Gain.Beside + ")"
	}
	return text
}

// changeText is what changed: latency, then what the nodes moved.
func changeText(e *remap.Effect) string {
	text := latencyText(e)
	if e == nil || e.Rate == nil {
		return text
	}
	who := e.Whose()
	if e.Job != "" {
		who = "job " + string(e.Job)
	}
	rate := fmt.Sprintf("%s %s -> %s MB/s", who, remap.Figure(e.Rate.Before/1e6), remap.Figure(e.Rate.After/1e6))
	if text == "" {
		return rate
	}
	return text + ", " + rate
}

// helpText is by how much it helped.
func helpText(e *remap.Effect) string {
	switch {
	case e.HungSeconds > 0:
		return fmt.Sprintf("%s had waited %s without an answer", e.Whose(), remap.Span(e.HungSeconds))
	case e.Gain != nil:
		return anomaly.Times(e.Gain.Times) + " as fast"
	case e.Later != nil && e.Later.Runs > 0:
		return fmt.Sprintf("%d of %s %s faster", e.Later.Faster, anomaly.Counted(e.Later.Runs, "later run"),
			anomaly.VerbOf(e.Later.Faster, "is", "are"))
	case e.Latency != nil && e.Latency.After > 0 && e.Latency.Before > 0:
		return anomaly.Times(e.Latency.Before/e.Latency.After) + " as fast"
	}
	return "its nodes are served again"
}

// expectedText is what was promised.
func expectedText(e *remap.Effect) string {
	if e.Expected <= 0 || e.Latency == nil || e.Latency.Before <= 0 {
		return ""
	}
	return fmt.Sprintf(" (expected ~%s ms)", remap.Figure(1e3*e.Latency.Before/e.Expected))
}

// steps are the way of an incident so far and to come; f or p may be nil.
func steps(f *anomaly.Finding, p *remap.Plan, stage Stage) (out []Step) {
	add := func(name string, at time.Time, by string) {
		s := Step{Name: name, By: by}
		if !at.IsZero() {
			s.At, s.State = at.UTC(), "done"
		}
		out = append(out, s)
	}
	if f != nil {
		add("suspected", cmp.Or(enteredAt(f, anomaly.Suspect), f.Since), "") // later than since when it is slow
		add("confirmed", enteredAt(f, anomaly.Confirmed), "")
	}
	var planned, approved, moved time.Time
	by, name := "", "plan"
	if p != nil {
		planned, name = p.Created, p.ID
		if n := len(p.Approvals); n > 0 && p.State != remap.Proposed {
			approved, by = p.Approvals[n-1].At, p.Approvals[n-1].By
		}
		if at := movedAt(p); p.State == remap.Restored && at != nil { // its change is when they were back
			moved = *at
		} else if p.State == remap.Verified || p.State == remap.Restored {
			moved = p.Changed
		}
	}
	add(name, planned, "")
	add("approved", approved, by)
	if p != nil && p.Limits() {
		add("limited", moved, "")
	} else {
		add("moved", moved, "")
	}
	result := Step{Name: "helped"}
	switch stage {
	case Helped:
		result.State = "done"
	case InVain:
		result = Step{Name: "did not help", State: "failed"}
	case NotKnown:
		result = Step{Name: "not known whether it helped", State: "failed"}
	}
	out = append(out, result)
	if f != nil && f.Over() { // what was not done meanwhile is not to come any more
		add(wellAgain, f.From(), "")
		return slices.DeleteFunc(out, func(s Step) bool { return s.State == "" })
	}
	for i := range out {
		if out[i].State == "" {
			out[i].State = "next"
			break
		}
	}
	return out
}
