package format

import (
	"fmt"
	"strings"

	"fairway/cmd/lab/sitefiles/model"
)

// yaml is text with an indent.
type yaml struct{ strings.Builder }

func (y *yaml) line(indent int, format string, args ...any) {
	fmt.Fprintf(y, "%s%s\n", strings.Repeat(" ", indent), fmt.Sprintf(format, args...))
}

// RouteShow is lnetctl route show; detail is its verbosity.
func (r Release) RouteShow(rows []*model.Route, detail int) string {
	var y yaml
	if len(rows) > 0 {
		y.line(0, "route:")
	}
	for _, row := range rows {
		y.line(4, "- net: %s", row.Net)
		y.line(6, "gateway: %s", row.Gateway)
		if detail == 0 {
			continue
		}
		y.line(6, "hop: %d", row.Hops)
		y.line(6, "priority: %d", row.Priority)
		if r >= 14 {
			y.line(6, "health_sensitivity: 1")
		}
		y.line(6, "state: %s", upDown(!row.Down))
		if r >= 14 {
			y.line(6, "type: single-hop")
		}
	}
	return y.String()
}

// RuleShow is lnetctl udsp show.
func RuleShow(rules []model.Rule) string {
	var y yaml
	if len(rules) > 0 {
		y.line(0, "udsp:")
	}
	for i, r := range rules {
		y.line(4, "- idx: %d", i)
		y.line(6, "src: %s", orNA(r.Src))
		y.line(6, "dst: %s", orNA(r.Dst))
		y.line(6, "rte: %s", orNA(r.Rte))
		y.line(6, "action:")
		y.line(10, "priority: -1")
	}
	return y.String()
}

func orNA(s string) string {
	if s == "" {
		return "NA"
	}
	return s
}

func (y *yaml) counts(name string, c model.Counts) {
	y.line(10, "%s:", name)
	for i, kind := range []string{"put", "get", "reply", "ack"} {
		y.line(14, "%s: %d", kind, c[i])
	}
	y.line(14, "hello: 0")
}

// PeerShow is lnetctl peer show of some peers: primary is each one's first identifier. From 2.11 on the counts are by
// kind at a detail of 2.
func (r Release) PeerShow(peers []*model.Peer, primary func(nid string) string, detail int) string {
	var y yaml
	if len(peers) > 0 {
		y.line(0, "peer:")
	}
	for _, p := range peers {
		y.line(4, "- primary nid: %s", primary(p.NID))
		y.line(6, "Multi-Rail: %s", title(primary(p.NID) != p.NID))
		if r >= 14 && detail > 0 {
			y.line(6, "peer state: 0")
		}
		y.line(6, "peer ni:")
		if far := primary(p.NID); far != p.NID {
			y.line(8, "- nid: %s", far)
			y.line(10, "state: NA")
		}
		y.line(8, "- nid: %s", p.NID)
		y.line(10, "state: NA")
		if detail > 0 {
			y.line(10, "max_ni_tx_credits: %d", p.Tx.Max)
			y.line(10, "available_tx_credits: %d", p.Tx.Now)
			y.line(10, "min_tx_credits: %d", p.Tx.Min)
			y.line(10, "tx_q_num_of_buf: %d", p.Queued)
			y.line(10, "available_rtr_credits: %d", p.Rtr.Now)
			y.line(10, "min_rtr_credits: %d", p.Rtr.Min)
			y.line(10, "refcount: 1")
			y.line(10, "statistics:")
			y.line(14, "send_count: %d", p.Sent.Sum())
			y.line(14, "recv_count: %d", p.Received.Sum())
			y.line(14, "drop_count: 0")
		}
		if detail > 1 && r >= 12 {
			y.counts("sent_stats", p.Sent)
			y.counts("received_stats", p.Received)
			y.counts("dropped_stats", model.Counts{})
			y.line(10, "health stats:")
			for _, l := range []string{"health value: 1000", "dropped: 0", "timeout: 0", "error: 0",
				"network timeout: 0"} {
				y.line(14, "%s", l)
			}
		}
	}
	return y.String()
}

func title(yes bool) string {
	if yes {
		return "True"
	}
	return "False"
}

// NetShow is lnetctl net show.
func (r Release) NetShow(nis []*model.NI, detail int) string {
	var y yaml
	y.line(0, "net:")
	y.line(4, "- net type: lo")
	y.line(6, "local NI(s):")
	y.line(8, "- nid: 0@lo")
	y.line(10, "status: up")
	for _, ni := range nis {
		y.line(4, "- net type: %s", ni.Net)
		y.line(6, "local NI(s):")
		y.line(8, "- nid: %s", ni.NID)
		y.line(10, "status: up")
		y.line(10, "interfaces:")
		y.line(14, "0: %s", ni.Link)
		if detail > 0 {
			y.line(10, "statistics:")
			y.line(14, "send_count: %d", ni.Sent.Sum())
			y.line(14, "recv_count: %d", ni.Received.Sum())
			y.line(14, "drop_count: 0")
		}
		if detail > 1 && r >= 12 {
			y.counts("sent_stats", ni.Sent)
			y.counts("received_stats", ni.Received)
			y.counts("dropped_stats", model.Counts{})
		}
		if detail > 0 {
			y.line(10, "tunables:")
			y.line(14, "peer_timeout: 180")
			y.line(14, "peer_credits: %d", ni.PeerTx)
			y.line(14, "peer_buffer_credits: %d", ni.PeerRtr)
			credits := 0
			for _, c := range ni.Tx {
				credits += c.Max
			}
			y.line(14, "credits: %d", credits)
		}
	}
	return y.String()
}

// StatsShow is lnetctl stats show.
func (r Release) StatsShow(c model.Counters) string {
	var y yaml
	y.line(0, "statistics:")
	y.line(4, "msgs_alloc: %d", c.Alloc)
	y.line(4, "msgs_max: %d", c.AllocMax)
	if r >= 12 {
		y.line(4, "rst_alloc: %d", 0)
	}
	y.line(4, "errors: %d", c.Errors)
	y.line(4, "send_count: %d", c.Sent)
	if r >= 12 {
		y.line(4, "resend_count: %d", c.Resent)
		for _, name := range []string{"response_timeout", "local_interrupt", "local_dropped", "local_aborted",
			"local_no_route", "local_timeout", "local_error", "remote_dropped", "remote_error", "remote_timeout",
			"network_timeout"} {
			y.line(4, "%s_count: 0", name)
		}
	}
	y.line(4, "recv_count: %d", c.Received)
	y.line(4, "route_count: %d", c.Routed)
	y.line(4, "drop_count: %d", c.Dropped)
	y.line(4, "send_length: %d", c.SentBytes)
	y.line(4, "recv_length: %d", c.ReceivedBytes)
	y.line(4, "route_length: %d", c.RoutedBytes)
	y.line(4, "drop_length: %d", c.DroppedBytes)
	return y.String()
}

// GlobalShow is lnetctl global show.
func (r Release) GlobalShow(discovery, dropAsym bool) string {
	var y yaml
	y.line(0, "global:")
	y.line(4, "numa_range: 0")
	y.line(4, "max_interfaces: 200")
	y.line(4, "discovery: %d", number(discovery))
	if r >= 14 {
		y.line(4, "drop_asym_route: %d", number(dropAsym))
	}
	if r >= 12 {
		for _, l := range []string{"retry_count: 2", "transaction_timeout: 50", "health_sensitivity: 100",
			"recovery_interval: 1", "router_sensitivity: 100"} {
			y.line(4, "%s", l)
		}
	}
	if r >= 15 {
		for _, l := range []string{"lnd_timeout: 16", "response_tracking: 3", "recovery_limit: 0"} {
			y.line(4, "%s", l)
		}
	}
	return y.String()
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
