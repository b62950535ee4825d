package webui

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/webui/access"
	"fairway/webui/api"
)

// jobRates are summed over the nodes of a job; what requests took is their mean over all requests.
var (
	jobRates = []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.MetaOps}
	jobWaits = map[collector.Metric]collector.Metric{ // how long by how many
		collector.ClientRead: collector.ReadOps, collector.ClientWrite: collector.WriteOps,
		collector.ClientMeta: collector.MetaOps,
	}
)

// series answers what a job's compute nodes did together between from and to, as far as it ran then.
func (h *jobs) series(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	run, err := h.run(topology.JobID(r.PathValue("id")), asking(by, h.picture))
	if err != nil {
		return err
	}
	from, to, err := parseRange(r, 15*time.Minute)
	if err != nil {
		return err
	}
	step, err := parseSpan("step", r.URL.Query().Get("step"), time.Second)
	if err != nil {
		return err
	}
	if from.Before(run.Start) {
		from = run.Start
	}
	if !run.End.IsZero() && to.After(run.End) {
		to = run.End
	}
	q := tsdb.Query{Nodes: evenly(run.NodeList, maxSeriesNodes), FromMillis: from.UnixMilli(), ToMillis: to.UnixMilli(),
		StepMillis: step.Milliseconds(), Agg: tsdb.AggMean}
	a := api.JobSeries{Job: run.Job, FromMillis: q.FromMillis, ToMillis: q.ToMillis, StepMillis: q.StepMillis,
		Nodes: len(q.Nodes), OfNodes: len(run.NodeList), Series: map[string][]api.GapPoint{}}
	points := (q.ToMillis - q.FromMillis) / q.StepMillis * int64(len(q.Nodes))
	switch {
	case q.FromMillis >= q.ToMillis || len(q.Nodes) == 0:
		return api.WriteJSON(w, a)
	case points > maxSeriesPoints:
		return fmt.Errorf("%w: %d points, at most %d; ask for a longer step or a shorter range", api.ErrInvalid,
			points, maxSeriesPoints)
	}
	if err := h.together(r.Context(), q, &a); err != nil {
		return err
	}
	return api.WriteJSON(w, a)
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
func (h *jobs) together(ctx context.Context, q tsdb.Query, a *api.JobSeries) error {
	read := func(m collector.Metric) ([]tsdb.Series, error) {
		q.Metric = m
		return h.store.Select(ctx, q)
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
		a.Put(m.String(), meanOver(took, counts))
	}
	return nil
}

// meanOver is the mean of a value over the requests of all nodes, by step.
func meanOver(took, counts []tsdb.Series) map[int64]float64 {
	ops, waited := map[int64]float64{}, map[int64]float64{}
	node := map[topology.NodeID]*tsdb.Series{}
	for i := range counts {
		node[counts[i].Node] = &counts[i]
	}
	for i := range took {
		count := node[took[i].Node]
		if count == nil {
			continue
		}
		of := map[int64]float64{}
		for _, p := range count.Points {
			of[p.TimeMillis] = p.Value
		}
		for _, p := range took[i].Points {
			ops[p.TimeMillis] += of[p.TimeMillis]
			waited[p.TimeMillis] += p.Value * of[p.TimeMillis]
		}
	}
	out := map[int64]float64{}
	for t, n := range ops {
		if n > 0 {
			out[t] = waited[t] / n
		}
	}
	return out
}
