package engine

import "fairway/collector"

// relatedMetrics are the operations that a metric's value belongs to, from the catalogue. The block format depends
// on this table; changing a metric's operations needs a new version.
var relatedMetrics = func() (t [collector.MetricCount][2]collector.Metric) {
	for m := range collector.Metrics() {
		t[m] = m.Info().Of
	}
	return t
}()
