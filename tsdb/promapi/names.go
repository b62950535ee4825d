package promapi

import (
	"strings"

	"fairway/collector"
)

// occupancyName is the series of a forwarder's occupancy: at each full two minutes the share of
// the two minutes before in which it moved at least the threshold of its peak. It is read from the
// store's index, so avg_over_time(fairway_occupancy_ratio[1d]) is a day's occupancy at little cost.
const (
	occupancyName        = "fairway_occupancy_ratio"
	occupancyStepSeconds = 120
)

// units are the words that Prometheus's conventions put at the end of a metric's name.
var units = func() map[collector.Metric]string {
	m := map[collector.Metric]string{
		collector.CPUSeconds: "_per_second", collector.DiskReadBytes: "_per_second",
		collector.DiskWriteBytes: "_per_second",
		collector.Errors:         "_per_second", collector.Retransmits: "_per_second",
		collector.PSIIOSome: "_ratio", collector.PSIIOFull: "_ratio",
	}
	for metric := range collector.Metric(collector.MetricCount) {
		switch name := metric.String(); {
		case m[metric] != "" || strings.HasSuffix(name, "_ratio"):
		case strings.HasSuffix(name, "_bytes"), strings.HasSuffix(name, "_ops"):
			m[metric] = "_per_second"
		case strings.HasSuffix(name, "_wait"), strings.HasSuffix(name, "_exec"), strings.HasSuffix(name, "_time"),
			strings.HasPrefix(name, "client_"), strings.HasPrefix(name, "probe_"):
			m[metric] = "_seconds"
		}
	}
	return m
}()

// SeriesName returns the name that PromQL has for a metric, such as fairway_read_bytes_per_second.
func SeriesName(m collector.Metric) string { return "fairway_" + m.String() + units[m] }

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
	for m := collector.MetricNone + 1; int(m) < collector.MetricCount; m++ {
		help := strings.ReplaceAll(m.String(), "_", " ")
		switch units[m] {
		case "_per_second":
			help += " per second"
		case "_seconds":
			help += ", mean seconds"
		}
		out[SeriesName(m)] = []metadata{{"gauge", "Of one node in one second: " + help + ".",
			strings.TrimPrefix(units[m], "_")}}
	}
	return out
}
