package webui

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb/history"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/live"
)

// Bounds of one comparison with runs like it: each of them is read from the disk.
const (
	defaultRuns = 50
	maxRuns     = 500
)

func (h *jobs) runs(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	limit := defaultRuns
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxRuns {
			return fmt.Errorf("%w: limit=%q; want 1 to %d", api.ErrInvalid, text, maxRuns)
		}
		limit = n
	}
	run, err := h.run(topology.JobID(r.PathValue("id")), asking(by, h.picture))
	if err != nil {
		return err
	}
	like, all, err := h.known.Like(&run, limit+1) // one may be the job itself
	if err != nil {
		return err
	}
	v := api.JobRuns{Job: run.Job, User: run.User, App: run.App, Project: run.Project, Nodes: run.Nodes,
		Runs: []api.RunRow{}, All: all}
	same := func(o *history.Run) bool { return o.Job == run.Job && o.Start.Equal(run.Start) }
	if run.Profile != nil {
		v.All--
	}
	like = slices.DeleteFunc(like, func(o history.Run) bool { return same(&o) })
	like = like[:min(limit, len(like))]
	var since time.Time
	if run.End.IsZero() {
		run.Profile, since = h.known.SoFar(run.Job)
		run.Forwarders = h.observedForwarders(run.NodeList)
	}
	for i := range like {
		v.Runs = append(v.Runs, runRow(&like[i]))
	}
	if run.Profile != nil {
		this := runRow(&run)
		this.Partial = run.End.IsZero() && since.Sub(run.Start) > watchSlack
		v.This = &this
	}
	if err := h.remapped(r, &v); err != nil {
		return err
	}
	v.Compare()
	return api.WriteJSON(w, v)
}

// watchSlack is how long after its start a job is usually seen first.
const watchSlack = 10 * time.Second

func runRow(r *history.Run) api.RunRow {
	p := r.Profile
	row := api.RunRow{Job: r.Job, Start: r.Start, End: r.End, ReadBytes: p.ReadBytes, WriteBytes: p.WriteBytes,
		MetaOps: p.MetaOps, Mode: p.Mode, IOSeconds: p.IOSeconds,
		Forwarders: r.Forwarders, Waits: p.Waits}
	if row.Forwarders == nil {
		row.Forwarders = []topology.ForwarderID{}
	}
	if p.IOSeconds > 0 {
		mean, ops := p.VolumeBytes()/p.IOSeconds, p.MetaOps/p.IOSeconds
		row.BytesPerSec, row.MetaOpsPerSec = &mean, &ops
	}
	if p.From == history.FromCollectors || p.From == history.FromWatching { // this daemon's desk had it in hand
		row.Remapped = new(bool)
	}
	return row
}

// remapped says of each run whether a plan moved it.
func (h *jobs) remapped(r *http.Request, v *api.JobRuns) error {
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
	plans, err := h.desk.OfJobs(r.Context(), wanted)
	if err != nil {
		return fromDesk(err)
	}
	for _, p := range plans {
		for _, row := range rows[p.Job] {
			during := !p.Created.Before(row.Start) && (row.End.IsZero() || p.Created.Before(row.End))
			if during && p.State.Moved() && row.Plan == "" {
				yes := true
				row.Remapped, row.Plan = &yes, p.ID
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
