package promapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/stats"

	"fairway/collector/topology"
	"fairway/tsdb"
)

// Config is what the API knows of the nodes and how much a query may take.
type Config struct {
	Store tsdb.Store
	Log   *slog.Logger // nil: discard
	// Racks and Peaks come from the machine's description; nil: not known.
	Racks func() map[topology.NodeID]string
	Peaks func() map[topology.NodeID]float64 // bytes/s

	MaxSamples int   // a query may hold; 0 is 50 million, Prometheus's default
	MaxBytes   int64 // of an answer; 0 is 32 MiB
}

const (
	// longestQuery is how long a query may take.
	longestQuery = 30 * time.Second
	// lookback is how far back an instant looks for a sample: there is one a second, and a gap should be seen.
	lookback = 10 * time.Second
)

func (c *Config) racks() map[topology.NodeID]string {
	if c.Racks == nil {
		return nil
	}
	return c.Racks()
}

func (c *Config) peaks() map[topology.NodeID]float64 {
	if c.Peaks == nil {
		return nil
	}
	return c.Peaks()
}

// API is the HTTP API below a prefix such as /prometheus.
type API struct {
	cfg    Config
	engine *promql.Engine
	parser parser.Parser
	mux    *http.ServeMux
	begun  time.Time
}

// maxSteps is Prometheus's own limit on the points of one series in an answer.
const maxSteps = 11_000

// New makes the API; it serves paths from /api/v1 on, so a prefix must be stripped before it.
func New(cfg Config) *API {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxSamples == 0 {
		cfg.MaxSamples = 50_000_000
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 32 << 20
	}
	a := &API{cfg: cfg, parser: parser.NewParser(parser.Options{}), mux: http.NewServeMux(), begun: time.Now()}
	a.engine = promql.NewEngine(promql.EngineOpts{
		Logger: cfg.Log, MaxSamples: cfg.MaxSamples, Timeout: longestQuery, LookbackDelta: lookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return defaultStep.Milliseconds() },
		EnableAtModifier:         true, EnableNegativeOffset: true, Parser: a.parser,
	})
	routes := map[string]func(*http.Request) (any, error){
		"query": a.query, "query_range": a.queryRange, "series": a.series, "labels": a.labels,
		"label/{name}/values": a.labelValues, "metadata": a.metadata, "query_exemplars": a.exemplars,
		"format_query": a.formatQuery, "status/buildinfo": a.buildInfo,
		"status/runtimeinfo": a.runtimeInfo, "status/tsdb": a.cardinality,
	}
	for path, empty := range absent {
		routes[path] = func(*http.Request) (any, error) { return empty, nil }
	}
	for path, h := range routes {
		for _, method := range []string{"GET ", "POST "} {
			a.mux.HandleFunc(method+"/api/v1/"+path, func(w http.ResponseWriter, r *http.Request) {
				ctx, cancel := context.WithTimeout(r.Context(), longestQuery)
				defer cancel()
				answer(w, r.WithContext(ctx), h)
			})
		}
	}
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// badRequest marks a mistake of the caller.
type badRequest struct{ error }

// response is the envelope of every answer.
type response struct {
	Status    string   `json:"status"`
	Data      any      `json:"data,omitempty"`
	ErrorType string   `json:"errorType,omitempty"`
	Error     string   `json:"error,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	Infos     []string `json:"infos,omitempty"`
}

func answer(w http.ResponseWriter, r *http.Request, h func(*http.Request) (any, error)) {
	const maxBody = 1 << 20
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	out, code := response{Status: "success"}, http.StatusOK
	err := r.ParseForm()
	if err != nil {
		err = badRequest{err}
	} else {
		out.Data, err = h(r)
	}
	if e, ok := out.Data.(evaluated); ok && err == nil {
		out.Data, out.Warnings, out.Infos = e.data, e.warnings, e.infos
	}
	if err != nil {
		out = response{Status: "error", Error: err.Error()}
		out.ErrorType, code = classify(err)
		// Somebody ended it who says why.
		if cause := context.Cause(r.Context()); cause != nil && !errors.Is(cause, r.Context().Err()) {
			out.Error, out.ErrorType, code = cause.Error(), "timeout", http.StatusServiceUnavailable
		}
	}
	w.Header().Set("Content-Type", "application/json")
	body, err := json.Marshal(out)
	if err != nil {
		code, body = http.StatusInternalServerError,
			[]byte(`{"status":"error","errorType":"internal","error":"the answer cannot be written as JSON"}`)
	}
	w.WriteHeader(code)
	w.Write(body) // the client is gone when this fails
}

// classify gives an error the type and status that Prometheus gives it.
func classify(err error) (kind string, code int) {
	var bad badRequest
	var canceled promql.ErrQueryCanceled
	var timeout promql.ErrQueryTimeout
	var stored promql.ErrStorage
	switch {
	case errors.As(err, &bad):
		return "bad_data", http.StatusBadRequest
	case errors.As(err, &canceled), errors.Is(err, context.Canceled):
		return "canceled", 499
	case errors.As(err, &timeout):
		return "timeout", http.StatusServiceUnavailable
	case errors.As(err, &stored):
		return "internal", http.StatusInternalServerError
	}
	return "execution", http.StatusUnprocessableEntity
}

// evaluated is a query's result with the engine's warnings.
type evaluated struct {
	data            any
	warnings, infos []string
}

type queryData struct {
	ResultType parser.ValueType `json:"resultType"`
	Result     parser.Value     `json:"result"`
	Stats      stats.QueryStats `json:"stats,omitempty"` // where they were asked for
}

func (a *API) run(r *http.Request, start, end time.Time,
	make func(from storage.Queryable, opts promql.QueryOpts) (promql.Query, error)) (any, error) {
	made, err := a.check(r.FormValue("query"), start, end)
	if err != nil {
		return nil, err
	}
	back, err := duration(r, "lookback_delta", 0)
	if err != nil {
		return nil, err
	}
	timeout, err := duration(r, "timeout", longestQuery)
	if err != nil {
		return nil, err
	}
	limit, err := limitOf(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), min(timeout, longestQuery))
	defer cancel()
	q, err := make(a.storage(made), promql.NewPrometheusQueryOpts(false, back, nil))
	if err != nil {
		return nil, badRequest{fmt.Errorf("invalid parameter \"query\": %w", err)}
	}
	defer q.Close()
	res := q.Exec(ctx)
	if res.Err != nil {
		return nil, res.Err
	}
	warnings, infos := res.Warnings.AsStrings(r.FormValue("query"), 10, 10)
	out := queryData{ResultType: res.Value.Type(), Result: res.Value}
	cut := false
	switch v := res.Value.(type) {
	case promql.Matrix:
		out.Result, cut = limited(v, limit)
	case promql.Vector:
		out.Result, cut = limited(v, limit)
	}
	if cut {
		warnings = append(warnings, truncated)
	}
	if err := a.fits(out.Result); err != nil {
		return nil, err
	}
	if r.FormValue("stats") != "" {
		out.Stats = stats.NewQueryStats(q.Stats())
	}
	data, err := json.Marshal(out) // before Close takes the value back
	return evaluated{json.RawMessage(data), warnings, infos}, err
}

// truncated is Prometheus's word for a list that has more than the asked number of entries.
const truncated = "results truncated due to limit"

// limited cuts a list, 0 does not. An empty list is never nil: clients read a missing one as broken.
func limited[L ~[]E, E any](list L, limit int) (L, bool) {
	switch {
	case limit > 0 && len(list) > limit:
		return list[:limit], true
	case list == nil:
		return L{}, false
	}
	return list, false
}

// answerList answers the sorted list without repetitions, cut where a limit is asked for.
func answerList[E any](r *http.Request, list []E, equal func(a, b E) bool) (any, error) {
	limit, err := limitOf(r)
	if err != nil {
		return nil, err
	}
	out, cut := limited(slices.CompactFunc(list, equal), limit)
	if cut {
		return evaluated{data: out, warnings: []string{truncated}}, nil
	}
	return out, nil
}

// storage is what one query reads from; made is of check.
func (a *API) storage(made func(longest int64) int64) storage.Queryable {
	return queryable{store: a.cfg.Store, cfg: &a.cfg, room: new(atomic.Int64), made: made}
}

func (a *API) query(r *http.Request) (any, error) {
	at, err := instant(r, "time", time.Now())
	if err != nil {
		return nil, err
	}
	return a.run(r, at, at, func(from storage.Queryable, opts promql.QueryOpts) (promql.Query, error) {
		return a.engine.NewInstantQuery(r.Context(), from, opts, r.FormValue("query"), at)
	})
}

func (a *API) queryRange(r *http.Request) (any, error) {
	start, err := instant(r, "start", time.Time{})
	if err != nil {
		return nil, err
	}
	end, err := instant(r, "end", time.Time{})
	if err != nil {
		return nil, err
	}
	step, err := duration(r, "step", 0)
	switch {
	case err != nil:
		return nil, err
	case end.Before(start):
		return nil, badRequest{errors.New("invalid parameter \"end\": end timestamp must not be before start time")}
	case step <= 0:
		return nil,
			badRequest{
				errors.New(
					"invalid parameter \"step\": zero or negative query resolution step widths are not accepted. Try " +
						"a positive integer")}
	case end.Sub(start)/step > maxSteps:
		return nil,
			badRequest{
				fmt.Errorf(
					"exceeded maximum resolution of %d points per timeseries. Try decreasing the query resolution "+
						"(?step=XX)", maxSteps)}
	}
	return a.run(r, start, end, func(from storage.Queryable, opts promql.QueryOpts) (promql.Query, error) {
		return a.engine.NewRangeQuery(r.Context(), from, opts, r.FormValue("query"), start, end, step)
	})
}

func (a *API) series(r *http.Request) (any, error) {
	sets, err := a.selectors(r)
	if err != nil {
		return nil, err
	}
	if len(sets) == 0 {
		return nil, badRequest{errors.New("no match[] parameter provided")}
	}
	q, err := a.between(r)
	if err != nil {
		return nil, err
	}
	out, size := []labels.Labels{}, int64(0)
	for _, set := range sets {
		groups, err := q.reported(r.Context(), set)
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			for _, w := range g.series {
				out = append(out, w.labels)
				w.labels.Range(func(l labels.Label) { size += int64(len(l.Name)+len(l.Value)) + labelBytes })
			}
			if err := a.tooLong(size); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(out, labels.Compare)
	return answerList(r, out, labels.Equal)
}

// collect unites what each selector gives.
func (a *API) collect(r *http.Request, one func(q *querier, set []*labels.Matcher) ([]string, error)) (any, error) {
	sets, err := a.selectors(r)
	if err != nil {
		return nil, err
	}
	if len(sets) == 0 {
		sets = [][]*labels.Matcher{nil}
	}
	q, err := a.between(r)
	if err != nil {
		return nil, err
	}
	out := []string{}
	for _, set := range sets {
		names, err := one(q, set)
		if err != nil {
			return nil, err
		}
		out = append(out, names...)
	}
	slices.Sort(out)
	return answerList(r, out, func(a, b string) bool { return a == b })
}

func (a *API) labels(r *http.Request) (any, error) {
	return a.collect(r, func(q *querier, set []*labels.Matcher) ([]string, error) {
		names, _, err := q.LabelNames(r.Context(), nil, set...)
		return names, err
	})
}

func (a *API) labelValues(r *http.Request) (any, error) {
	name := r.PathValue("name")
	if strings.HasPrefix(name, "U__") {
		name = model.UnescapeName(name, model.ValueEncodingEscaping)
	}
	if !model.UTF8Validation.IsValidLabelName(name) {
		return nil, badRequest{fmt.Errorf("invalid label name: %q", name)}
	}
	return a.collect(r, func(q *querier, set []*labels.Matcher) ([]string, error) {
		values, _, err := q.LabelValues(r.Context(), name, nil, set...)
		return values, err
	})
}

func (a *API) formatQuery(r *http.Request) (any, error) {
	expr, err := a.expression(r)
	if err != nil {
		return nil, err
	}
	return expr.Pretty(0), nil
}
