package format

import (
	"fmt"
	"strings"

	"fairway/cmd/lab/sitefiles/model"
)

// LNetStats is LNet's stats.
func LNetStats(c model.Counters) string {
	return fmt.Sprintln(c.Alloc, c.AllocMax, c.Errors, c.Sent, c.Received, c.Routed, c.Dropped, c.SentBytes,
		c.ReceivedBytes, c.RoutedBytes, c.DroppedBytes)
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

// Peers is the table of neighbours with their credits. The column of the last sign of life is not filled in.
func Peers(peers []*model.Peer) string {
	var b strings.Builder
	b.WriteString("nid                      refs state  last   max   rtr   min    tx   min queue\n")
	for _, p := range peers {
		fmt.Fprintf(&b, "%-24s %4d    NA    -1 %5d %5d %5d %5d %5d %d\n", p.NID, 1+p.Tx.Max-p.Tx.Now, p.Tx.Max,
			p.Rtr.Now, p.Rtr.Min, p.Tx.Now, p.Tx.Min, p.Queued)
	}
	return b.String()
}

// Buffers is the table of a router's buffers: three sizes, a row a partition; only the heading on other nodes.
func Buffers(pools [3][]*model.Pool) string {
	var b strings.Builder
	b.WriteString("pages count credits     min\n")
	for _, size := range pools {
		for _, p := range size {
			fmt.Fprintf(&b, "%5d %5d %7d %7d\n", p.Pages, p.Count, p.Credits, p.Min)
		}
	}
	return b.String()
}

// NIs is the table of interfaces, a row an interface and partition. Release 2.10 and later have these columns.
func NIs(nis []*model.NI) string {
	var b strings.Builder
	b.WriteString("nid                      status alive refs peer  rtr   max    tx   min\n" +
		"0@lo                         up     0    2    0    0     0     0     0\n")
	for _, ni := range nis {
		for _, c := range ni.Tx {
			fmt.Fprintf(&b, "%-24s     up     0 %4d %4d %4d %5d %5d %5d\n", ni.NID, 1+c.Max-c.Now, ni.PeerTx,
				ni.PeerRtr, c.Max, c.Now, c.Min)
		}
	}
	return b.String()
}
