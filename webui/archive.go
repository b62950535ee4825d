package webui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"fairway/anomaly/rootcause"
	"fairway/collector/topology"
	"fairway/remap/journal"
	"fairway/remap/policy/filedomain"
	"fairway/remap/policy/sharedfiles"
	"fairway/tsdb/history"
	"fairway/tsdb/history/iolog"
	"fairway/webui/access"
	"fairway/webui/api"
)

// archives answers questions about I/O logs in SQL, and explains jobs' I/O times from them.
type archives struct{ *parts }

// Archive answers questions about the site's I/O logs.
type Archive interface {
	Ask(ctx context.Context, q iolog.Question, limit int) (iolog.Result, error)
	JobLogs(ctx context.Context, run history.Run) ([]iolog.Log, error)
	Around(ctx context.Context, j *iolog.Job) (iolog.Around, error)
}

// Bounds of one question.
const (
	archiveTimeout = 30 * time.Second
	archiveRows    = 10_000
	// maxCritical is how many critical files of one direction are sent.
	maxCritical = 5_000
)

func analyses(*http.Request, access.Caller) ([]iolog.Analysis, error) { return iolog.Analyses, nil }

// named answers an analysis by its name; every parameter of the query is one of its own.
func (h archives) named(r *http.Request, _ access.Caller) (v iolog.Result, err error) {
	a, ok := iolog.Named(r.PathValue("name"))
	if !ok {
		return v, fmt.Errorf("analysis %q: %w; GET /api/v1/archive lists them", r.PathValue("name"), api.ErrNotFound)
	}
	params := map[string]string{}
	for name, values := range r.URL.Query() {
		params[name] = values[0]
	}
	return h.answer(r, iolog.Question{Analysis: a, Params: params}, archiveRows)
}

// sql answers one SELECT. Rows hold users' paths, so it takes an operator.
func (h archives) sql(r *http.Request, _ access.Caller) (v iolog.Result, err error) {
	limit, err := parseMost(r, archiveRows, archiveRows)
	if err != nil {
		return v, err
	}
	return h.answer(r, iolog.Question{SQL: r.URL.Query().Get("q")}, limit)
}

func (h archives) answer(r *http.Request, q iolog.Question, limit int) (iolog.Result, error) {
	ctx, cancel := context.WithTimeout(r.Context(), archiveTimeout)
	defer cancel()
	res, err := h.Archive.Ask(ctx, q, limit)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%w: it was ended after %s; ask for fewer days, columns or rows", api.ErrInvalid,
			archiveTimeout)
	case errors.Is(err, iolog.ErrQuery):
		err = fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	return res, err
}

// rootCause explains a job's I/O time from its logs.
func (h archives) rootCause(r *http.Request, by access.Caller) (v api.JobCause, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), archiveTimeout)
	defer cancel()
	id := topology.JobID(r.PathValue("id"))
	mine := h.asking(by)
	run, err := h.run(id, mine)
	if err != nil && mine != nil {
		return v, err // whose it was is not known
	}
	run.Job = id
	logs, logsErr := h.Archive.JobLogs(ctx, run)
	if logsErr != nil {
		return v, logsErr
	}
	if len(logs) == 0 && r.URL.Query().Has("empty") {
		return api.JobCause{Job: id, Logs: []api.LogCause{}}, nil // a browser notes each 404 as an error of the page
	}
	if len(logs) == 0 {
		return v, fmt.Errorf("job %q: %w: no log of it is in the archive", id, api.ErrNotFound)
	}
	if err != nil && !errors.Is(err, api.ErrNotFound) && !errors.Is(err, api.ErrUnreachable) {
		return v, err
	}
	if run.Forwarders == nil && run.End.IsZero() {
		run.Forwarders = h.observedForwarders(run.NodeList)
	}
	v = api.JobCause{Job: id, Forwarders: run.Forwarders, Logs: []api.LogCause{}}
	if len(logs) > 1 {
		whole, err := h.together(ctx, logs, &run, mine)
		if err != nil {
			return v, err
		}
		v.Logs = append(v.Logs, whole)
	}
	for i := range logs {
		cause, err := h.explain(ctx, &logs[i], &run, mine)
		if err != nil {
			return v, err
		}
		v.Logs = append(v.Logs, cause)
	}
	return v, nil
}

// together explains a job of several programs as one.
func (h archives) together(ctx context.Context, logs []iolog.Log, run *history.Run, mine *own) (api.LogCause, error) {
	var read, write []rootcause.Program
	c := api.LogCause{App: fmt.Sprintf("all %d programs", len(logs)), Start: logs[0].Jobs[0].Start}
	for i := range logs {
		j := &logs[i].Jobs[0]
		r, w := rootcause.ByDirection(j, logs[i].JobFiles, pathsOf(&logs[i]))
		end := j.Start.Add(max(0, j.End.Sub(j.Start)))
		read, write = append(read, rootcause.Program{Job: r, Start: j.Start, End: end}),
			append(write, rootcause.Program{Job: w, Start: j.Start, End: end})
		if end.After(c.End) {
			c.End = end
		}
	}
	records, err := h.troubles(ctx, run, c.Start, c.End)
	if err != nil {
		return c, err
	}
	answer := func(programs []rootcause.Program) *rootcause.Answer {
		job := rootcause.Together(programs)
		c.Procs = max(c.Procs, int64(job.Procs))
		if len(job.Files) == 0 {
			return nil
		}
		return h.verdict(&job, records, mine)
	}
	c.Read, c.Write = answer(read), answer(write)
	c.Main = rootcause.Main(c.Read, c.Write)
	return c, nil
}

// verdict explains a job as far as mine may see of the others.
func (h archives) verdict(job *rootcause.Job, records []rootcause.Record, mine *own) *rootcause.Answer {
	job.Records, job.Mounts = records, h.Mounts
	mine.withoutOthers(job)
	a := rootcause.Explain(*job, rootcause.Defaults())
	a.Keep(maxCritical)
	return &a
}

// pathsOf are the paths of a log's files.
func pathsOf(l *iolog.Log) map[int64]string {
	names := map[int64]string{}
	for _, f := range l.Files {
		names[f.ID] = f.Path
	}
	return names
}

func (h archives) explain(ctx context.Context, l *iolog.Log, run *history.Run, mine *own) (api.LogCause, error) {
	j := &l.Jobs[0]
	records, err := h.troubles(ctx, run, j.Start, j.End)
	if err != nil {
		return api.LogCause{}, err
	}
	around, err := h.Archive.Around(ctx, j)
	if err != nil {
		return api.LogCause{}, err
	}
	c := api.LogCause{Log: strconv.FormatInt(j.Log, 10), App: j.App, Procs: j.Procs, Start: j.Start, End: j.End}
	read, write := rootcause.ByDirection(j, l.JobFiles, pathsOf(l))
	answer := func(job *rootcause.Job) *rootcause.Answer {
		job.FromAround(l, around)
		return h.verdict(job, records, mine)
	}
	if len(read.Files) > 0 {
		c.Read = answer(&read)
	}
	if len(write.Files) > 0 || c.Read == nil { // a job that did metadata alone has an answer, too
		c.Write = answer(&write)
	}
	c.Main = rootcause.Main(c.Read, c.Write)
	return c, nil
}

// troubles are what is known against the job's forwarders while it ran, on the job's own clock.
func (h archives) troubles(ctx context.Context, run *history.Run, start, end time.Time) ([]rootcause.Record, error) {
	used := map[topology.NodeID]bool{}
	for _, f := range run.Forwarders {
		used[f.Node()] = true
	}
	if len(used) == 0 {
		return nil, nil
	}
	now := time.Now()
	findings, err := h.Desk.Findings(ctx)
	if err != nil {
		return nil, err
	}
	out := rootcause.FromFindings(findings, run.Job, used, start, now)
	if err := h.untilTheirEnd(out, start); err != nil {
		return nil, err
	}
	for n := range used {
		spans, err := h.excluded(ctx, topology.ForwarderID(n), start, end, now)
		if err != nil {
			return nil, err
		}
		out = append(out, spans...)
	}
	return out, nil
}

// untilTheirEnd ends what neighbours are blamed for when they ended: a finding stays open for a while after.
func (h archives) untilTheirEnd(records []rootcause.Record, start time.Time) error {
	for i := range records {
		r := &records[i]
		if r.Neighbour == "" {
			continue
		}
		run, ok, err := h.Jobs.Job(r.Neighbour)
		if err != nil {
			return err
		}
		if ok && !run.End.IsZero() {
			r.End = max(r.Start, min(r.End, run.End.Sub(start).Seconds()))
		}
	}
	return nil
}

// excluded are the times between start and end for which a forwarder was excluded. A renewal is not a
// new exclusion.
func (h archives) excluded(ctx context.Context, f topology.ForwarderID, start, end,
	now time.Time) (out []rootcause.Record, err error) {
	var steps []*journal.Record
	err = h.records.visit(ctx, journal.Wanted{Subject: string(f)}, func(r *journal.Record) bool {
		if r.Exclusion != nil {
			steps = append(steps, r)
		}
		return true
	})
	var since time.Time
	until := func(t time.Time) {
		if !since.IsZero() && since.Before(end) && t.After(start) {
			out = append(out, rootcause.Record{Layer: topology.Forwarder, Node: string(f), What: rootcause.Excluded,
				Start: since.Sub(start).Seconds(), End: t.Sub(start).Seconds()})
		}
		since = time.Time{}
	}
	for _, r := range slices.Backward(steps) {
		switch {
		case r.Kind == journal.StepReturn:
			until(r.At)
		case since.IsZero():
			since = r.At
		}
	}
	until(now)
	return out, err
}

// domains advises how a file that several processes of a job wrote is divided. Nothing is changed.
type domains struct{ *parts }

const (
	maxShared = 100 // files of an answer
	// shownStripes is how many stripes a picture shows.
	shownStripes = 256
)

func (h domains) get(r *http.Request, by access.Caller) (v api.DomainsView, err error) {
	q, err := api.ParseDomainsQuery(r.URL.Query())
	if err != nil {
		return v, err
	}
	id := topology.JobID(r.PathValue("id"))
	mine := h.asking(by)
	run, err := h.run(id, mine)
	known := err == nil
	if err != nil && mine != nil {
		return v, err // whose it was is not known
	}
	if err != nil && !errors.Is(err, api.ErrNotFound) && !errors.Is(err, api.ErrUnreachable) {
		return v, err
	}
	if known && run.End.IsZero() {
		run.Profile, _ = h.Jobs.SoFar(id)
	}
	files, logs, err := h.sharedFiles(r.Context(), id, &run)
	if err != nil {
		return v, err
	}
	if !known && logs == 0 {
		return v, fmt.Errorf("job %q: %w: it neither runs nor is in the history, and no log of it is in the archive",
			id, api.ErrNotFound)
	}
	v = api.DomainsView{Job: id, Files: files, Left: max(0, len(files)-maxShared), Assumed: []string{},
		Methods: []filedomain.Comparison{}}
	v.Files = files[:min(len(files), maxShared)]
	if len(files) == 0 {
		return v, nil
	}
	if q.File >= len(v.Files) {
		return v, fmt.Errorf("%w: file=%d; the job has %d shared files, numbered from 0", api.ErrInvalid, q.File,
			len(v.Files))
	}
	err = h.compare(&v, q, run.Nodes)
	return v, err
}

// sharedFiles are those of a job's logs, or of its profile where it has no log.
func (h domains) sharedFiles(ctx context.Context, id topology.JobID, run *history.Run) (files []sharedfiles.File,
	logs int, err error) {
	if h.Archive != nil {
		ctx, cancel := context.WithTimeout(ctx, archiveTimeout)
		defer cancel()
		run.Job = id
		all, err := h.Archive.JobLogs(ctx, *run)
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
func (h domains) compare(v *api.DomainsView, q api.DomainsQuery, nodes int) error {
	v.File = q.File
	f := &v.Files[v.File]
	given := sharedfiles.Given{Servers: q.Servers, StripeSize: q.StripeSize, Aggregators: q.Aggregators, Nodes: nodes}
	given.MachineServers = len(h.Picture.Snapshot().Situation.Machine.ByRole(topology.Storage))
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
	v.Advice = new(filedomain.Choose(c, v.Methods))
	c.Method = v.Advice.Method // what the command for it would be asked
	v.Case = &c
	return nil
}
