package api

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/collector/topology"
)

// SeriesAnswer is one metric of some nodes. A gap is one point without a value, at the first
// missing step; a node without data in the range has no series.
type SeriesAnswer struct {
	Metric     string       `json:"metric"`
	FromMillis int64        `json:"from_ms"`
	ToMillis   int64        `json:"to_ms"`
	StepMillis int64        `json:"step_ms"`
	Agg        string       `json:"agg"`
	Series     []NodeSeries `json:"series"`
}

// NodeSeries is one node's part.
type NodeSeries struct {
	Node   topology.NodeID `json:"node"`
	Points []GapPoint      `json:"points"`
}

// GapPoint is one step; a nil value says that nothing is known from there on until the next point.
type GapPoint struct {
	TimeMillis int64    `json:"t"`
	Value      *float64 `json:"v"`
}

// JobSeries is what the compute nodes of a job did together: rates are sums, times are means over their requests. Steps
// of which nothing is known are missing. Of a very large job it is what some of its nodes did, in equal steps through
// their list. Their sum is not scaled to the job: where few of its nodes do the I/O, that would be wrong by factors.
type JobSeries struct {
	Job        topology.JobID        `json:"job"`
	FromMillis int64                 `json:"from_ms"`
	ToMillis   int64                 `json:"to_ms"`
	StepMillis int64                 `json:"step_ms"`
	Nodes      int                   `json:"nodes"`    // whose sums and means these are
	OfNodes    int                   `json:"of_nodes"` // so many the job has
	Series     map[string][]GapPoint `json:"series"`   // by metric
}

// Put adds the steps of a metric; one without any is left out.
func (s *JobSeries) Put(metric string, steps map[int64]float64) {
	for _, t := range slices.Sorted(maps.Keys(steps)) {
		s.Series[metric] = append(s.Series[metric], GapPoint{TimeMillis: t, Value: Known(steps[t])})
	}
}

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

// ParseTime reads RFC 3339, now or live, or an age such as -15m before now.
func ParseTime(text string, now time.Time) (time.Time, bool) {
	switch {
	case text == "now", text == "live":
		return now, true
	case strings.HasPrefix(text, "-"):
		d, err := time.ParseDuration(text)
		return now.Add(d), err == nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	return at, err == nil
}

// KnownOf are Known numbers of some values.
func KnownOf[T any](all []T, of func(T) float64) []*float64 {
	out := make([]*float64, 0, len(all))
	for _, one := range all {
		out = append(out, Known(of(one)))
	}
	return out
}

// Known is a number of three digits, nil for one that is not known: what is shown has no more, and what does not change
// is not sent again.
func Known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	return &v
}
