package window

import (
	"cmp"
	"slices"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// via is an address by which a client reaches its forwarder, and the part of its traffic that goes there.
type via struct {
	address string
	part    float64
}

// holds takes the floating addresses that a forwarder's frame lists: it lists all that it has, or none where nobody
// looked.
func (t *tracker) holds(f *collector.Frame, at, now time.Time) {
	me, listed := topology.ForwarderID(f.Node), false
	for _, r := range f.Routes {
		if r.Address == "" || r.Client != "" || r.Forwarder != me {
			continue
		}
		listed = true
		e := evidence{listed: t.holders[r.Address]}
		e.list(me, at, now)
		t.holders[r.Address] = e.listed
	}
	if !listed {
		return
	}
	for address, claims := range t.holders {
		t.holders[address] = slices.DeleteFunc(claims, func(c claim) bool {
			return c.forwarder == me && (c.at.Before(at) || c.at.After(now))
		})
	}
}

// settle names the forwarders that have the addresses of a client's claim: of each the one that reported it first of
// late. The claim becomes as old as the oldest that it goes by. Where two forwarders report one address, which they do
// when their network is split, nothing is known since the second one began. Addresses that no forwarder has ever had,
// such as that of another file server, are left out; ok is false where none is left.
func (t *tracker) settle(c *claim) (address string, ok bool) {
	parts, sum := map[topology.ForwarderID]float64{}, 0.0
	known := 0
	for _, v := range c.vias {
		claims := t.holders[v.address]
		if len(claims) == 0 {
			continue
		}
		best := slices.MaxFunc(claims, func(a, b claim) int {
			return cmp.Or(a.first.Compare(b.first), cmp.Compare(b.forwarder, a.forwarder))
		})
		at := best.at
		for _, other := range claims {
			if other.forwarder != best.forwarder && !other.at.Before(best.first) && best.first.Before(at) {
				at = best.first
			}
		}
		if at.Before(c.at) {
			c.at = at
		}
		if best.first.After(c.first) {
			c.first = best.first
		}
		parts[best.forwarder] += v.part
		sum += v.part
		known++
		address = v.address
	}
	if known == 0 || sum <= 0 {
		return "", false
	}
	for f, part := range parts {
		if part /= sum; part >= topology.OneFrom {
			c.forwarder, c.shares = f, nil
			break
		}
		c.shares = append(c.shares, topology.Share{Forwarder: f, Part: part})
	}
	if c.forwarder != "" {
		c.assumed = false
	}
	slices.SortFunc(c.shares, func(a, b topology.Share) int { return cmp.Compare(a.Forwarder, b.Forwarder) })
	if known > 1 {
		address = ""
	}
	return address, true
}
