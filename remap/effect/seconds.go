package effect

import (
	"context"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
)

// Selector reads the seconds that were collected; a tsdb.Store is one.
type Selector interface {
	Select(ctx context.Context, q tsdb.Query) ([]tsdb.Series, error)
}

// class is a kind of request with the metrics that count and time it.
type class struct {
	name            string
	ops, bytes      collector.Metric
	client          collector.Metric // time as the compute node saw it
	wait, execution collector.Metric // in a forwarder
}

// classes are in the order of collector.Classes.
var classes = [collector.Classes]class{
	{"read", collector.ReadOps, collector.ReadBytes, collector.ClientRead, collector.ReadWait, collector.ReadExec},
	{"write", collector.WriteOps, collector.WriteBytes, collector.ClientWrite, collector.WriteWait,
		collector.WriteExec},
	{"metadata", collector.MetaOps, collector.MetricNone, collector.ClientMeta, collector.MetaWait,
		collector.MetaExec},
}

// atOnce bounds the nodes that one look into the store reads.
const atOnce = 64

// reader reads groups of nodes over the seconds of one measurement.
type reader struct {
	store     Selector
	from, to  time.Time // whole seconds
	byClients bool      // else by the forwarders' own clocks
	// timed says that a node that was read by its own clock has one, whether it did anything or not.
	timed bool
}

func (r *reader) seconds() int { return int(r.to.Sub(r.from) / time.Second) }

// at is the place of an instant among the seconds.
func (r *reader) at(t time.Time) int { return int(t.Sub(r.from) / time.Second) }

// groups adds up what nodes did in each class.
func (r *reader) groups(ctx context.Context, nodes []topology.NodeID) (out [collector.Classes]*group, err error) {
	for c := range out {
		out[c] = newGroup(r.seconds())
	}
	for len(nodes) > 0 {
		n := min(atOnce, len(nodes))
		if err := r.add(ctx, nodes[:n], &out); err != nil {
			return out, err
		}
		nodes = nodes[n:]
	}
	return out, nil
}

// metrics are those that say what a node waits for.
func (r *reader) metrics() (all []collector.Metric) {
	for _, c := range classes {
		all = append(all, c.ops)
		if r.byClients {
			all = append(all, c.client)
		} else {
			all = append(all, c.wait, c.execution)
		}
		if c.bytes != collector.MetricNone {
			all = append(all, c.bytes)
		}
	}
	if r.byClients {
		all = append(all, collector.InFlight, collector.RequestAge)
	}
	return all
}

func (r *reader) add(ctx context.Context, nodes []topology.NodeID, to *[collector.Classes]*group) error {
	samples := map[topology.NodeID][][]collector.Sample{}
	for _, m := range r.metrics() {
		series, err := r.store.Select(ctx, tsdb.Query{Nodes: nodes, Metric: m, FromMillis: r.from.UnixMilli(),
			ToMillis: r.to.UnixMilli()})
		if err != nil {
			return err
		}
		for _, s := range series {
			r.timed = r.timed || m == collector.InFlight && len(s.Points) > 0
			rows := samples[s.Node]
			if rows == nil {
				rows = make([][]collector.Sample, r.seconds())
				samples[s.Node] = rows
			}
			for _, p := range s.Points {
				if i := r.at(time.UnixMilli(p.TimeMillis)); i >= 0 && i < len(rows) {
					rows[i] = append(rows[i], collector.Sample{Metric: m, Value: p.Value})
				}
			}
		}
	}
	for _, rows := range samples {
		for i, row := range rows {
			r.second(row, i, to)
		}
	}
	return nil
}

// second adds one node's second. A request that hangs waits in each class: of which it is is not known.
func (r *reader) second(row []collector.Sample, i int, to *[collector.Classes]*group) {
	value := func(m collector.Metric) float64 { v, _ := collector.SampleOf(row, m); return max(0, v) }
	var took [collector.Classes]float64
	stuck := 0.0
	if r.byClients {
		w, _ := collector.WaitingOf(row)
		took = w.ByClass()
		if w.Stuck() {
			stuck = 1
		}
	} else {
		for c, m := range classes {
			took[c] = value(m.ops) * (value(m.wait) + value(m.execution))
		}
	}
	age, counted := collector.SampleOf(row, collector.RequestAge)
	for c, g := range to {
		g.took[i] += stuck
		if took[c] > 0 { // requests that nobody times say nothing
			g.ops[i] += value(classes[c].ops)
			g.took[i] += took[c]
			g.bytes[i] += value(classes[c].bytes)
		}
		if counted && !(age <= g.age[i]) {
			g.age[i] = age
		}
	}
}

// rate is the mean of what nodes read and wrote, bytes/s, over the seconds that any of them reported; 0: too few.
func (r *reader) rate(ctx context.Context, nodes []topology.NodeID, from, to time.Time) (float64, error) {
	if len(nodes) == 0 {
		return 0, nil
	}
	some := spread(nodes, most)
	total, seconds := 0.0, map[int64]bool{}
	for _, m := range []collector.Metric{collector.ReadBytes, collector.WriteBytes} {
		series, err := r.store.Select(ctx, tsdb.Query{Nodes: some, Metric: m, FromMillis: from.UnixMilli(),
			ToMillis: to.UnixMilli()})
		if err != nil {
			return 0, err
		}
		for _, s := range series {
			for _, p := range s.Points {
				total += p.Value
				seconds[p.TimeMillis] = true
			}
		}
	}
	if len(seconds) < least {
		return 0, nil
	}
	return total / float64(len(seconds)) * float64(len(nodes)) / float64(len(some)), nil
}

// spread returns at most so many nodes, spread over the list.
func spread(nodes []topology.NodeID, most int) []topology.NodeID {
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
