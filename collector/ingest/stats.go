package ingest

import (
	"io"
	"sync/atomic"

	"github.com/VictoriaMetrics/metrics"
)

// Stats counts what went through the hub since it was made.
type Stats struct {
	connections           atomic.Int64
	messages, frames      atomic.Uint64
	bytes, droppedSamples atomic.Uint64
	rejected, storeErrors atomic.Uint64
	refusedFrames         atomic.Uint64
	secondSpeakers        atomic.Uint64
	routes                routeStats
	orders, ordersFailed  atomic.Uint64
	lines, badLines       atomic.Uint64
	unknownFields         atomic.Uint64
}

// routeStats count what was left out of lists: routes that a node cannot know, and clients beyond those there can be.
type routeStats struct{ foreign, dropped atomic.Uint64 }

// WriteMetrics writes the hub's counters in Prometheus text format.
func (h *Hub) WriteMetrics(w io.Writer) {
	s := &h.stats
	metrics.WriteGaugeUint64(w, "fairway_ingest_connections", uint64(max(s.connections.Load(), 0)))
	metrics.WriteCounterUint64(w, "fairway_ingest_messages_total", s.messages.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_frames_total", s.frames.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_bytes_total", s.bytes.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_dropped_samples_total", s.droppedSamples.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_refused_frames_total", s.refusedFrames.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_second_speakers_total", s.secondSpeakers.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_foreign_routes_total", s.routes.foreign.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_dropped_clients_total", s.routes.dropped.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_slow_appends_total", h.appends.slow.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_rejected_total", s.rejected.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_store_errors_total", s.storeErrors.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_lines_total", s.lines.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_bad_lines_total", s.badLines.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_unknown_fields_total", s.unknownFields.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_orders_total", s.orders.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_orders_failed_total", s.ordersFailed.Load())
}
