package api

import (
	"cmp"
	"encoding/json"
	"fmt"

	"fairway/collector"
	"fairway/collector/topology"
)

// Metric is a metric's row of the catalogue, as faces show it.
type Metric struct {
	Name   string           `json:"name"` // in series and in rows of nodes
	Label  string           `json:"label"`
	Column collector.Column `json:"column,omitzero"` // of lists
	Help   string           `json:"help"`
	Unit   string           `json:"unit"` // of values
	// A value times Factor is in the unit on screens, with Digits after the point below 10.
	ShownUnit string  `json:"shown_unit"`
	Factor    float64 `json:"factor"`
	Digits    int     `json:"digits"`
	// Full is full scale on heat maps; of bytes/s a node's peak counts where it is known. 0: no full scale.
	Full        float64 `json:"full,omitempty"`
	MoreIsWorse bool    `json:"more_is_worse,omitempty"`
	// Of are the operations that values belong to.
	Of    []collector.Metric `json:"of,omitempty"`
	Chart string             `json:"chart,omitempty"` // metrics of one word are drawn into one chart
	// Scale names the heat-map scale to which it adds, ScaleLabel is the scale's label.
	Scale      string `json:"scale,omitempty"`
	ScaleLabel string `json:"scale_label,omitempty"`
	// Layers says where the layers that report it show it: series, list, scale, evidence; rare of a metric that lists
	// show only where one of their nodes reports it.
	Layers map[topology.Role][]string `json:"layers"`
}

// Metrics lists the catalogue, in the order in which lists and pages show it.
func Metrics() []Metric {
	rows := []Metric{}
	for _, m := range collector.Catalogue() {
		u := m.Unit.Info()
		row := Metric{Name: m.Name, Label: m.Label, Column: m.Column, Help: m.Help, Unit: u.Name, ShownUnit: u.Shown,
			Factor: u.Scale, Digits: u.Digits, Full: m.Full, MoreIsWorse: m.MoreIsWorse, Chart: m.Chart, Scale: m.Scale,
			Layers: map[topology.Role][]string{}}
		if row.Scale != "" {
			row.ScaleLabel = cmp.Or(sums[row.Scale], row.Label)
		}
		for _, of := range m.Of {
			if of != collector.MetricNone {
				row.Of = append(row.Of, of)
			}
		}
		for role := topology.Compute; role <= topology.Metadata; role++ {
			if p := m.At(role); p != 0 {
				row.Layers[role] = p.Words()
			}
		}
		rows = append(rows, row)
	}
	return rows
}

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

// Term is a word of the faces and what it means.
type Term struct {
	Word  string `json:"word"`
	Means string `json:"means"`
}

// Glossary is what both faces' help explains.
func Glossary() []Term {
	return []Term{
		{"forwarder", "a node through which the I/O of compute nodes goes to storage"},
		{"peers", "the other forwarders that do I/O now; what is slow is slow beside them, at the same load"},
		{"10x slow", "an operation takes 10 times as long as on its peers"},
		{"suspect", "it looks slow, and too few seconds have shown it: no move is offered yet"},
		{"finding", "what is wrong with one node, from the first second to its end (F-0001)"},
		{"waits", "the part of its time that a job waits for a forwarder beyond what its operations take elsewhere"},
		{"lost", "that waiting, added up: each of the job's nodes lost as much"},
		{"plan", "compute nodes that would use another forwarder; nothing moves before it is approved (P-000001)"},
		{"verified", "the nodes were seen on the new forwarder, not only ordered there"},
		{"helped", "measured after the move, beside nodes that were not moved"},
		{"drain", "no job gets the forwarder any more; nobody is moved, and it can be returned"},
		{"trial", "returned after a drain and watched before it counts as healthy"},
		{"N", "a person wrote a note about it; the finding's page has all of them"},
		{"canary", "one small write, read and stat through a forwarder, to see what they take"},
		{"silent", "its agent does not report: nothing is known of it, which is not the same as slow"},
		{"~ and -", "~148 is estimated, - is not known; 0 was measured"},
	}
}
