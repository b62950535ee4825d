package watch

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// TestSilentForwarder: a forwarder whose agent lives on but reports nothing of it is named within
// seconds, also over a restart, and cleared when it is back; a collector without any reports accuses none of them.
func TestSilentForwarder(t *testing.T) {
	board, now := window.NewBoard(0), time.Unix(1_800_000_000, 0)
	s := &Machine{}
	s.Mapping = topology.Mapping{"cn1": "f1", "cn2": "f1"}
	watch := func() *Detectors {
		return NewDetectors(board, failslow.DefaultSettings())
	}
	w := watch()
	live := func(seconds int, dead ...int) (verdicts []string) {
		for range seconds {
			now = now.Add(time.Second)
			for n := range 4 {
				f := collector.Frame{Node: topology.NodeID(fmt.Sprint("f", n)), Role: topology.Forwarder,
					TimeMillis: now.Add(-time.Second).UnixMilli(), Samples: samples(collector.LinkRxBytes, 1.0)}
				if !slices.Contains(dead, n) {
					f.Samples = append(f.Samples, samples(collector.WriteOps, 0.0)...)
				}
				board.Take([]collector.Frame{f}, now)
			}
			verdicts = verdicts[:0]
			for _, v := range w.Verdicts(now, s) {
				if v.Condition == anomaly.Silent || v.Condition == anomaly.Unreadable {
					verdicts = append(verdicts, fmt.Sprint(v.Node, v.Level, v.Sentence))
				}
			}
		}
		return verdicts
	}
	live(60)
	if verdicts := live(silentAfter, 1); len(verdicts) != 0 {
		t.Errorf("after %d s: %q", silentAfter, verdicts)
	}
	if verdicts := live(1, 1); len(verdicts) != 1 || !strings.Contains(verdicts[0], "f1: its counters cannot be") ||
		!strings.Contains(verdicts[0], "2 compute nodes are mapped to it") {
		t.Errorf("it is silent: %q", verdicts)
	}
	delete(s.Mapping, "cn2")
	if verdicts := live(1, 1, 2, 3); len(verdicts) != 1 ||
		!strings.HasSuffix(verdicts[0], "; 1 compute node is mapped to it") {
		t.Errorf("one compute node is left: %q", verdicts)
	}
	saved, err := w.State(now)
	if err != nil {
		t.Fatal(err)
	}
	w = watch()
	if _, err := w.LoadState(bytes.NewReader(saved), now, time.Hour); err != nil {
		t.Fatal(err)
	}
	if verdicts := live(5, 1); len(verdicts) != 1 || !strings.Contains(verdicts[0], "f1: its counters cannot be read") {
		t.Errorf("after a restart of the daemon: %q", verdicts)
	}
	if verdicts := live(5); len(verdicts) != 1 || verdicts[0] != fmt.Sprint("f1", anomaly.Clean) {
		t.Errorf("it is back: %q", verdicts)
	}
	if saved, err = w.State(now); err != nil {
		t.Fatal(err)
	}
	now = now.Add(10 * time.Minute)
	w = watch()
	if _, err := w.LoadState(bytes.NewReader(saved), now, time.Hour); err != nil {
		t.Fatal(err)
	}
	if verdicts := live(8, 2); len(verdicts) != 1 || verdicts[0] != fmt.Sprint("f1", anomaly.Clean) {
		t.Errorf("the daemon was away for ten minutes, and the agent of f2 comes back last: %q", verdicts)
	}
	live(1)
	if verdicts := live(2*silentAfter, 0, 1, 2); len(verdicts) != 0 {
		t.Errorf("three of four silent at once: %q", verdicts)
	}
}

// TestWhatAnAgentSaysOfItsService: a service that refuses, or whose process is gone, is dead; that its counters cannot
// be read says nothing of whether it serves.
func TestWhatAnAgentSaysOfItsService(t *testing.T) {
	for why, want := range map[string]anomaly.Condition{"": anomaly.Unreadable,
		"ganesha: nfs-ganesha is not on the bus": anomaly.Unreadable, "diod: dial: connection refused": anomaly.Dead,
		"ganesha: " + collector.ServiceEnded + " (1): not on the bus": anomaly.Dead} {
		s := silence{agents: map[topology.NodeID]agentSays{"f1": {at: 100, role: topology.Forwarder, why: why}}}
		if got, _ := s.condition("f1", 100, topology.Forwarder, 3); got != want {
			t.Errorf("%q: %s, want %s", why, got, want)
		}
	}
}
