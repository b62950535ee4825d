package format

import (
	"fmt"
	"strings"

	"fairway/cmd/lab/sitefiles/model"
)

// LNetStats is LNet's stats.
func LNetStats(c model.Counters) string {
	b := make(text, 0, 160)
	for i, n := range [...]uint64{uint64(c.Alloc), uint64(c.AllocMax), uint64(c.Errors), uint64(c.Sent),
		uint64(c.Received), uint64(c.Routed), uint64(c.Dropped), c.SentBytes, c.ReceivedBytes, c.RoutedBytes,
		c.DroppedBytes} {
		if i > 0 {
			b.add(" ")
		}
		b.unsigned(0, n)
	}
	b.add("\n")
	return b.String()
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
	b := make(text, 0, 100*(1+len(peers)))
	b.add("nid                      refs state  last   max   rtr   min    tx   min queue\n")
	for _, p := range peers {
		b.left(24, p.NID)
		b.add(" ")
		b.num(4, int64(1+p.Tx.Max-p.Tx.Now))
		b.add("    NA    -1")
		for _, n := range [...]int{p.Tx.Max, p.Rtr.Now, p.Rtr.Min, p.Tx.Now, p.Tx.Min} {
			b.add(" ")
			b.num(5, int64(n))
		}
		b.add(" ")
		b.num(0, int64(p.Queued))
		b.add("\n")
	}
	return b.String()
}

// Buffers is the table of a router's buffers: three sizes, a row a partition; only the heading on other nodes.
func Buffers(pools [3][]*model.Pool) string {
	b := make(text, 0, 256)
	b.add("pages count credits     min\n")
	for _, size := range pools {
		for _, p := range size {
			b.num(5, int64(p.Pages))
			b.add(" ")
			b.num(5, int64(p.Count))
			b.add(" ")
			b.num(7, int64(p.Credits))
			b.add(" ")
			b.num(7, int64(p.Min))
			b.add("\n")
		}
	}
	return b.String()
}

// NIs is the table of interfaces, a row an interface and partition. Release 2.10 and later have these columns.
func NIs(nis []*model.NI) string {
	b := make(text, 0, 80*(2+2*len(nis)))
	b.add("nid                      status alive refs peer  rtr   max    tx   min\n",
		"0@lo                         up     0    2    0    0     0     0     0\n")
	for _, ni := range nis {
		for _, c := range ni.Tx {
			b.left(24, ni.NID)
			b.add("     up     0 ")
			b.num(4, int64(1+c.Max-c.Now))
			b.add(" ")
			b.num(4, int64(ni.PeerTx))
			b.add(" ")
			b.num(4, int64(ni.PeerRtr))
			for _, n := range [...]int{c.Max, c.Now, c.Min} {
				b.add(" ")
				b.num(5, int64(n))
			}
			b.add("\n")
		}
	}
	return b.String()
}
