package live

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/remap/journal"
	"fairway/tsdb"
	"fairway/webui/api"
)

// timelineMargin is how long a record may be on its way to the journal.
const timelineMargin = 2 * time.Second

// past answers what a second that is over looked like, out of the store and the journal.
type past struct {
	cfg *Config

	mu      sync.Mutex // guards the rest
	of      *journal.Timeline
	records uint64    // that it has taken
	until   time.Time // it knows what was journaled before then
}

// timeline returns what the journal says of at; nil where none is kept. What was journaled stays, so
// of the journal only what was written since the last reading is read.
func (p *past) timeline(at time.Time) (*journal.Timeline, error) {
	if p.cfg.Journal == nil {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.Before(p.until) {
		return p.of, nil
	}
	if p.of == nil {
		p.of = journal.NewTimeline()
	}
	begun, t := time.Now(), p.of
	var err error
	if p.records, err = p.cfg.Journal(p.records,
		func(r *journal.Record) error { t.Take(r); return nil }); err != nil {
		return nil, fmt.Errorf("the past of findings and plans: %w", err)
	}
	p.until = begun.Add(-timelineMargin)
	return t, nil
}

// moment is what is known of one past second.
type moment struct {
	overview api.Overview
	mapping  topology.Mapping
	jobs     map[topology.NodeID]topology.JobID
}

// OverviewAt is the layer as it was in the second that began at at: numbers out of the store, findings, exclusions
// and plans out of the journal, and the mapping of now less what plans have moved since. NotKept lists what is
// missing of that second. Errors wrap api.ErrInvalid for a time to come.
func (p *Picture) OverviewAt(ctx context.Context, at time.Time) (api.Overview, error) {
	m, err := p.past.at(ctx, p.Snapshot(), at)
	return m.overview, err
}

func (p *past) at(ctx context.Context, s *Snapshot, at time.Time) (moment, error) {
	if at.After(s.Made) {
		return moment{}, fmt.Errorf("%w: %s is not past", api.ErrInvalid, at.UTC().Format(time.RFC3339))
	}
	at = at.Truncate(time.Second).UTC()
	end := at.Add(time.Second) // of the second shown: then it was news
	timeline, err := p.timeline(end)
	if err != nil {
		return moment{}, err
	}
	nodes := s.Machine.ByRole(topology.Forwarder)
	rows, err := p.rows(ctx, nodes, at)
	if err != nil {
		return moment{}, err
	}
	o := api.Overview{Machine: s.Machine.Name, At: at, Banner: p.cfg.banner(time.Now()),
		LateAfter: s.Overview.LateAfter, StaleAfter: s.Overview.StaleAfter,
		ComputeNodes: s.Overview.ComputeNodes, Forwarders: rows, Findings: []anomaly.Finding{},
		Todo: api.Todo{Waiting: []api.PlanRow{}, Needs: []advise.Card{}}}
	m := moment{overview: o, mapping: topology.Mapping{}}
	sit, plans := recall(&m, s, timeline, end)
	err = p.recallJobs(ctx, &m, sit)
	m.overview.Needs = advise.Cards(advise.Input{Situation: sit, Plans: plans, Now: end})
	m.overview.Findings = phrased(slices.Clone(m.overview.Findings))
	m.overview.Quiet()
	return m, err
}

// rows are the forwarders' newest numbers at the end of the second, and their occupancy of the
// hour before.
func (p *past) rows(ctx context.Context, nodes []topology.Node, at time.Time) ([]api.ForwarderRow, error) {
	ids := make([]topology.NodeID, len(nodes))
	place := make(map[topology.NodeID]int, len(nodes))
	peaks := make(map[topology.NodeID]float64, len(nodes))
	rows, values := make([]api.ForwarderRow, len(nodes)), newRowValues(len(nodes))
	for i, n := range nodes {
		ids[i], place[n.ID], peaks[n.ID] = n.ID, i, n.PeakBytesPerSec
		rows[i] = api.ForwarderRow{ID: topology.ForwarderID(n.ID), Rack: n.Rack, PeakBytesPerSec: n.PeakBytesPerSec}
	}
	frames, err := p.frames(ctx, ids, at, api.ListedMetrics...)
	if err != nil {
		return nil, err
	}
	for n, f := range frames {
		row := &rows[place[n]]
		row.LastSeen = time.UnixMilli(f.TimeMillis).UTC().Add(time.Second)
		values.fill(place[n], row, f.Samples)
	}
	q := tsdb.OccupancyQuery{Nodes: ids, FromMillis: at.Add(-time.Hour).UnixMilli(),
		ToMillis: at.Add(time.Second).UnixMilli(), PeakBytesPerSec: peaks}
	answers, err := p.cfg.Store.Occupancy(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		if row := &rows[place[a.Node]]; len(a.Buckets) > 0 && !row.LastSeen.IsZero() {
			row.Occupancy = new(a.Buckets[0].Share())
		}
	}
	return rows, nil
}

// frames are what nodes had of some metrics in the last seconds, each its newest: as live, it counts until it is stale.
func (p *past) frames(ctx context.Context, ids []topology.NodeID, at time.Time,
	metrics ...collector.Metric) (map[topology.NodeID]*collector.Frame, error) {
	frames := map[topology.NodeID]*collector.Frame{}
	if len(ids) == 0 {
		return frames, nil
	}
	for _, m := range metrics {
		series, err := p.cfg.Store.Select(ctx,
			tsdb.Query{Nodes: ids, Metric: m, FromMillis: at.Add(-remap.StaleAfter).UnixMilli(),
				ToMillis: at.Add(time.Second).UnixMilli(), StepMillis: 1000})
		if err != nil {
			return nil, err
		}
		for _, one := range series {
			if len(one.Points) == 0 {
				continue
			}
			f, newest := frames[one.Node], one.Points[len(one.Points)-1]
			if f == nil {
				f = &collector.Frame{}
				frames[one.Node] = f
			}
			f.TimeMillis = max(f.TimeMillis, newest.TimeMillis)
			f.Samples = append(f.Samples, collector.Sample{Metric: m, Value: newest.Value})
		}
	}
	return frames, nil
}

// recall adds what the journal knows, derives every forwarder's standing from it as live, and says
// what is missing. It returns the situation of that time, without its jobs, and its plans, whose nodes are not at hand.
func recall(m *moment, now *Snapshot, past *journal.Timeline, end time.Time) (*remap.Situation, []remap.Plan) {
	o := &m.overview
	var plans []remap.Plan
	last := end.Add(-time.Nanosecond) // what happens at its end belongs to the next second
	parts := remap.SituationParts{At: end, Machine: now.Machine, Load: map[topology.ForwarderID]remap.Load{},
		Owner: map[topology.ForwarderID]topology.JobID{}}
	for i := range o.Forwarders {
		if r := &o.Forwarders[i]; !r.LastSeen.IsZero() {
			load := remap.LoadOf(r.Value, r.LastSeen, r.PeakBytesPerSec)
			parts.Load[r.ID], r.Busy = load, load.Busy()
		}
	}
	waits := map[topology.ForwarderID]string{}
	all := false
	if past == nil {
		o.NotKept = append(o.NotKept, "findings, exclusions, plans and clients: no journal is kept")
	} else {
		o.Findings, parts.Excluded = past.Findings(last), past.Excluded(last)
		for _, q := range past.Plans(last) {
			plans = append(plans, pastPlan(q))
			if q.State == remap.Proposed {
				o.Waiting = append(o.Waiting, api.PlanRow{ID: q.ID, Title: q.Title, State: q.State,
					Created: q.Created, Expires: q.Expires})
				for _, f := range q.Touches {
					waits[f] = q.ID
				}
			} else if q.Dedicated {
				for _, f := range q.Targets {
					parts.Owner[f] = q.Job
				}
			}
		}
		since := func(n topology.NodeID) time.Time { return now.Situation.Routes[n].Since }
		m.mapping, all = past.Mapping(now.Situation.Observed, since, last)
		note := "clients: those of now, less what plans have moved since; moves by other hands are not known"
		if !all {
			note = "clients: moves so long ago are no longer at hand, so they may be wrong"
		}
		o.NotKept = append(o.NotKept, note)
	}
	parts.Findings = o.Findings
	sit := remap.BuildSituation(parts)
	sit.Observed = m.mapping
	clients := map[topology.ForwarderID]int{}
	for _, f := range m.mapping {
		clients[f]++
	}
	for i := range o.Forwarders {
		r := &o.Forwarders[i]
		r.State, r.Plan, r.Clients = sit.State(r.ID), waits[r.ID], clients[r.ID]
	}
	setLevels(nil, o.Forwarders)
	return sit, plans
}

// pastPlan is a plan with moves that say whence and where to, and no node.
func pastPlan(q journal.PastPlan) remap.Plan {
	p := q.Plan
	p.Short, p.Moves = q.Title, nil
	for _, from := range q.Touches {
		for _, to := range q.Targets {
			if from != to {
				p.Moves = append(p.Moves, remap.Move{From: from, To: to})
			}
		}
	}
	return p
}

// ForwarderAt is one forwarder as it was in the second that began at at, with the five minutes before and the clients
// that it then had as far as that is known. Errors are those of OverviewAt and api.ErrNotFound.
func (p *Picture) ForwarderAt(ctx context.Context, id topology.ForwarderID, at time.Time) (api.ForwarderDetail,
	error) {
	m, err := p.past.at(ctx, p.Snapshot(), at)
	if err != nil {
		return api.ForwarderDetail{}, err
	}
	o := &m.overview
	i := slices.IndexFunc(o.Forwarders, func(r api.ForwarderRow) bool { return r.ID == id })
	if i < 0 {
		return api.ForwarderDetail{}, fmt.Errorf("forwarder %q: %w: %s has no such forwarding node", id,
			api.ErrNotFound, o.Machine)
	}
	d := api.ForwarderDetail{ForwarderRow: o.Forwarders[i], Series: map[string][]tsdb.Point{},
		PeersMedian: peersMedian(o.Forwarders, id),
		Storage:     api.StorageView{Rows: []api.StorageRow{}, Unknown: "not kept of the past"}}
	if d.ClientNodes, err = p.past.clients(ctx, m.mapping.Clients(id), o.At); err != nil {
		return d, err
	}
	for i := range d.ClientNodes {
		d.ClientNodes[i].Job = m.jobs[d.ClientNodes[i].ID]
	}
	addUnreported(p.cfg.Board, &d)
	return d, p.addSeries(ctx, &d, o.At.Add(time.Second))
}

// Marks returns what the journal says happened in [from, to), the oldest first, and where connections broke. A store
// that does not answer for those costs them alone; a mark at the range's beginning says so.
func (p *Picture) Marks(ctx context.Context, from, to time.Time) ([]remap.Mark, error) {
	broken, err := p.past.breaks(ctx, p.Snapshot().Machine, from, to)
	if err != nil {
		p.log.Warn("a range is shown without its broken connections", "from", from, "to", to, "err", err)
		broken = []remap.Mark{{At: from, Kind: "connection",
			Text: "from here on it is not known which connections broke: the store does not answer"}}
	}
	t, err := p.past.timeline(to)
	if err != nil || t == nil {
		return append([]remap.Mark{}, broken...), err
	}
	return append(t.Marks(from, to), broken...), nil
}

// signsOfBreaks are the metrics that show broken connections, on which nodes, and what a mark says of each.
var signsOfBreaks = []struct {
	metric collector.Metric
	role   topology.Role
	text   string
}{
	{collector.Reconnects, topology.Forwarder, "had to connect to its servers anew"},
	{collector.Recovering, topology.Storage, "targets in recovery"},
	{collector.Recovering, topology.Metadata, "targets in recovery"},
}

const (
	// breakStep is how exact such a mark is in a short range, and breakSteps how many steps a range has at most.
	breakStep  = 10 * time.Second
	breakSteps = 360
)

// breaks lists where connections of forwarders and servers broke within a range.
func (p *past) breaks(ctx context.Context, machine *topology.Machine, from, to time.Time) (marks []remap.Mark,
	err error) {
	step := max(breakStep, to.Sub(from)/breakSteps)
	for _, b := range signsOfBreaks {
		var ids []topology.NodeID
		for _, n := range machine.ByRole(b.role) {
			ids = append(ids, n.ID)
		}
		if len(ids) == 0 || p.cfg.Store == nil {
			continue
		}
		series, err := p.cfg.Store.Select(ctx, tsdb.Query{Nodes: ids, Metric: b.metric, FromMillis: from.UnixMilli(),
			ToMillis: to.UnixMilli(), StepMillis: step.Milliseconds(), Agg: tsdb.AggMax})
		if err != nil {
			return nil, err
		}
		for _, s := range series {
			marks = append(marks, marksOf(s, b.role, b.text)...)
		}
	}
	return marks, nil
}

// marksOf marks where values above 0 begin.
func marksOf(s tsdb.Series, role topology.Role, text string) (marks []remap.Mark) {
	was := 0.0
	for _, p := range s.Points {
		if p.Value > 0 && was == 0 {
			m := remap.Mark{At: time.UnixMilli(p.TimeMillis).UTC(), Kind: "connection", ID: string(s.Node),
				Node: string(s.Node), Text: text}
			if role == topology.Forwarder {
				m.Forwarders = []topology.ForwarderID{topology.ForwarderID(s.Node)}
			}
			marks = append(marks, m)
		}
		was = p.Value
	}
	return marks
}

// clientMetrics are what a client's row shows.
var clientMetrics = []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.MetaOps,
	collector.ClientRead, collector.ClientWrite, collector.ReadOps, collector.WriteOps}

func (p *past) clients(ctx context.Context, ids []topology.NodeID, at time.Time) ([]api.ClientRow, error) {
	rows := make([]api.ClientRow, len(ids))
	frames, err := p.frames(ctx, ids, at, clientMetrics...)
	if err != nil {
		return nil, err
	}
	for i, n := range ids {
		rows[i].ID = n
		if f := frames[n]; f != nil {
			fillClient(&rows[i], f)
		}
	}
	return rows, nil
}

// addSeries adds the last five minutes before to of every metric that the forwarder reported.
func (p *Picture) addSeries(ctx context.Context, d *api.ForwarderDetail, to time.Time) error {
	for m := range collector.Metrics() {
		series, err := p.cfg.Store.Select(ctx, tsdb.Query{
			Nodes: []topology.NodeID{d.ID.Node()}, Metric: m,
			FromMillis: to.Add(-detailSpan).UnixMilli(), ToMillis: to.UnixMilli(), StepMillis: 1000,
		})
		if err != nil {
			return err
		}
		if len(series) > 0 && len(series[0].Points) > 0 {
			d.Series[m.String()] = series[0].Points
		}
	}
	return nil
}
