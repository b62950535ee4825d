package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb/window"
	"fairway/webui/api"
)

// causeColumns are what names the cause of a finding, by source.procfs.
var causeColumns = []layerColumn{
	{"throttling of processors", []collector.Metric{collector.ThrottledRatio, collector.ThrottleEvents}},
	{"waits of InfiniBand links", []collector.Metric{collector.LinkWaitTicks}},
	{"TCP segments sent again", []collector.Metric{collector.ResentRatio}},
}

// causesCheck says how many forwarders report what names the cause of a slow one. Nothing is warned of: slow ones are
// found without, and a virtual machine or a card of another kind has no such counters.
func causesCheck(board *window.Board, now time.Time) api.Check {
	report := make([]int, len(causeColumns))
	all := 0
	var stuck []topology.NodeID // with ports that do not say how long they waited
	board.Layer(topology.Forwarder, func(n *window.Node) {
		if now.Sub(n.Arrived) > remap.StaleAfter {
			return
		}
		all++
		reports := func(m collector.Metric) bool { _, ok := n.Value(m); return ok }
		for i, c := range causeColumns {
			if slices.ContainsFunc(c.metrics, reports) {
				report[i]++
			}
		}
		if reports(collector.LinkLanes) && !reports(collector.LinkWaitTicks) {
			stuck = append(stuck, n.Node)
		}
	})
	if all == 0 {
		return api.Check{Name: "causes", Level: api.CheckUnknown, Text: "no forwarder reports"}
	}
	var counts []string
	for i, c := range causeColumns {
		counts = append(counts, fmt.Sprintf("%s %d", c.name, report[i]))
	}
	text := fmt.Sprintf("of %d forwarders report in this second what names a cause: %s", all,
		strings.Join(counts, ", "))
	if len(stuck) > 0 {
		text += fmt.Sprintf("; port_xmit_wait of %s is missing or at its end, until perfquery -R resets it",
			some(stuck))
	}
	return api.Check{Name: "causes", Level: api.CheckOK, Text: text}
}
