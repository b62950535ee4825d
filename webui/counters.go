package webui

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"fairway/remap/alert"
	"fairway/webui/access"

	"github.com/VictoriaMetrics/metrics"
)

// MetricsWriter writes counters in Prometheus text format.
type MetricsWriter func(io.Writer)

// secondsBounds are the upper bounds of the latency histograms.
var secondsBounds = []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10}

// histogram counts in cumulative le buckets, which histogram_quantile reads; the metrics package's
// own vmrange buckets it cannot.
type histogram struct {
	mu     sync.Mutex // guards everything that follows
	counts []uint64   // one more than bounds: +Inf
	sum    float64
}

func newHistogram() *histogram { return &histogram{counts: make([]uint64, len(secondsBounds)+1)} }

func (h *histogram) observe(v float64) {
	i, _ := slices.BinarySearch(secondsBounds, v)
	h.mu.Lock()
	h.counts[i]++
	h.sum += v
	h.mu.Unlock()
}

func (h *histogram) write(w io.Writer, name, labels string) {
	h.mu.Lock()
	counts, sum := slices.Clone(h.counts), h.sum
	h.mu.Unlock()
	inner := strings.TrimSuffix(strings.TrimPrefix(labels, "{"), "}")
	if inner != "" {
		inner += ","
	}
	total := uint64(0)
	for i, n := range counts {
		total += n
		le := "+Inf"
		if i < len(secondsBounds) {
			le = fmt.Sprint(secondsBounds[i])
		}
		metrics.WriteCounterUint64(w, fmt.Sprintf("%s_bucket{%sle=%q}", name, inner, le), total)
	}
	metrics.WriteCounterFloat64(w, name+"_sum"+labels, sum)
	metrics.WriteCounterUint64(w, name+"_count"+labels, total)
}

// serverStats counts requests by route.
type serverStats struct {
	set     *metrics.Set
	seconds *histogram // of all answered requests but the long-lived feeds
	publish *histogram // from snapshot to every client's queue
	panics  *metrics.Counter
}

func newServerStats() *serverStats {
	set := metrics.NewSet()
	s := &serverStats{set: set, seconds: newHistogram(), publish: newHistogram(),
		panics: set.NewCounter("fairway_http_panics_total")}
	s.set.RegisterMetricsWriter(func(w io.Writer) {
		s.seconds.write(w, "fairway_http_request_seconds", "")
		s.publish.write(w, "fairway_live_publish_seconds", "")
	})
	return s
}

func (s *serverStats) answered(t *access.Route, status int, took time.Duration) {
	s.set.GetOrCreateCounter(fmt.Sprintf("fairway_http_requests_total{route=%q,code=\"%d\"}", t.Method+" "+t.Path,
		status)).Inc()
	if t.Kind&(access.WebSocket|access.Long) == 0 {
		s.seconds.observe(took.Seconds())
	}
}

// panicked counts handlers that panicked, and calls people.
func (s *serverStats) panicked(alerts *alert.Sender) func(*access.Route, string) {
	return func(t *access.Route, what string) {
		s.panics.Inc()
		if alerts != nil {
			alerts.Panicked(t.Method+" "+t.Path, what, time.Now())
		}
	}
}

// counters answers /metrics.
func (s *Server) counters(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	s.stats.set.WritePrometheus(w)
	s.feed.writeMetrics(w)
	for _, write := range s.meters {
		write(w)
	}
	metrics.WriteProcessMetrics(w)
	return nil
}
