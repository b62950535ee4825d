package clientslow

import (
	"cmp"
	"math"
	"slices"

	"fairway/anomaly/compare"
	"fairway/collector/topology"
)

// view is one class of the whole layer in one second, gathered once for all nodes.
type view struct {
	lately  []seen    // nodes that were at work within peerAge, by size
	changes []float64 // by how much each is slower than it is used to, log, sorted
	// alike are the changes of the nodes behind each server, sorted.
	alike   map[topology.NodeID][]float64
	windows map[int]window // the nodes whose requests are about as large, by step of size
}

type seen struct{ size, log, took float64 }

// window are logs of what operations took nodes, sorted: in the newest second of each, and in its last busy ones.
type window struct{ newest, took []float64 }

const (
	// sizeStep is how finely sizes are distinguished to choose peers, log.
	sizeStep = 0.1
	// mostPeers are enough for a median.
	mostPeers = 256
)

func (v *view) gather(d *Detector, c int) {
	v.lately, v.changes = v.lately[:0], v.changes[:0]
	clear(v.windows)
	clear(v.alike)
	for _, n := range d.Nodes.All() {
		s := &n.Class[c]
		if s.At == d.Now {
			s.Shows.Ended += s.Ops - s.Shows.Ended/busySeconds
			s.Shows.Waited += s.Ops*math.Exp(s.Log) - s.Shows.Waited/busySeconds
		}
		if s.At == 0 || float64(d.Now-s.At) > peerAge {
			continue
		}
		v.lately = append(v.lately, seen{s.Size, s.Log, s.took()})
		if usual, _, ok := s.usual(); ok {
			v.changes = append(v.changes, s.Log-usual)
			if behind := n.behind; behind != "" && float64(d.Now-s.At) <= alikeAge {
				v.alike[behind] = append(v.alike[behind], s.Log-usual)
			}
		}
	}
	slices.SortFunc(v.lately, func(a, b seen) int { return cmp.Compare(a.size, b.size) })
	slices.Sort(v.changes)
	for _, all := range v.alike {
		slices.Sort(all)
	}
}

// behind is by how much the other nodes behind the same server are slower than they are used to, log, of two the less
// slow: what slows all of them is the server's, or the way's to it.
func (v *view) behind(server topology.NodeID, own float64) (more float64, ok bool) {
	more, _, n := compare.Others(v.alike[server], own)
	return more, n > 0
}

// common is by how much the others are slower than they are used to, log: what slows everybody is
// nobody's own.
func (v *view) common(own float64) float64 {
	_, more, n := compare.Others(v.changes, own)
	if float64(n) < fewPeers {
		return 0
	}
	return more
}

// took is the log of what operations took in the last busy seconds.
func (s *class) took() float64 {
	return math.Log(s.Shows.Waited / s.Shows.Ended)
}

// peers are medians of what the clients of other forwarders saw of a class lately, at requests of about the same size:
// in the newest second of each, which speaks for or against a node, and over its last busy ones, which is shown.
func (v *view) peers(me *class) (newest, took float64, ok bool) {
	step := int(math.Round(me.Size / sizeStep))
	w, known := v.windows[step]
	if !known {
		w = v.window(float64(step) * sizeStep)
		v.windows[step] = w
	}
	low, high, n := compare.Others(w.newest, me.Log)
	return (low + high) / 2, compare.MedianOfOthers(w.took, me.took()), n >= fewPeers
}

func (v *view) window(size float64) (w window) {
	by := func(s seen, x float64) int { return cmp.Compare(s.size, x) }
	from, _ := slices.BinarySearchFunc(v.lately, size-sizeRange, by)
	to, _ := slices.BinarySearchFunc(v.lately, size+sizeRange, by)
	every := max(1, (to-from)/mostPeers)
	for i := from; i < to; i += every {
		w.newest, w.took = append(w.newest, v.lately[i].log), append(w.took, v.lately[i].took)
	}
	slices.Sort(w.newest)
	slices.Sort(w.took)
	return w
}
