package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb/window"
	"fairway/webui/api"
)

// layerKind is a kind of forwarder: how its second is recognised, and what stands in the way of a column that is
// missing. docs/layers.md says the same at length.
type layerKind struct {
	name string
	is   func(f *collector.Frame, sources map[string]bool) bool
	fix  map[string]string // by column
	// never are columns that such a forwarder cannot report, with the reason.
	never map[string]string
	// seldom are columns that come in some seconds only, with the reason.
	seldom map[string]string
	// clients is why its compute nodes do not report what they read and write.
	clients string
}

// layerColumn is what a forwarder has to report: any of its metrics will do.
type layerColumn struct {
	name    string
	metrics []collector.Metric
}

// layerColumns are what the doctor asks for, then what a forwarder's page shows besides.
var layerColumns = []layerColumn{
	{"bytes", []collector.Metric{collector.WriteBytes, collector.RoutedBytes, collector.ReadBytes}},
	{"operations", []collector.Metric{collector.WriteOps, collector.RoutedOps}},
	{"queue", []collector.Metric{collector.QueueLen, collector.InFlight}},
	{"time", []collector.Metric{collector.WriteExec, collector.ServerTime, collector.TransitTime}},
	{"metadata", []collector.Metric{collector.MetaOps}},
	{"metadata wait", []collector.Metric{collector.MetaWait}},
	{"errors", []collector.Metric{collector.Errors}},
}

const doctorColumns = 5

var layerKinds = []layerKind{
	{name: "LNet router", is: func(f *collector.Frame, sources map[string]bool) bool {
		_, routes := f.Value(collector.RoutedBytes)
		return routes && !sources["lustre"]
	}, fix: map[string]string{"queue": "run the agent as root: it reads stats, peers, nis and buffers of LNet",
		"time": "run the agent as root: it samples stats of LNet"},
		never: map[string]string{"metadata": "a router knows no files", "metadata wait": "a router knows no files",
			"bytes": "a router does not know which bytes are read", "time": "transit is the time inside a router"},
		clients: "source.lustre on them would"},
	{name: "diod", is: func(_ *collector.Frame, s map[string]bool) bool { return s["diod"] },
		never:   map[string]string{"time": "diod keeps none; its clients' times stand in"},
		clients: "source.mount on them would"},
	{name: "nfs-ganesha", is: func(_ *collector.Frame, s map[string]bool) bool { return s["ganesha"] },
		fix: map[string]string{"bytes": "keep Enable_NFS_Stats on, its default"},
		never: map[string]string{"queue": "ganesha keeps none",
			"time": "it keeps none of 9P; its clients' and its back end's times stand in"},
		clients: "source.mount or source.procfs on them would"},
	{name: "LWFS server", is: func(_ *collector.Frame, s map[string]bool) bool { return s["lwfs"] },
		fix: map[string]string{"bytes": "switch source.lustre on beside source.lwfs: the trace has no bytes"},
		never: map[string]string{
			"time": "its trace has waits and service by class, and its storage targets' times are exact"},
		seldom:  map[string]string{"queue": seldomTraced, "time": seldomTraced, "metadata wait": seldomTraced},
		clients: "LWFS keeps no counters on compute nodes"},
	{name: "DVS server", is: func(_ *collector.Frame, s map[string]bool) bool { return s["dvs"] },
		fix: map[string]string{"bytes": "switch source.lustre on beside source.dvs: a DVS server counts no bytes",
			"queue": "run the agent as root: it reads DVS's times of messages, or its transport's queue"},
		never:   map[string]string{"metadata wait": untimedDVS, "time": untimedDVS},
		clients: "source.dvs on them would, with DVS's counts in the format flat (dvsdebug_stat_defaults=enable,flat)"},
	{name: "GPFS node", is: func(_ *collector.Frame, s map[string]bool) bool { return s["gpfs"] },
		fix: map[string]string{"bytes": "run the agent as root, and GPFS: mmpmon prints nothing else"},
		never: map[string]string{"queue": "GPFS counts no requests of its NFS server",
			"metadata wait": "GPFS counts no requests of its NFS server",
			"time":          "mmpmon's histograms cost the file system something; its clients' times stand in"},
		clients: "source.procfs on them would, of their NFS mounts"},
	{name: "NFS server", is: func(f *collector.Frame, s map[string]bool) bool {
		_, threads := f.Value(collector.Threads)
		return threads && s["procfs"]
	}, never: map[string]string{
		"time":          "nfsd has no clock; its clients' times stand in, and with source.lustre its storage targets'",
		"queue":         "nfsd does not count who waits for a thread; its clients' times have it",
		"metadata wait": "nfsd does not count who waits for a thread; its clients' times have it"},
		clients: "source.procfs on them would, of their NFS mounts"},
	{name: "Lustre client", is: func(_ *collector.Frame, s map[string]bool) bool { return s["lustre"] },
		fix: map[string]string{"bytes": "mount the file system, or set source.lustre.root"},
		never: map[string]string{"queue": "its front server's", "metadata wait": "its front server's",
			"time": "its storage targets' times stand in"},
		clients: "source.procfs or source.lustre on them would"},
}

// seldomTraced is why an LWFS server says something in some seconds only.
const seldomTraced = "its trace has one operation in 1,000"

// untimedDVS is why a DVS server has no times.
const untimedDVS = "DVS times its messages from 2019 on, for root; its clients' lists of requests stand in, about"

// kindOf is the kind of forwarder that reports; nil: none that is known.
func kindOf(n *window.Node) *layerKind {
	sources := map[string]bool{}
	for _, s := range n.Sources {
		sources[s.Name] = true
	}
	i := slices.IndexFunc(layerKinds, func(k layerKind) bool { return k.is(&n.Frame, sources) })
	if i < 0 {
		return nil
	}
	return &layerKinds[i]
}

// unreported says of each number of a forwarder's page why it is missing where it never comes, and why its compute
// nodes' bytes are. Of a kind that is not known it says nothing.
func (k *layerKind) unreported(id topology.ForwarderID) (numbers map[string]string, clients string) {
	if k == nil {
		return nil, ""
	}
	numbers = map[string]string{}
	for _, m := range api.ListedMetrics {
		i := slices.IndexFunc(layerColumns, func(c layerColumn) bool { return slices.Contains(c.metrics, m) })
		if i < 0 {
			continue
		}
		col, other := layerColumns[i].name, "fairway-agent check on "+string(id)+" says why"
		if i >= doctorColumns || m == collector.ServerTime {
			other = "no counter of it"
		}
		numbers[m.String()] = cmp.Or(k.never[col], k.seldom[col], k.fix[col], other)
	}
	return numbers, k.clients
}

// layerCheck says, for each kind of forwarder that reports, which columns work, and what to switch on for the others.
func layerCheck(board *window.Board, now time.Time) api.Check {
	c := api.Check{Name: "layer"}
	missing := map[string]map[string][]topology.NodeID{} // by kind and column
	count := map[string]int{}
	var nothing []topology.NodeID
	board.Layer(topology.Forwarder, func(n *window.Node) {
		if now.Sub(n.Arrived) > remap.StaleAfter {
			return
		}
		k := kindOf(n)
		if k == nil {
			nothing = append(nothing, n.Node)
			return
		}
		if count[k.name]++; missing[k.name] == nil {
			missing[k.name] = map[string][]topology.NodeID{}
		}
		for _, col := range layerColumns[:doctorColumns] {
			if col.name == "time" && still(&n.Frame) {
				continue // nothing to time
			}
			if !slices.ContainsFunc(col.metrics, func(m collector.Metric) bool { _, ok := n.Value(m); return ok }) {
				missing[k.name][col.name] = append(missing[k.name][col.name], n.Node)
			}
		}
	})
	var texts, fixes []string
	for i := range layerKinds {
		if k := &layerKinds[i]; count[k.name] > 0 {
			text, fix := k.words(count[k.name], missing[k.name])
			texts, fixes = append(texts, text), append(fixes, fix...)
		}
	}
	if len(nothing) > 0 {
		slices.Sort(nothing)
		texts = append(texts, fmt.Sprintf("no source reports what %s: %s",
			anomaly.VerbOf(len(nothing), "a forwarder moves", fmt.Sprintf("%d forwarders move", len(nothing))),
			some(nothing)))
		fixes = append(fixes, "switch on the source of your layer there (source.lnet, source.lustre, source.lwfs, "+
			"source.dvs, source.gpfs, source.diod; docs/layers.md)")
	}
	level := api.CheckOK
	switch {
	case len(texts) == 0:
		return c.Is(api.CheckUnknown, "no forwarder reports", "")
	case len(fixes) > 0:
		level = api.CheckWarned
	}
	return c.Is(level, strings.Join(texts, "; "), strings.Join(fixes, "; "))
}

// still says that a forwarder did nothing in its second, as it reports itself.
func still(f *collector.Frame) bool {
	known := false
	for _, m := range []collector.Metric{collector.ReadOps, collector.WriteOps, collector.RoutedOps} {
		v, ok := f.Value(m)
		if known = known || ok; v > 0 {
			return false
		}
	}
	return known
}

// words says what the forwarders of a kind report, and what does what is missing.
func (k *layerKind) words(n int, missing map[string][]topology.NodeID) (text string, fixes []string) {
	var works, lacks []string
	for _, col := range layerColumns[:doctorColumns] {
		nodes, fix := missing[col.name], k.fix[col.name]
		switch {
		case len(nodes) == 0:
			works = append(works, col.name)
			continue
		case k.seldom[col.name] != "":
			lacks = append(lacks, fmt.Sprintf("%s in some seconds: %s", col.name, k.seldom[col.name]))
			continue
		case fix == "" && k.never[col.name] != "":
			lacks = append(lacks, fmt.Sprintf("no %s: %s", col.name, k.never[col.name]))
			continue
		case len(nodes) == n:
			lacks = append(lacks, "no "+col.name)
		default:
			lacks = append(lacks, fmt.Sprintf("no %s on %s", col.name, some(nodes)))
		}
		fixes = append(fixes, fmt.Sprintf("%s, %s: %s", k.name, col.name,
			cmp.Or(fix, "run 'fairway-agent check' there")))
	}
	text = fmt.Sprintf("%s (%d): %s", k.name, n, cmp.Or(strings.Join(works, ", "), "nothing of all in this second"))
	if len(lacks) > 0 {
		text += " [" + strings.Join(lacks, "; ") + "]"
	}
	return text, fixes
}

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
