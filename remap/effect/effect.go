// Package effect measures whether a plan's moves helped: what the moved nodes waited before the first order beside what
// they waited after the moves were observed, and both beside nodes that were not moved.
package effect

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
)

const (
	// Window is how long the time before and the time after are; where that does not decide, they are Longest.
	Window  = time.Minute
	Longest = 3 * time.Minute
	// settle is left out after the move: requests under way end where they began.
	settle = time.Second
	// late is how long seconds may be under way to the store.
	late = 3 * time.Second
	// shortest is how long the time after must be.
	shortest = Window / 3
	// least is how many seconds with requests of the class each side must have.
	least = 5
	// longHung is how many seconds without an answer make the first one the move's doing. A forwarder is called hung
	// after ten.
	longHung = 8
	// most bounds the nodes that are read: of larger plans every n-th node stands for the others.
	most = 512
	// mostGroups and ofGroup bound the nodes that were not moved.
	mostGroups = 32
	ofGroup    = 16
)

// tooSoon is why nothing is known of a move whose job has not done I/O for long enough since.
const tooSoon = "its job ended too soon after the move"

// Beside are nodes that a plan did not move, by the forwarder that they used all the time.
type Beside struct {
	// Stayed are behind the forwarders that the plan leaves: they show what became of those.
	Stayed []topology.NodeID
	// Mates are nodes of the same job elsewhere, Layer those of other jobs.
	Mates, Layer [][]topology.NodeID
	// Forwarders are those of Mates and Layer, for layers whose compute nodes time nothing.
	Forwarders []topology.NodeID
}

// Ask says of what an effect is wanted.
type Ask struct {
	Plan remap.Plan // with its results
	// JobNodes are all nodes of the plan's job; none: the moved ones stand for it.
	JobNodes []topology.NodeID
	// Of says whose nodes the moves are; empty: the plan's.
	Of string
	// Beside lists the nodes that were not moved, when they are wanted; nil: there are none.
	Beside func() Beside
	// NotBefore is when the state that the plan is meant to end began; zero: not known.
	NotBefore time.Time
	Now       time.Time
	// Ended says that the job has ended by Now: there is nothing more to come.
	Ended bool
}

// Measure reads the effect of a plan whose moves were observed at Plan.Changed, as far as Now. Its verdict is Measuring
// until the window is over, and until the longest is where the window does not decide.
func Measure(ctx context.Context, store Selector, a Ask) (*remap.Effect, error) {
	e, decided, err := measure(ctx, store, &a, Window)
	if err == nil && !decided {
		e, _, err = measure(ctx, store, &a, Longest)
	}
	return e, err
}

// measure is Measure with one window; decided is false where a longer one may say more.
func measure(ctx context.Context, store Selector, a *Ask, window time.Duration) (e *remap.Effect, decided bool,
	err error) {
	e = &remap.Effect{BeforeTo: firstOrder(&a.Plan), AfterFrom: a.Plan.Changed.Add(settle), Job: a.Plan.Job}
	e.BeforeFrom = e.BeforeTo.Add(-window)
	if a.NotBefore.After(e.BeforeFrom) && e.BeforeTo.Sub(a.NotBefore) >= 2*least*time.Second {
		e.BeforeFrom = a.NotBefore
	}
	e.AfterTo = e.AfterFrom.Add(window)
	over := a.Ended || !a.Now.Before(e.AfterTo.Add(late))
	if a.Now.Before(e.AfterTo) {
		e.AfterTo = a.Now
	}
	if !e.AfterTo.After(e.AfterFrom) {
		e.AfterTo = e.AfterFrom
	}
	m := measurement{Ask: a, effect: e, over: over, reader: reader{store: store, byClients: true,
		from: e.BeforeFrom.Truncate(time.Second), to: e.AfterTo.Truncate(time.Second)}}
	m.span = span{before: m.at(e.BeforeTo), after: m.at(e.AfterFrom.Add(time.Second - 1)), end: m.seconds()}
	if err := m.figures(ctx); err != nil {
		return nil, true, err
	}
	a.Plan.Foresee(e)
	switch {
	case !over:
		e.Verdict = remap.Measuring
		return e, true, nil
	case e.AfterTo.Sub(e.AfterFrom) < shortest: // part of a burst says nothing
		e.Verdict, e.Why, decided = remap.EffectUnknown, tooSoon, true
	default:
		decided, err = m.judge(ctx)
	}
	if err == nil && e.Verdict == remap.EffectUnknown { // an answer after a hang says more than any mean
		var freed bool
		if freed, err = m.freed(ctx); freed {
			e.Verdict, e.Why, e.Gain, decided = remap.Helped, "", nil, true
		}
	}
	return e, decided || a.Ended, err
}

// firstOrder is the instant of the first order.
func firstOrder(p *remap.Plan) time.Time {
	first := p.Changed
	for _, r := range p.Results {
		if at := r.At.Add(-r.Took); r.OK && at.Before(first) {
			first = at
		}
	}
	return first
}

// measurement is one look at a plan.
type measurement struct {
	*Ask
	reader
	effect *remap.Effect
	span   span
	over   bool
	beside Beside
	class  int
	moved  *group // nil: too little is known of the moved nodes
	// stopped says that the moved nodes report, and have nothing under way since.
	stopped bool
}

// figures are what is shown while the effect is measured: of the class that the nodes waited longest for before, by the
// clients' clocks where they have some.
func (m *measurement) figures(ctx context.Context) error {
	nodes := remap.NodesOf(m.Plan.Moves)
	var to []topology.NodeID
	for _, move := range m.Plan.Moves {
		to = append(to, move.To.Node())
	}
	groups, err := m.groups(ctx, spread(nodes, most))
	if err != nil {
		return err
	}
	// Of nodes that could say how long they wait, and did nothing, the forwarders' other clients say nothing.
	if m.choose(&groups); m.moved == nil && !m.timed {
		m.byClients = false
		left, err := m.groups(ctx, m.left())
		if err != nil {
			return err
		}
		reached, err := m.groups(ctx, distinct(to))
		if err != nil {
			return err
		}
		for c := range left {
			left[c].then(reached[c], m.span.before)
		}
		m.choose(&left)
	}
	e := m.effect
	e.ByClients = m.byClients
	if m.moved == nil && m.timed && idle(groups, m.span.after, m.span.end) {
		done, err := m.rate(ctx, nodes, e.AfterFrom.Truncate(time.Second), m.to)
		if err != nil {
			return err
		}
		m.stopped = done == 0
	}
	job := m.JobNodes
	if len(job) == 0 {
		job, e.Job = nodes, ""
	}
	before, err := m.rate(ctx, job, m.from, e.BeforeTo.Truncate(time.Second))
	if err != nil {
		return err
	}
	after, err := m.rate(ctx, job, e.AfterFrom.Truncate(time.Second), m.to)
	if before > 0 && after > 0 {
		e.Rate = &remap.Change{Before: before, After: after, Of: m.Of}
	}
	return err
}

// left are the forwarders that the plan takes its nodes from.
func (m *measurement) left() []topology.NodeID {
	var all []topology.NodeID
	for _, move := range m.Plan.Moves {
		all = append(all, move.From.Node())
	}
	return distinct(all)
}

// then continues a group with another one from a second on.
func (g *group) then(o *group, from int) {
	for _, row := range [][2][]float64{{g.ops, o.ops}, {g.took, o.took}, {g.bytes, o.bytes}, {g.age, o.age}} {
		copy(row[0][min(from, len(row[0])):], row[1][min(from, len(row[1])):])
	}
}

// choose takes the class that the nodes waited longest for before, of those that they asked for after, too.
func (m *measurement) choose(groups *[collector.Classes]*group) {
	waited := 0.0
	for c, g := range groups {
		ops, took, _, busy := g.sums(0, m.span.before)
		opsAfter, tookAfter, _, busyAfter := g.sums(m.span.after, m.span.end)
		hung := g.hungBefore(m.span)
		if busyAfter < least || opsAfter <= 0 || tookAfter <= 0 || took <= waited || busy < least && hung == 0 {
			continue
		}
		if hung > 0 && m.moved != nil && opsAfter < opsOf(groups[m.class], m.span) {
			continue // what hung was of every class alike: the busiest one since stands for it
		}
		m.class, m.moved, waited = c, g, took
		e := m.effect
		e.Class, e.HungSeconds = classes[c].name, hung
		e.Latency = &remap.Change{After: tookAfter / opsAfter, Of: m.Of}
		if hung == 0 {
			e.Latency.Before = took / ops
		}
		if hung > 0 {
			waited = took - 1e-9 // the next class waited as long
		}
	}
}

func opsOf(g *group, s span) float64 {
	ops, _, _, _ := g.sums(s.after, s.end)
	return ops
}

// hungBefore is for how long the nodes' requests had waited at the move where none was answered; 0: some were, or
// nobody counts them.
func (g *group) hungBefore(s span) float64 {
	ops, _, _, _ := g.sums(s.before-least, s.before)
	if age := g.oldest(s.before-least, s.before); ops == 0 && age >= least {
		return age
	}
	return 0
}

// freed reports whether requests that had no answer until the move had one within seconds of it, and those of nodes
// that stayed had none.
func (m *measurement) freed(ctx context.Context) (bool, error) {
	m.byClients = true // forwarders do not know what waits at their clients
	moved, err := m.groups(ctx, spread(remap.NodesOf(m.Plan.Moves), most))
	if err != nil {
		return false, err
	}
	if m.Beside != nil {
		m.beside = m.Beside()
	}
	stayed, err := m.groups(ctx, spread(m.beside.Stayed, ofGroup))
	if err != nil {
		return false, err
	}
	for c, g := range moved {
		if hung := g.hungBefore(m.span); hung >= longHung && g.answeredAt(m.span) && !stayed[c].answeredAt(m.span) {
			m.effect.HungSeconds, m.effect.Class = hung, classes[c].name
			return true, nil
		}
	}
	return false, nil
}

// answeredAt reports whether a request ended in the seconds of the move or those next to it.
func (g *group) answeredAt(s span) bool {
	ops, _, _, _ := g.sums(s.before, min(s.after+near, s.end))
	return ops > 0
}

// judge compares with what was not moved. What would have happened anyway is not helped: the forwarder recovers, the
// job asks for something else, the layer gets less to do.
func (m *measurement) judge(ctx context.Context) (decided bool, err error) {
	e := m.effect
	e.Verdict = remap.EffectUnknown
	e.Why = "too little I/O before or after the move to compare"
	if m.moved == nil {
		switch {
		case m.stopped:
			e.Why = "its nodes have done no I/O since the move"
		case e.Rate != nil && !m.timed:
			e.Why = "its requests are not timed"
		}
		return false, nil
	}
	moved, ok := stepOf(m.moved, m.span)
	if !ok {
		return false, nil
	}
	e.Why = ""
	if m.Beside != nil {
		m.beside = m.Beside()
	}
	if !m.byClients {
		m.beside = Beside{Stayed: m.left(), Layer: slices.Collect(slices.Chunk(m.beside.Forwarders, 1))}
	}
	mates, err := m.steps(ctx, m.beside.Mates)
	if err != nil {
		return false, err
	}
	layer, err := m.steps(ctx, m.beside.Layer)
	if err != nil {
		return false, err
	}
	c, ok := compare(moved, mates, layer)
	if !ok && e.HungSeconds == 0 {
		e.Why = "no other node did such I/O to compare with"
		return false, nil
	}
	if !ok { // what answered nothing and then answers did not do so by chance
		_, vb, fb := meanOf(known(moved.before))
		_, va, fa := meanOf(known(moved.after))
		c = compared{gain: -moved.by, err: math.Sqrt(va + vb), freedom: fa + fb}
	}
	low, high := c.bounds(0.025)
	e.Gain = &remap.Gain{Times: math.Exp(c.gain), Low: math.Exp(low), High: math.Exp(high),
		Beside: m.others(c.groups, len(mates) > 0)}
	verdict, decided := c.verdict()
	if verdict == remap.Helped || verdict == remap.Worse {
		if e.Why, err = m.otherwise(ctx, moved, &c, len(mates) > 0); err != nil || e.Why != "" {
			verdict, decided, e.Gain = remap.EffectUnknown, false, nil
		}
	}
	if verdict == remap.EffectUnknown && e.Why == "" {
		e.Why = fmt.Sprintf("its times vary too much: %.2g to %.2g times as fast", math.Exp(low), math.Exp(high))
	}
	e.Verdict = verdict
	return decided, err
}

// others says what was not moved.
func (m *measurement) others(groups int, mates bool) string {
	what := "other nodes behind "
	switch {
	case groups == 0:
		return ""
	case mates:
		what = "other nodes of its job behind "
	case !m.byClients:
		what = ""
	}
	return what + anomaly.Counted(groups, "forwarder")
}

// steps are the changes of groups that were not moved, of those that did enough.
func (m *measurement) steps(ctx context.Context, groups [][]topology.NodeID) (out []step, err error) {
	every := max(1, (len(groups)+mostGroups-1)/mostGroups)
	for i := 0; i < len(groups); i += every {
		g, err := m.groups(ctx, spread(groups[i], ofGroup))
		if err != nil {
			return nil, err
		}
		if d, ok := stepOf(g[m.class], m.span); ok {
			out = append(out, d)
		}
	}
	return out, nil
}

// otherwise says what else explains that requests became faster or slower; "" where nothing is known to. Canaries to
// where the nodes left are not asked: a forwarder short of processors answers them fast once its load has gone.
func (m *measurement) otherwise(ctx context.Context, moved step, c *compared, mates bool) (string, error) {
	if len(m.beside.Stayed) > 0 {
		g, err := m.groups(ctx, spread(m.beside.Stayed, ofGroup))
		if err != nil {
			return "", err
		}
		if d, ok := stepOf(g[m.class], m.span); ok && c.gain > 0 && -d.by > c.gain/2 {
			return "nodes that stayed behind where it left became faster, too", nil
		}
	}
	// What others became slower is an incident of theirs: it need not have come to the moved nodes.
	own := -moved.by
	if c.gain < 0 {
		own = moved.by
	}
	if own < math.Abs(c.gain)/2 {
		return "its requests take about as long as before, and the others' do not", nil
	}
	if !moved.atMove {
		return "its requests changed before the move, or long after it", nil
	}
	ops, _, bytes, _ := m.moved.sums(0, m.span.before)
	opsAfter, _, bytesAfter, _ := m.moved.sums(m.span.after, m.span.end)
	if size := bytesAfter / opsAfter / (bytes / ops); bytes > 0 && bytesAfter > 0 &&
		math.Abs(math.Log(size)) > max(math.Log(1.25), math.Abs(c.gain)/2) {
		return fmt.Sprintf("its requests became %.2g times as large", size), nil
	}
	perSecond, perSecondAfter := ops/float64(m.span.before), opsAfter/float64(m.span.end-m.span.after)
	if !mates && perSecondAfter < perSecond/2 {
		return "it asks for less than before", nil
	}
	return "", nil
}

// distinct are the different nodes of a list.
func distinct(nodes []topology.NodeID) []topology.NodeID {
	out := slices.Sorted(slices.Values(nodes))
	return slices.DeleteFunc(slices.Compact(out), func(n topology.NodeID) bool { return n == "" })
}
