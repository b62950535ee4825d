package webui

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/remap/policy/periodic"
	"fairway/remap/policy/share"
	"fairway/remap/queue/tables"
	"fairway/tsdb/history"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/live"
)

// whatif answers what policies would do; nothing is changed anywhere.
type whatif struct {
	picture interface{ Snapshot() *live.Snapshot }
	jobs    interface {
		Ended(limit int) ([]history.Run, error)
		Windows() dispatch.Windows
	}
	priority  func(*remap.Job) float64 // nil: not known
	gathering func() (tables.Gathering, bool)
}

// shares divides among the jobs that run now.
func (h *whatif) shares(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	q := r.URL.Query()
	p, err := share.ParsePolicy(cmp.Or(q.Get("policy"), "size-fair"))
	if err != nil {
		return fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	byPriority := slices.Contains(p, share.Priority)
	if byPriority && h.priority == nil {
		return fmt.Errorf(
			"%w: policy %s: jobs' priorities are the batch system's, which this daemon does not ask (slurm.jobs); "+
				"fairway shares takes them from a file", api.ErrInvalid, p)
	}
	v := api.SharesView{Policy: p.String(), Forwarder: topology.ForwarderID(q.Get("forwarder")),
		Jobs: []api.ShareRow{}}
	var jobs []share.Job
	for _, j := range jobsOn(h.picture.Snapshot().Situation, v.Forwarder) {
		row := api.ShareRow{Job: j.ID, User: j.User, Group: j.Project, Nodes: len(j.Nodes)}
		if byPriority {
			row.Priority = h.priority(&j)
		}
		v.Jobs = append(v.Jobs, row)
		jobs = append(jobs, share.Job{Name: string(j.ID), User: j.User, Group: j.Project,
			Size: float64(max(len(j.Nodes), 1)), Priority: row.Priority})
	}
	for i, x := range share.Shares(p, jobs) {
		v.Jobs[i].Share = x
	}
	slices.SortStableFunc(v.Jobs, func(a, b api.ShareRow) int { return cmp.Compare(b.Share, a.Share) })
	if g, ok := h.gathering(); ok {
		v.InForce = &g
	}
	return api.WriteJSON(w, v)
}

// jobsOn are the running jobs with a node that uses a forwarder; all of them for none.
func jobsOn(s *remap.Situation, f topology.ForwarderID) (on []remap.Job) {
	for _, j := range s.Jobs {
		if f == "" || slices.ContainsFunc(j.Nodes,
			func(n topology.NodeID) bool { return slices.Contains(observedOf(s, n), f) }) {
			on = append(on, j)
		}
	}
	return on
}

// newestRuns is how many runs are looked at for those that slow each other.
const newestRuns = 1000

// slowdowns compares runs that shared a forwarder with those that did not.
func (h *whatif) slowdowns(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
	runs, err := h.jobs.Ended(newestRuns)
	if err != nil {
		return err
	}
	return api.WriteJSON(w, history.Slowdowns(runs))
}

// windows answers the pattern of the running jobs.
func (h *whatif) windows(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
	return api.WriteJSON(w, h.jobs.Windows().Pattern())
}

// maxPatternWork bounds the instances that one question may place, over all pattern lengths: about a
// second of work.
const maxPatternWork = 1e7

// periodic plans the I/O of the applications in the question; nothing is changed anywhere.
func (h *whatif) periodic(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	text := r.URL.Query().Get("set")
	if text == "" {
		return fmt.Errorf("%w: set: a JSON object as fairway periodic reads it is missing", api.ErrInvalid)
	}
	set, err := periodic.ReadSet(strings.NewReader(text))
	if err != nil {
		return fmt.Errorf("%w: set: %w", api.ErrInvalid, err)
	}
	if work := set.Work(); work > maxPatternWork {
		return fmt.Errorf(
			"%w: set: %.2g instances over all pattern lengths, more than %.2g; raise eps, lower kprime, or use "+
				"fairway periodic", api.ErrInvalid, work, float64(maxPatternWork))
	}
	p, err := periodic.Schedule(set)
	if err != nil {
		return fmt.Errorf("%w: %w; a larger kprime tries longer ones", api.ErrInvalid, err)
	}
	unplanned := periodic.Online(set, periodic.Fair, set.TMin*set.KPrime)
	return api.WriteJSON(w, api.PatternView{Pattern: p, Unplanned: unplanned, Set: set})
}
