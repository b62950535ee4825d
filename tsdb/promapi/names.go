package promapi

import "fairway/collector"

// occupancyName is the series of a forwarder's occupancy: at each full two minutes the share of
// the two minutes before in which it moved at least the threshold of its peak. It is read from the
// store's index, so avg_over_time(fairway_occupancy_ratio[1d]) is a day's occupancy at little cost.
const (
	occupancyName        = "fairway_occupancy_ratio"
	occupancyStepSeconds = 120
)

// metadata is one metric's line in the answer of /metadata.
type metadata struct {
	Type string `json:"type"`
	Help string `json:"help"`
	Unit string `json:"unit"`
}

// describe lists every metric by its series name. All are gauges: rates are computed where the
// counter is read.
func describe() map[string][]metadata {
	out := map[string][]metadata{
		occupancyName: {
			{"gauge",
				"Share of the two minutes before in which the forwarder moved at least the threshold of its peak " +
					"bandwidth.", "ratio"}},
	}
	for _, m := range collector.Catalogue() {
		out[m.Metric.SeriesName()] = []metadata{{"gauge", m.Help, m.Unit.Info().Prom}}
	}
	return out
}
