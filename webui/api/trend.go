package api

import (
	"math"
	"strconv"
	"time"

	"fairway/collector/topology"
)

// Trend is the last fifteen minutes of the layer and the last five of each forwarder's clients, in steps, the oldest
// first. A step of which nothing is known is null.
type Trend struct {
	End         time.Time `json:"end"` // of the newest step
	StepSeconds int       `json:"step_seconds"`
	// Layer are the steps of the layer; their operations are those of all of its forwarders.
	Layer []LayerNow `json:"layer"`
	// Waits is how long the clients of each forwarder waited.
	Waits map[topology.ForwarderID]WaitTrend `json:"waits"`
}

// LayerNow is the layer over some seconds.
type LayerNow struct {
	ReadBytesPerSec  *float64 `json:"read_bytes_per_sec"`
	WriteBytesPerSec *float64 `json:"write_bytes_per_sec"`
	// RoutedBytesPerSec is what routers pass on, which know no direction.
	RoutedBytesPerSec *float64 `json:"routed_bytes_per_sec,omitempty"`
	MetaOpsPerSec     *float64 `json:"meta_ops_per_sec"`
	Waiting           *float64 `json:"waiting"` // requests that wait at forwarders
	// P50 and P95 are of the time that an operation took its client.
	P50 *float64 `json:"latency_p50_seconds"`
	P95 *float64 `json:"latency_p95_seconds"`
}

// WaitTrend is how long a forwarder's clients waited, and how many times as long that was as for its peers' clients.
type WaitTrend struct {
	Took []*float64 `json:"latency_seconds"`
	Slow []*float64 `json:"slow"`
}

// Known is a number of three digits, nil for one that is not known: what is shown has no more, and what does not change
// is not sent again.
func Known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	v, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	if err != nil {
		return nil
	}
	return &v
}
