package ingest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gorilla/websocket"

	"fairway/collector/topology"
	"fairway/collector/wire"
)

// A node has one agent. While that is connected nobody else speaks for the node: neither a second connection that says
// it is the node, nor one that brings frames of it among others'.

const (
	// aliveWithin is how long an agent that is connected has to answer when another one says it is the same node.
	aliveWithin = 5 * time.Second
	aliveLook   = 20 * time.Millisecond
	// maxIntruders bounds the nodes for which it is kept who else spoke for them.
	maxIntruders = 1024
)

// Intruder is who spoke for a node whose own agent is connected, and was refused.
type Intruder struct {
	Node          topology.NodeID
	Token, Remote string // whose, and from where, the newest time
	Owner         string // from where the node's own agent is connected
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
		h.intruded(c, old, node)
		return wire.Reject{Code: wire.RejectBusy, Text: fmt.Sprintf(
			"node %s: its agent is connected already, from %s; stop one of the two", node, old.remote)}
	}
	old.ws.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.routes[node] = c
	return nil
}

// ownerBeside makes c the way to a node unless the node's own agent has another connection, which it returns.
func (h *Hub) ownerBeside(c *connection, n topology.NodeID) *connection {
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
	before := c.lives.Load()
	if c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeWithin)) != nil {
		return false
	}
	for end := time.Now().Add(aliveWithin); time.Now().Before(end); time.Sleep(aliveLook) {
		if c.lives.Load() != before || c.busy.Load() {
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

// intruded notes who spoke for another's node. Where all places are taken the one whose last time is longest ago goes.
func (h *Hub) intruded(c, owner *connection, n topology.NodeID) {
	h.stats.secondSpeakers.Add(1)
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
	i.Token, i.Remote, i.Owner, i.Last = c.by.Name, c.remote, owner.remote, now
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
