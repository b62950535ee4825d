package promapi

import (
	"cmp"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"fairway/collector"
)

// absent are the answers about what Prometheus has and this API has not: rules, scraped targets. Clients such as
// Grafana ask for them and take a refusal for a broken server.
var absent = map[string]any{
	"rules":  map[string]any{"groups": []any{}},
	"alerts": map[string]any{"alerts": []any{}},
	"targets": map[string]any{"activeTargets": []any{}, "droppedTargets": []any{},
		"droppedTargetCounts": map[string]int{}},
	"targets/metadata":   []any{},
	"scrape_pools":       map[string]any{"scrapePools": []any{}},
	"alertmanagers":      map[string]any{"activeAlertmanagers": []any{}, "droppedAlertmanagers": []any{}},
	"status/flags":       map[string]string{},
	"status/config":      map[string]string{"yaml": ""},
	"status/tsdb/blocks": map[string]any{"blocks": []any{}},
	"status/walreplay":   map[string]int{"min": 0, "max": 0, "current": 0},
}

// exemplars has none, of an expression that could have some.
func (a *API) exemplars(r *http.Request) (any, error) {
	if _, err := a.expression(r); err != nil {
		return nil, err
	}
	q, err := a.between(r)
	if err == nil && q.to < q.from {
		err = badRequest{errors.New("end timestamp must not be before start timestamp")}
	}
	return []any{}, err
}

func (a *API) metadata(r *http.Request) (any, error) {
	all := describe()
	if name := r.FormValue("metric"); name != "" {
		m, ok := all[name]
		if all = map[string][]metadata{}; ok {
			all[name] = m
		}
	}
	if r.FormValue("limit") == "" {
		return all, nil
	}
	limit, err := strconv.Atoi(r.FormValue("limit"))
	if err != nil {
		return nil, badRequest{errors.New("limit must be a number")}
	}
	for name := range all {
		if limit < 0 || len(all) <= limit {
			break
		}
		delete(all, name)
	}
	return all, nil
}

// buildInfo names the version of Prometheus's API that is spoken: Grafana chooses by it.
func (a *API) buildInfo(*http.Request) (any, error) {
	return map[string]string{"version": "2.53.0", "revision": "", "branch": "", "buildUser": "", "buildDate": "",
		"goVersion": runtime.Version(), "application": "fairway"}, nil
}

func (a *API) runtimeInfo(*http.Request) (any, error) {
	return map[string]any{"startTime": a.begun, "lastConfigTime": a.begun, "serverTime": time.Now(),
		"reloadConfigSuccess": true, "corruptionCount": 0, "goroutineCount": runtime.NumGoroutine(),
		"GOMAXPROCS": runtime.GOMAXPROCS(0), "CWD": "", "GOGC": "", "GODEBUG": "", "storageRetention": ""}, nil
}

// count is how many series a name has, or values, or bytes.
type count struct {
	Name  string `json:"name"`
	Value int    `json:"value"`
}

// cardinality counts the series. Chunks and the times of the first and last sample are not known to a store's user.
func (a *API) cardinality(r *http.Request) (any, error) {
	const most, usual = 10_000, 10
	limit := usual
	if text := r.FormValue("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > most {
			return nil, badRequest{errors.New("limit must be a number from 1 to 10000")}
		}
	}
	nodes, err := a.cfg.Store.Nodes(r.Context())
	if err != nil {
		return nil, err
	}
	peaks, racks, series := a.cfg.peaks(), a.cfg.racks(), 0
	of := map[string]map[string]int{model.MetricNameLabel: {}, "node": {}, "role": {}, "rack": {}}
	for i := range nodes {
		n := &nodes[i]
		names := []string{}
		for _, m := range n.Metrics {
			if m != collector.MetricNone && m.Known() {
				names = append(names, m.SeriesName())
			}
		}
		if peaks[n.Node] > 0 {
			names = append(names, occupancyName)
		}
		for _, name := range names {
			of[model.MetricNameLabel][name]++
		}
		of["node"][string(n.Node)] += len(names)
		of["role"][n.Role.String()] += len(names)
		if rack := racks[n.Node]; rack != "" {
			of["rack"][rack] += len(names)
		}
		series += len(names)
	}
	names, values, bytes, pairs := []count{}, []count{}, []count{}, []count{}
	for label, counts := range of {
		values, bytes = append(values, count{label, len(counts)}), append(bytes, count{label, 0})
		for value, n := range counts {
			bytes[len(bytes)-1].Value += len(value)
			pairs = append(pairs, count{label + "=" + value, n})
			if label == model.MetricNameLabel {
				names = append(names, count{value, n})
			}
		}
	}
	largest := func(list []count) []count {
		slices.SortFunc(list, func(a, b count) int {
			return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Name, b.Name))
		})
		return list[:min(len(list), limit)]
	}
	return map[string]any{"headStats": map[string]int{"numSeries": series, "numLabelPairs": len(pairs)},
		"seriesCountByMetricName": largest(names), "labelValueCountByLabelName": largest(values),
		"memoryInBytesByLabelName": largest(bytes), "seriesCountByLabelValuePair": largest(pairs)}, nil
}
