package scenariotest

import (
	"slices"
	"testing"

	"fairway/anomaly/recorded"
)

// TestASlowStoragePoolAccusesNobody: layers in which a slow pool looked like a forwarder's fault: few forwarders of
// which most stream, so that one background alone shows what it adds, and forwarders whose jobs stream from that pool.
func TestASlowStoragePoolAccusesNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("hours of simulated forwarders")
	}
	for _, c := range []struct {
		seed   uint64
		nodes  int
		mix    Mix
		missed []string
	}{
		{2024, 8, Usual, nil},
		{2024, 8, Storms, nil},
		{2024, 8, Dear, nil},
		{2013, 8, Dear, nil},
		{5001, 240, Usual, []string{"link_cap"}},
	} {
		s := DrawSized(c.seed, c.nodes, c.mix)
		events, labels := Play(s, recorded.DefaultSettings())
		var total Score
		total.Add("", labels, events, s.Nodes, epoch, epoch+int64(s.Seconds))
		if len(total.FalseAlarms) > 0 {
			t.Errorf("%d forwarders, %s, seed %d: %v", c.nodes, c.mix, c.seed, total.FalseAlarms)
		}
		for kind, k := range total.PerKind {
			if k[1] < k[0] && !slices.Contains(c.missed, kind) {
				t.Errorf("%d forwarders, %s, seed %d: found %d of %d %s", c.nodes, c.mix, c.seed, k[1], k[0], kind)
			}
		}
	}
}

// TestSlowReadsAmongItsJobsForwarders: reads that a job streams without an end are slow through one of its forwarders;
// the others of the job show it, also while a storage pool is slow and where no idle forwarder has a canary to compare
// with.
func TestSlowReadsAmongItsJobsForwarders(t *testing.T) {
	if testing.Short() {
		t.Skip("hours of simulated forwarders")
	}
	for _, c := range []struct {
		seed  uint64
		nodes int
		node  string
	}{{2115, 8, "fwd005"}, {2103, 80, "fwd026"}} {
		s := DrawSized(c.seed, c.nodes, Usual)
		events, _ := Play(s, recorded.DefaultSettings())
		if !slices.ContainsFunc(events, func(e recorded.Event) bool {
			return e.Type == "fail_slow" &&
				string(e.Node) == c.node
		}) {
			t.Errorf("seed %d: %s was not found", c.seed, c.node)
		}
	}
}

// TestTenTimesAsSlowNeedsNobodyToCompareWith: jobs that wait for answers hide the background of a forwarder a tenth as
// fast as it was, requests always wait so that no canary is sent, and none of its jobs' forwarders does the same.
func TestTenTimesAsSlowNeedsNobodyToCompareWith(t *testing.T) {
	if testing.Short() {
		t.Skip("an hour of simulated forwarders")
	}
	s := DrawLoops(101, 80)
	events, labels := Play(s, recorded.DefaultSettings())
	var total Score
	total.Add("", labels, events, s.Nodes, epoch, epoch+int64(s.Seconds))
	if k := total.PerKind["hard"]; k[0] == 0 || k[1] < k[0] || total.False > 0 {
		t.Errorf("found %d of %d, not %v; accused %v", k[1], k[0], total.NotFound, total.FalseAlarms)
	}
}
