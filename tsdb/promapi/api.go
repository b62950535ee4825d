package promapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"fairway/collector/topology"
	"fairway/tsdb"
)

// Config is what the API knows of the nodes and how much a query may take.
type Config struct {
	Store tsdb.Store
	Log   *slog.Logger // nil: discard
	// Racks and Peaks come from the machine's description; nil: not known.
	Racks     func() map[topology.NodeID]string
	Peaks     func() map[topology.NodeID]float64 // bytes/s
	Threshold float64                            // of peak, 0..1; 0 is tsdb.DefaultThreshold

	MaxSamples int           // a query may hold; 0 is 50 million, Prometheus's default
	MaxBytes   int64         // of an answer; 0 is 32 MiB
	Timeout    time.Duration // of a query; 0 is 30 s
	// Lookback is how far back an instant looks for a sample; 0 is 10 s, for there is one a second
	// and a gap should be seen.
	Lookback time.Duration
}

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
}

// maxSteps is Prometheus's own limit on the points of one series in an answer.
const maxSteps = 11_000

// maxSelectors bounds the series selectors of one request: each is a walk over all nodes and metrics.
const maxSelectors = 64

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
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	if cfg.Lookback == 0 {
		cfg.Lookback = 10 * time.Second
	}
	a := &API{cfg: cfg, parser: parser.NewParser(parser.Options{}), mux: http.NewServeMux()}
	a.engine = promql.NewEngine(promql.EngineOpts{
		Logger: cfg.Log, MaxSamples: cfg.MaxSamples, Timeout: cfg.Timeout, LookbackDelta: cfg.Lookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return defaultStep.Milliseconds() },
		EnableAtModifier:         true, EnableNegativeOffset: true, Parser: a.parser,
	})
	routes := map[string]func(*http.Request) (any, error){
		"query": a.query, "query_range": a.queryRange, "series": a.series, "labels": a.labels,
		"label/{name}/values": a.labelValues, "metadata": a.metadata, "status/buildinfo": buildInfo,
		"format_query": a.formatQuery,
	}
	for path, empty := range absent {
		routes[path] = func(*http.Request) (any, error) { return empty, nil }
	}
	for path, h := range routes {
		for _, method := range []string{"GET ", "POST "} {
			a.mux.HandleFunc(method+"/api/v1/"+path, func(w http.ResponseWriter, r *http.Request) {
				ctx, cancel := context.WithTimeout(r.Context(), a.cfg.Timeout)
				defer cancel()
				answer(w, r.WithContext(ctx), h)
			})
		}
	}
	return a
}

// absent are the answers about what Prometheus has and this API has not: rules, exemplars, scraped targets. Clients
// such as Grafana ask for them and take a refusal for a broken server.
var absent = map[string]any{
	"rules":            map[string]any{"groups": []any{}},
	"alerts":           map[string]any{"alerts": []any{}},
	"query_exemplars":  []any{},
	"targets":          map[string]any{"activeTargets": []any{}, "droppedTargets": []any{}},
	"targets/metadata": []any{},
	"alertmanagers":    map[string]any{"activeAlertmanagers": []any{}, "droppedAlertmanagers": []any{}},
	"status/flags":     map[string]string{},
	"status/config":    map[string]string{"yaml": ""},
	"status/runtimeinfo": map[string]any{"reloadConfigSuccess": true, "corruptionCount": 0,
		"storageRetention": "see fairwayd config"},
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
}

func (a *API) run(r *http.Request, start, end time.Time,
	make func(from storage.Queryable, opts promql.QueryOpts) (promql.Query, error)) (any, error) {
	made, err := a.check(r.FormValue("query"), start, end)
	if err != nil {
		return nil, err
	}
	lookback, err := duration(r, "lookback_delta", 0)
	if err != nil {
		return nil, err
	}
	timeout, err := duration(r, "timeout", a.cfg.Timeout)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), min(timeout, a.cfg.Timeout))
	defer cancel()
	q, err := make(a.storage(made), promql.NewPrometheusQueryOpts(false, lookback))
	if err != nil {
		return nil, badRequest{fmt.Errorf("invalid parameter \"query\": %w", err)}
	}
	defer q.Close()
	res := q.Exec(ctx)
	if res.Err != nil {
		return nil, res.Err
	}
	if err := a.fits(res.Value); err != nil {
		return nil, err
	}
	warnings, infos := res.Warnings.AsStrings(r.FormValue("query"), 10, 10)
	data, err := json.Marshal(queryData{res.Value.Type(), filled(res.Value)}) // before Close takes the value back
	return evaluated{json.RawMessage(data), warnings, infos}, err
}

// filled turns a result without series into an empty list: clients read a missing one as broken.
func filled(v parser.Value) parser.Value {
	switch v := v.(type) {
	case promql.Matrix:
		if v == nil {
			return promql.Matrix{}
		}
	case promql.Vector:
		if v == nil {
			return promql.Vector{}
		}
	}
	return v
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

// selectors parses the match[] parameters; none at all is one selector that matches everything.
func (a *API) selectors(r *http.Request) ([][]*labels.Matcher, error) {
	if texts := r.Form["match[]"]; len(texts) > maxSelectors {
		return nil, badRequest{fmt.Errorf("invalid parameter \"match[]\": %d of them, at most %d", len(texts),
			maxSelectors)}
	}
	for _, text := range r.Form["match[]"] {
		if err := tokens(text); err != nil {
			return nil, badRequest{fmt.Errorf("invalid parameter \"match[]\": %w", err)}
		}
	}
	sets, err := a.parser.ParseMetricSelectors(r.Form["match[]"])
	if err != nil {
		return nil, badRequest{fmt.Errorf("invalid parameter \"match[]\": %w", err)}
	}
	return sets, nil
}

// between returns a querier of the parameters start and end; without either it is of all time.
func (a *API) between(r *http.Request) (*querier, error) {
	q := &querier{queryable: queryable{store: a.cfg.Store, cfg: &a.cfg}, to: math.MaxInt64}
	for name, bound := range map[string]*int64{"start": &q.from, "end": &q.to} {
		if r.FormValue(name) == "" {
			continue
		}
		at, err := instant(r, name, time.Time{})
		if err != nil {
			return nil, err
		}
		*bound = at.UnixMilli()
	}
	if q.to != math.MaxInt64 {
		q.to++ // inclusive
	}
	return q, nil
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
	return slices.CompactFunc(out, labels.Equal), nil
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
	return slices.Compact(out), nil
}

func (a *API) labels(r *http.Request) (any, error) {
	return a.collect(r, func(q *querier, set []*labels.Matcher) ([]string, error) {
		names, _, err := q.LabelNames(r.Context(), nil, set...)
		return names, err
	})
}

func (a *API) labelValues(r *http.Request) (any, error) {
	return a.collect(r, func(q *querier, set []*labels.Matcher) ([]string, error) {
		values, _, err := q.LabelValues(r.Context(), r.PathValue("name"), nil, set...)
		return values, err
	})
}

func (a *API) metadata(r *http.Request) (any, error) {
	all := describe()
	if name := r.FormValue("metric"); name != "" {
		if m, ok := all[name]; ok {
			return map[string][]metadata{name: m}, nil
		}
		return map[string][]metadata{}, nil
	}
	return all, nil
}

func (a *API) formatQuery(r *http.Request) (any, error) {
	if err := tokens(r.FormValue("query")); err != nil {
		return nil, badRequest{fmt.Errorf("invalid parameter \"query\": %w", err)}
	}
	expr, err := a.parser.ParseExpr(r.FormValue("query"))
	if err != nil {
		return nil, badRequest{fmt.Errorf("invalid parameter \"query\": %w", err)}
	}
	return expr.Pretty(0), nil
}

// buildInfo names the version of Prometheus's API that is spoken: Grafana chooses by it.
func buildInfo(*http.Request) (any, error) {
	return map[string]string{"version": "2.53.0", "application": "fairway"}, nil
}

// instant reads a time: seconds since the epoch, with a fraction, or RFC 3339.
func instant(r *http.Request, name string, missing time.Time) (time.Time, error) {
	text := r.FormValue(name)
	if text == "" && !missing.IsZero() {
		return missing, nil
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(s) {
		const furthest = 1e11 // seconds; clients send the ends of time where none was given
		whole, frac := math.Modf(min(max(s, -furthest), furthest))
		return time.Unix(int64(whole), int64(math.Round(frac*1000))*int64(time.Millisecond)).UTC(), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	return time.Time{}, badRequest{fmt.Errorf("invalid parameter %q: cannot parse %q to a valid timestamp", name, text)}
}

// duration reads seconds or a Prometheus duration such as 5m.
func duration(r *http.Request, name string, missing time.Duration) (time.Duration, error) {
	text := r.FormValue(name)
	if text == "" {
		return missing, nil
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(s) < 1e9 {
		return time.Duration(s * float64(time.Second)), nil
	}
	if d, err := model.ParseDuration(text); err == nil {
		return time.Duration(d), nil
	}
	return 0, badRequest{fmt.Errorf("invalid parameter %q: cannot parse %q to a valid duration", name, text)}
}
