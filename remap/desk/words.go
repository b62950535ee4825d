package desk

import (
	"fmt"
	"strings"

	"fairway/collector/topology"
	"fairway/remap"
)

// moveLines groups moves of the same way, in the order of their first node.
func moveLines(moves []remap.Move) []string {
	type way struct {
		from string
		to   topology.ForwarderID
	}
	var order []way
	lines := []string{}
	nodes := map[way][]topology.NodeID{}
	for _, m := range moves {
		if m.Limit > 0 {
			lines = append(lines, fmt.Sprintf("%s  %.2g %% at most while others ask for some", m.Node, 100*m.Limit))
			continue
		}
		w := way{fromText(m), m.To}
		if nodes[w] == nil {
			order = append(order, w)
		}
		nodes[w] = append(nodes[w], m.Node)
	}
	for _, w := range order {
		verb := fmt.Sprintf("  %s -> %s", w.from, w.to)
		if w.from == string(w.to) {
			verb = fmt.Sprintf("  stay on %s", w.to)
		}
		lines = append(lines, foldNodes(nodes[w])+verb)
	}
	return lines
}

// foldNodes names nodes in few letters, so that a narrow terminal shows the way behind them: as ranges, or the first
// ones where ranges are as long as all names.
func foldNodes(nodes []topology.NodeID) string {
	const most = 40 // letters
	if len(nodes) == 1 {
		return string(nodes[0])
	}
	if text := fmt.Sprintf("%s (%d)", topology.FoldHostList(nodes), len(nodes)); len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s %s and %d more", nodes[0], nodes[1], len(nodes)-2)
}

// shorten lists up to eight names.
func shorten(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], " "), len(names)-most)
}

// fromText says where a node comes from: one forwarder, or all that it spreads its traffic over.
func fromText(m remap.Move) string {
	if m.Spread != "" {
		return strings.ReplaceAll(m.Spread, ",", " + ")
	}
	return orUnknown(m.From)
}

func orUnknown(f topology.ForwarderID) string {
	if f == "" {
		return "(not known)"
	}
	return string(f)
}

// diff says in words how a preview differs from an older one.
func diff(v, old *remap.Preview) string {
	var out []string
	for i, m := range v.Plan.Moves {
		if i < len(old.Plan.Moves) && old.Plan.Moves[i] != m {
			out = append(out, fmt.Sprintf("%s was on %s and is on %s", m.Node, fromText(old.Plan.Moves[i]),
				fromText(m)))
		}
		if len(out) == 5 {
			out = append(out, "and more")
			break
		}
	}
	return strings.Join(out, "; ")
}
