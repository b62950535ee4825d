package format

import (
	"fmt"
	"strings"

	"fairway/cmd/fairway-demo/sitefiles/model"
)

// LNetStats is LNet's stats.
func LNetStats(c model.Counters) string {
	return fmt.Sprintf("%d %d %d %d %d %d %d %d %d %d %d\n", c.Alloc, c.AllocMax, c.Errors, c.Sent, c.Received,
		c.Routed, c.Dropped, c.SentBytes, c.ReceivedBytes, c.RoutedBytes, c.DroppedBytes)
}

// Routes is the table of routes.
func Routes(routing bool, rows []*model.Route) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Routing %s\n", map[bool]string{true: "enabled", false: "disabled"}[routing])
	fmt.Fprintf(&b, "%-8s %4s %8s %7s %s\n", "net", "hops", "priority", "state", "router")
	for _, r := range rows {
		fmt.Fprintf(&b, "%-8s %4d %8d %7s %s\n", r.Net, r.Hops, r.Priority, upDown(!r.Down), r.Gateway)
	}
	return b.String()
}

func upDown(up bool) string {
	if up {
		return "up"
	}
	return "down"
}

// Routers is the table of routers that a node knows; it has fewer columns from 2.13 on.
func (r Release) Routers(rows []*model.Route) string {
	var b strings.Builder
	seen := map[string]bool{}
	if r <= 12 {
		fmt.Fprintf(&b, "%-4s %7s %9s %6s %12s %9s %8s %7s %s\n", "ref", "rtr_ref", "alive_cnt", "state",
			"last_ping", "ping_sent", "deadline", "down_ni", "router")
	} else {
		fmt.Fprintf(&b, "%-4s %7s %5s %s\n", "ref", "rtr_ref", "alive", "router")
	}
	for _, row := range rows {
		if seen[row.Gateway] {
			continue
		}
		seen[row.Gateway] = true
		if r <= 12 {
			fmt.Fprintf(&b, "%-4d %7d %9d %6s %12d %9d %8s %7d %s\n", 4, 1, 1, upDown(!row.Down), 21, 0, "NA", 0,
				row.Gateway)
		} else {
			fmt.Fprintf(&b, "%-4d %7d %5s %s\n", 4, 1, upDown(!row.Down), row.Gateway)
		}
	}
	return b.String()
}

// Peers is the table of neighbours with their credits. The column of the last sign of life is not filled in.
func Peers(peers []*model.Peer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-24s %4s %5s %5s %5s %5s %5s %5s %5s %s\n", "nid", "refs", "state", "last", "max", "rtr", "min",
		"tx", "min", "queue")
	for _, p := range peers {
		fmt.Fprintf(&b, "%-24s %4d %5s %5d %5d %5d %5d %5d %5d %d\n", p.NID, 1+p.Tx.Max-p.Tx.Now, "NA", -1, p.Tx.Max,
			p.Rtr.Now, p.Rtr.Min, p.Tx.Now, p.Tx.Min, p.Queued)
	}
	return b.String()
}

// Buffers is the table of a router's buffers: three sizes, a row a partition; only the heading on other nodes.
func Buffers(pools [3][]*model.Pool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%5s %5s %7s %7s\n", "pages", "count", "credits", "min")
	for _, size := range pools {
		for _, p := range size {
			fmt.Fprintf(&b, "%5d %5d %7d %7d\n", p.Pages, p.Count, p.Credits, p.Min)
		}
	}
	return b.String()
}

// NIs is the table of interfaces, a row an interface and partition. Release 2.10 and later have these columns.
func NIs(nis []*model.NI) string {
	const row = "%-24s %6s %5v %4v %4v %4v %5v %5v %5v\n"
	var b strings.Builder
	fmt.Fprintf(&b, row, "nid", "status", "alive", "refs", "peer", "rtr", "max", "tx", "min")
	fmt.Fprintf(&b, row, "0@lo", "up", 0, 2, 0, 0, 0, 0, 0)
	for _, ni := range nis {
		for _, c := range ni.Tx {
			fmt.Fprintf(&b, row, ni.NID, "up", 0, 1+c.Max-c.Now, ni.PeerTx, ni.PeerRtr, c.Max, c.Now, c.Min)
		}
	}
	return b.String()
}
