package api

import (
	"maps"
	"slices"

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
