// Package tsdb remembers: the newest seconds of every node in memory and every second on disk, behind
// one Store contract that the embedded engine, InfluxDB, Prometheus and its like all keep.
package tsdb

import (
	"context"
	"errors"

	"fairway/collector"
	"fairway/collector/topology"
)

// Point is one value of a series. For down-sampled points TimeMillis is the start of the bucket.
type Point struct {
	TimeMillis int64   `json:"t"`
	Value      float64 `json:"v"`
}

// Agg says how the seconds of a bucket become one point.
type Agg string

// The aggregations that every store keeps exact over down-sampling.
const (
	AggMean  Agg = "mean"
	AggSum   Agg = "sum"
	AggMin   Agg = "min"
	AggMax   Agg = "max"
	AggCount Agg = "count"
	AggLast  Agg = "last" // the newest second's
)

// Query asks for one metric of some nodes. From is inclusive, To exclusive, Unix milliseconds UTC.
// StepMillis <= 1000 asks for raw seconds (Agg is then ignored). A longer step is rounded up to
// whole seconds; its buckets begin at multiples of the step since the epoch, and each holds only
// the seconds that lie in [From, To).
type Query struct {
	Nodes      []topology.NodeID
	Metric     collector.Metric
	FromMillis int64
	ToMillis   int64
	StepMillis int64
	Agg        Agg // "" is AggMean
}

// Series is the answer for one node, in order of time. Seconds or buckets without a value have no
// point: a gap.
type Series struct {
	Node   topology.NodeID `json:"node"`
	Points []Point         `json:"points"`
}

// DefaultThreshold is DFRA's share of peak bandwidth from which a second counts as occupied.
const DefaultThreshold = 0.8

// OccupancyQuery asks how often nodes moved at least Threshold of their peak bandwidth, as DFRA
// (FAST'19, section 2) counts it: a second is occupied when read_bytes + write_bytes reaches
// Threshold x peak. Times are as in Query.
type OccupancyQuery struct {
	Nodes      []topology.NodeID
	FromMillis int64
	ToMillis   int64
	// BucketMillis cuts the range at multiples of itself, rounded up to whole seconds; 0 gives one
	// bucket that starts at From.
	BucketMillis int64
	// PeakBytesPerSec is each node's peak; a node without one has no answer.
	PeakBytesPerSec map[topology.NodeID]float64
	Threshold       float64 // 0..1 of peak; 0 is DefaultThreshold
}

// OccupancyBucket counts the seconds of one bucket. Seconds that were not reported are in neither.
type OccupancyBucket struct {
	TimeMillis int64 `json:"t"`
	Occupied   int64 `json:"occupied"`
	Seconds    int64 `json:"seconds"` // reported seconds, never 0
}

// Share returns the bucket's occupancy, 0..1.
func (b OccupancyBucket) Share() float64 { return float64(b.Occupied) / float64(b.Seconds) }

// NodeOccupancy is the answer for one node; buckets without a reported second are missing.
type NodeOccupancy struct {
	Node    topology.NodeID   `json:"node"`
	Buckets []OccupancyBucket `json:"buckets"`
}

// NodeInfo is one node that a store has samples of.
type NodeInfo struct {
	Node    topology.NodeID    `json:"node"`
	Role    topology.Role      `json:"role"` // as last reported
	Metrics []collector.Metric `json:"metrics"`
}

// Store keeps frames. All times are Unix milliseconds UTC, ranges include their start and exclude
// their end, and the resolution is one second: a frame's time is rounded down to it.
//
// Append is at-least-once and idempotent per (node, metric, time): the same sample again changes
// nothing, another value at the same place replaces the old one, and another frame of the same node
// and second adds its metrics. Samples up to one hour late are taken. What is no
// value (collector.IsValue) is not known and is left out; a metric this program has no name for is left out too. An
// answered Append survives kill -9; one that failed or was not answered may be repeated. Nodes and metrics may come
// and go, and a node whose clock is wrong disturbs only itself. A second that was not appended is
// absent in every answer, never 0. All methods may be called concurrently.
type Store interface {
	// Append stores the samples of frames and returns when they are durable. The frames are not
	// kept and not changed.
	Append(ctx context.Context, frames []collector.Frame) error
	// Select returns one Series per node of q.Nodes that has data, in q.Nodes' order.
	Select(ctx context.Context, q Query) ([]Series, error)
	// Occupancy returns one answer per node of q.Nodes that has both data and a peak, in order.
	Occupancy(ctx context.Context, q OccupancyQuery) ([]NodeOccupancy, error)
	// Nodes lists every node the store has data of, sorted by name.
	Nodes(ctx context.Context) ([]NodeInfo, error)
	// Close flushes and releases the store; later calls return ErrClosed.
	Close() error
}

// Tier is a stretch of time of which a store keeps only buckets.
type Tier struct {
	BucketMillis         int64
	FromMillis, ToMillis int64
}

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("store is closed")
