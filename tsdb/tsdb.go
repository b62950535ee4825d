// Package tsdb remembers: the newest hour of every node in memory and every second on disk, behind
// one Store contract that the embedded engine, InfluxDB and VictoriaMetrics all keep.
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
)

// Query asks for one metric of some nodes. From is inclusive, To exclusive, Unix milliseconds UTC.
// StepMillis <= 1000 asks for raw seconds (Agg is then ignored).
type Query struct {
	Nodes      []topology.NodeID
	Metric     collector.Metric
	FromMillis int64
	ToMillis   int64
	StepMillis int64
	Agg        Agg
}

// Series is the answer for one node. Seconds or buckets without a value have no point: a gap.
type Series struct {
	Node   topology.NodeID `json:"node"`
	Points []Point         `json:"points"`
}

// Store keeps frames. Append is at-least-once and idempotent per (node, metric, time): the same
// sample again changes nothing, another value at the same place replaces the old one. It takes
// samples up to one hour late, and an answered Append survives kill -9. Nodes and metrics may come
// and go. All methods may be called concurrently.
type Store interface {
	// Append stores the samples of frames and returns when they are durable.
	Append(ctx context.Context, frames []collector.Frame) error
	// Select returns one Series per node of q.Nodes that has data, in q.Nodes' order.
	Select(ctx context.Context, q Query) ([]Series, error)
	// Close flushes and releases the store; later calls return ErrClosed.
	Close() error
}

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("store is closed")
