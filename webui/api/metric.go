package api

import (
	"cmp"

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
