package ingest

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"fairway/collector/topology"
	"fairway/collector/wire"
)

const (
	forgetSilent = time.Hour // a node not seen for so long gives its place to another
	sweepEvery   = time.Minute
	// namesAnode is how many different names a token may bring for each node that it may speak for at a time. The store
	// never forgets a name, so that one hour's new names after the other would fill its dictionary.
	namesAnode = 2
	// maxPause is how long a connection is left unread because its token brings too much; who would have
	// to wait longer is sent away.
	maxPause = 10 * time.Second
)

// sender is what one token brings over all of its connections and requests: its limits hold for them together.
type sender struct {
	name   string
	limits Limits
	room   chan struct{} // a place per request under way
	// entering is held while a message of the token enters the store.
	entering chan struct{}
	waiting  []*inFlight // not shown yet; the intake's mu guards it

	// large is a place for each large message that is read or taken.
	large chan struct{}
	held  *semaphore.Weighted // bytes, by messages on their way to the store

	mu    sync.Mutex // guards everything that follows
	nodes members
	// clients are those that its forwarders, which are listing, list and that are not configured.
	clients members
	listing map[topology.NodeID]struct{}
	lists   lists
	// named are the names that it ever brought: the store keeps a name for good.
	named  map[topology.NodeID]struct{}
	tokens float64 // frames that may still come; below 0 they are promised to who waits
	filled time.Time
}

// sender finds a token's state, which lives as long as the hub.
func (h *Hub) sender(by *Speaker) *sender {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.senders[by.Name]
	if p == nil {
		p = &sender{name: by.Name, limits: by.Limits, room: make(chan struct{}, maxPosts),
			entering: make(chan struct{}, 1), large: make(chan struct{}, maxLarge),
			held:  semaphore.NewWeighted(maxHeld),
			nodes: newMembers(by.Limits.Nodes), clients: newMembers(0), listing: map[topology.NodeID]struct{}{},
			named:  map[topology.NodeID]struct{}{},
			tokens: by.Limits.FramesPerSec * max(by.Limits.BurstSeconds, 1), filled: time.Now()}
		h.senders[by.Name] = p
	}
	return p
}

// reserve takes n frames out of a token bucket and says how long to wait for them. Where that is more
// than most nothing is taken; ok is false then.
func (p *sender) reserve(n int, now time.Time, most time.Duration) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &p.limits
	p.tokens = min(p.tokens+now.Sub(p.filled).Seconds()*l.FramesPerSec, l.FramesPerSec*max(l.BurstSeconds, 1))
	p.filled = now
	if lack := float64(n) - p.tokens; lack > 0 {
		wait = time.Duration(lack / l.FramesPerSec * float64(time.Second))
	}
	if wait > most {
		return wait, false
	}
	p.tokens -= float64(n)
	return wait, true
}

// busy is the refusal of a sender that would have to wait too long.
func (p *sender) busy(wait time.Duration) Busy {
	return Busy{wire.Reject{Code: wire.RejectBusy,
		Text: fmt.Sprintf(
			"token %q brings more than %g nodes x seconds a second for %gs, over all that use it; come back in %s",
			p.name, p.limits.FramesPerSec, p.limits.BurstSeconds, wait.Round(time.Second))}, max(wait, time.Second)}
}

// admits says why the token may not bring one more node; why is empty when it may. A node that it brings
// already is known.
func (p *sender) admits(n topology.NodeID, by *Speaker, now time.Time) (code wire.RejectCode, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.nodes.seen[n]; !known && !by.mayBe(n) {
		return wire.RejectForbidden, fmt.Sprintf("token %q may not speak for node %q", by.Name, n)
	}
	if _, known := p.named[n]; !known && len(p.named) >= namesAnode*p.limits.Nodes {
		return wire.RejectLimit,
			fmt.Sprintf("node %s: token %q has brought %d names since the daemon's start, and speaks "+
				"for at most %d nodes; raise its limits.nodes, or restart the daemon", n, by.Name, len(p.named),
				p.limits.Nodes)
	}
	if !p.nodes.take(n, now) {
		return wire.RejectLimit, fmt.Sprintf("node %s: token %q speaks for %d nodes already", n, by.Name,
			len(p.nodes.seen))
	}
	p.named[n] = struct{}{}
	return 0, ""
}

// members are names and when each was last seen, at most so many at a time.
type members struct {
	most  int
	seen  map[topology.NodeID]time.Time
	swept time.Time
}

func newMembers(most int) members { return members{most: most, seen: map[topology.NodeID]time.Time{}} }

// take notes a name; false where a new one has no room. Silent ones are forgotten for it, looked for once a
// minute: a flood of new names must not cost a search each.
func (m *members) take(n topology.NodeID, now time.Time) bool {
	if _, known := m.seen[n]; !known && len(m.seen) >= m.most {
		if now.Sub(m.swept) < sweepEvery {
			return false
		}
		m.swept = now
		maps.DeleteFunc(m.seen, func(_ topology.NodeID, seen time.Time) bool { return now.Sub(seen) > forgetSilent })
		if len(m.seen) >= m.most {
			return false
		}
	}
	m.seen[n] = now
	return true
}
