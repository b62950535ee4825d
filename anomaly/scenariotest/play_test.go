package scenariotest

import (
	"fairway/anomaly/failslow"
	"fairway/anomaly/recorded"
	"fairway/collector/topology"
)

// Play plays a scenario to the detectors and returns what they reported and what was true.
func Play(s *Scenario, set recorded.Settings) (events []recorded.Event, labels []Label) {
	l := NewLayer(s)
	index := map[topology.NodeID]int{}
	for i, n := range l.names {
		index[n] = i
	}
	r := recorded.NewReplay(set, recorded.Site{
		Forwarders: s.Nodes, Jobs: l.Jobs(),
		Canary: func(n topology.NodeID) (failslow.Probe, bool) { return l.Canary(index[n]), true },
	}, func(e recorded.Event) error {
		events = append(events, e)
		return nil
	})
	for {
		second, ok := l.Next()
		if !ok {
			break
		}
		if len(second.Rows) > 0 {
			_ = r.Second(second) // emit does not fail
		}
	}
	_ = r.Finish()
	return events, l.labels()
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
