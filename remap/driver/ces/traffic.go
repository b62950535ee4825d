package ces

import (
	"context"
	"fmt"
	"slices"
	"time"

	"fairway/collector"
	"fairway/collector/pace"
	"fairway/collector/topology"
	"fairway/remap"
)

// The rules of verification by traffic.
const (
	// watchFor is longer than the 90 s in which clients of NFSv4 may have to wait.
	watchFor = 2 * time.Minute
	// arrivesIn is when its new node's kernel has an address: CES puts it there within seconds.
	arrivesIn = 20 * time.Second
	lookEvery = 300 * time.Millisecond
	// fewestOps reads and writes, or fewestBytes, of a node are needed before they show anything. Metadata shows
	// nothing: no bytes of it could be seen at the new node.
	fewestOps, fewestBytes = 200, 64 << 20
	crossed                = 0.95
)

// flow is what a node has moved since its address did, by its whole seconds since.
type flow struct {
	newest     int64 // ms
	ops, bytes float64
}

func (f *flow) add(frame *collector.Frame, since time.Time) {
	if frame.TimeMillis < since.UnixMilli() || frame.TimeMillis <= f.newest {
		return
	}
	f.newest = frame.TimeMillis
	for _, s := range frame.Samples {
		switch s.Metric {
		case collector.ReadOps, collector.WriteOps:
			f.ops += s.Value
		case collector.ReadBytes, collector.WriteBytes:
			f.bytes += s.Value
		}
	}
}

// verify watches the moved nodes and the protocol nodes that they were moved to, and reports each node: as moved when
// its new node's kernel has its address, a client of that address has done enough since, and the new node has moved as
// much as its new clients have. One client shows where the address leads for all of them.
func (d *Driver) verify(ctx context.Context, moved []*unit, report func(remap.Result)) {
	flows := map[topology.NodeID]*flow{}
	look := func(n topology.NodeID, since time.Time) *flow {
		if flows[n] == nil {
			flows[n] = &flow{}
		}
		if f, ok := d.cfg.Frame(n); ok {
			flows[n].add(&f, since)
		}
		return flows[n]
	}
	begun := time.Now()
	for len(moved) > 0 {
		last := time.Since(begun) > watchFor || ctx.Err() != nil
		want := map[topology.ForwarderID]float64{} // bytes of the nodes that were moved to each
		for _, u := range moved {
			look(u.to.Node(), begun)
			for _, m := range u.moves {
				want[u.to] += look(m.Node, begun).bytes
			}
		}
		routes := d.cfg.Routes()
		moved = slices.DeleteFunc(moved, func(u *unit) bool {
			at, got := routes[u.moves[0].Node], flows[u.to.Node()].bytes
			why, last := "", last
			switch {
			case at.Forwarder != u.to || at.Stale:
				last = last || time.Since(begun) > arrivesIn
				why = fmt.Sprintf("mmces reports that %s is at %s, whose kernel does not have it; %s has it", u.address,
					u.to, orNobody(at.Forwarder, at.Stale))
			case got < crossed*want[u.to]:
				why = fmt.Sprintf("%s has %s, and has moved %.0f of the %.0f MB of its new clients since", u.to,
					u.address, got/1e6, want[u.to]/1e6)
			}
			ops, enough := 0.0, false
			for _, m := range u.moves {
				f := flows[m.Node]
				ops, enough = ops+f.ops, enough || f.bytes > 0 && f.ops >= fewestOps || f.bytes >= fewestBytes
			}
			if why == "" && !enough {
				why = fmt.Sprintf("quiet: its address has moved, but its clients have only done %.0f reads and "+
					"writes since; complete the plan when they do I/O", ops)
			}
			if why != "" && !last {
				return false
			}
			u.report(report, why)
			return true
		})
		if len(moved) == 0 {
			return
		}
		pace.Wait(ctx, lookEvery)
	}
}

func orNobody(f topology.ForwarderID, stale bool) string {
	if f == "" || stale {
		return "nobody is known that"
	}
	return string(f)
}
