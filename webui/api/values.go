package api

import (
	"encoding/json"
	"fmt"

	"fairway/collector"
	"fairway/collector/topology"
)

// Values are a forwarder's newest numbers of the metrics that its layer's list shows, nil where one is not known. In
// JSON they are an object of the known ones by name.
type Values [maxListed]*float64

// maxListed is room for the metrics that the catalogue shows in the list of forwarders.
const maxListed = 16

// ListedMetrics are the metrics of Values, in its order.
var ListedMetrics = collector.ShownAs(topology.Forwarder, collector.InList)

// listedAt is each metric's place, plus 1.
var listedAt = func() (at [256]uint8) {
	for i, m := range ListedMetrics {
		at[m] = uint8(i + 1)
	}
	return at
}()

// PlaceOf is a metric's place in Values; ok is false for one that lists of forwarders do not show.
func PlaceOf(m collector.Metric) (i int, ok bool) {
	i = int(listedAt[m]) - 1
	return i, i >= 0
}

// Of returns the value of a metric; nil for an unknown one.
func (v *Values) Of(m collector.Metric) *float64 {
	if i, ok := PlaceOf(m); ok {
		return v[i]
	}
	return nil
}

// Set changes the value of a metric that lists of forwarders show; of others nothing is kept.
func (v *Values) Set(m collector.Metric, to *float64) {
	if i, ok := PlaceOf(m); ok {
		v[i] = to
	}
}

// Value returns the row's value of a metric; nil for an unknown one.
func (r *ForwarderRow) Value(m collector.Metric) *float64 { return r.Values.Of(m) }

// MarshalJSON writes the known values by the names of their metrics.
func (v Values) MarshalJSON() ([]byte, error) {
	known := make(map[string]float64, len(ListedMetrics))
	for i, m := range ListedMetrics {
		if v[i] != nil {
			known[m.String()] = *v[i]
		}
	}
	return json.Marshal(known)
}

// UnmarshalJSON reads them; metrics that are not known here are left out.
func (v *Values) UnmarshalJSON(b []byte) error {
	var known map[string]*float64
	if err := json.Unmarshal(b, &known); err != nil {
		return fmt.Errorf("values: %w", err)
	}
	*v = Values{}
	for name, value := range known {
		if m, ok := collector.ParseMetric(name); ok {
			v.Set(m, value)
		}
	}
	return nil
}
