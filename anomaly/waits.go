package anomaly

import (
	"math"
	"slices"

	"fairway/collector"
)

// Waited is what requests of one class took: how many ended, and the seconds that they took together.
type Waited struct{ Ops, Took float64 }

// Add adds others, so many times.
func (w *Waited) Add(o Waited, times float64) { w.Ops, w.Took = w.Ops+times*o.Ops, w.Took+times*o.Took }

// mean is what one took, seconds; 0: fewer than least ended.
func (w *Waited) mean(least float64) float64 {
	if w.Ops < least || w.Ops == 0 {
		return 0
	}
	return w.Took / w.Ops
}

// Waits are what the clients of a forwarder waited for it in some seconds, by class.
type Waits struct {
	// All are all their requests, Beside those of jobs that have nodes at other forwarders, too, and Mates those of as
	// many nodes of these jobs there.
	All, Beside, Mates [collector.Classes]Waited
	// UnderWay is how many requests were under way in the newest second. Open are the seconds that requests waited
	// beyond those that ended ones took: of what has not ended.
	UnderWay, Open float64
}

func (w *Waits) add(o *Waits) {
	for c := range w.All {
		w.All[c].Add(o.All[c], 1)
		w.Beside[c].Add(o.Beside[c], 1)
		w.Mates[c].Add(o.Mates[c], 1)
	}
	w.UnderWay, w.Open = o.UnderWay, w.Open+o.Open
}

// longest is the class that was waited longest for.
func (w *Waits) longest() (longest int) {
	for c := range w.All {
		if w.All[c].Took > w.All[longest].Took {
			longest = c
		}
	}
	return longest
}

const (
	// fewRequests that ended make no ratio.
	fewRequests = 5
	// mostOpen is the part of what ended requests took that others may have waited beside them for the mean of those
	// to be the truth.
	mostOpen = 0.25
)

// measure is by how much requests take longer than usual since a finding began, as their clients see it: a ratio of
// sums. Seconds of a forwarder that answers late have few requests, and one second of it as it was may have as many as
// a minute: only seconds between such as are slow count.
type measure struct {
	since  Waits
	quick  Waits // of the newest seconds in which requests took no longer than usual
	before [collector.Classes]Waited
}

func (m *measure) take(w *Waits) {
	if w == nil {
		return
	}
	m.quick.add(w)
	if took, usual := m.mean(w, w.longest(), 1); usual == 0 || took >= AmongPeers*usual {
		m.since.add(&m.quick)
		m.quick = Waits{}
	}
}

// mean is what a request of a class took, and usually takes, seconds: beside other nodes of the same jobs in the same
// seconds, else beside the time before. Usual is 0 where that is not known, or fewer than least ended.
func (m *measure) mean(w *Waits, class int, least float64) (took, usual float64) {
	took, usual = w.Beside[class].mean(least), w.Mates[class].mean(least)
	if took == 0 || usual == 0 {
		took, usual = w.All[class].mean(least), m.before[class].mean(1)
	}
	if took == 0 {
		usual = 0
	}
	return took, usual
}

// ratio is by how much longer than usual, log, requests of a class take, of no class those that are waited longest for.
// Where much of what is asked has not ended, atLeast says that it is so much or more; known is false where too little
// has, or nothing is usual.
func (m *measure) ratio(class string) (log float64, atLeast, known bool) {
	w := &m.since
	c := slices.Index([]string{"read", "write", "meta"}, class)
	if c < 0 {
		c = w.longest()
	}
	open, ended := w.Open, 0.0
	for i := range w.All {
		ended += w.All[i].Took
	}
	took, usual := m.mean(w, c, fewRequests)
	if atLeast = open > mostOpen*ended && w.UnderWay > 0; atLeast {
		k := &w.All[c]
		took = (k.Took + open) / max(1, k.Ops+w.UnderWay) // as if all of it ended now
		if _, usual = m.mean(w, c, 1); usual == 0 {
			usual = m.before[c].mean(1)
		}
	}
	return math.Log(took / usual), atLeast, usual > 0 && took > AmongPeers*usual
}
