package watch

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/layout"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// routers are the forwarders that route messages and know no files: judged by the time that messages spend in them.
type routers struct {
	group *layout.Group
	rows  []layout.Router
	// nets are those that each router was seen to have neighbours on, and own whose network interface each is.
	nets  map[topology.NodeID][]string
	own   map[topology.TargetID]topology.NodeID
	held  map[topology.NodeID]*held
	taken map[topology.NodeID]int64 // the newest second of each client that was taken
	back  backHalf                  // of the forwarders that do know files
	front backHalf                  // of the clients
}

// held is what senders have on their way through a router.
type held struct {
	messages float64
	senders  int
}

func newRouters(every time.Duration) routers {
	return routers{group: layout.NewGroup(every), nets: map[topology.NodeID][]string{},
		own: map[topology.TargetID]topology.NodeID{}, back: newBackHalf(every), front: newFrontHalf(every),
		held: map[topology.NodeID]*held{}, taken: map[topology.NodeID]int64{}}
}

// is says whether a forwarder's second is a router's.
func (r *routers) is(f *collector.Frame) bool {
	_, routes := f.Value(collector.RoutedOps)
	return routes || len(r.nets[f.Node]) > 0
}

// take notes a router's second.
func (r *routers) take(f *collector.Frame) {
	row := layout.Router{Node: f.Node, Inside: valueOr(f, collector.InFlight, math.NaN()),
		Messages: valueOr(f, collector.RoutedOps, math.NaN()), Bytes: valueOr(f, collector.RoutedBytes, math.NaN()),
		Starved:     valueOr(f, collector.CPUWait, 0),
		BuffersFree: valueOr(f, collector.BuffersFreeRatio, math.NaN()), Waiting: map[topology.TargetID]float64{},
		Sending: map[topology.TargetID]float64{}}
	nets := r.nets[f.Node]
	waits := valueOr(f, collector.QueueLen, 0) - valueOr(f, collector.TxWaiting, 0)
	for _, t := range f.Targets {
		_, net, nid := strings.Cut(string(t.Target), "@")
		if !nid {
			continue
		}
		if _, own := collector.SampleOf(t.Samples, collector.RoutedOps); own {
			r.own[t.Target] = f.Node
			n, _ := collector.SampleOf(t.Samples, collector.TxWaiting)
			waits -= n
			if !slices.Contains(nets, net) && net != "lo" {
				nets = append(nets, net)
			}
			continue
		}
		row.Sending[t.Target], _ = collector.SampleOf(t.Samples, collector.InFlight)
		if n, _ := collector.SampleOf(t.Samples, collector.TxWaiting); n > 0 {
			row.Waiting[t.Target] = n
		}
	}
	row.NoBuffer = max(0, waits)
	slices.Sort(nets)
	r.nets[f.Node] = nets
	row.Group = strings.Join(nets, " ")
	r.rows = append(r.rows, row)
}

// judge compares the routers of a second, with what the senders have on their way through each.
func (r *routers) judge(now time.Time, board *window.Board) []anomaly.Verdict {
	if len(r.rows) == 0 {
		return nil
	}
	clear(r.held)
	oldest := now.Add(-fresh).UnixMilli()
	for _, layer := range []topology.Role{topology.Compute, topology.Storage, topology.Metadata} {
		board.Layer(layer, func(n *window.Node) {
			if n.TimeMillis >= oldest {
				r.addSender(&n.Frame)
			}
			if layer == topology.Compute && n.TimeMillis >= oldest && n.TimeMillis != r.taken[n.Node] {
				r.taken[n.Node] = n.TimeMillis
				r.front.take(&n.Frame)
			}
		})
	}
	slices.SortFunc(r.rows, func(a, b layout.Router) int { return cmp.Compare(a.Node, b.Node) })
	for i := range r.rows {
		if h := r.held[r.rows[i].Node]; h != nil {
			r.rows[i].Held, r.rows[i].Senders = h.messages, h.senders
		}
	}
	out := append(r.group.Second(now, r.rows), r.front.judge(now)...)
	r.rows = r.rows[:0]
	return out
}

func (r *routers) addSender(f *collector.Frame) {
	for _, t := range f.Targets {
		id, known := r.own[t.Target]
		if !known {
			continue
		}
		n, _ := collector.SampleOf(t.Samples, collector.InFlight)
		h := r.held[id]
		if h == nil {
			h = &held{}
			r.held[id] = h
		}
		if n > 0 {
			h.messages, h.senders = h.messages+n, h.senders+1
		}
	}
}
