// Package effect measures whether a plan's moves helped: what the moved nodes waited and what their job moved before
// the first order beside the minute after the moves were observed.
package effect

import (
	"context"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb"
)

const (
	// Window is how long the time before and the time after are.
	Window = time.Minute
	// settle is left out after the move: requests under way end where they began.
	settle = time.Second
	// late is how long seconds may be under way to the store.
	late = 3 * time.Second
	// shortest is how long the time after must be.
	shortest = Window / 3
	// least is how many seconds with requests of the class each side must have.
	least = 5
	// most bounds the nodes that are read: of larger plans every n-th node stands for the others.
	most = 512
)

// Selector reads the seconds that were collected; a tsdb.Store is one.
type Selector interface {
	Select(ctx context.Context, q tsdb.Query) ([]tsdb.Series, error)
}

// class is a kind of request with the metrics that count and time it.
type class struct {
	name            string
	ops             collector.Metric
	client          collector.Metric // time as the compute node saw it
	wait, execution collector.Metric // in a forwarder
}

var classes = []class{
	{"read", collector.ReadOps, collector.ClientRead, collector.ReadWait, collector.ReadExec},
	{"write", collector.WriteOps, collector.ClientWrite, collector.WriteWait, collector.WriteExec},
	{"metadata", collector.MetaOps, collector.ClientMeta, collector.MetaWait, collector.MetaExec},
}

// Ask says of what an effect is wanted.
type Ask struct {
	Plan remap.Plan // with its results
	// JobNodes are all nodes of the plan's job; none: the moved ones stand for it.
	JobNodes []topology.NodeID
	// NotBefore is when the state that the plan is meant to end began; zero: not known.
	NotBefore time.Time
	Now       time.Time
	// Ended says that the job has ended by Now: there is nothing more to come.
	Ended bool
}

// Measure reads the effect of a plan whose moves were observed at Plan.Changed, as far as Now. Its verdict is
// Measuring until the window is over.
func Measure(ctx context.Context, store Selector, a Ask) (*remap.Effect, error) {
	e := &remap.Effect{BeforeTo: firstOrder(&a.Plan), AfterFrom: a.Plan.Changed.Add(settle), Job: a.Plan.Job}
	e.BeforeFrom = e.BeforeTo.Add(-Window)
	if a.NotBefore.After(e.BeforeFrom) && e.BeforeTo.Sub(a.NotBefore) >= 2*least*time.Second {
		e.BeforeFrom = a.NotBefore
	}
	e.AfterTo = e.AfterFrom.Add(Window)
	over := a.Ended || !a.Now.Before(e.AfterTo.Add(late))
	if a.Now.Before(e.AfterTo) {
		e.AfterTo = a.Now
	}
	if !e.AfterTo.After(e.AfterFrom) {
		e.AfterTo = e.AfterFrom
	}
	r := reader{store: store, effect: e}
	if err := r.latency(ctx, a.Plan.Moves); err != nil {
		return nil, err
	}
	nodes := a.JobNodes
	if len(nodes) == 0 {
		nodes = movedNodes(a.Plan.Moves)
		e.Job = ""
	}
	if err := r.rate(ctx, nodes); err != nil {
		return nil, err
	}
	a.Plan.Foresee(e)
	e.Judge()
	switch {
	case !over:
		e.Verdict = remap.Measuring
	case e.AfterTo.Sub(e.AfterFrom) < shortest: // the job ended: part of a burst says nothing
		e.Verdict = remap.EffectUnknown
	}
	return e, nil
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

type reader struct {
	store  Selector
	effect *remap.Effect
}

// side is one class of requests in one of the two windows.
type side struct {
	ops, waited float64        // requests, and the seconds that they took together
	seconds     map[int64]bool // in which there were some
}

func (s *side) mean() float64 { return s.waited / s.ops }

func (s *side) enough() bool { return len(s.seconds) >= least && s.waited > 0 }

// latency takes the class that the nodes waited longest for before, by the clients' clocks where they have some.
func (r *reader) latency(ctx context.Context, moves []remap.Move) error {
	nodes := some(movedNodes(moves))
	from, to := map[topology.NodeID]bool{}, map[topology.NodeID]bool{}
	for _, m := range moves {
		from[m.From.Node()], to[m.To.Node()] = true, true
	}
	for _, byClients := range []bool{true, false} {
		var waited float64
		for _, c := range classes {
			times := []collector.Metric{c.client}
			before, after := nodes, nodes
			if !byClients {
				times = []collector.Metric{c.wait, c.execution}
				before, after = keys(from), keys(to)
			}
			b, err := r.side(ctx, before, c.ops, times, r.effect.BeforeFrom, r.effect.BeforeTo)
			if err != nil {
				return err
			}
			if !b.enough() || b.waited <= waited {
				continue
			}
			a, err := r.side(ctx, after, c.ops, times, r.effect.AfterFrom, r.effect.AfterTo)
			if err != nil {
				return err
			}
			if a.enough() {
				waited = b.waited
				r.effect.Latency = &remap.Change{Before: b.mean(), After: a.mean()}
				r.effect.Class, r.effect.ByClients = c.name, byClients
			}
		}
		if r.effect.Latency != nil {
			return nil
		}
	}
	return nil
}

// side adds up one class of requests. A second counts where both its requests and their times are reported.
func (r *reader) side(ctx context.Context, nodes []topology.NodeID, ops collector.Metric, times []collector.Metric,
	from, to time.Time) (side, error) {
	s := side{seconds: map[int64]bool{}}
	type at struct {
		node   topology.NodeID
		second int64
	}
	took := map[at]float64{}
	for _, m := range times {
		err := r.each(ctx, nodes, m, from, to, func(n topology.NodeID, p tsdb.Point) {
			took[at{n, p.TimeMillis}] += p.Value
		})
		if err != nil {
			return s, err
		}
	}
	if len(took) == 0 {
		return s, nil
	}
	err := r.each(ctx, nodes, ops, from, to, func(n topology.NodeID, p tsdb.Point) {
		if t, ok := took[at{n, p.TimeMillis}]; ok && p.Value > 0 {
			s.ops += p.Value
			s.waited += p.Value * t
			s.seconds[p.TimeMillis] = true
		}
	})
	return s, err
}

// rate takes the mean of what nodes read and wrote, over the seconds that any of them reported.
func (r *reader) rate(ctx context.Context, nodes []topology.NodeID) error {
	all := len(nodes)
	nodes = some(nodes)
	mean := func(from, to time.Time) (float64, error) {
		total, seconds := 0.0, map[int64]bool{}
		for _, m := range []collector.Metric{collector.ReadBytes, collector.WriteBytes} {
			err := r.each(ctx, nodes, m, from, to, func(_ topology.NodeID, p tsdb.Point) {
				total += p.Value
				seconds[p.TimeMillis] = true
			})
			if err != nil {
				return 0, err
			}
		}
		if len(seconds) < least {
			return 0, nil
		}
		return total / float64(len(seconds)) * float64(all) / float64(len(nodes)), nil
	}
	before, err := mean(r.effect.BeforeFrom, r.effect.BeforeTo)
	if err != nil {
		return err
	}
	after, err := mean(r.effect.AfterFrom, r.effect.AfterTo)
	if before > 0 && after > 0 {
		r.effect.Rate = &remap.Change{Before: before, After: after}
	}
	return err
}

func (r *reader) each(ctx context.Context, nodes []topology.NodeID, m collector.Metric, from, to time.Time,
	visit func(topology.NodeID, tsdb.Point)) error {
	if len(nodes) == 0 {
		return nil
	}
	series, err := r.store.Select(ctx, tsdb.Query{Nodes: nodes, Metric: m, FromMillis: from.UnixMilli() / 1000 * 1000,
		ToMillis: to.UnixMilli() / 1000 * 1000})
	for _, s := range series {
		for _, p := range s.Points {
			visit(s.Node, p)
		}
	}
	return err
}

func movedNodes(moves []remap.Move) []topology.NodeID {
	nodes := make([]topology.NodeID, len(moves))
	for i, m := range moves {
		nodes[i] = m.Node
	}
	return nodes
}

// some returns at most most nodes, spread over the list.
func some(nodes []topology.NodeID) []topology.NodeID {
	step := (len(nodes) + most - 1) / most
	if step <= 1 {
		return nodes
	}
	var out []topology.NodeID
	for i := 0; i < len(nodes); i += step {
		out = append(out, nodes[i])
	}
	return out
}

func keys(nodes map[topology.NodeID]bool) (out []topology.NodeID) {
	for n := range nodes {
		if n != "" {
			out = append(out, n)
		}
	}
	return out
}
