package remap

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// An unknown value is neither 0 nor idle, and what routers move counts.
func TestWhatIsNotKnownIsNotIdle(t *testing.T) {
	type values map[collector.Metric]float64
	const r, w, md = collector.ReadBytes, collector.WriteBytes, collector.MetaOps
	const routed, ro, wo = collector.RoutedBytes, collector.ReadOps, collector.WriteOps
	for _, c := range []struct {
		name   string
		values values
		text   string
		known  bool
	}{
		{"an agent without a source for its service", nil, "unknown", false},
		{"a router at two thirds", values{routed: 200e6}, "busy 67 %", true},
		{"a router at rest", values{routed: 1e6}, "idle", true},
		{"both directions at rest", values{r: 0, w: 0, md: 0}, "idle", true},
		{"metadata not known", values{r: 0, w: 0}, "unknown", true},
		{"metadata alone", values{r: 0, w: 0, md: 50}, "busy 0 %", true},
		{"one direction at rest", values{r: 0, md: 0}, "unknown", false},
		{"one direction busy: how much in all is not known", values{w: 150e6, md: 0}, "busy", false},
		{"operations, no bytes", values{ro: 40, wo: 2, md: 0}, "busy", false},
		{"a few operations, no bytes", values{ro: 4, wo: 2, md: 0}, "unknown", false},
		{"no operations, no bytes", values{ro: 0, wo: 0, md: 0}, "idle", true},
		{"more than the peak of one direction", values{r: 250e6, w: 250e6}, "busy 100 %", true},
		{"a router that is a client as well", values{r: 60e6, w: 0, routed: 90e6, md: 0}, "busy 50 %", true},
	} {
		f := collector.Frame{TimeMillis: 1000}
		for m, v := range c.values {
			f.Samples = append(f.Samples, collector.Sample{Metric: m, Value: v})
		}
		at := time.UnixMilli(2000)
		load := LoadOfFrame(&f, 300e6, at)
		s := BuildSituation(SituationParts{At: at, Machine: &topology.Machine{Nodes: []topology.Node{{ID: "r1",
			Role: topology.Forwarder}}}, Load: map[topology.ForwarderID]Load{"r1": load}})
		if got := s.State("r1").Text(load.Busy()); got != c.text || load.Known() != c.known {
			t.Errorf("%s: %q, known %v; want %q, %v", c.name, got, load.Known(), c.text, c.known)
		}
		healthy, idle := s.Healthy()
		if unknown := c.text == "unknown"; unknown != (s.Unknown() == 1) || unknown && healthy+idle > 0 {
			t.Errorf("%s: %d healthy, %d idle, %d unknown", c.name, healthy, idle, s.Unknown())
		}
	}
}

// TestAForwardersStandingIsItsCondition: one that serves nobody is called by what it does; lists have it at the top.
func TestAForwardersStandingIsItsCondition(t *testing.T) {
	at := time.UnixMilli(2000)
	for _, c := range []struct {
		condition anomaly.Condition
		state     anomaly.State
		want      ForwarderState
		failed    bool
	}{
		{anomaly.Slow, anomaly.Confirmed, ForwarderSlow, true},
		{anomaly.Slow, anomaly.Suspect, ForwarderSuspect, false},
		{anomaly.Hung, anomaly.Confirmed, "hung", true},
		{anomaly.Dead, anomaly.Suspect, "dead", true},
		{anomaly.Dead, anomaly.Returned, ForwarderUnknown, false},
	} {
		s := BuildSituation(SituationParts{At: at, Machine: &topology.Machine{Nodes: []topology.Node{{ID: "r1",
			Role: topology.Forwarder}}}, Load: map[topology.ForwarderID]Load{"r1": {LastSeen: at}},
			Findings: []anomaly.Finding{{Node: "r1", Kind: anomaly.FailSlow, State: c.state, Condition: c.condition}}})
		if got := s.State("r1"); got != c.want || got.Failed() != c.failed {
			t.Errorf("%s, %s: %q, failed %v; want %q, %v", c.condition, c.state, got, got.Failed(), c.want, c.failed)
		}
	}
}

// A plan keeps as null what was not known, and how busy a router was.
func TestEvidenceKeepsWhatWasNotKnown(t *testing.T) {
	at := time.UnixMilli(2000)
	routed, none := collector.Frame{TimeMillis: 1000, Samples: []collector.Sample{{Metric: collector.RoutedBytes,
		Value: 200e6}}}, collector.Frame{TimeMillis: 1000}
	s := BuildSituation(SituationParts{At: at, Machine: &topology.Machine{}, Load: map[topology.ForwarderID]Load{
		"r1": LoadOfFrame(&routed, 300e6, at), "r2": LoadOfFrame(&none, 300e6, at)}})
	b, err := json.Marshal(s.Freeze([]Move{{Node: "c1", From: "r1", To: "r2"}}).Forwarders)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"r1":{"state":"ok","busy":0.66`, `"routed_bytes_per_sec":200000000`,
		`"r2":{"state":"unknown","busy":null,`, `"read_bytes_per_sec":null,"write_bytes_per_sec":null`,
		`"meta_ops_per_sec":null,"occupancy":null`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
}

// A node that nothing was observed of is where the default mapping has it, and marked so; one whose way is not known
// any more is nowhere.
func TestTheDefaultMappingIsAssumed(t *testing.T) {
	m := &topology.Machine{Default: topology.Mapping{"c1": "f1", "c2": "f1", "c3": "f2"}}
	s := BuildSituation(SituationParts{Machine: m, Routes: map[topology.NodeID]window.Route{"c2": {Forwarder: "f2"},
		"c3": {Forwarder: "f2", Stale: true}}})
	want := topology.Mapping{"c1": "f1", "c2": "f2"}
	if !maps.Equal(s.Used, want) || s.Assumed["f1"] != 1 || s.Assumed["f2"] != 0 || s.Clients["f1"] != 0 ||
		s.Clients["f2"] != 1 ||
		len(s.Observed) != 1 {
		t.Errorf("used %v, assumed %v, clients %v, observed %v", s.Used, s.Assumed, s.Clients, s.Observed)
	}
}
