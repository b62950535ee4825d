package webui_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/cmd/lab/simsite"
	"fairway/collector"
	"fairway/tsdb"
)

// noNumbers is a store of which every third value is missing and the others are no numbers.
type noNumbers struct{ tsdb.Store }

var notNumbers = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}

func (s noNumbers) Select(ctx context.Context, q tsdb.Query) ([]tsdb.Series, error) {
	got, err := s.Store.Select(ctx, q)
	for i := range got {
		var points []tsdb.Point
		for k, p := range got[i].Points {
			if k%4 != 0 {
				p.Value = notNumbers[k%4-1]
				points = append(points, p)
			}
		}
		got[i].Points = points
	}
	return got, err
}

// TestNumbersThatAreNoneReachEveryHandler asks every GET of the API of a site on which a forwarder has died, beside
// stores and findings whose numbers are not finite. Each answers, with JSON where it says so.
func TestNumbersThatAreNoneReachEveryHandler(t *testing.T) {
	for name, o := range map[string]simsite.Options{
		"holes":      {},
		"no numbers": {Wraps: simsite.Wraps{Seconds: func(s tsdb.Store) tsdb.Store { return noNumbers{s} }}},
	} {
		t.Run(name, func(t *testing.T) { askEverything(t, o) })
	}
}

func askEverything(t *testing.T, o simsite.Options) {
	o.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	s := simsite.New(t, o)
	var lived []collector.Frame
	for back := 2 * time.Minute; back > time.Minute; back -= time.Second {
		lived = append(lived, s.Machine.Frames(time.Now().Add(-back))...)
	}
	if err := s.Store.Append(t.Context(), lived); err != nil {
		t.Fatal(err)
	}
	s.Machine.Silent["fwd001"] = true // from before the accusation on
	s.Run(60)
	s.StartTwo()
	s.AccuseInThePast()
	bad := math.NaN()
	if o.Seconds != nil {
		s.FindMu.Lock()
		for _, v := range notNumbers {
			s.Find = append(s.Find, anomaly.Finding{ID: "F-0009", Node: "fwd001", Kind: anomaly.FailSlow,
				State: anomaly.Confirmed, Confidence: v, Evidence: map[string]float64{"queue_len": v},
				Impact: []anomaly.Impact{{Job: "8", Share: v}}})
		}
		s.FindMu.Unlock()
		f := collector.Frame{Node: "fwd002", TimeMillis: time.Now().UnixMilli()}
		for m := range collector.Metrics() {
			f.Samples = append(f.Samples, collector.Sample{Metric: m, Value: bad})
		}
		s.Take([]collector.Frame{f}, time.Now())
	}
	for _, path := range getPaths(t, s) {
		res, b := s.Ask("GET", path, simsite.AdminSecret, nil)
		kind := res.Header.Get("Content-Type")
		if res.StatusCode >= 500 && res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("GET %s: %d %.300s", path, res.StatusCode, b)
		} else if strings.HasSuffix(kind, "json") && !json.Valid(b) {
			t.Errorf("GET %s: %s that is not JSON: %.300s", path, kind, b)
		}
	}
	if _, b := s.Ask("GET", "/metrics", simsite.AdminSecret, nil); !bytes.Contains(b,
		[]byte("fairway_http_panics_total 0\n")) {
		t.Error("a handler panicked")
	}
}

// getPaths are the addresses of every GET, with names that there are.
func getPaths(t *testing.T, s *simsite.Site) (paths []string) {
	_, b := s.Ask("GET", "/api/v1/openapi.json", "", nil)
	doc := decode[struct {
		Paths map[string]map[string]any `json:"paths"`
	}](t, b)
	past := time.Now().Add(-20 * time.Second).UTC().Format(time.RFC3339)
	for path, methods := range doc.Paths {
		if methods["get"] == nil || strings.HasSuffix(path, "/live") || strings.HasSuffix(path, "/ingest") ||
			strings.Contains(path, "pprof") || strings.Contains(path, "/oidc/") {
			continue
		}
		id := "fwd001"
		switch {
		case strings.Contains(path, "/jobs/"):
			id = "8"
		case strings.Contains(path, "/findings/"):
			id = "F-0001"
		}
		path = strings.NewReplacer("{id}", id, "{name}", "low-bandwidth", "{call...}", "query?query=fairway_queue_len",
			"{call}", "query?query=fairway_queue_len").Replace(path)
		paths = append(paths, path)
		switch {
		case strings.HasSuffix(path, "/incident"):
			paths = append(paths, path+"?format=html", path+"?stand_ins=true", path+"?from=-50s&to=-1s")
		case strings.HasSuffix(path, "/report"):
			paths = append(paths, path+"?format=html")
		case strings.HasSuffix(path, "/series"):
			paths = append(paths, path+"?metric=queue_len&node=fwd001&node=fwd002&from=-1m")
		case strings.HasSuffix(path, "/grid"):
			paths = append(paths, path+"?metric=bw&at="+past)
		case !strings.Contains(path, "?"):
			paths = append(paths, path+"?at="+past)
		}
	}
	if len(paths) < 60 {
		t.Fatalf("only %d addresses: %v", len(paths), paths)
	}
	return paths
}

// TestAPanicCostsItsRequest: the caller gets a problem document, the log has the stack at its highest level, the
// counter and whoever is called hear of it, and the next request is answered.
func TestAPanicCostsItsRequest(t *testing.T) {
	var log lockedBuffer
	s := simsite.New(t, simsite.Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
		Level: slog.LevelError})), Wraps: simsite.Wraps{
		Seconds: func(s tsdb.Store) tsdb.Store { return panics{s} }}})
	s.Run(0)
	res, b := s.Ask("GET", "/api/v1/series?metric=queue_len&node=fwd001&from=-1m", simsite.ViewerSecret, nil)
	if res.StatusCode != 500 || res.Header.Get("Content-Type") != "application/problem+json" ||
		!strings.Contains(string(b), "panic: the store is out of its mind; the daemon's log has the stack") {
		t.Errorf("%d %s", res.StatusCode, b)
	}
	for _, want := range []string{"level=ERROR", "a handler panicked", "GET /api/v1/series", "numbers_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q: %s", want, log.String())
		}
	}
	if res, b = s.Ask("GET", "/metrics", simsite.ViewerSecret, nil); res.StatusCode != 200 ||
		!strings.Contains(string(b), "fairway_http_panics_total 1\n") {
		t.Errorf("%d %s", res.StatusCode, b)
	}
}

type panics struct{ tsdb.Store }

func (panics) Select(context.Context, tsdb.Query) ([]tsdb.Series, error) {
	panic("the store is out of its mind")
}

// lockedBuffer may be written by several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
