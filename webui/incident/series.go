package incident

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/webui/api"
)

const (
	// before and after are shown around an incident, at most over its newest longest.
	before  = 5 * time.Minute
	after   = 2 * time.Minute
	longest = time.Hour
	// mostShown bounds what may be asked for instead.
	mostShown = 24 * time.Hour
	// steps is about how many points a chart has.
	steps = 240
	// mostPeers and mostClients bound what is read: of more, every n-th stands for the others.
	mostPeers   = 32
	mostClients = 16
	// instant is what a wait counts at least as, one what a number of requests does: a ratio to microseconds, or to a
	// queue that is empty most of the time, would say nothing.
	instant = 1e-4
	one     = 1
	// speaks is the least ratio of a chart that accuses; below it is what differs among healthy nodes.
	speaks = 1.25
)

// Selector reads the seconds that were collected; a tsdb.Store is one.
type Selector interface {
	Select(ctx context.Context, q tsdb.Query) ([]tsdb.Series, error)
}

// Compared says what is to be read.
type Compared struct {
	Node    topology.NodeID
	Class   string             // of the finding: read, write or meta, or empty
	Times   string             // that its headline says; empty: none
	Named   map[string]float64 // its evidence: a metric's name among it is what it accuses with
	Accused Span
	// Shown is what the charts cover; zero: the accused span and some minutes on either side.
	Shown Span
	Now   time.Time
	// Clients are the compute nodes of the node and of each of its peers.
	Clients map[topology.NodeID][]topology.NodeID
}

// timed are the kinds of requests that compute nodes count and time.
var timed = []struct {
	class     string
	ops, took collector.Metric
}{
	{"read", collector.ReadOps, collector.ClientRead},
	{"write", collector.WriteOps, collector.ClientWrite},
	{"meta", collector.MetaOps, collector.ClientMeta},
}

// Read compares a forwarder with its peers around the accused span.
func Read(ctx context.Context, store Selector, c Compared) (Series, error) {
	s := Series{Span: c.span(), Charts: []Chart{}, Peers: []Peer{}}
	s.StepSeconds = max(1, int(math.Ceil(s.To.Sub(s.From).Seconds()/steps)))
	step := time.Duration(s.StepSeconds) * time.Second
	s.From, s.To = s.From.Truncate(step), s.To.Truncate(step)
	r := reader{store: store, series: &s, asked: c, nodes: compared(c)}
	for _, t := range timed {
		rows, err := r.latency(ctx, t.ops, t.took)
		if err != nil {
			return s, err
		}
		chart := r.chart(t.took, rows)
		if chart == nil {
			continue
		}
		if c.Times != "" && chart.Says != "" { // at the same load and since the change, which these means are not
			if chart.Says, chart.Means = "", ""; c.Class == "" || c.Class == t.class {
				chart.Says = c.Times
			}
		}
		s.Charts = append(s.Charts, *chart)
		if t.class == c.Class || len(s.Peers) == 0 {
			s.Peers = peers(r.nodes, rows)
		}
	}
	for m := range collector.Metrics() {
		if m.Info().Forwarder&collector.Evidence == 0 {
			continue
		}
		rows, err := r.own(ctx, m)
		if err != nil {
			return s, err
		}
		if chart := r.chart(m, rows); chart != nil {
			s.Charts = append(s.Charts, *chart)
		}
	}
	slices.SortStableFunc(s.Charts, func(a, b Chart) int { return cmp.Compare(c.weight(&b), c.weight(&a)) })
	return s, nil
}

// span is what the charts cover, not past now.
func (c *Compared) span() Span {
	s, most := Span{c.Accused.From.Add(-before), c.Accused.To.Add(after)}, longest
	if c.Shown.To.After(c.Shown.From) {
		s, most = c.Shown, mostShown
	}
	if s.To.After(c.Now) {
		s.To = c.Now
	}
	if s.To.Sub(s.From) > most || s.From.After(s.To) {
		s.From = s.To.Add(-most)
	}
	return s
}

// weight orders charts: the metric that the finding names, those of the operations that it names, those that accuse by
// how much, then the others as they come.
func (c *Compared) weight(one *Chart) float64 {
	for name := range c.Named {
		if strings.TrimSuffix(name, "_seconds") == one.Metric {
			return 3 * anomaly.Saturated
		}
	}
	if one.Ratio == nil || *one.Ratio < speaks {
		return 0
	}
	w := min(*one.Ratio, anomaly.Saturated) // of these, what clients see stays in front of what explains it
	if c.Class != "" && one.class == c.Class {
		w += anomaly.Saturated
	}
	return w
}

// compared are the node and some of its peers.
func compared(c Compared) []topology.NodeID {
	var others []topology.NodeID
	for n := range c.Clients {
		if n != c.Node {
			others = append(others, n)
		}
	}
	slices.Sort(others)
	return append([]topology.NodeID{c.Node}, some(others, mostPeers)...)
}

// some are at most most nodes, spread over the list.
func some(nodes []topology.NodeID, most int) (out []topology.NodeID) {
	step := max(1, (len(nodes)+most-1)/most)
	for i := 0; i < len(nodes); i += step {
		out = append(out, nodes[i])
	}
	return out
}

type reader struct {
	store  Selector
	series *Series
	asked  Compared
	nodes  []topology.NodeID // the accused one first
}

func (r *reader) len() int {
	return int(r.series.To.Sub(r.series.From).Seconds()) / r.series.StepSeconds
}

// read reads a metric of nodes over what is shown.
func (r *reader) read(ctx context.Context, nodes []topology.NodeID, m collector.Metric) ([]tsdb.Series, error) {
	if len(nodes) == 0 {
		return nil, nil
	}
	s := r.series
	return r.store.Select(ctx, tsdb.Query{Nodes: nodes, Metric: m, FromMillis: s.From.UnixMilli(),
		ToMillis: s.To.UnixMilli(), StepMillis: int64(s.StepSeconds) * 1000})
}

// put sets a value of a node's row, all of which is unknown before the first one.
func (r *reader) put(rows map[topology.NodeID][]float64, n topology.NodeID, at int64, v float64) {
	i := int((at - r.series.From.UnixMilli()) / int64(r.series.StepSeconds) / 1000)
	if i < 0 || i >= r.len() {
		return
	}
	if rows[n] == nil {
		rows[n] = slices.Repeat([]float64{math.NaN()}, r.len())
	}
	rows[n][i] = v
}

// own are the values that the nodes report of themselves.
func (r *reader) own(ctx context.Context, m collector.Metric) (map[topology.NodeID][]float64, error) {
	got, err := r.read(ctx, r.nodes, m)
	rows := map[topology.NodeID][]float64{}
	for _, one := range got {
		for _, p := range one.Points {
			r.put(rows, one.Node, p.TimeMillis, p.Value)
		}
	}
	return rows, err
}

// latency is what a request took the clients of each node, in the mean over the requests of a step.
func (r *reader) latency(ctx context.Context, ops, took collector.Metric) (map[topology.NodeID][]float64, error) {
	of := map[topology.NodeID]topology.NodeID{} // the forwarder of a compute node
	var clients []topology.NodeID
	for _, n := range r.nodes {
		for _, c := range some(r.asked.Clients[n], mostClients) {
			of[c] = n
			clients = append(clients, c)
		}
	}
	counts, err := r.read(ctx, clients, ops)
	if err != nil {
		return nil, err
	}
	waits, err := r.read(ctx, clients, took)
	rows := map[topology.NodeID][]float64{}
	for f, means := range tsdb.MeanOver(waits, counts, func(c topology.NodeID) topology.NodeID { return of[c] }) {
		for at, v := range means {
			r.put(rows, f, at, v)
		}
	}
	return rows, err
}

// chart draws the node's row beside its peers'; nil where the node has none.
func (r *reader) chart(m collector.Metric, rows map[topology.NodeID][]float64) *Chart {
	node := rows[r.asked.Node]
	if node == nil {
		return nil
	}
	info := m.Info()
	c := &Chart{class: classOf(info.Of), Metric: info.Name,
		Label: info.Label, Unit: info.Unit.Info().Shown, Scale: info.Unit.Info().Scale}
	var means []float64
	first := r.step(r.asked.Accused.From)
	end := max(first, r.step(r.asked.Accused.To))
	for n, row := range rows {
		if n != r.asked.Node {
			if v := mean(row[first:end]); !math.IsNaN(v) {
				means = append(means, v)
			}
		}
	}
	if own := mean(node[first:end]); info.MoreIsWorse && len(means) > 0 && !math.IsNaN(own) {
		mid, least := percentile(means, 0.5), 0.0
		switch info.Unit {
		case collector.Seconds:
			least = instant
		case collector.Requests:
			least = one
		}
		if by := max(mid, least); by > 0 {
			c.accuse(own/by, own, by, by > mid)
		}
	}
	for i := range node {
		var at []float64
		for n, row := range rows {
			if n != r.asked.Node && !math.IsNaN(row[i]) {
				at = append(at, row[i])
			}
		}
		c.Node = append(c.Node, api.Known(node[i]))
		for p, to := range map[float64]*[]*float64{0.1: &c.Low, 0.5: &c.Mid, 0.9: &c.High} {
			*to = append(*to, api.Known(percentile(at, p)))
		}
	}
	return c
}

// accuse says how many times its peers' mean the node's own is, and both with the unit; below: theirs is less. What
// differs among healthy nodes has no words.
func (c *Chart) accuse(ratio, own, peers float64, below bool) {
	if c.Ratio = api.Known(ratio); ratio < speaks {
		return
	}
	than := ""
	if below {
		than = "below "
	}
	c.Says = anomaly.Times(ratio)
	c.Means = fmt.Sprintf("%s, peers %s%s", strings.TrimSpace(anomaly.Digits(own*c.Scale)+" "+c.Unit), than,
		anomaly.Digits(peers*c.Scale))
}

// classOf is the class of the operations that a metric belongs to; "" of several.
func classOf(of [2]collector.Metric) string {
	for _, t := range timed {
		if of == [2]collector.Metric{t.ops} {
			return t.class
		}
	}
	return ""
}

// step is the step of an instant, within what is shown.
func (r *reader) step(t time.Time) int {
	return min(max(int(t.Sub(r.series.From).Seconds())/r.series.StepSeconds, 0), r.len())
}

// mean is NaN where nothing is known.
func mean(row []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range row {
		if !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	return sum / float64(n)
}

// percentile is NaN of no values. It sorts them.
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[int(p*float64(len(values)-1)+0.5)]
}

func peers(nodes []topology.NodeID, rows map[topology.NodeID][]float64) []Peer {
	out := []Peer{}
	for _, n := range nodes {
		if row := rows[n]; row != nil {
			out = append(out, Peer{n, api.KnownOf(row, func(v float64) float64 { return v })})
		}
	}
	return out
}
