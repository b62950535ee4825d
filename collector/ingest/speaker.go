package ingest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"fairway/collector/topology"
	"fairway/collector/wire"
)

// A node has one agent. While that is connected nobody else speaks for the node: neither a second connection that says
// it is the node, nor one that brings frames of it among others', nor lines of other collectors. Where lines alone
// come, they come by one token.

const (
	// aliveWithin is how long an agent that is connected has to answer when another one says it is the same node.
	aliveWithin = 5 * time.Second
	aliveLook   = 20 * time.Millisecond
	// writerQuiet is how long a token that brought lines of a node keeps other tokens from doing so.
	writerQuiet = time.Minute
	// maxIntruders bounds the nodes for which it is kept who else spoke for them.
	maxIntruders = 1024
)

// Intruder is who spoke for a node that has another speaker, and was refused; without an owner, the agent of a
// forwarder that listed more clients than there can be, which were left out.
type Intruder struct {
	Node          topology.NodeID
	Token, Remote string // whose, and from where, the newest time
	Owner         string // from where the node's speaker comes
	First, Last   time.Time
	Times         uint64
}

// claim makes c the way to the node that it says it is; else it says why not. A second connection of the same agent,
// whose first one is not known to be lost yet, takes its place.
func (h *Hub) claim(c *connection) error {
	node := c.hello.Node
	old := h.ownerBeside(c, node)
	if old == nil {
		return nil
	}
	same := old.by.Name == c.by.Name && old.hello.Instance != "" && old.hello.Instance == c.hello.Instance
	if !same && old.alive() {
		h.intruded(&c.by, c.remote, old.remote, node)
		return wire.Reject{Code: wire.RejectBusy, Text: fmt.Sprintf(
			"node %s: its agent is connected already, from %s; stop one of the two", node, old.remote)}
	}
	old.link.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.routes[node] = c
	return nil
}

// ownerBeside makes c the way to a node unless the node's own agent has another connection, which it returns.
func (h *Hub) ownerBeside(c *connection, n topology.NodeID) *connection {
	h.mu.RLock() // the rule: each frame asks, and nearly none changes anything
	known := h.routes[n] == c
	h.mu.RUnlock()
	if known {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.routes[n]
	if old != nil && old != c && old.hello.Node == n {
		return old
	}
	h.routes[n] = c
	return nil
}

// alive reports whether the agent at the other end answers, or is being listened to.
func (c *connection) alive() bool {
	before := c.link.Lives()
	if !c.link.Alive() {
		return false
	}
	for end := time.Now().Add(aliveWithin); time.Now().Before(end); time.Sleep(aliveLook) {
		if c.link.Lives() != before || c.busy.Load() {
			return true
		}
		select {
		case <-c.ended:
			return false
		default:
		}
	}
	return false
}

// writes says why a token may not bring lines of a node; empty when it may. A node with an agent has no other speaker,
// and one token alone brings the lines of a node, until it has been silent for a while.
func (h *Hub) writes(by *Speaker, remote string, n topology.NodeID, now time.Time) (why string) {
	h.mu.Lock()
	agent, writer := h.routes[n], h.writers[n]
	var owner string
	switch {
	case agent != nil && agent.hello.Node == n:
		owner, why = agent.remote, fmt.Sprintf("node %s: its own agent is connected, from %s", n, agent.remote)
	case agent != nil && agent.by.Name != by.Name:
		owner, why = agent.remote, fmt.Sprintf("node %s: an agent with another token brings it, from %s", n,
			agent.remote)
	case writer.token != "" && writer.token != by.Name && now.Sub(writer.last) < writerQuiet:
		owner, why = writer.remote, fmt.Sprintf("node %s: another token brought its lines %s ago, from %s", n,
			now.Sub(writer.last).Round(time.Second), writer.remote)
	default:
		h.writers[n] = lineWriter{by.Name, remote, now}
	}
	h.mu.Unlock()
	if why != "" {
		h.intruded(by, remote, owner, n)
	}
	return why
}

// lineWriter is who brought a node's newest lines.
type lineWriter struct {
	token, remote string
	last          time.Time
}

// intruded notes who spoke for another's node. Where all places are taken the one whose last time is longest ago goes.
func (h *Hub) intruded(by *Speaker, remote, owner string, n topology.NodeID) {
	if owner != "" {
		h.stats.secondSpeakers.Add(1)
	}
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	i := h.intruders[n]
	if i == nil {
		if len(h.intruders) >= maxIntruders {
			oldest := n
			for name, other := range h.intruders {
				if oldest == n || other.Last.Before(h.intruders[oldest].Last) {
					oldest = name
				}
			}
			delete(h.intruders, oldest)
		}
		i = &Intruder{Node: n, First: now}
		h.intruders[n] = i
	}
	i.Token, i.Remote, i.Owner, i.Last = by.Name, remote, owner, now
	i.Times++
}

// Intruders lists who spoke for others' nodes since then, by node.
func (h *Hub) Intruders(since time.Time) (out []Intruder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n, i := range h.intruders {
		switch {
		case !i.Last.Before(since):
			out = append(out, *i)
		case time.Since(i.Last) > forgetSilent:
			delete(h.intruders, n)
		}
	}
	slices.SortFunc(out, func(a, b Intruder) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

// Late returns how long after its end a node's newest second came; false when its own agent is not connected.
func (h *Hub) Late(n topology.NodeID) (late time.Duration, ok bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	c := h.routes[n]
	if c == nil || c.hello.Node != n {
		return 0, false
	}
	return time.Duration(c.late.Load()) * time.Millisecond, true
}
