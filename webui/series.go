package webui

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/escape"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/tsdb"
	"fairway/tsdb/history"
	"fairway/webui/access"
	"fairway/webui/api"
)

// series answers what the store keeps.
type series struct{ *parts }

// Bounds of one answer.
const (
	maxSeriesNodes  = 4096
	maxSeriesPoints = 2_000_000
)

func catalogue(_ *http.Request, _ access.Caller) (v []api.Metric, err error) {
	return api.Metrics(), nil
}

func glossary(_ *http.Request, _ access.Caller) (v []api.Term, err error) {
	return api.Glossary(), nil
}

func (h series) get(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	q, err := parseSeries(r)
	if err != nil {
		return err
	}
	series, err := h.Store.Select(r.Context(), q)
	if err != nil {
		return err
	}
	a := api.SeriesAnswer{Metric: q.Metric.String(), FromMillis: q.FromMillis, ToMillis: q.ToMillis,
		StepMillis: q.StepMillis, Agg: string(q.Agg), Series: []api.NodeSeries{}}
	for _, one := range series {
		a.Series = append(a.Series, api.NodeSeries{Node: one.Node, Points: withGaps(one.Points, q.StepMillis)})
	}
	if r.URL.Query().Get("format") == "csv" {
		return writeSeriesCSV(w, a)
	}
	return api.WriteJSON(w, a)
}

func parseSeries(r *http.Request) (q tsdb.Query, err error) {
	v := r.URL.Query()
	var ok bool
	if q.Metric, ok = collector.ParseMetric(v.Get("metric")); !ok {
		return q, fmt.Errorf("%w: metric %q is not known; read_bytes is one, docs/metrics.md lists all",
			api.ErrInvalid, v.Get("metric"))
	}
	for _, n := range strings.Split(v.Get("node"), ",") {
		if n != "" {
			q.Nodes = append(q.Nodes, topology.NodeID(n))
		}
	}
	if err = parseSteps(r, &q); err != nil {
		return q, err
	}
	q.Agg = cmp.Or(tsdb.Agg(v.Get("agg")), tsdb.AggMean)
	switch {
	case len(q.Nodes) == 0 || len(q.Nodes) > maxSeriesNodes:
		return q, fmt.Errorf("%w: node: %d names; want 1 to %d", api.ErrInvalid, len(q.Nodes), maxSeriesNodes)
	case !slices.Contains([]tsdb.Agg{tsdb.AggMean, tsdb.AggSum, tsdb.AggMin, tsdb.AggMax, tsdb.AggCount}, q.Agg):
		return q, fmt.Errorf("%w: agg %q; there are mean, sum, min, max and count", api.ErrInvalid, q.Agg)
	}
	return q, fewPoints(&q)
}

// parseSteps reads the range of a query, the last quarter of an hour without one, and its step.
func parseSteps(r *http.Request, q *tsdb.Query) error {
	from, to, err := parseRange(r, 15*time.Minute)
	if err != nil {
		return err
	}
	step, err := parseSpan("step", r.URL.Query().Get("step"), time.Second)
	q.FromMillis, q.ToMillis, q.StepMillis = from.UnixMilli(), to.UnixMilli(), step.Milliseconds()
	return err
}

// fewPoints refuses a query of more than one answer has.
func fewPoints(q *tsdb.Query) error {
	if n := (q.ToMillis - q.FromMillis) / q.StepMillis * int64(len(q.Nodes)); n > maxSeriesPoints {
		return fmt.Errorf("%w: %d points, at most %d; ask for a longer step or a shorter range", api.ErrInvalid, n,
			maxSeriesPoints)
	}
	return nil
}

// withGaps puts a point without value where steps are missing between two points.
func withGaps(points []tsdb.Point, step int64) []api.GapPoint {
	out := make([]api.GapPoint, 0, len(points)+8)
	for i := range points {
		if i > 0 && points[i].TimeMillis-points[i-1].TimeMillis > step {
			out = append(out, api.GapPoint{TimeMillis: points[i-1].TimeMillis + step})
		}
		out = append(out, api.GapPoint{TimeMillis: points[i].TimeMillis, Value: &points[i].Value})
	}
	return out
}

func writeSeriesCSV(w http.ResponseWriter, a api.SeriesAnswer) error {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", a.Metric+".csv"))
	out := [][]string{{"time", "node", a.Metric}}
	for _, one := range a.Series {
		for _, p := range one.Points {
			value := ""
			if p.Value != nil {
				value = strconv.FormatFloat(*p.Value, 'g', -1, 64)
			}
			at := time.UnixMilli(p.TimeMillis).UTC().Format(time.RFC3339)
			out = append(out, []string{at, string(one.Node), value})
		}
	}
	_ = escape.WriteCSV(w, out) // the reader is gone when it failed
	return nil
}

func (h series) occupancy(r *http.Request, _ access.Caller) (v api.OccupancyView, err error) {
	from, to, err := parseRange(r, 24*time.Hour)
	if err != nil {
		return v, err
	}
	bucket, err := parseSpan("bucket", r.URL.Query().Get("bucket"), time.Hour)
	if err != nil {
		return v, err
	}
	q := tsdb.OccupancyQuery{FromMillis: from.UnixMilli(), ToMillis: to.UnixMilli(),
		BucketMillis: bucket.Milliseconds(),
		Threshold:    tsdb.DefaultThreshold, PeakBytesPerSec: map[topology.NodeID]float64{}}
	if text := r.URL.Query().Get("threshold"); text != "" {
		if q.Threshold, err = strconv.ParseFloat(text, 64); err != nil || q.Threshold <= 0 || q.Threshold > 1 {
			return v, fmt.Errorf("%w: threshold=%q; want more than 0, at most 1", api.ErrInvalid, text)
		}
	}
	a := api.OccupancyView{FromMillis: q.FromMillis, ToMillis: q.ToMillis, BucketMillis: q.BucketMillis,
		Threshold: q.Threshold,
		Nodes:     []tsdb.NodeOccupancy{}, NoPeak: []topology.NodeID{}}
	for _, n := range h.Picture.Snapshot().Machine.ByRole(topology.Forwarder) {
		if n.PeakBytesPerSec <= 0 {
			a.NoPeak = append(a.NoPeak, n.ID)
			continue
		}
		q.Nodes = append(q.Nodes, n.ID)
		q.PeakBytesPerSec[n.ID] = n.PeakBytesPerSec
	}
	if cells := (q.ToMillis - q.FromMillis) / q.BucketMillis * int64(len(q.Nodes)); cells > maxSeriesPoints {
		return v, fmt.Errorf("%w: %d cells, at most %d; ask for a longer bucket or a shorter range", api.ErrInvalid,
			cells, maxSeriesPoints)
	}
	if len(q.Nodes) > 0 {
		if a.Nodes, err = h.Store.Occupancy(r.Context(), q); err != nil {
			return v, err
		}
	}
	a.Layer = tsdb.OverNodes(a.Nodes)
	if r.URL.Query().Get("nodes") == "0" {
		a.Nodes = []tsdb.NodeOccupancy{}
	}
	return a, nil
}

// prometheus hands a question in PromQL on; what Prometheus calls alerts are the open findings.
func (h series) prometheus(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	if r.PathValue("call") == "alerts" {
		return api.WriteJSON(w, h.alerts())
	}
	http.StripPrefix("/prometheus", h.PromQL).ServeHTTP(w, r)
	return nil
}

// alerts answers the open findings as Prometheus does the alerts of its rules, under the labels that Alertmanager gets.
func (h series) alerts() any {
	type alert struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
		State       string            `json:"state"`
		ActiveAt    time.Time         `json:"activeAt"`
		Value       string            `json:"value"` // the confidence, 0..1
	}
	open := []alert{}
	findings := h.Picture.Snapshot().Overview.Findings
	for i := range findings {
		f := &findings[i]
		if !f.Open() {
			continue
		}
		a := alert{Labels: map[string]string{"alertname": "fairway_" + string(f.Kind), "id": f.ID},
			Annotations: map[string]string{"summary": f.Sentence}, State: "firing", ActiveAt: f.Since,
			Value: strconv.FormatFloat(f.Confidence, 'e', -1, 64)}
		if f.Node != "" {
			a.Labels["node"] = string(f.Node)
		}
		if f.State == anomaly.Suspect {
			a.State = "pending"
		}
		open = append(open, a)
	}
	return map[string]any{"status": "success", "data": map[string]any{"alerts": open}}
}

// replay answers the past: what happened when, and the cells of one second.
type replay struct{ *parts }

// markSpan is what is listed without a start.
const markSpan = time.Hour

// marks lists what happened in a range: the points that a replay jumps to and a plot shows.
func (h replay) marks(r *http.Request, _ access.Caller, limit int) (v []remap.Mark, err error) {
	from, to, err := parseRange(r, markSpan)
	if err != nil {
		return v, err
	}
	marks, err := h.Picture.Marks(r.Context(), from, to)
	if err != nil {
		return v, err
	}
	jobs, err := h.jobMarks(from, to)
	if err != nil {
		return v, err
	}
	marks = append(marks, jobs...)
	slices.SortStableFunc(marks, func(a, b remap.Mark) int { return a.At.Compare(b.At) })
	return marks[max(0, len(marks)-limit):], nil
}

// markJobs is how many ended jobs are looked at for marks.
const markJobs = 500

// jobMarks lists the starts and ends of jobs, with the forwarders that served them.
func (h replay) jobMarks(from, to time.Time) (marks []remap.Mark, err error) {
	runs, err := h.Jobs.Ended(markJobs)
	if err != nil {
		return nil, err
	}
	for _, j := range h.Picture.Snapshot().Situation.Jobs {
		if run, ok, err := h.Jobs.Job(j.ID); err == nil && ok {
			runs = append(runs, run)
		}
	}
	for i := range runs {
		r := &runs[i]
		for at, what := range map[time.Time]string{r.Start: "starts", r.End: "ends"} {
			if !at.IsZero() && !at.Before(from) && at.Before(to) {
				marks = append(marks, remap.Mark{At: at, Kind: "job", ID: string(r.Job),
					Text:       fmt.Sprintf("%s: %s, %s", what, r.App, anomaly.Counted(r.Nodes, "node")),
					Forwarders: r.Forwarders})
			}
		}
	}
	return marks, nil
}

// grid answers the cells of all compute nodes in one past second, as the live feed's frames are.
func (h replay) grid(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	at, err := past(r)
	if err != nil {
		return err
	}
	name := r.URL.Query().Get("metric")
	metric := gridMetric(name)
	switch {
	case metric < 0:
		return fmt.Errorf("%w: metric %q; there are bw, mdops, latency and err", api.ErrInvalid, name)
	case at.IsZero():
		return fmt.Errorf("%w: at is missing; the present comes over /api/v1/live", api.ErrInvalid)
	}
	frame, err := h.grids.FrameAt(r.Context(), metric, at)
	if err != nil {
		return err
	}
	head := w.Header()
	head.Set("Content-Type", "application/octet-stream")
	head.Set("Content-Length", strconv.Itoa(len(frame)))
	head.Set("Cache-Control", "no-store")
	_, _ = w.Write(frame) // the reader is gone when this fails
	return nil
}

// jobRates are summed over the nodes of a job; what requests took is their mean over all requests.
var (
	jobRates = []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.MetaOps}
	jobWaits = map[collector.Metric]collector.Metric{ // how long by how many
		collector.ClientRead: collector.ReadOps, collector.ClientWrite: collector.WriteOps,
		collector.ClientMeta: collector.MetaOps,
	}
)

// series answers what a job's compute nodes did together between from and to, as far as it ran then.
func (h jobs) series(r *http.Request, _ access.Caller, run *history.Run) (v api.JobSeries, err error) {
	run.NodeList = dispatch.NodesOf(h.Jobs, run)
	q := tsdb.Query{Nodes: evenly(run.NodeList, maxSeriesNodes), Agg: tsdb.AggMean}
	if err := parseSteps(r, &q); err != nil {
		return v, err
	}
	q.FromMillis = max(q.FromMillis, run.Start.UnixMilli())
	if !run.End.IsZero() {
		q.ToMillis = min(q.ToMillis, run.End.UnixMilli())
	}
	a := api.JobSeries{Job: run.Job, FromMillis: q.FromMillis, ToMillis: q.ToMillis, StepMillis: q.StepMillis,
		Nodes: len(q.Nodes), OfNodes: len(run.NodeList), Series: map[string][]api.GapPoint{}}
	if q.FromMillis >= q.ToMillis || len(q.Nodes) == 0 {
		return a, nil
	}
	if err := fewPoints(&q); err != nil {
		return v, err
	}
	err = h.together(r.Context(), q, &a)
	return a, err
}

// evenly picks at most so many of a job's nodes, in equal steps through its list.
func evenly(nodes []topology.NodeID, most int) []topology.NodeID {
	if len(nodes) <= most {
		return nodes
	}
	picked := make([]topology.NodeID, most)
	for i := range picked {
		picked[i] = nodes[i*len(nodes)/most]
	}
	return picked
}

// together puts the series of the query's nodes together.
func (h jobs) together(ctx context.Context, q tsdb.Query, a *api.JobSeries) error {
	read := func(m collector.Metric) ([]tsdb.Series, error) {
		q.Metric = m
		return h.Store.Select(ctx, q)
	}
	for _, m := range jobRates {
		of, err := read(m)
		if err != nil {
			return err
		}
		sum := map[int64]float64{}
		for i := range of {
			for _, p := range of[i].Points {
				sum[p.TimeMillis] += p.Value
			}
		}
		a.Put(m.String(), sum)
	}
	for m, count := range jobWaits {
		took, err := read(m)
		if err != nil {
			return err
		}
		counts, err := read(count)
		if err != nil {
			return err
		}
		a.Put(m.String(), tsdb.MeanOver(took, counts, func(topology.NodeID) bool { return true })[true])
	}
	return nil
}
