package window

import (
	"cmp"
	"maps"
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

// maxVias is of how many addresses of a client the forwarders are looked up: every reader of the routes pays for it.
const maxVias = 64

// holds takes the floating addresses that a forwarder's frame lists: it lists all that it has, or none
// where nobody looked.
func (t *tracker) holds(f *collector.Frame, at, now time.Time) {
	me := topology.ForwarderID(f.Node)
	listed := map[string]bool{}
	for _, r := range f.Routes {
		if r.Address == "" || r.Client != "" || r.Forwarder != me {
			continue
		}
		listed[r.Address] = true
		e := evidence{listed: t.holders[r.Address]}
		e.list(me, at, now)
		t.holders[r.Address] = e.listed
	}
	if len(listed) == 0 {
		return
	}
	for address := range t.held[me] {
		t.drop(address, func(c *claim) bool {
			return c.forwarder == me && (c.at.Before(at) || c.at.After(now))
		})
	}
	if t.held[me] == nil {
		t.held[me] = map[string]bool{}
	}
	maps.Copy(t.held[me], listed)
}

// drop forgets claims to an address.
func (t *tracker) drop(address string, old func(*claim) bool) {
	claims := slices.DeleteFunc(t.holders[address], func(c claim) bool {
		if !old(&c) {
			return false
		}
		if delete(t.held[c.forwarder], address); len(t.held[c.forwarder]) == 0 {
			delete(t.held, c.forwarder)
		}
		return true
	})
	if len(claims) == 0 {
		delete(t.holders, address)
		return
	}
	t.holders[address] = claims
}

// holder is which of the forwarders that report one address has it, and since when that is known no better: the one
// that began last, unless another one goes on reporting it. Then their network is split, or one of them lies: who had
// it first keeps it, and nothing is known since the last one began. Who has fallen silent meanwhile does not count.
func (t *tracker) holder(claims []claim) (by claim, at time.Time) {
	newest := slices.MaxFunc(claims, func(a, b claim) int { return a.at.Compare(b.at) }).at
	reports := func(c *claim) bool { return newest.Sub(c.at) <= t.staleAfter }
	var last claim
	for _, c := range claims {
		if reports(&c) && (last.at.IsZero() || c.first.After(last.first) ||
			c.first.Equal(last.first) && c.forwarder < last.forwarder) {
			last = c
		}
	}
	by, at = last, last.at
	for _, c := range claims {
		if c.forwarder == last.forwarder || !reports(&c) || c.at.Before(last.first) {
			continue
		}
		if at = last.first; c.first.Before(by.first) {
			by = c
		}
	}
	return by, at
}

// settle names the forwarders that have the addresses of a client's claim. The claim becomes as old as the oldest that
// it goes by. Addresses that no forwarder has ever had, such as that of another file server, are left out; ok is false
// where none is left.
func (t *tracker) settle(c *claim) (address string, ok bool) {
	parts, sum := map[topology.ForwarderID]float64{}, 0.0
	known := 0
	for _, v := range c.vias {
		claims := t.holders[v.address]
		if len(claims) == 0 {
			continue
		}
		best, at := t.holder(claims)
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
