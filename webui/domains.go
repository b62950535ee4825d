package webui

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"fairway/collector/topology"
	"fairway/remap/policy/filedomain"
	"fairway/remap/policy/sharedfiles"
	"fairway/tsdb/history"
	"fairway/webui/access"
	"fairway/webui/api"
)

// domains advises how a file that several processes of a job wrote is divided. Nothing is changed.
type domains struct {
	archive Archive
	jobs    *jobs
}

const (
	maxShared = 100 // files of an answer
	// shownStripes is how many stripes a picture shows.
	shownStripes = 256
)

func (h *domains) get(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	q, err := api.ParseDomainsQuery(r.URL.Query())
	if err != nil {
		return err
	}
	id := topology.JobID(r.PathValue("id"))
	mine := asking(by, h.jobs.picture)
	run, err := h.jobs.run(id, mine)
	known := err == nil
	if err != nil && mine != nil {
		return err // whose it was is not known
	}
	if err != nil && !errors.Is(err, api.ErrNotFound) && !errors.Is(err, api.ErrUnreachable) {
		return err
	}
	if known && run.End.IsZero() {
		run.Profile, _ = h.jobs.known.SoFar(id)
	}
	files, logs, err := h.sharedFiles(r.Context(), id, &run)
	if err != nil {
		return err
	}
	if !known && logs == 0 {
		return fmt.Errorf("job %q: %w: it neither runs nor is in the history, and no log of it is in the archive", id,
			api.ErrNotFound)
	}
	v := api.DomainsView{Job: id, Files: files, Left: max(0, len(files)-maxShared), Assumed: []string{},
		Methods: []filedomain.Comparison{}}
	v.Files = files[:min(len(files), maxShared)]
	if len(files) == 0 {
		return api.WriteJSON(w, v)
	}
	if q.File >= len(v.Files) {
		return fmt.Errorf("%w: file=%d; the job has %d shared files, numbered from 0", api.ErrInvalid, q.File,
			len(v.Files))
	}
	if err := h.compare(&v, q, run.Nodes); err != nil {
		return err
	}
	return api.WriteJSON(w, v)
}

// sharedFiles are those of a job's logs, or of its profile where it has no log.
func (h *domains) sharedFiles(ctx context.Context, id topology.JobID, run *history.Run) (files []sharedfiles.File,
	logs int, err error) {
	if h.archive != nil {
		ctx, cancel := context.WithTimeout(ctx, archiveTimeout)
		defer cancel()
		run.Job = id
		all, err := h.archive.JobLogs(ctx, *run)
		if err != nil {
			return nil, 0, err
		}
		if len(all) > 0 {
			return sharedfiles.FromLogs(all), len(all), nil
		}
	}
	return sharedfiles.FromProfile(run), 0, nil
}

// compare fills in what follows from the chosen file.
func (h *domains) compare(v *api.DomainsView, q api.DomainsQuery, nodes int) error {
	v.File = q.File
	f := &v.Files[v.File]
	given := sharedfiles.Given{Servers: q.Servers, StripeSize: q.StripeSize, Aggregators: q.Aggregators, Nodes: nodes}
	given.MachineServers = len(h.jobs.picture.Snapshot().Situation.Machine.ByRole(topology.Storage))
	c, assumed, err := sharedfiles.Case(f, given)
	if err != nil {
		if q.Servers+q.Aggregators > 0 || q.StripeSize > 0 {
			return fmt.Errorf("%w: %w", api.ErrInvalid, err)
		}
		v.Problem = err.Error()
		return nil
	}
	v.Assumed, v.Caveat = assumed, sharedfiles.Caveat(f)
	v.Window = c.Window(shownStripes)
	v.Methods = filedomain.Compare(c, v.Window)
	advice := filedomain.Choose(c, v.Methods)
	v.Advice = &advice
	c.Method = advice.Method // what the command for it would be asked
	v.Case = &c
	return nil
}
