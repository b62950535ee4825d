package live

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/tsdb/window"
	"fairway/webui/api"
)

// Snapshot is the machine at one instant; it never changes.
type Snapshot struct {
	Made    time.Time
	Machine *topology.Machine
	// Generation changes when the machine's list of nodes does, and with it the cells of a grid.
	Generation uint32
	Situation  *remap.Situation
	Overview   api.Overview // of nobody: User and Role are empty
	// What is counted when it is first asked for, and once: many pages show it.
	flow   func() Flow
	most   func() map[topology.NodeID]*api.Use
	advice advise.Input // that Overview.Needs are made of
}

// topJob is the job that did most on a node in its newest second.
type topJob struct {
	job topology.JobID
	did did
}

func (c *Config) banner(now time.Time) api.Banner {
	b := api.Banner{Simulated: c.Simulated, Notice: c.Lateness.Notice(now),
		LateSeconds: c.Lateness.Within(now).Seconds()}
	if c.Notice != nil {
		if own := c.Notice(); b.Notice == "" || own == "" {
			b.Notice += own
		} else {
			b.Notice += ". " + own
		}
	}
	return b
}

// build makes the snapshot that follows old.
func (p *Picture) build(old *Snapshot) *Snapshot {
	sit := p.cfg.Situation()
	now := time.Now()
	s := &Snapshot{Made: now, Machine: sit.Machine, Generation: 1, Situation: sit,
		advice: advise.Input{Situation: sit, Plans: p.plans, Effect: p.cfg.Effect,
			JobsUnknown: p.cfg.JobsKnown != nil && !p.cfg.JobsKnown(), Late: p.cfg.Lateness.Within(now), Now: now}}
	s.flow = sync.OnceValue(func() Flow { return p.countFlow(s) })
	s.most = sync.OnceValue(func() map[topology.NodeID]*api.Use { return countMost(p.cfg.Board, s) })
	if old != nil {
		s.Generation = old.Generation
		if !sameNodes(old.Machine, s.Machine) {
			s.Generation++
		}
	}
	if old == nil || old.Machine != s.Machine {
		p.forwarders, p.compute = newPlaces(s.Machine, topology.Forwarder), len(s.Machine.ByRole(topology.Compute))
	}
	o := api.Overview{LateAfter: remap.LateAfter.Seconds(), StaleAfter: remap.StaleAfter.Seconds(),
		Machine: s.Machine.Name, Banner: p.cfg.banner(now), ComputeNodes: p.compute,
		Forwarders: make([]api.ForwarderRow, len(p.forwarders.nodes)), Findings: api.ListOf(sit.Findings),
		Todo: api.Todo{Waiting: []api.PlanRow{}},
	}
	if p.cfg.JobsKnown != nil && p.cfg.JobsKnown() {
		o.Jobs = new(len(sit.Jobs))
	}
	rows := make(map[topology.NodeID]*api.ForwarderRow, len(p.forwarders.nodes))
	for i, n := range p.forwarders.nodes {
		o.Forwarders[i] = newRow(sit, n)
		rows[n.ID] = &o.Forwarders[i]
	}
	o.At = p.readForwarders(o.Forwarders, now)
	p.nameTopJobs(s, rows, now)
	if s.advice.Late > 0 {
		excuse(o.Forwarders)
	}
	o.Needs = advise.Cards(s.advice)
	p.addPlans(&o, rows)
	nameSufferers(o.Forwarders, o.Needs)
	o.Findings = phrased(bySuffering(o.Findings, o.Needs))
	addWaits(p.cfg.detectors(), &o)
	setLevels(old, o.Forwarders)
	o.Quiet()
	s.Overview = o
	return s
}

// phrased gives findings the sentence that every surface prints.
func phrased(all []anomaly.Finding) []anomaly.Finding {
	for i := range all {
		all[i].Sentence = advise.Sentence(&all[i])
	}
	return all
}

// bySuffering orders findings as the needs that they are, then what else is open, then what is over; of equals the
// newest first.
func bySuffering(all []anomaly.Finding, needs []advise.Card) []anomaly.Finding {
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

// setLevels gives forwarders the levels that follow those of the snapshot before.
func setLevels(old *Snapshot, rows []api.ForwarderRow) {
	var before []api.ForwarderRow
	if old != nil {
		before = old.Overview.Forwarders
	}
	shown := make(map[topology.ForwarderID]string, len(before))
	for i := range before {
		shown[before[i].ID] = before[i].Levels
	}
	for i := range rows {
		rows[i].SetLevels(shown[rows[i].ID])
	}
}

// newRow is a forwarder's line without its newest values.
func newRow(sit *remap.Situation, n topology.Node) api.ForwarderRow {
	id := topology.ForwarderID(n.ID)
	load, seen := sit.Load[id]
	row := api.ForwarderRow{ID: id, Rack: n.Rack, PeakBytesPerSec: n.PeakBytesPerSec,
		State: sit.State(id), LastSeen: load.LastSeen.UTC(),
		ClientCounts: api.ClientCounts{Clients: sit.Clients[id], Assumed: sit.Assumed[id], Sharing: sit.Sharing[id]}}
	if !seen {
		row.LastSeen = time.Time{}
	}
	if row.State != remap.ForwarderStale {
		row.Busy = load.Busy()
	}
	if n.PeakBytesPerSec > 0 && seen { // without a peak no second can count as occupied
		row.Occupancy = load.Occupancy
	}
	return row
}

// excuse calls forwarders without news unknown while it is the daemon that is late: nobody knows that they are silent.
func excuse(rows []api.ForwarderRow) {
	for i := range rows {
		if rows[i].State == remap.ForwarderStale {
			rows[i].State = remap.ForwarderUnknown
		}
	}
}

// oldestShown is the start of the oldest second that counts as fresh at now, Unix ms.
func oldestShown(now time.Time) int64 { return now.Add(-remap.StaleAfter - time.Second).UnixMilli() }

// readForwarders fills in every forwarder's newest second and returns the newest of them. A stale row stays empty:
// old numbers lie.
func (p *Picture) readForwarders(rows []api.ForwarderRow, now time.Time) time.Time {
	p.forwarders.follow(p.cfg.Board)
	newest, latest := int64(0), now.Add(maxAhead).UnixMilli()
	values := newRowValues(len(rows)) // one allocation for all rows
	p.cfg.Board.Layer(topology.Forwarder, func(n *window.Node) {
		i := p.forwarders.of(n)
		if i < 0 {
			return
		}
		if n.TimeMillis > newest && n.TimeMillis <= latest {
			newest = n.TimeMillis
		}
		if rows[i].State != remap.ForwarderStale {
			values.fill(i, &rows[i], n.Samples)
		}
	})
	if newest == 0 {
		return time.Time{}
	}
	return time.UnixMilli(newest).UTC()
}

// rowValues holds the memory that the numbers of forwarders' rows point into.
type rowValues []float64

func newRowValues(rows int) rowValues { return make(rowValues, rows*len(api.ListedMetrics)) }

// fill points line k at the values of a second; what is not a number is left out.
func (r rowValues) fill(k int, row *api.ForwarderRow, samples []collector.Sample) {
	room := r[k*len(api.ListedMetrics):][:len(api.ListedMetrics)]
	for _, s := range samples {
		if i, ok := api.PlaceOf(s.Metric); ok && collector.IsValue(s.Value) {
			room[i] = s.Value
			row.Values[i] = &room[i]
		}
	}
}

// known leaves out what is not a number.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func topOf(f *collector.Frame) (top topJob) {
	for _, j := range f.Jobs {
		if d := didOf(j.Samples); d.more(top.did) {
			top = topJob{j.Job, d}
		}
	}
	return top
}

// addPlans lists the plans that wait for a person and marks the forwarders that they touch; one that several touch has
// the plan that is needed first. A plan that no need names comes last.
func (p *Picture) addPlans(o *api.Overview, rows map[topology.NodeID]*api.ForwarderRow) {
	first := make(map[string]int, len(o.Needs))
	for i := range o.Needs {
		if _, named := first[o.Needs[i].Plan]; !named { // several needs may have one plan
			first[o.Needs[i].Plan] = i
		}
	}
	place := func(id string) int {
		if at, needed := first[id]; needed {
			return at
		}
		return len(o.Needs)
	}
	for i := range p.plans {
		q := &p.plans[i]
		if q.State != remap.Proposed {
			continue
		}
		o.Waiting = append(o.Waiting, PlanRow(q))
		for _, m := range q.Moves {
			for _, id := range append(m.Sources(), m.To, m.About()) {
				if row := rows[id.Node()]; row != nil && (row.Plan == "" || place(q.ID) < place(row.Plan)) {
					row.Plan = q.ID
				}
			}
		}
	}
}

// nameTopJobs finds the job that does most on each forwarder, from what the mounts say of jobs, of a compute node whose
// counters know none from the batch system, and where neither is there from the forwarder itself.
func (p *Picture) nameTopJobs(s *Snapshot, rows map[topology.NodeID]*api.ForwarderRow, now time.Time) {
	on, own := map[topology.ForwarderID]map[topology.JobID]did{}, map[topology.NodeID]topology.JobID{}
	oldest := oldestShown(now)
	owners := sync.OnceValue(func() map[topology.NodeID]topology.JobID { return ownersOf(s.Situation.Jobs) })
	p.cfg.Board.All(func(n *window.Node) {
		if n.TimeMillis < oldest {
			return
		}
		top := topOf(&n.Frame)
		if len(n.Jobs) == 0 {
			if top.did = didOf(n.Samples); n.Role != topology.Compute || top.did == (did{}) {
				return
			}
			if top.job = owners()[n.Node]; top.job == "" {
				return
			}
		}
		if n.Role == topology.Forwarder {
			own[n.Node] = top.job
		}
		for _, over := range s.Situation.Over(n.Node) {
			f := over.Forwarder
			if on[f] == nil {
				on[f] = map[topology.JobID]did{}
			}
			on[f][top.job] = on[f][top.job].plus(top.did, over.Part)
		}
	})
	for n, row := range rows {
		if row.State == remap.ForwarderStale {
			continue
		}
		if jobs := on[row.ID]; jobs != nil {
			nameTopJob(row, jobs)
		} else {
			row.TopJob = own[n]
		}
	}
}

// nameTopJob gives a row the job that does most there, with its share of what jobs move; of one that moves
// nothing and only works on metadata the name alone. One that does nothing is not named: it may be over.
func nameTopJob(row *api.ForwarderRow, jobs map[topology.JobID]did) {
	var most did
	total := 0.0
	for j, d := range jobs {
		total += d.bytes()
		if d.more(most) || !most.more(d) && j < row.TopJob {
			row.TopJob, most = j, d
		}
	}
	if total > 0 {
		row.TopJobShare = new(most.bytes() / total)
	}
}

// nameSufferers gives a row without a top job the one that waits for it the most: a slow forwarder may finish nothing
// within a second, and its job is not "none" then.
func nameSufferers(rows []api.ForwarderRow, needs []advise.Card) {
	for i := range rows {
		r := &rows[i]
		at := slices.IndexFunc(needs, func(n advise.Card) bool { return n.Node == r.ID.Node() && len(n.Victims) > 0 })
		if at < 0 || r.TopJob != "" || r.State == remap.ForwarderStale {
			continue
		}
		if v := &needs[at].Victims[0]; v.Share > 0 {
			r.TopJob = v.Job
		}
	}
}
