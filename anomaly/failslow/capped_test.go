package failslow

import (
	"maps"
	"slices"
	"testing"

	"fairway/collector/topology"
)

// TestWhatALinkHoldsBack: the forwarders of a job, from 1 on, serve reads of 128 kB in bursts; those on which requests
// wait move less than the others. Whether that is their link or the job follows from how many wait, and by whether what
// they move then stays the same.
func TestWhatALinkHoldsBack(t *testing.T) {
	const from, every, lasts, size = 600, 100, 25, 128e3
	steady := func(int) float64 { return 0.12 }
	for _, c := range []struct {
		name    string
		of      int
		waiting []int
		moves   func(int) float64 // share of the peak, by burst
		accused int
	}{
		{"one, always as much", 8, []int{3}, steady, 1},
		{"two of eight", 8, []int{3, 5}, steady, 2},
		{"three of five: it is the job", 5, []int{2, 3, 5}, steady, 0},
		{"one, now more and now less: it is what the threads are held by", 8, []int{3},
			func(burst int) float64 { return []float64{0.1, 0.13, 0.17}[burst%3] }, 0},
	} {
		set := DefaultSettings()
		set.PeakBytesPerSec = 2.5e9
		l, d := newLayer(12), New(set)
		job := Job{ID: "1"}
		for n := 1; n <= c.of; n++ {
			job.Nodes = append(job.Nodes, l.rows[n].Node)
		}
		d.Jobs([]Job{job})
		got := l.alarms(d, 1600, func(s, n int, o *Observation) {
			if n < 1 || n > c.of || s%every >= lasts {
				return
			}
			moves, k := 0.3, &o.Class[Read]
			if k.Exec *= 3; s >= from && slices.Contains(c.waiting, n) {
				moves = c.moves(s / every)
				k.Exec, k.Wait, o.QueueLen = threads*size/(moves*set.PeakBytesPerSec), 50e-3, 60
			}
			k.Bytes = moves * set.PeakBytesPerSec
			k.Ops = k.Bytes / size
		})
		if len(got) != c.accused {
			t.Errorf("%s: accused %v, want %d of them", c.name, slices.Sorted(maps.Keys(got)), c.accused)
		}
	}
}

// TestPeersAreEachOnce: a forwarder that serves two of a node's jobs is one witness.
func TestPeersAreEachOnce(t *testing.T) {
	d := New(DefaultSettings())
	d.Jobs([]Job{{"1", []topology.NodeID{"a", "b", "c"}}, {"2", []topology.NodeID{"b", "a", "d"}},
		{"3", []topology.NodeID{"e"}}})
	for id, want := range map[topology.NodeID]int{"a": 3, "b": 3, "c": 2, "d": 2, "e": 0, "f": 0} {
		got := 0
		for range d.peers(d.node(id)) {
			got++
		}
		if got != want {
			t.Errorf("%s has %d peers, want %d", id, got, want)
		}
	}
}

// TestWhatAJobsLocksHoldBack: six forwarders write a job's file in pieces of 1 MB that hold their threads twice as long
// as those of other jobs; the one with most of the job's nodes is full at six tenths of the peak. Where the same pieces
// take no longer through the others it is the link.
func TestWhatAJobsLocksHoldBack(t *testing.T) {
	const from, every, lasts, size, full = 400, 60, 40, 1 << 20, 2
	set := DefaultSettings()
	set.PeakBytesPerSec = 2.5e9
	free := threads * size / set.PeakBytesPerSec / 3 // seconds that others need
	for _, c := range []struct {
		name    string
		took    float64 // through the job's others, seconds
		accused int
	}{{"locks", 6 * free, 0}, {"a link", free, 1}} {
		l, d := newLayer(12), New(set)
		job := Job{ID: "1"}
		for n := range 6 {
			job.Nodes = append(job.Nodes, l.rows[n].Node)
		}
		d.Jobs([]Job{job})
		got := l.alarms(d, 2000, func(s, n int, o *Observation) {
			k := &o.Class[Write]
			if s%every >= lasts || n < 6 && s < from {
				return
			}
			moves, took := 0.2, free
			if n < 6 {
				took = c.took
			}
			if n == full {
				took = 6 * free
				moves, k.Wait, o.QueueLen = threads*size/took/set.PeakBytesPerSec, 0.5, 600
			}
			k.Bytes, k.Exec = moves*set.PeakBytesPerSec, took*(0.95+0.1*l.random.Float64())
			k.Ops = k.Bytes / size
		})
		if _, found := got[l.rows[full].Node]; len(got) != c.accused || found != (c.accused == 1) {
			t.Errorf("%s: accused %v, want %d", c.name, got, c.accused)
		}
	}
}

// TestShortBurstsOfLocks: three forwarders write one file in bursts of six seconds, further apart than what nearby
// seconds show: that their requests wait at half of the peak is the file's locks, from the first second of a burst on.
// One of them alone is its link.
func TestShortBurstsOfLocks(t *testing.T) {
	const from, every, lasts, size = 300, 40, 6, 512e3
	set := DefaultSettings()
	set.PeakBytesPerSec = 2.5e9
	free := threads * size / set.PeakBytesPerSec / 3
	for _, c := range []struct{ waiting, accused int }{{3, 0}, {1, 1}} {
		l, d := newLayer(12), New(set)
		d.Jobs([]Job{{"1", []topology.NodeID{l.rows[0].Node, l.rows[1].Node, l.rows[2].Node}}})
		got := l.alarms(d, 1800, func(s, n int, o *Observation) {
			k := &o.Class[Write]
			if s%every >= lasts || n < 3 && s < from {
				return
			}
			moves, took := 0.2, free
			if n < c.waiting {
				moves, took = 0.5, 6*free
				k.Wait, o.QueueLen = 25e-3, 72
			}
			k.Bytes, k.Exec = moves*set.PeakBytesPerSec, took*(0.95+0.1*l.random.Float64())
			k.Ops = k.Bytes / size
		})
		if len(got) != c.accused {
			t.Errorf("%d wait: accused %v, want %d", c.waiting, got, c.accused)
		}
	}
}
