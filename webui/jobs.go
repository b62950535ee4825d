package webui

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/remap/dispatch"
	"fairway/remap/journal"
	"fairway/tsdb/history"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/live"
)

// jobs answers what runs, what ran, and takes the batch system's word.
type jobs struct{ *parts }

func jobRow(r *history.Run) api.JobRow {
	return api.JobRow{Job: remap.Job{ID: r.Job, User: r.User, App: r.App, Project: r.Project,
		Nodes: api.ListOf(r.NodeList), Start: r.Start}, NodeCount: r.Nodes, End: r.End}
}

func (h jobs) list(r *http.Request, by access.Caller, limit int) (v []api.JobRow, err error) {
	mine := h.asking(by)
	rows := []api.JobRow{}
	switch state := r.URL.Query().Get("state"); state {
	case "", "running", "ended", "all":
		if state != "ended" {
			now := live.JobsNow(h.Picture)
			for _, j := range h.Picture.Snapshot().Situation.Jobs {
				if mine.has(j.User) {
					rows = append(rows, api.JobRow{Job: j, NodeCount: len(j.Nodes), Now: now[j.ID]})
				}
			}
			slices.SortStableFunc(rows, func(a, b api.JobRow) int {
				return cmp.Or(cmp.Compare(waitOf(&b), waitOf(&a)), cmp.Compare(b.NodeCount, a.NodeCount))
			})
			rows = rows[:min(limit, len(rows))]
		}
		if state == "ended" || state == "all" {
			if rows, err = h.ended(rows, limit, mine); err != nil {
				return v, err
			}
		}
	default:
		return v, fmt.Errorf("%w: state=%q; there are running, ended and all", api.ErrInvalid, state)
	}
	return rows, nil
}

// waitOf orders jobs by how much they wait; less than 1 % counts as 0.
func waitOf(r *api.JobRow) float64 {
	if r.Now == nil || r.Now.Wait == nil || *r.Now.Wait < 0.01 {
		return 0
	}
	return *r.Now.Wait
}

// ended adds those that ended last, the newest first, up to limit rows.
func (h jobs) ended(rows []api.JobRow, limit int, mine *own) ([]api.JobRow, error) {
	looked := limit
	if mine != nil {
		looked = max(limit, ownAmong)
	}
	runs, err := h.Jobs.Ended(looked)
	if err != nil {
		return nil, err
	}
	runs = mine.runs(runs, max(0, limit-len(rows)))
	for i := range runs {
		row := jobRow(&runs[i])
		row.Whole = live.JobWhole(h.Picture, &runs[i])
		rows = append(rows, row)
	}
	return rows, nil
}

// ofJob makes an endpoint of a function of a job that runs or has ended.
func ofJob[Out any](p *parts, f func(*http.Request, access.Caller, *history.Run) (Out, error)) endpoint {
	return answers(func(r *http.Request, by access.Caller) (v Out, err error) {
		run, err := p.run(topology.JobID(r.PathValue("id")), p.asking(by))
		if err != nil {
			return v, err
		}
		return f(r, by, &run)
	})
}

func (h jobs) get(r *http.Request, by access.Caller, run *history.Run) (v api.JobView, err error) {
	mine, id := h.asking(by), topology.JobID(r.PathValue("id"))
	v = api.JobView{Forwarders: map[topology.ForwarderID]int{}, Plans: []string{},
		Neighbours: []api.Neighbour{}}
	run.NodeList = dispatch.NodesOf(h.Jobs, run)
	v.JobRow, v.Served, v.Pending, v.Profile = jobRow(run), run.Forwarders, run.Pending, run.Profile
	v.Decision = mine.decision(h.Jobs.Decided(id))
	if run.End.IsZero() {
		v.SoFar, v.WatchedSince = h.Jobs.SoFar(id)
		v.Waits = live.JobWaits(h.Picture, id)
		v.Neighbours = mine.neighbours(neighbours(h.Picture, h.Picture.Snapshot().Situation.Jobs, id))
		v.ReadBytesPerSec, v.WriteBytesPerSec, v.MetaOpsPerSec = h.Picture.Load(v.Nodes)
		if h.Shared != nil && mine == nil {
			if of := slowTargets(h.Picture, id); len(of) > 0 {
				v.Shared = h.Shared(of)
			}
		}
		sit := h.Picture.Snapshot().Situation
		for _, n := range v.Nodes {
			for _, f := range observedOf(sit, n) {
				v.Forwarders[f]++
			}
		}
	}
	v.RunTime, v.IOShare = advise.RunTime(run, cmp.Or(v.Profile, v.SoFar), v.WatchedSince, time.Now())
	plans, err := h.Desk.OfJob(r.Context(), id)
	if err != nil {
		return v, err
	}
	for i := range plans {
		v.Plans = append(v.Plans, plans[i].ID)
		if d := v.Decision; d != nil && d.Plan == plans[i].ID {
			d.State = plans[i].State // the answer's is that of the job's start
		}
	}
	v.Answer, err = h.answer(r.Context(), run, &v, plans)
	return v, err
}

// slowTargets are the storage targets that are accused and that a job uses or waits for.
func slowTargets(p *live.Picture, id topology.JobID) (of []topology.NodeID) {
	accused := map[topology.NodeID]bool{} // whether the job waits for it
	var names []topology.NodeID
	for i := range p.Snapshot().Situation.Findings {
		if f := &p.Snapshot().Situation.Findings[i]; f.Open() && f.Kind == anomaly.TargetSlow {
			accused[f.Node] = accused[f.Node] ||
				slices.ContainsFunc(f.Impact, func(w anomaly.Impact) bool { return w.Job == id })
			names = append(names, f.Node)
		}
	}
	for _, u := range live.TargetUses(p, names) {
		accused[u.Target] = accused[u.Target] || u.Job == id
	}
	for _, n := range slices.Compact(names) {
		if accused[n] && !slices.Contains(of, n) {
			of = append(of, n)
		}
	}
	return of
}

// mostRecords bounds how many records of the journal an answer reads: 8 MB in memory where each names 20 jobs.
const mostRecords = 500

// costOf is what a job has lost by a finding, seconds.
func costOf(f *anomaly.Finding, job topology.JobID) (seconds float64) {
	for _, i := range f.Impact {
		if i.Job == job {
			seconds = i.CostSeconds
		}
	}
	return seconds
}

// answer says what a job lost, from the findings of its time.
func (h jobs) answer(ctx context.Context, run *history.Run, v *api.JobView, plans []remap.Plan) (string, error) {
	work := advise.Work{Job: run.Job, Ended: !run.End.IsZero()}
	found := map[string]*anomaly.Finding{}
	note := func(f anomaly.Finding) {
		switch kept := found[f.ID]; {
		case kept == nil:
			found[f.ID] = &f
		case costOf(&f, run.Job) > costOf(kept, run.Job): // one that goes on forgets jobs that have ended
			kept.Impact = f.Impact
		}
	}
	for _, f := range h.Picture.Snapshot().Situation.Findings { // between two records the losses grow
		note(f)
	}
	wanted, left := journal.Wanted{From: run.Start}, mostRecords
	if work.Ended {
		wanted.To = run.End.Add(time.Hour)
	}
	var oldest time.Time
	err := h.records.visit(ctx, wanted, func(rec *journal.Record) bool {
		if rec.Finding != nil {
			note(rec.Finding.Finding)
		}
		oldest = rec.At
		left--
		return left > 0
	})
	if err != nil {
		return "", err
	}
	for _, f := range found {
		work.Findings = append(work.Findings, *f)
	}
	for i := range plans {
		if plans[i].State.Moved() {
			work.Moved = &plans[i]
			break
		}
	}
	if p := cmp.Or(v.Profile, v.SoFar); p != nil {
		work.IOSeconds = &p.IOSeconds
	}
	if v.Waits != nil {
		for _, c := range v.Waits.Causes {
			if c.Now != nil && (work.Wait == nil || *c.Now > *work.Wait) {
				work.Wait, work.Cause = c.Now, c.Text
			}
		}
	}
	text := advise.AnswerFor(&work, time.Now())
	if left == 0 {
		text += fmt.Sprintf("; what was found before %s is not counted", oldest.UTC().Format(time.DateTime))
	}
	return text, nil
}

// ownAmong is how many ended runs are looked at for a user's own.
const ownAmong = 2000

// run finds a job that runs, or its newest ended run; of a job that may not be seen it is as if there were none.
func (h *parts) run(id topology.JobID, mine *own) (history.Run, error) {
	run, ok, err := h.Jobs.Job(id)
	if ok && !mine.has(run.User) {
		run, ok = history.Run{}, false
	}
	if err == nil && !ok {
		err = fmt.Errorf("job %q: %w; neither runs nor is in the history", id, api.ErrNotFound)
	}
	return run, err
}

func (h jobs) profile(_ *http.Request, _ access.Caller, run *history.Run) (api.ProfileView, error) {
	return api.ProfileView{JobRow: jobRow(run), Served: run.Forwarders, Pending: run.Pending,
		Profile: run.Profile}, nil
}

func (h jobs) dispatch(r *http.Request, _ access.Caller, in dispatch.Request) (v dispatch.Answer, err error) {
	return h.Jobs.Dispatch(r.Context(), in)
}

func (h jobs) end(r *http.Request, _ access.Caller) (v dispatch.Ended, err error) {
	return h.Jobs.End(r.Context(), topology.JobID(r.PathValue("id")))
}

// observedForwarders are those that nodes use now.
func (h *parts) observedForwarders(nodes []topology.NodeID) (out []topology.ForwarderID) {
	sit := h.Picture.Snapshot().Situation
	for _, n := range nodes {
		for _, f := range observedOf(sit, n) {
			if !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// observedOf are the forwarders that a node was seen to use: one, or those that it spreads its traffic over.
func observedOf(sit *remap.Situation, n topology.NodeID) (out []topology.ForwarderID) {
	if f, ok := sit.Observed[n]; ok {
		return []topology.ForwarderID{f}
	}
	for _, over := range sit.SpreadOf(n) {
		out = append(out, over.Forwarder)
	}
	return out
}

// Bounds of one comparison with runs like it: each of them is read from the disk.
const (
	defaultRuns = 50
	maxRuns     = 500
)

func (h jobs) runs(r *http.Request, _ access.Caller, run *history.Run) (v api.JobRuns, err error) {
	limit, err := parseMost(r, defaultRuns, maxRuns)
	if err != nil {
		return v, err
	}
	like, all, err := h.Jobs.Like(run, limit+1) // one may be the job itself
	if err != nil {
		return v, err
	}
	v = api.JobRuns{Job: run.Job, User: run.User, App: run.App, Project: run.Project, Nodes: run.Nodes,
		Runs: []api.RunRow{}, All: all}
	same := func(o *history.Run) bool { return o.Job == run.Job && o.Start.Equal(run.Start) }
	if run.Profile != nil {
		v.All--
	}
	like = slices.DeleteFunc(like, func(o history.Run) bool { return same(&o) })
	like = like[:min(limit, len(like))]
	var since time.Time
	if run.End.IsZero() {
		run.Profile, since = h.Jobs.SoFar(run.Job)
		run.Forwarders = h.observedForwarders(run.NodeList)
	}
	for i := range like {
		v.Runs = append(v.Runs, runRow(&like[i]))
	}
	if run.Profile != nil {
		this := runRow(run)
		this.Partial = run.End.IsZero() && since.Sub(run.Start) > watchSlack
		v.This = &this
	}
	if err := h.remapped(r, &v); err != nil {
		return v, err
	}
	v.Compare()
	return v, nil
}

// watchSlack is how long after its start a job is usually seen first.
const watchSlack = 10 * time.Second

func runRow(r *history.Run) api.RunRow {
	p := r.Profile
	row := api.RunRow{Job: r.Job, Start: r.Start, End: r.End, ReadBytes: p.ReadBytes, WriteBytes: p.WriteBytes,
		MetaOps: p.MetaOps, Mode: p.Mode, IOSeconds: p.IOSeconds,
		Forwarders: api.ListOf(r.Forwarders), Waits: p.Waits}
	if p.IOSeconds > 0 {
		row.BytesPerSec, row.MetaOpsPerSec = new(p.VolumeBytes()/p.IOSeconds), new(p.MetaOps/p.IOSeconds)
	}
	if p.From == history.FromCollectors || p.From == history.FromWatching { // this daemon's desk had it in hand
		row.Remapped = new(bool)
	}
	return row
}

// remapped says of each run whether a plan moved it.
func (h jobs) remapped(r *http.Request, v *api.JobRuns) error {
	rows := map[topology.JobID][]*api.RunRow{}
	wanted := map[topology.JobID]bool{}
	note := func(row *api.RunRow) {
		rows[row.Job], wanted[row.Job] = append(rows[row.Job], row), true
	}
	for i := range v.Runs {
		note(&v.Runs[i])
	}
	if v.This != nil {
		note(v.This)
	}
	plans, err := h.Desk.OfJobs(r.Context(), wanted)
	if err != nil {
		return err
	}
	for _, p := range plans {
		for _, row := range rows[p.Job] {
			during := !p.Created.Before(row.Start) && (row.End.IsZero() || p.Created.Before(row.End))
			if during && p.State.Moved() && row.Plan == "" {
				row.Remapped, row.Plan = new(true), p.ID
			}
		}
	}
	return nil
}

// mostNeighbours bounds those that are listed.
const mostNeighbours = 20

// neighbours are the jobs that move bytes on a job's forwarders now.
func neighbours(p *live.Picture, jobs []remap.Job, id topology.JobID) []api.Neighbour {
	flow := p.Flow().OfJob(id)
	out := []api.Neighbour{}
	place := map[topology.JobID]int{}
	for _, l := range flow.Links {
		if l.Job == id || l.ReadBytesPerSec+l.WriteBytesPerSec == 0 {
			continue
		}
		i, ok := place[l.Job]
		if !ok {
			i = len(out)
			place[l.Job] = i
			out = append(out, api.Neighbour{Job: l.Job})
		}
		n := &out[i]
		n.On = append(n.On, l.Forwarder)
		n.ReadBytesPerSec, n.WriteBytesPerSec = n.ReadBytesPerSec+l.ReadBytesPerSec,
			n.WriteBytesPerSec+l.WriteBytesPerSec
	}
	slices.SortStableFunc(out, func(a, b api.Neighbour) int {
		return cmp.Compare(b.ReadBytesPerSec+b.WriteBytesPerSec, a.ReadBytesPerSec+a.WriteBytesPerSec)
	})
	out = out[:min(len(out), mostNeighbours)]
	for _, c := range p.Interference(flow, mostJobs).Cells {
		for i := range out {
			switch n := &out[i]; {
			case c.Job == id && c.By == n.Job:
				n.Takes, n.Finding = &c.Share, c.Finding
			case c.Job == n.Job && c.By == id:
				n.Relief = &c.Share
			}
		}
	}
	for i := range out {
		slices.Sort(out[i].On)
		if k := slices.IndexFunc(jobs, func(j remap.Job) bool { return j.ID == out[i].Job }); k >= 0 {
			out[i].App = jobs[k].App
		}
	}
	return out
}
