package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/promapi"
)

// promAnswer is an answer of the API as far as the test compares it.
type promAnswer struct {
	Status   string
	Error    string
	Warnings []string
	Infos    []string
	Data     struct {
		Result json.RawMessage
	}
}

// TestPromQLBeforeAndAfterRetention asks every PromQL function of the same seconds before and after each border: as
// seconds, half of them as buckets of 10 s, all of them, half of these as buckets of 5 min, and all. Where the seconds
// of a bucket had one value all answers are the same; where they had not, those are the same that a bucket's figures
// suffice for, and the others say that they are of buckets.
func TestPromQLBeforeAndAfterRetention(t *testing.T) {
	var now atomic.Int64
	now.Store(tierBase + 12*3600)
	db := tierStore(t, t.TempDir(), &now, 240*time.Hour)
	defer db.Close()
	peaks := map[topology.NodeID]float64{"steps": 600, "noise": 1000}
	db.SetPeaks(peaks)
	r := rand.New(rand.NewPCG(1, 2))
	var frames []collector.Frame
	for at := int64(0); at < 12*3600; at++ {
		add := func(node topology.NodeID, v float64) {
			frames = append(frames, collector.Frame{Node: node, Role: topology.Forwarder,
				TimeMillis: (tierBase + at) * 1000,
				Samples:    []collector.Sample{{Metric: collector.ReadBytes, Value: v}}})
		}
		add("steps", float64(at/300%7*100))
		if at%300 < 200 || r.IntN(3) > 0 { // gaps inside buckets
			add("noise", float64(r.IntN(1000)))
		}
		if len(frames) >= 2000 || at == 12*3600-1 {
			if err := db.Append(context.Background(), frames); err != nil {
				t.Fatal(err)
			}
			frames = frames[:0]
		}
	}
	if err := db.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.StripPrefix("/prometheus", promapi.New(promapi.Config{Store: db,
		Peaks: func() map[topology.NodeID]float64 { return peaks }})))
	defer s.Close()
	const base = tierBase + 4*3600
	ask := func(path string, form url.Values) (out promAnswer) {
		res, err := http.PostForm(s.URL+"/prometheus/api/v1/"+path, form)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	instant := func(query string, at int64) (string, url.Values) {
		return "query", url.Values{"query": {query}, "time": {fmt.Sprint(base + at)}}
	}
	graph := func(query string, from, length, step int64) (string, url.Values) {
		return "query_range", url.Values{"query": {query}, "start": {fmt.Sprint(base + from)},
			"end": {fmt.Sprint(base + from + length)}, "step": {fmt.Sprint(step)}}
	}
	type question struct {
		name, path string
		form       url.Values
		same       bool // whatever the seconds were
	}
	var questions []question
	put := func(same bool, path string, form url.Values) {
		questions = append(questions, question{form.Get("query") + " " + form.Get("step"), path, form, same})
	}
	suffices := []string{"sum_over_time", "count_over_time", "avg_over_time", "min_over_time", "max_over_time",
		"present_over_time", "absent_over_time", "last_over_time"}
	for _, name := range slices.Sorted(maps.Keys(parser.Functions)) {
		f := parser.Functions[name]
		if f.Experimental || strings.HasPrefix(name, "histogram") || strings.HasPrefix(name, "label_") ||
			len(f.ArgTypes) == 0 || slices.Contains([]string{"time", "scalar", "vector"}, name) {
			continue
		}
		for _, node := range []string{"steps", "noise"} {
			x, args := `fairway_read_bytes_per_second{node="`+node+`"}`, []string{}
			for i, a := range f.ArgTypes {
				if i >= len(f.ArgTypes)-f.Variadic && f.Variadic > 0 && i > 0 {
					break
				}
				switch a {
				case parser.ValueTypeMatrix:
					args = append(args, x+"[1h]")
				case parser.ValueTypeVector:
					args = append(args, x)
				case parser.ValueTypeScalar:
					args = append(args, "0.5")
				}
			}
			same := node == "steps" || slices.Contains(suffices, name)
			query := name + "(" + strings.Join(args, ", ") + ")"
			for _, at := range []int64{3599, 4 * 3600, 37} {
				path, form := instant(query, at)
				put(node == "steps" || same && at == 3599, path, form)
			}
			if !strings.Contains(query, "[1h]") {
				continue
			}
			across := strings.Replace(query, "[1h]", "[2h]", 1)
			for _, at := range []int64{2*3600 - 1, 7*3600 - 1} { // the borders are in the midst
				path, form := instant(across, at)
				put(same, path, form)
			}
			path, form := graph(query, 3599, 5*3600, 600)
			put(same, path, form)
		}
	}
	const full = "fairway_occupancy_ratio"
	x := `fairway_read_bytes_per_second{node="steps"}`
	for _, q := range []func() (string, url.Values){
		func() (string, url.Values) { return instant(x, 37) },
		func() (string, url.Values) { return instant("sum("+x+")", 5) },
		func() (string, url.Values) { return instant("sum_over_time("+x+"[1h:1m])", 3600) },
		func() (string, url.Values) { return instant("avg_over_time(("+x+" >= bool 300)[1h:1s])", 3600) },
		func() (string, url.Values) { return instant("max_over_time("+x+"[1h:10s])", 3611) },
		func() (string, url.Values) { return graph(x, 0, 3600, 60) },
		func() (string, url.Values) { return graph(x, 37, 3600, 60) },
		func() (string, url.Values) { return graph(x, 37, 6*3600, 300) },
		func() (string, url.Values) { return graph(x, 0, 3600, 15) },
		func() (string, url.Values) { return graph("rate("+x+"[2m])", 1, 3600, 7) },
		func() (string, url.Values) { return graph("absent("+x+")", 0, 3600, 60) },
		func() (string, url.Values) { return instant("avg_over_time("+full+`{node="steps"}[1h])`, 3600) },
		func() (string, url.Values) { return instant("avg_over_time("+full+`{node="steps"}[2h])`, 7*3600) },
		func() (string, url.Values) { return graph("count_over_time("+full+"[4m])", 0, 7*3600, 60) },
	} {
		path, form := q()
		put(true, path, form)
	}
	for _, q := range []string{full, `max_over_time(fairway_read_bytes_per_second{node="noise"}[15s])`} {
		path, form := graph(q, 37, 7*3600, 60)
		put(false, path, form)
	}
	before := make([]promAnswer, len(questions))
	for i, q := range questions {
		before[i] = ask(q.path, q.form)
		if before[i].Status != "success" {
			t.Fatalf("%s: %s", q.name, before[i].Error)
		}
		if len(before[i].Warnings)+len(before[i].Infos) > 0 && slices.ContainsFunc(append(before[i].Warnings,
			before[i].Infos...), func(w string) bool { return strings.Contains(w, "are kept") }) {
			t.Errorf("%s: says that it is of buckets while all seconds are there", q.name)
		}
	}
	const day = 24 * 3600
	for _, tier := range []struct {
		name string
		now  int64
	}{{"10 s, half", base + 3600 + 10*day + 1}, {"10 s", base + 20*day},
		{"5 min, half", tierBase + 36000 + 30*day + 1}, {"5 min", base + 40*day}} {
		now.Store(tier.now)
		remakeTiers(t, db, now.Load())
		db.sealer.mu.Lock()
		db.sealer.retain(time.Unix(now.Load(), 0))
		db.sealer.mu.Unlock()
		for i, q := range questions {
			got := ask(q.path, q.form)
			warned := slices.ContainsFunc(slices.Concat(got.Warnings, got.Infos),
				func(w string) bool { return strings.Contains(w, "are kept") })
			switch {
			case got.Status != "success":
				t.Errorf("%s, buckets of %s: %s", q.name, tier.name, got.Error)
			case pointsOf(got.Data.Result) != pointsOf(before[i].Data.Result):
				t.Errorf("%s, buckets of %s: %d points, before retention %d", q.name, tier.name,
					pointsOf(got.Data.Result), pointsOf(before[i].Data.Result))
			case q.same && !sameResult(before[i].Data.Result, got.Data.Result):
				t.Errorf("%s, buckets of %s: %.300s, before retention %.300s", q.name, tier.name, got.Data.Result,
					before[i].Data.Result)
			case !q.same && !warned && !sameResult(before[i].Data.Result, got.Data.Result):
				t.Errorf("%s, buckets of %s: another answer than before retention, and nothing says why", q.name,
					tier.name)
			}
		}
	}
}

// pointsOf counts the points of a result.
func pointsOf(result json.RawMessage) (n int) {
	var series []struct{ Value, Values []any }
	_ = json.Unmarshal(result, &series) // a scalar has none
	for _, s := range series {
		n += len(s.Values) + len(s.Value)/2
	}
	return n
}

// sameResult compares results but for how sums of floating-point numbers were rounded.
func sameResult(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	var same func(x, y any) bool
	same = func(x, y any) bool {
		switch x := x.(type) {
		case []any:
			y, ok := y.([]any)
			return ok && slices.EqualFunc(x, y, same)
		case map[string]any:
			y, ok := y.(map[string]any)
			if !ok || len(x) != len(y) {
				return false
			}
			for k := range x {
				if !same(x[k], y[k]) {
					return false
				}
			}
			return true
		case string:
			y, ok := y.(string)
			var f, g float64
			if ok && x != y {
				if _, err := fmt.Sscan(x, &f); err != nil {
					return false
				}
				if _, err := fmt.Sscan(y, &g); err != nil {
					return false
				}
				return math.Abs(f-g) <= 1e-9*max(math.Abs(f), math.Abs(g), 1)
			}
			return ok
		}
		return x == y
	}
	return same(x, y)
}
