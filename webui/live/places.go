package live

import (
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// places say where the board's nodes are in one layer of the machine, so that a reader of a whole layer looks
// up no names.
type places struct {
	nodes   []topology.Node // the layer, in the machine's order
	members int             // of the board when at was made
	at      []int32         // by a node's number on the board; -1 for one of another layer
}

func newPlaces(m *topology.Machine, r topology.Role) *places {
	return &places{nodes: m.ByRole(r), members: -1}
}

// follow finds the nodes that joined the board since the last call.
func (p *places) follow(b *window.Board) {
	members := b.Members()
	if members == p.members {
		return
	}
	byName := make(map[topology.NodeID]int32, len(p.nodes))
	for i, n := range p.nodes {
		byName[n.ID] = int32(i)
	}
	p.members, p.at = members, p.at[:0]
	b.All(func(n *window.Node) {
		i, ok := byName[n.Node]
		if !ok {
			i = -1
		}
		p.at = append(p.at, i)
	})
}

// of returns the place of a node, -1 for one of another layer and for one that joined just now.
func (p *places) of(n *window.Node) int {
	if int(n.Number) >= len(p.at) {
		return -1
	}
	return int(p.at[n.Number])
}
