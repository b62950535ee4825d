// Package incident puts together all that belongs to one finding, as a page and as a file that leaves the site: whom it
// hurts, its series beside the peers', plans and their effect, who did what.
package incident

import (
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/webui/api"
)

// Incident is one finding with all that belongs to it.
type Incident struct {
	Site    string    `json:"site"`
	Version string    `json:"version"`
	Made    time.Time `json:"made"`

	ID    string          `json:"id"`
	Node  topology.NodeID `json:"node"`
	State string          `json:"state"` // of the finding
	Model string          `json:"model,omitempty"`
	advise.Card
	// Accused is the span of the accusation; its end is Made while the finding is open.
	Accused Span   `json:"accused"`
	Series  Series `json:"series"`
	Plans   []Plan `json:"plans"`
	// Life is what became of the finding, Audit who did what about it, its node and its plans; the oldest first.
	Life  []Step           `json:"life"`
	Audit []api.AuditEntry `json:"audit"`
}

// Span is a stretch of time.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Series are the charts of an incident, all over the same steps.
type Series struct {
	Span
	StepSeconds int     `json:"step_seconds"`
	Charts      []Chart `json:"charts"` // what differs most from the peers first
	// Peers are the forwarders that were compared with, with the latency of their clients: a replay of those
	// minutes. The accused node is the first.
	Peers []Peer `json:"peers"`
}

// Chart is one metric of the node beside its peers'; a step of which nothing is known is null.
type Chart struct {
	class string // of the operations that the metric belongs to; "" of several

	Metric string  `json:"metric"`
	Label  string  `json:"label"`
	Unit   string  `json:"unit"`
	Scale  float64 `json:"scale"` // from a value to what is shown with the unit
	// Ratio is the node's mean in the accused span by the median of its peers' means; null where that says nothing.
	Ratio *float64 `json:"ratio"`
	// Says is the ratio as all faces write it, where it accuses: 10x; of clients' times the headline's, if it has one.
	Says string `json:"says,omitempty"`
	// Means are the two means that Says compares, as all faces write them: 36 ms, peers 3.5. The headline has none.
	Means string     `json:"means,omitempty"`
	Node  []*float64 `json:"node"`
	// Low, Mid and High are the peers' 10th, 50th and 90th percentile.
	Low  []*float64 `json:"low"`
	Mid  []*float64 `json:"mid"`
	High []*float64 `json:"high"`
}

// Peer is one forwarder's clients' latency, seconds.
type Peer struct {
	Node    topology.NodeID `json:"node"`
	Latency []*float64      `json:"latency_seconds"`
}

// Plan is a plan that moves nodes off the node, or waits to.
type Plan struct {
	ID      string          `json:"id"`
	Title   string          `json:"title"`
	State   remap.PlanState `json:"state"`
	Created time.Time       `json:"created"`
	Reason  string          `json:"reason,omitempty"`
	// Brought is what it was measured to bring, in words; Effect the figures.
	Brought string        `json:"brought,omitempty"`
	Effect  *remap.Effect `json:"effect,omitempty"`
}

// Step is one change in the life of a finding.
type Step struct {
	At    time.Time     `json:"at"`
	State anomaly.State `json:"state"`
	By    string        `json:"by,omitempty"` // a person; empty: the detectors
	Why   string        `json:"why"`
	// Noted is the moment that a person's note is about.
	Noted time.Time `json:"noted,omitzero"`
}
