package clientslow

import (
	"cmp"
	"math"
	"slices"

	"fairway/collector/topology"
)

// view is one class of the whole layer in one second, gathered once for all nodes.
type view struct {
	lately  []seen    // nodes that were at work within peerAge, by size
	changes []float64 // by how much each is slower than it is used to, log, sorted
	// alike are the changes of the nodes behind each server, sorted.
	alike   map[topology.NodeID][]float64
	windows map[int][]float64 // sorted logs of the nodes whose requests are about as large, by step of size
}

type seen struct{ size, log float64 }

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
	if v.windows == nil {
		v.windows = map[int][]float64{}
	}
	for _, id := range d.order {
		s := &d.nodes[id].Class[c]
		if s.At == 0 || float64(d.now-s.At) > peerAge {
			continue
		}
		v.lately = append(v.lately, seen{s.Size, s.Log})
		if usual, _, ok := s.usual(); ok {
			v.changes = append(v.changes, s.Log-usual)
			if behind := d.nodes[id].behind; behind != "" && float64(d.now-s.At) <= alikeAge {
				if v.alike == nil {
					v.alike = map[topology.NodeID][]float64{}
				}
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

// behind is by how much the other nodes behind the same server are slower than they are used to, log: what slows all of
// them is the server's, or the way's to it.
func (v *view) behind(server topology.NodeID, own float64) (more float64, ok bool) {
	all := v.alike[server]
	at, found := slices.BinarySearch(all, own)
	if !found || len(all) <= 1 {
		return 0, false
	}
	m := (len(all) - 2) / 2 // of the others the median, or the smaller of two
	if m >= at {
		m++
	}
	return all[m], true
}

// common is by how much the others are slower than they are used to, log: what slows everybody is
// nobody's own.
func (v *view) common(own float64) float64 {
	all := v.changes
	at, _ := slices.BinarySearch(all, own)
	if float64(len(all)-1) < fewPeers {
		return 0
	}
	m := (len(all) - 1) / 2
	if m >= at {
		m++ // without itself
	}
	return all[m]
}

// peers is the median of what the clients of other forwarders saw of a class lately, at requests of
// about the same size.
func (v *view) peers(me *class) (float64, bool) {
	step := int(math.Round(me.Size / sizeStep))
	logs, ok := v.windows[step]
	if !ok {
		logs = v.window(float64(step) * sizeStep)
		v.windows[step] = logs
	}
	at, found := slices.BinarySearch(logs, me.Log)
	n := len(logs)
	if found {
		n--
	}
	if float64(n) < fewPeers {
		return 0, false
	}
	get := func(i int) float64 {
		if found && i >= at {
			i++
		}
		return logs[i]
	}
	return (get((n-1)/2) + get(n/2)) / 2, true
}

func (v *view) window(size float64) (logs []float64) {
	by := func(s seen, x float64) int { return cmp.Compare(s.size, x) }
	from, _ := slices.BinarySearchFunc(v.lately, size-sizeRange, by)
	to, _ := slices.BinarySearchFunc(v.lately, size+sizeRange, by)
	every := max(1, (to-from)/mostPeers)
	for i := from; i < to; i += every {
		logs = append(logs, v.lately[i].log)
	}
	slices.Sort(logs)
	return logs
}
