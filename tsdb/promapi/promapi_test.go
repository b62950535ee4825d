package promapi_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"

	"fairway/tsdb/engine"
	"fairway/tsdb/promapi"
)

const start = 1_700_000_400 // a multiple of 1200

// server serves a store with two forwarders and a compute node: ten minutes, with a gap of f2.
func server(t *testing.T) *httptest.Server {
	t.Helper()
	db, err := engine.Open(t.TempDir(), engine.Options{SyncInterval: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for sec := range int64(600) {
		frame := func(node topology.NodeID, role topology.Role, v float64) collector.Frame {
			return collector.Frame{Node: node, Role: role, TimeMillis: (start + sec) * 1000,
				Samples: []collector.Sample{
					{Metric: collector.ReadBytes, Value: v}, {Metric: collector.MetaWait, Value: 0.001},
				}}
		}
		frames := []collector.Frame{frame("f1", topology.Forwarder, float64(sec)), frame("c1", topology.Compute, 5)}
		if sec < 300 || sec >= 360 {
			frames = append(frames, frame("f2", topology.Forwarder, 1000))
		}
		if err := db.Append(context.Background(), frames); err != nil {
			t.Fatal(err)
		}
		if sec == 400 {
			if err := db.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	api := promapi.New(promapi.Config{
		Store: db, MaxSamples: 5000,
		Racks: func() map[topology.NodeID]string {
			return map[topology.NodeID]string{"f1": "r1", "f2": "r2", "c1": "r1"}
		},
		Peaks: func() map[topology.NodeID]float64 { return map[topology.NodeID]float64{"f1": 1000, "f2": 1000} },
	})
	s := httptest.NewServer(http.StripPrefix("/prometheus", api))
	t.Cleanup(s.Close)
	return s
}

func ask(t *testing.T, s *httptest.Server, path string, form url.Values) (code int, body string) {
	t.Helper()
	res, err := http.PostForm(s.URL+"/prometheus/api/v1/"+path, form)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestQueries(t *testing.T) {
	s := server(t)
	at := func(q, sec string) url.Values { return url.Values{"query": {q}, "time": {sec}} }
	for _, c := range []struct {
		path string
		form url.Values
		want string // of data
	}{
		{"query", at(`sum(fairway_read_bytes_per_second{role="forwarder"})`, "1700000500"),
			`{"resultType":"vector","result":[{"metric":{},"value":[1700000500,"1100"]}]}`},
		// in the gap
		{"query", at(`fairway_read_bytes_per_second{node="f2"}`, "1700000740"), `{"resultType":"vector","result":[]}`},
		{"query", at(`fairway_read_bytes_per_second{node="f1",rack="r1"}`, "1700000740"),
			"{\"resultType\":\"vector\",\"result\":[{\"metric\":{\"__name__\":\"fairway_read_bytes_per_seco" +
				"nd\",\"node\":\"f1\",\"rack\":\"r1\",\"role\":\"forwarder\"},\"value\":[1700000740,\"340\"]}]}"},
		{"query", at(`count_over_time(fairway_read_bytes_per_second{node="f2"}[10m])`, "1700000999"),
			"{\"resultType\":\"vector\",\"result\":[{\"metric\":{\"node\":\"f2\",\"rack\":\"r2\"," +
				"\"role\":\"forwarder\"},\"value\":[1700000999,\"540\"]}]}"},
		{"query", at(`fairway_occupancy_ratio`, "1700000640"),
			"{\"resultType\":\"vector\",\"result\":[{\"metric\":{\"__name__\":\"fairway_occupancy_ratio\"," +
				"\"node\":\"f1\",\"rack\":\"r1\",\"role\":\"forwarder\"},\"value\":[1700000640,\"0\"]}," +
				"{\"metric\":{\"__name__\":\"fairway_occupancy_ratio\",\"node\":\"f2\",\"rack\":\"r2\"," +
				"\"role\":\"forwarder\"},\"value\":[1700000640,\"1\"]}]}"},
		{"query", at(`avg_over_time(fairway_occupancy_ratio{node="f2"}[10m])`, "1700001000"),
			"{\"resultType\":\"vector\",\"result\":[{\"metric\":{\"node\":\"f2\",\"rack\":\"r2\"," +
				"\"role\":\"forwarder\"},\"value\":[1700001000,\"1\"]}]}"},
		{"query", at(`1+1`, "1700001000"), `{"resultType":"scalar","result":[1700001000,"2"]}`},
		{"query_range", url.Values{"query": {`max(fairway_read_bytes_per_second{node=~"f1|c1"})`},
			"start": {"1700000400"}, "end": {"1700000460"}, "step": {"30s"}},
			"{\"resultType\":\"matrix\",\"result\":[{\"metric\":{},\"values\":[[1700000400,\"5\"]," +
				"[1700000430,\"30\"],[1700000460,\"60\"]]}]}"},
		{"labels", nil, `["__name__","node","rack","role"]`},
		{"label/node/values", url.Values{"match[]": {`{role="forwarder"}`}}, `["f1","f2"]`},
		{"label/__name__/values", nil,
			`["fairway_meta_wait_seconds","fairway_occupancy_ratio","fairway_read_bytes_per_second"]`},
		{"series", url.Values{"match[]": {`fairway_meta_wait_seconds{node="c1"}`}},
			`[{"__name__":"fairway_meta_wait_seconds","node":"c1","rack":"r1","role":"compute"}]`},
		{"metadata", url.Values{"metric": {"fairway_meta_wait_seconds"}},
			"{\"fairway_meta_wait_seconds\":[{\"type\":\"gauge\",\"help\":\"Mean time in the queue of the " +
				"metadata requests served in this second.\",\"unit\":\"seconds\"}]}"},
	} {
		code, body := ask(t, s, c.path, c.form)
		var got struct{ Data json.RawMessage }
		if err := json.Unmarshal([]byte(body), &got); err != nil || code != http.StatusOK ||
			string(got.Data) != c.want {
			t.Errorf("%s %v: %d\ngot  %s\nwant %s", c.path, c.form, code, body, c.want)
		}
	}
}

func TestMistakesAndLimits(t *testing.T) {
	s := server(t)
	for _, c := range []struct {
		path string
		form url.Values
		code int
		say  string
	}{
		{"query", url.Values{"query": {"sum("}}, 400, "bad_data"},
		{"query", url.Values{"query": {"1"}, "time": {"yesterday"}}, 400, "valid timestamp"},
		{"query_range", url.Values{"query": {"1"}, "start": {"5"}, "end": {"1"}, "step": {"1"}}, 400,
			"must not be before"},
		{"query_range", url.Values{"query": {"1"}, "start": {"0"}, "end": {"99999"}, "step": {"1"}}, 400,
			"maximum resolution"},
		{"series", nil, 400, "match[]"},
		{"query", url.Values{"query": {`sum_over_time({role=~".+"}[1d])`}, "time": {"1700001000"}}, 422,
			"5000 samples"},
	} {
		if code, body := ask(t, s, c.path, c.form); code != c.code || !strings.Contains(body, c.say) {
			t.Errorf("%s %v: %d %s, want %d and %q", c.path, c.form, code, body, c.code, c.say)
		}
	}
}
