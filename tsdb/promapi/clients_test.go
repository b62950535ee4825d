package promapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

// TestLibrary makes every reading call of Prometheus's client library, of ours and of a real Prometheus with the same
// seconds: both answer the same, and the client understands it.
func TestLibrary(t *testing.T) {
	ctx := context.Background()
	begin, end := time.Unix(start, 0), time.Unix(start+600, 0)
	first, never := begin.Add(100*time.Second), time.Unix(1000, 0)
	const bytes = `fairway_read_bytes_per_second`
	stored := []string{`{__name__=~"fairway_(read|meta).+"}`}
	type (
		warnings = v1.Warnings
		infos    = v1.Infos
	)
	type call struct {
		name string
		ask  func(c v1.API) (any, warnings, infos, error)
		want string // of ours alone; "": what Prometheus answers
	}
	alone := func(v any, err error) (any, warnings, infos, error) { return v, nil, nil, err }
	calls := []call{
		{"query", func(c v1.API) (any, warnings, infos, error) { return c.Query(ctx, bytes, first) }, ""},
		{"query, scalar", func(c v1.API) (any, warnings, infos, error) { return c.Query(ctx, "1+1", first) }, ""},
		{"query of nothing", func(c v1.API) (any, warnings, infos, error) {
			return c.Query(ctx, "sum(no_such)", first)
		}, ""},
		{"query, options", func(c v1.API) (any, warnings, infos, error) {
			return c.Query(ctx, bytes, first, v1.WithTimeout(time.Second), v1.WithLookbackDelta(5*time.Second))
		}, ""},
		{"query, stats", func(c v1.API) (any, warnings, infos, error) {
			return c.Query(ctx, bytes, first, v1.WithStats(v1.AllStatsValue))
		}, ""},
		{"query that cannot be read", func(c v1.API) (any, warnings, infos, error) {
			return c.Query(ctx, "sum(", first)
		}, ""},
		{"query that cannot be run", func(c v1.API) (any, warnings, infos, error) {
			return c.Query(ctx, bytes+` * on (role) `+bytes, first)
		}, ""},
		{"query_range", func(c v1.API) (any, warnings, infos, error) {
			return c.QueryRange(ctx, bytes, v1.Range{Start: begin, End: end, Step: 15 * time.Second})
		}, ""},
		{"query_range of nothing", func(c v1.API) (any, warnings, infos, error) {
			return c.QueryRange(ctx, "avg by (role) ("+bytes+")", v1.Range{Start: never, End: never.Add(time.Minute),
				Step: 15 * time.Second})
		}, ""},
		{"query_exemplars", func(c v1.API) (any, warnings, infos, error) {
			return alone(c.QueryExemplars(ctx, bytes, begin, end))
		}, ""},
		{"query_exemplars that cannot be read", func(c v1.API) (any, warnings, infos, error) {
			return alone(c.QueryExemplars(ctx, "sum(", begin, end))
		}, ""},
		{"format_query", func(c v1.API) (any, warnings, infos, error) {
			return alone(c.FormatQuery(ctx, "sum by(role)(rate("+bytes+"[5m]))"))
		}, ""},
		{"labels", func(c v1.API) (any, warnings, infos, error) { return c.LabelNames(ctx, nil, begin, end) }, ""},
		{"labels of two selectors", func(c v1.API) (any, warnings, infos, error) {
			return c.LabelNames(ctx, []string{bytes, `{node="c1"}`}, begin, end)
		}, ""},
		{"labels of before", func(c v1.API) (any, warnings, infos, error) {
			return c.LabelNames(ctx, nil, never, never.Add(time.Hour))
		}, ""},
		{"labels of no time", func(c v1.API) (any, warnings, infos, error) {
			return c.LabelNames(ctx, nil, time.Time{}, time.Time{})
		}, ""},
		{"label values", func(c v1.API) (any, warnings, infos, error) {
			return c.LabelValues(ctx, "node", stored, begin, end)
		}, ""},
		{"label values of bytes that are not text", func(c v1.API) (any, warnings, infos, error) {
			return c.LabelValues(ctx, "\xff", nil, begin, end)
		}, "refused: bad_data"},
		{"series", func(c v1.API) (any, warnings, infos, error) { return c.Series(ctx, stored, begin, end) }, ""},
		{"series of before", func(c v1.API) (any, warnings, infos, error) {
			return c.Series(ctx, stored, never, never.Add(time.Hour))
		}, ""},
		{"series of anything", func(c v1.API) (any, warnings, infos, error) {
			return c.Series(ctx, []string{"{}"}, begin, end)
		}, ""},
		{"alerts", func(c v1.API) (any, warnings, infos, error) { return alone(c.Alerts(ctx)) }, ""},
		{"alertmanagers", func(c v1.API) (any, warnings, infos, error) { return alone(c.AlertManagers(ctx)) }, ""},
		{"rules", func(c v1.API) (any, warnings, infos, error) { return alone(c.Rules(ctx, nil)) }, ""},
		{"targets", func(c v1.API) (any, warnings, infos, error) { return alone(c.Targets(ctx)) }, ""},
		{"targets/metadata", func(c v1.API) (any, warnings, infos, error) {
			return alone(c.TargetsMetadata(ctx, "", "", ""))
		}, ""},
		{"status/walreplay", func(c v1.API) (any, warnings, infos, error) { return alone(c.WalReplay(ctx)) }, ""},
		{"status/tsdb/blocks", func(c v1.API) (any, warnings, infos, error) { return alone(c.TSDBBlocks(ctx)) },
			`{"blocks":[]}`},
		{"status/config", func(c v1.API) (any, warnings, infos, error) { return alone(c.Config(ctx)) }, `{"yaml":""}`},
		{"status/flags", func(c v1.API) (any, warnings, infos, error) { return alone(c.Flags(ctx)) }, `{}`},
		{"status/buildinfo", func(c v1.API) (any, warnings, infos, error) {
			b, err := c.Buildinfo(ctx)
			return strings.HasPrefix(b.Version, "2.") && b.GoVersion != "", nil, nil, err
		}, ""},
		{"status/runtimeinfo", func(c v1.API) (any, warnings, infos, error) {
			r, err := c.Runtimeinfo(ctx)
			return r.ReloadConfigSuccess && time.Since(r.StartTime) < time.Hour && r.GoroutineCount > 1 &&
				r.GOMAXPROCS > 0, nil, nil, err
		}, ""},
		{"status/tsdb", func(c v1.API) (any, warnings, infos, error) {
			s, err := c.TSDB(ctx)
			return s.HeadStats.NumSeries > 0 && len(s.SeriesCountByMetricName) > 0 &&
				len(s.LabelValueCountByLabelName) > 0, nil, nil, err
		}, "true"},
		{"metadata", func(c v1.API) (any, warnings, infos, error) {
			return alone(c.Metadata(ctx, "fairway_meta_ops_per_second", ""))
		}, `{"fairway_meta_ops_per_second":[{"type":"gauge","help":"Metadata operations completed.",` +
			`"unit":"per_second"}]}`},
		{"metadata, two", func(c v1.API) (any, warnings, infos, error) {
			m, err := c.Metadata(ctx, "", "2")
			return len(m), nil, nil, err
		}, "2"},
		// Prometheus 2.42 has no limits yet.
		{"query, two", func(c v1.API) (any, warnings, infos, error) {
			v, w, i, err := c.Query(ctx, `count by (node) (`+bytes+`)`, first, v1.WithLimit(2))
			return strings.Count(v.String(), "\n"), w, i, err
		}, `1 ["results truncated due to limit"]`},
		{"query_range, one", func(c v1.API) (any, warnings, infos, error) {
			v, w, i, err := c.QueryRange(ctx, `count(`+bytes+`) by (node)`, v1.Range{Start: begin, End: begin,
				Step: time.Second}, v1.WithLimit(1))
			return v, w, i, err
		}, `[{"metric":{"node":"c1"},"values":[[1700000400,"1"]]}] ["results truncated due to limit"]`},
		{"labels, three", func(c v1.API) (any, warnings, infos, error) {
			return c.LabelNames(ctx, nil, begin, end, v1.WithLimit(3))
		}, `["__name__","node","rack"] ["results truncated due to limit"]`},
		{"label values, one", func(c v1.API) (any, warnings, infos, error) {
			return c.LabelValues(ctx, "node", nil, begin, end, v1.WithLimit(1))
		}, `["c1"] ["results truncated due to limit"]`},
		{"label values, three of three", func(c v1.API) (any, warnings, infos, error) {
			return c.LabelValues(ctx, "node", nil, begin, end, v1.WithLimit(3))
		}, `["c1","f1","f2"]`},
		{"series, one", func(c v1.API) (any, warnings, infos, error) {
			return c.Series(ctx, []string{bytes}, begin, end, v1.WithLimit(1))
		}, `[{"__name__":"fairway_read_bytes_per_second","node":"c1","rack":"r1","role":"compute"}] ` +
			`["results truncated due to limit"]`},
	}
	say := func(v any, w warnings, i infos, err error) string {
		var refused *v1.Error
		if errors.As(err, &refused) {
			return "refused: " + string(refused.Type)
		}
		if err != nil {
			return "error: " + err.Error()
		}
		text, err := json.Marshal(v)
		if err != nil {
			return "error: " + err.Error()
		}
		if len(w) > 0 {
			text = append(text, ' ')
			text = fmt.Appendf(text, "%q", []string(w))
		}
		if len(i) > 0 {
			text = fmt.Appendf(text, " info %q", []string(i))
		}
		return string(text)
	}
	library := func(address string) v1.API {
		c, err := api.NewClient(api.Config{Address: address})
		if err != nil {
			t.Fatal(err)
		}
		return v1.NewAPI(c)
	}
	ours := library(server(t).URL + "/prometheus")
	var theirs v1.API
	if _, err := exec.LookPath("prometheus"); err == nil {
		theirs = library(realPrometheus(t))
	}
	for _, c := range calls {
		got, want := say(c.ask(ours)), c.want
		if want == "" && theirs != nil {
			want = say(c.ask(theirs))
		}
		if strings.HasPrefix(got, "error: ") || want != "" && got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, want)
		}
	}
}

// TestPromtool asks with Prometheus's own tool, by each of its queries.
func TestPromtool(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed")
	}
	at := server(t).URL + "/prometheus"
	const bytes = `fairway_read_bytes_per_second{node="f1"}`
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"instant", "--time=1700000500", at, bytes}, "=> 100 @"},
		{[]string{"instant", "--time=1700000500", at, "sum(no_such_metric)"}, "\n"},
		{[]string{"instant", "--time=1700000500", at, "1+1"}, "scalar: 2 @"},
		{[]string{"range", "--start=1700000500", "--end=1700000520", "--step=10s", at, bytes}, "100 @[1700000500]"},
		// Nothing to add up is an empty list, not a missing one.
		{[]string{"range", "--start=1700000000", "--end=1700000300", "--step=15s", at, "sum(no_such_metric)"}, "\n"},
		{[]string{"series", "--start=1700000400", "--end=1700001000", `--match={node="f1"}`, at},
			`{__name__="fairway_read_bytes_per_second", node="f1", rack="r1", role="forwarder"}`},
		{[]string{"series", "--start=1000000", "--end=1000100", `--match={node="f1"}`, at}, ""},
		{[]string{"labels", "--start=1700000400", "--end=1700001000", at, "role"}, "compute\nforwarder\n"},
		{[]string{"labels", "--start=1000000", "--end=1000100", at, "role"}, ""},
		{[]string{"labels", "--start=1700000400", at, "__name__"}, "fairway_meta_wait_seconds\n"},
	} {
		out, err := exec.Command(tool, append([]string{"query"}, c.args...)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) || c.want == "" && string(out) != "" {
			t.Errorf("promtool query %s: %v\n%s", c.args, err, out)
		}
	}
}

// TestCallsOfGrafana makes the calls that Grafana makes of a data source of type Prometheus, as its manual and its
// requests have them, by both of its methods.
func TestCallsOfGrafana(t *testing.T) {
	s := server(t)
	in := "start=1700000400&end=1700000401"
	for _, c := range []struct {
		method, call, form string
		code               int
		want               string
	}{
		// saving a data source
		{"POST", "query", "query=1%2B1&time=4", 200, `{"resultType":"scalar","result":[4,"2"]}`},
		{"GET", "status/buildinfo", "", 200, `"version":"2.53.0"`},
		{"GET", "rules", "", 200, `"data":{"groups":[]}`},
		{"GET", "rules", "type=alert&exclude_alerts=true", 200, `"data":{"groups":[]}`},
		{"GET", "alerts", "", 200, `"data":{"alerts":[]}`},
		// the query builder
		{"GET", "label/__name__/values", in + "&limit=40000", 200, `["fairway_meta_wait_seconds",`},
		{"GET", "label/node/values", in + `&match[]={role="forwarder"}`, 200, `["f1","f2"]`},
		{"GET", "label/node/values", in + `&match[]={role="forwarder"}&limit=1`, 200,
			`"data":["f1"],"warnings":["results truncated due to limit"]`},
		{"GET", "label/node/values", "start=1000000&end=1000100", 200, `"data":[]`},
		{"GET", "label/node/values", "start=xyz", 400, `"errorType":"bad_data"`},
		{"GET", "label/node/values", "limit=many", 400, `"errorType":"bad_data"`},
		{"GET", "labels", in, 200, `["__name__","node","rack","role"]`},
		{"POST", "labels", in + "&match[]=fairway_meta_wait_seconds", 200, `["__name__","node","rack","role"]`},
		{"POST", "labels", "start=1000000&end=1000100", 200, `"data":[]`},
		{"GET", "series", in + `&match[]={node="c1"}&limit=1`, 200, `"warnings":["results truncated`},
		{"POST", "series", `match[]={node=~".%2B"}&end=1000100`, 200, `"data":[]`},
		{"GET", "series", "match[]={node=~\".%2B\"}&start=-292273086-05-16T16:47:06Z&" +
			"end=292277025-08-18T07:12:54.999999999Z", 200, `"node":"f2"`},
		{"GET", "metadata", "limit=1", 200, `"type":"gauge"`},
		{"GET", "metadata", "limit=one", 400, "limit must be a number"},
		// panels and annotations
		{"POST", "query_range", "query=sum(x)&start=1700000000&end=1700000300&step=15", 200, `"result":[]`},
		{"GET", "query_range", "query=sum(x)&start=1700000000&end=1700000300&step=15", 200, `"result":[]`},
		{"POST", "query_range", "query=1&start=1700000000.123&end=1700000000.123&step=0.5", 200,
			`"values":[[1700000000.123,"1"]]`},
		{"POST", "query", "query=up&time=1700000000&timeout=60s", 200, `{"resultType":"vector","result":[]}`},
		{"POST", "query", "query=1&stats=all", 200, `"stats":{"timings":{"evalTotalTime":`},
		{"POST", "query", "", 400, `"errorType":"bad_data"`},
		{"POST", "query_exemplars", "query=up&" + in, 200, `"data":[]`},
		{"POST", "query_exemplars", "query=up&start=9&end=1", 400, `"errorType":"bad_data"`},
		{"GET", "status/config", "", 200, `"data":{"yaml":""}`},
		{"GET", "scrape_pools", "", 200, `"data":{"scrapePools":[]}`},
	} {
		target, body := s.URL+"/prometheus/api/v1/"+c.call, io.Reader(nil)
		if c.method == "POST" {
			body = strings.NewReader(c.form)
		} else {
			target += "?" + strings.NewReplacer("{", "%7B", "}", "%7D", `"`, "%22").Replace(c.form)
		}
		r, err := http.NewRequest(c.method, target, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != c.code || !strings.Contains(string(got), c.want) {
			t.Errorf("%s %s %s: %d %.300s, want %d and %s", c.method, c.call, c.form, res.StatusCode, got, c.code,
				c.want)
		}
	}
}
