package watch

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/compare"
	"fairway/anomaly/layout"
	"fairway/collector"
	"fairway/collector/topology"
)

// routers are the forwarders that route messages and know no files: judged by the time that messages spend in them.
type routers struct {
	group *layout.Group
	rows  []layout.Router
	// nets are those that each router was seen to have neighbours on, and own whose network interface each is.
	nets  map[topology.NodeID][]string
	own   map[topology.TargetID]topology.NodeID
	seen  map[topology.NodeID]*sent // as their senders see them
	trips *compare.Judge            // by the round trips of their senders
}

// sent is a router as its senders see it: for how many seconds in a row most of them have called it down, and for how
// many something has been under way through it. Out is the condition that came of it, since when.
type sent struct {
	held        *held // of this second; nil: no sender lists it
	down, stuck int
	tripped     int64 // newest second with round trips through it
	reported    int64 // newest second of its own
	since       int64
	out         anomaly.Condition
}

// held is what senders have on their way through a router.
type held struct {
	messages float64
	senders  int
	up, down int // senders whose own table says so
}

const (
	// countedEvery is how often round trips are counted, s.
	countedEvery = 10
	// downSeconds in which most of its senders call a router down make it dead.
	downSeconds = 3
	// endedWithin seconds round trips are counted again through one that passes any on.
	endedWithin = 25
	// stuckSeconds in which a router reports nothing and what is under way through it does not end make it hung.
	stuckSeconds = 10
)

func newRouters(every time.Duration) routers {
	return routers{group: layout.NewGroup(every), nets: map[topology.NodeID][]string{},
		own: map[topology.TargetID]topology.NodeID{}, seen: map[topology.NodeID]*sent{},
		trips: compare.New(every, compare.Routers())}
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
func (r *routers) judge(now time.Time) []anomaly.Verdict {
	defer func() {
		for _, s := range r.seen {
			s.held = nil
		}
	}()
	if len(r.rows) == 0 {
		return nil
	}
	slices.SortFunc(r.rows, func(a, b layout.Router) int { return cmp.Compare(a.Node, b.Node) })
	for i := range r.rows {
		if h := anomaly.Entry(r.seen, r.rows[i].Node).held; h != nil {
			r.rows[i].Senders = h.senders
		}
	}
	// Where round trips are known, the time inside says less: on TCP it ends at the socket.
	out := slices.DeleteFunc(r.group.Second(now, r.rows), func(v anomaly.Verdict) bool {
		if v.Kind != anomaly.FailSlow || v.Condition != "" || !r.trips.Judges(now, v.Node) {
			return false
		}
		r.group.Forget(v.Node)
		return true
	})
	out = anomaly.Merge(out, r.trips.Second(now))
	out = anomaly.Merge(out, r.judgeLost(now.Unix()))
	r.rows = r.rows[:0]
	return out
}

// judgeLost accuses the routers that most of their senders call down, and those that are silent while what is under way
// through them does not end. Others must carry messages meanwhile.
func (r *routers) judgeLost(now int64) (out []anomaly.Verdict) {
	carrying := 0
	for i := range r.rows {
		anomaly.Entry(r.seen, r.rows[i].Node).reported = now
		if r.rows[i].Messages >= 1 {
			carrying++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.seen)) {
		l := r.seen[id]
		h := l.held
		if h == nil {
			continue
		}
		l.down, l.stuck = l.down+1, l.stuck+1
		if 2*h.down <= h.up+h.down {
			l.down = 0
		}
		if h.messages == 0 {
			l.stuck = 0
		}
		quiet := now - l.reported
		v := anomaly.Verdict{Node: id, Kind: anomaly.FailSlow, Level: anomaly.Alarm, Confidence: 0.95,
			Model: "senders-1"}
		switch {
		case carrying == 0:
			continue
		case l.down >= downSeconds:
			v.Condition = anomaly.Dead
			v.Evidence = map[string]float64{"senders_down": float64(h.down), "senders": float64(h.up + h.down)}
			v.Sentence = fmt.Sprintf("%s is down: %d of its %s say so, while %s carry their messages", id, h.down,
				anomaly.Counted(h.up+h.down, "sender"), anomaly.Counted(carrying, "other router"))
		case l.stuck >= stuckSeconds && quiet >= stuckSeconds && now-l.tripped >= endedWithin:
			v.Condition = anomaly.Hung
			v.Evidence = map[string]float64{"messages_waiting": h.messages, "silent_seconds": float64(quiet)}
			v.Sentence = fmt.Sprintf("%s takes messages and passes none on: %.0f have been under way through it for "+
				"%d s, and it reports nothing", id, h.messages, l.stuck)
		case l.out != "" && h.up > 0 && quiet <= 1: // it reports, and its senders use it again
			v.Condition, v.Level = l.out, anomaly.Clean
		default:
			continue
		}
		if v.Level == anomaly.Alarm {
			if l.out == "" {
				l.since = now - int64(max(l.down, l.stuck))
			}
			l.out, v.Since, v.Score = v.Condition, time.Unix(l.since, 0).UTC(), float64(now-l.since)
		}
		out = append(out, v)
	}
	return out
}

// addSender notes what a sender has on its way through each router.
func (r *routers) addSender(f *collector.Frame, isNew bool) {
	for _, t := range f.Targets {
		id, known := r.own[t.Target]
		if !known {
			continue
		}
		n, _ := collector.SampleOf(t.Samples, collector.InFlight)
		l := anomaly.Entry(r.seen, id)
		if l.held == nil {
			l.held = &held{}
		}
		h := l.held
		if n > 0 {
			h.messages, h.senders = h.messages+n, h.senders+1
		}
		if up, known := collector.SampleOf(t.Samples, collector.RouteUp); known && up > 0 {
			h.up++
		} else if known {
			h.down++
		}
		trips, _ := collector.SampleOf(t.Samples, collector.RoundTrips)
		if took, known := collector.SampleOf(t.Samples, collector.RoundTripTime); known && isNew {
			l.tripped = f.TimeMillis / 1000
			r.trips.Take(compare.Sighting{Observer: f.Node, Subject: id, Ops: trips * countedEvery, Took: took})
		}
	}
}
