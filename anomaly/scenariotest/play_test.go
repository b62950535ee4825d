package scenariotest

import (
	"slices"

	"fairway/anomaly/failslow"
	"fairway/anomaly/recorded"
	"fairway/collector/topology"
)

// asDaemon are the settings that a drawn layer is scored with: the daemon's own, whose canaries go through nodes with
// load as well. A recorded trace answers for idle nodes and suspects alone: FAIRWAY_PROBE_BUSY=0 scores layers so.
func asDaemon() recorded.Settings {
	set := recorded.DefaultSettings()
	set.FailSlow.ProbeBusy = number("FAIRWAY_PROBE_BUSY", 1) != 0
	return set
}

// Play plays a scenario to the detectors and returns what they reported and what was true.
func Play(s *Scenario, set recorded.Settings) (events []recorded.Event, labels []Label) {
	r := Record(s)
	return r.Play(set), r.Labels()
}

// Recording is a layer that was played once, for any number of detectors: no detector changes what the layer does.
type Recording struct {
	Scenario *Scenario
	Seconds  []recorded.Second
	Jobs     []recorded.Job
	names    []topology.NodeID
	canaries []failslow.Probe // of each second, by forwarder
	ways     []float64        // the same: seconds a byte between the clients and the forwarder
	labels   []Label
}

// Record plays a scenario to its end.
func Record(s *Scenario) *Recording {
	l := NewLayer(s)
	r := &Recording{Scenario: s, Jobs: l.Jobs(), names: l.names}
	for {
		second, ok := l.Next()
		if !ok {
			break
		}
		kept := *second
		kept.Rows, kept.Pools = slices.Clone(second.Rows), slices.Clone(second.Pools)
		r.Seconds = append(r.Seconds, kept)
		for n := range s.Nodes {
			r.canaries = append(r.canaries, l.Canary(n))
			r.ways = append(r.ways, l.pressed[n].outside)
		}
	}
	r.labels = l.labels()
	return r
}

// Labels are what is true of the layer; the scorer writes into them.
func (r *Recording) Labels() []Label { return slices.Clone(r.labels) }

// Play gives the layer to the detectors and returns what they reported.
func (r *Recording) Play(set recorded.Settings) (events []recorded.Event) {
	index := map[topology.NodeID]int{}
	for i, n := range r.names {
		index[n] = i
	}
	now := 0
	replay := recorded.NewReplay(set, recorded.Site{
		Forwarders: r.Scenario.Nodes, Jobs: slices.Clone(r.Jobs),
		Canary: func(n topology.NodeID) (failslow.Probe, bool) {
			return r.canaries[now*r.Scenario.Nodes+index[n]], true
		},
	}, func(e recorded.Event) error {
		events = append(events, e)
		return nil
	})
	for now = range r.Seconds {
		if len(r.Seconds[now].Rows) > 0 {
			_ = replay.Second(&r.Seconds[now]) // emit does not fail
		}
	}
	_ = replay.Finish()
	return events
}

// labels are the truth as the scorer wants it.
func (l *Layer) labels() []Label {
	var out []Label
	for i, f := range l.Scenario.Faults {
		t := l.Truth[i]
		out = append(out, Label{Fault: true, Node: string(l.names[f.Node]), Start: epoch + int64(f.Start),
			End: epoch + int64(f.End), Kind: f.Kind,
			Info: t.Info, Seconds: t.Seconds, First: epoch + int64(t.First)})
	}
	for _, b := range l.Scenario.Brownouts {
		kind := "brownout_pool"
		if b.Pool < 0 {
			kind = "brownout_all"
		}
		out = append(out, Label{Node: "*", Start: epoch + int64(b.Start), End: epoch + int64(b.End), Kind: kind})
	}
	for _, j := range l.Scenario.Jobs {
		kind := map[Flow]string{SharedFlow: "n1_pin", StormFlow: "meta_storm"}[j.Flow]
		if j.Flow == WriteFlow || j.Flow == ReadFlow {
			if j.PerSec*j.Size > peak {
				kind = "highbw"
			}
		}
		if kind == "" {
			continue
		}
		for t := j.Start; t < j.End; t += j.Every {
			for n := range j.Count {
				out = append(out, Label{Node: string(l.names[j.First+n]), Start: epoch + int64(t),
					End: epoch + int64(min(t+j.Burst, j.End)), Kind: kind})
			}
		}
	}
	return out
}
