package prometheus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"

	"fairway/cmd/lab/conform/storetest"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/prometheus"
	"fairway/tsdb/remote"
)

// receiver takes nothing of a request of which it refuses a sample, as Prometheus 2 does.
type receiver struct {
	mu       sync.Mutex
	refuses  func(node string, second int64) (why string)
	requests int
	took     map[string]int // samples by node
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	body, _ := io.ReadAll(q.Body)
	raw, err := snappy.Decode(nil, body)
	var in prompb.WriteRequest
	if err != nil || in.Unmarshal(raw) != nil || q.URL.Path != "/api/v1/write" {
		http.Error(w, "unsupported path requested", http.StatusBadRequest)
		return
	}
	batch := map[string]int{}
	for _, ts := range in.Timeseries {
		node := ts.Labels[1].Value
		for _, s := range ts.Samples {
			if why := r.refuses(node, s.Timestamp/1000); why != "" {
				status := http.StatusBadRequest
				if why == "too old sample" {
					status = http.StatusInternalServerError
				}
				http.Error(w, why, status)
				return
			}
			batch[node]++
		}
	}
	for node, n := range batch {
		r.took[node] += n
	}
}

// sent appends frames to a store over a server and returns what was refused and the store's counters.
func sent(t *testing.T, write string, frames []collector.Frame) (refused remote.Refused, counters string) {
	t.Helper()
	s, err := prometheus.Open(prometheus.Config{WriteURL: write, ReadURL: write, SpoolDir: t.TempDir(),
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Append(t.Context(), frames); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.Flush(ctx); err != nil && !errors.As(err, &refused) {
		t.Fatal(err)
	}
	var m bytes.Buffer
	s.WriteMetrics(&m)
	return refused, m.String()
}

// seconds are frames of two metrics of nodes, each so many seconds after the other.
func seconds(nodes, each int, from time.Time) (out []collector.Frame) {
	for s := range each {
		for n := range nodes {
			out = append(out, collector.Frame{Node: topology.NodeID(fmt.Sprintf("f%d", n)), Role: topology.Forwarder,
				TimeMillis: from.Add(time.Duration(s) * time.Second).UnixMilli(),
				Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: 1},
					{Metric: collector.WriteBytes, Value: 2}}})
		}
	}
	return out
}

// TestWhatIsRefusedCostsItselfOnly: of 50 nodes' 100 seconds a server refuses some, and has all others after few
// requests.
func TestWhatIsRefusedCostsItselfOnly(t *testing.T) {
	from := time.Now().Add(-time.Hour).Truncate(time.Second)
	for name, c := range map[string]struct {
		refuses       func(node string, second int64) string
		refused, asks int // samples; at most so many requests
		words         string
	}{
		"what is too old, of all": {func(_ string, second int64) string {
			if second < from.Unix()+30 {
				return "too old sample"
			}
			return ""
		}, 50 * 30 * 2, 60, "out_of_order_time_window"},
		"a node's, out of order": {func(node string, second int64) string {
			if node == "f7" && second < from.Unix()+40 {
				return "out of order sample"
			}
			return ""
		}, 40 * 2, 60, `node "f7"`},
		"one second's, twice": {func(node string, second int64) string {
			if node == "f9" && second == from.Unix()+12 {
				return "duplicate sample for timestamp"
			}
			return ""
		}, 2, 60, "duplicate sample"},
		"everything": {func(string, int64) string { return "no room for your sample" }, 50 * 100 * 2, 1100,
			"no room"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &receiver{refuses: c.refuses, took: map[string]int{}}
			srv := httptest.NewServer(r)
			defer srv.Close()
			refused, counters := sent(t, srv.URL, seconds(50, 100, from))
			took := 0
			for _, n := range r.took {
				took += n
			}
			if refused.Samples != c.refused || took != 10_000-c.refused || r.requests > c.asks {
				t.Errorf("%d samples refused, %d taken with %d requests; want %d, %d with at most %d", refused.Samples,
					took, r.requests, c.refused, 10_000-c.refused, c.asks)
			}
			if refused.Err == nil || !strings.Contains(refused.Error(), c.words) {
				t.Errorf("it says %v, want %q", refused.Err, c.words)
			}
			for word, n := range map[string]int{"sent": 10_000 - c.refused, "refused": c.refused} {
				line := fmt.Sprintf("fairway_store_%s_samples_total %d\n", word, n)
				if !strings.Contains(counters, line) {
					t.Errorf("no %q in\n%s", line, counters)
				}
			}
		})
	}
}

// TestAWrongAddressLosesNothing: a 400 of a server that has never taken anything refuses no sample.
func TestAWrongAddressLosesNothing(t *testing.T) {
	r := &receiver{refuses: func(string, int64) string { return "" }, took: map[string]int{}}
	srv := httptest.NewServer(r)
	defer srv.Close()
	c := prometheus.Config{WriteURL: srv.URL + "/write", ReadURL: srv.URL, SpoolDir: t.TempDir(),
		Log: slog.New(slog.DiscardHandler)}
	s, err := prometheus.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), seconds(2, 5, time.Now().Add(-time.Minute))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := s.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush says %v, want that it waits", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c.WriteURL = srv.URL + "/api/v1/write"
	if s, err = prometheus.Open(c); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Flush(t.Context()); err != nil || r.took["f0"]+r.took["f1"] != 20 {
		t.Errorf("%v; %v is taken, want 20 samples", err, r.took)
	}
}

// TestAddressesOfRemoteWrite: those of today and those that lines were written to once.
func TestAddressesOfRemoteWrite(t *testing.T) {
	for given, want := range map[string]string{
		"":                                  "/api/v1/write",
		"/":                                 "/api/v1/write",
		"/api/v1/receive":                   "/api/v1/receive",
		"/insert/0/influx":                  "/insert/0/prometheus/api/v1/write",
		"/insert/0/prometheus/api/v1/write": "/insert/0/prometheus/api/v1/write",
	} {
		asked := make(chan string, 10)
		srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			asked <- r.URL.Path
		}))
		sent(t, srv.URL+given, seconds(1, 1, time.Now()))
		if got := <-asked; got != want {
			t.Errorf("%q: it is sent to %s, want %s", given, got, want)
		}
		srv.Close()
	}
}

// TestPrometheusSaysWhatIsTooLate: a real one with a window of an hour refuses what is three hours late and what is a
// day ahead, and has all the rest.
func TestPrometheusSaysWhatIsTooLate(t *testing.T) {
	t.Parallel()
	url := storetest.Prometheus(t, time.Hour)
	now := time.Now().Truncate(time.Second)
	if refused, _ := sent(t, url, seconds(20, 50, now.Add(-time.Minute))); refused.Samples > 0 {
		t.Errorf("refused of the newest: %d samples, %v", refused.Samples, refused.Err)
	}
	late := append(seconds(3, 100, now.Add(-3*time.Hour)), seconds(2, 10, now.Add(-50*time.Minute))...)
	refused, counters := sent(t, url, append(late, seconds(1, 10, now.Add(24*time.Hour))...))
	if refused.Samples != 3*100*2+10*2 || !strings.Contains(counters, "sent_samples_total 40\n") {
		t.Errorf("refused: %d samples, %v\n%s", refused.Samples, refused.Err, counters)
	}
	s, err := prometheus.Open(prometheus.Config{WriteURL: url, ReadURL: url, SpoolDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.Select(t.Context(), tsdb.Query{Nodes: []topology.NodeID{"f0", "f2", "f19"},
		Metric: collector.WriteBytes, FromMillis: 0, ToMillis: now.Add(48 * time.Hour).UnixMilli()})
	if err != nil || len(got) != 3 || len(got[0].Points) != 60 || len(got[1].Points) != 50 || len(got[2].Points) != 50 {
		t.Errorf("it has %.300s, %v; want 60, 50 and 50 seconds", fmt.Sprint(got), err)
	}
	hours, err := s.Hours(t.Context())
	if err != nil || len(hours) < 1 || len(hours) > 3 {
		t.Errorf("it has the hours %v, %v", hours, err)
	}
}

// TestAnAnswerThatIsCutOffIsAskedForAgain: once, as a proxy that closes a connection wants it; not for ever.
func TestAnAnswerThatIsCutOffIsAskedForAgain(t *testing.T) {
	for cut, fails := range map[int]bool{0: false, 1: false, 2: true} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			const answer = `{"status":"success","data":{"resultType":"matrix","result":[]}}`
			asked++
			if asked <= cut {
				w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
				_, _ = io.WriteString(w, answer[:9])
				return
			}
			_, _ = io.WriteString(w, answer)
		}))
		s, err := prometheus.Open(prometheus.Config{WriteURL: server.URL, ReadURL: server.URL, SpoolDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Select(t.Context(), tsdb.Query{Nodes: []topology.NodeID{"fwd1"}, Metric: collector.ReadBytes,
			ToMillis: 60_000})
		if (err != nil) != fails || asked != min(cut, 1)+1 {
			t.Errorf("%d answers cut off: asked %d times, %v", cut, asked, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	}
}
