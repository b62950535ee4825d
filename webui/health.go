package webui

import (
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"fairway/remap/alert"
	"fairway/webui/access"
	"fairway/webui/api"
)

// health answers whether the daemon is well.
type health struct{ *parts }

func alive(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
	return nil
}

func (h health) ready(_ *http.Request, _ access.Caller) (v api.Readiness, err error) {
	snap := h.Picture.Snapshot()
	age := time.Since(snap.Made)
	if age > 5*time.Second {
		return v, fmt.Errorf("%w: no picture has been made for %s", api.ErrUnreachable, age.Round(time.Second))
	}
	if bad := h.unkept(); len(bad) > 0 {
		return v, fmt.Errorf("%w: %s", api.ErrUnreachable, strings.Join(bad, "; "))
	}
	return api.Readiness{Ready: true, Picture: snap.Made.UTC(), Newest: snap.Overview.At,
		Forwarders: len(snap.Overview.Forwarders)}, nil
}

func (h health) checks(r *http.Request, _ access.Caller) (v []api.Check, err error) {
	all := append(h.Picture.Checks(r.Context(), h.Driver), h.disks(), h.called())
	for _, check := range h.Checks {
		all = append(all, check(r.Context()))
	}
	return all, nil
}

// called says whether somebody is called when something needs a person.
func (h health) called() api.Check {
	c := api.Check{Name: "alerts"}
	var receivers []alert.Status
	if h.Alerts != nil {
		receivers, _ = h.Alerts.Status()
	}
	if len(receivers) == 0 {
		return c.Is(api.CheckWarned, "nobody is called when a forwarder is slow: findings wait on a screen",
			"add [[alert.receiver]] to the daemon's settings (docs/alerts.md)")
	}
	var names, bad []string
	for _, r := range receivers {
		names = append(names, r.Receiver)
		if r.Error != "" {
			bad = append(bad, fmt.Sprintf("%s does not take alerts (%d wait): %s", r.Receiver, r.Waiting, r.Error))
		}
	}
	if len(bad) > 0 {
		return c.Is(api.CheckFailed, strings.Join(bad, "; "),
			"mend the receiver or its settings; 'fairway alerts test' tries them all")
	}
	return c.Is(api.CheckOK, "alerts go to "+strings.Join(names, ", "), "")
}

// disks says whether what comes in and what is decided can be written down.
func (h health) disks() api.Check {
	c := api.Check{Name: "disks"}
	if bad := h.unkept(); len(bad) > 0 {
		return c.Is(api.CheckFailed, strings.Join(bad, "; "),
			"free the disk of state_dir (df, fairwayd fsck); the log says when it goes on")
	}
	return c.Is(api.CheckOK, "the store keeps the frames, the journal takes records", "")
}

// stalledAfter is how long messages may wait for the store, one of which is answered twice a second.
const stalledAfter = 10 * time.Second

// unkept is what cannot be written down now; nothing where all is well.
func (h health) unkept() (bad []string) {
	if err := h.Ingest.StoreErr(); err != nil {
		bad = append(bad, fmt.Sprintf("the store does not keep the frames, the agents hold them back: %v", err))
	}
	if age := h.Ingest.Stalled(); age > stalledAfter {
		bad = append(bad, fmt.Sprintf("the store has made no frames durable for %s, and some wait",
			age.Round(time.Second)))
	}
	if err := h.Desk.Unrecorded(); err != nil {
		bad = append(bad, fmt.Sprintf("nothing can be decided or moved: %v", err))
	}
	return bad
}

func profile(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	switch name := r.PathValue("profile"); name {
	case "profile":
		pprof.Profile(w, r)
	case "trace":
		pprof.Trace(w, r)
	case "cmdline":
		pprof.Cmdline(w, r)
	default:
		pprof.Handler(name).ServeHTTP(w, r)
	}
	return nil
}

// MetricsWriter writes counters in Prometheus text format.
type MetricsWriter func(io.Writer)

// secondsBounds are the upper bounds of the latency histograms.
var secondsBounds = []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10}

// serverStats counts requests by route.
type serverStats struct {
	set     *metrics.Set
	seconds *metrics.PrometheusHistogram // of all answered requests but the long-lived feeds
	publish *metrics.PrometheusHistogram // from snapshot to every client's queue
	panics  *metrics.Counter
}

func newServerStats() *serverStats {
	set := metrics.NewSet()
	return &serverStats{set: set, panics: set.NewCounter("fairway_http_panics_total"),
		seconds: set.NewPrometheusHistogramExt("fairway_http_request_seconds", secondsBounds),
		publish: set.NewPrometheusHistogramExt("fairway_live_publish_seconds", secondsBounds)}
}

func (s *serverStats) answered(t *access.Route, status int, took time.Duration) {
	s.set.GetOrCreateCounter(fmt.Sprintf("fairway_http_requests_total{route=%q,code=\"%d\"}", t.Method+" "+t.Path,
		status)).Inc()
	if t.Kind&(access.WebSocket|access.Long) == 0 {
		s.seconds.Update(took.Seconds())
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
