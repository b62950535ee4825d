package live

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/watch"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb/window"
	"fairway/webui/api"
)

// Observer is the part of a remap driver that asks the machine without changing it.
type Observer interface {
	Observe(ctx context.Context, nodes []topology.NodeID) (topology.Mapping, error)
}

const (
	// clockLimit is how far a node's clock may be off: a second is the unit of everything here.
	clockLimit = time.Second
	// fewestAlike nodes must report for most of them to be right against this host's clock.
	fewestAlike = 3
	// askNodes compute nodes are asked through the driver where they are.
	askNodes = 8
	askFor   = 5 * time.Second
	// mostlyJudged percent of the seconds must be judged: one in ten may be late.
	mostlyJudged = 90
	// nameAtMost nodes are listed by name.
	nameAtMost = 6
)

// Checks looks at the installation as a whole: do nodes report, are their clocks right, do their
// sources work, is the mapping known, can nodes be asked through driver. driver may be nil.
func (p *Picture) Checks(ctx context.Context, driver Observer) []api.Check {
	s, now := p.Snapshot(), time.Now()
	r := readHealth(p, now)
	checks := []api.Check{agentsCheck(s, r), clocksCheck(r), sourcesCheck(r), layerCheck(p.cfg.Board, now),
		causesCheck(p.cfg.Board, now), peaksCheck(s), mappingCheck(s)}
	if c, known := alikeCheck(r.facts); known {
		checks = append(checks, c)
	}
	if d := p.cfg.detectors(); d != nil {
		lately, _ := d.Judged()
		checks = append(checks, judgedCheck(lately))
	}
	if len(r.behind) > 0 {
		checks = append(checks, backEndsCheck(r))
	}
	if c, lacking := rightsCheck(r); lacking {
		checks = append(checks, c)
	}
	return excused(append(checks, driverCheck(ctx, s, driver)), p.cfg.Lateness.Notice(now))
}

// excused says first that the daemon itself is late, and leaves open what else would be found then.
func excused(checks []api.Check, late string) []api.Check {
	if late == "" {
		return checks
	}
	for i := range checks {
		if c := &checks[i]; c.Level != api.CheckOK {
			*c = c.Is(api.CheckUnknown, "not judged while the daemon itself is late", "")
		}
	}
	return append([]api.Check{{Name: "daemon", Level: api.CheckFailed, Text: late,
		Fix: "look at the load and the control group of the daemon's host, then ask again"}}, checks...)
}

// health is what the newest frames say of the agents.
type health struct {
	reports map[topology.NodeID]bool // within the time after which data is stale
	ahead   map[topology.NodeID]time.Duration
	failing map[string][]topology.NodeID          // by source and error
	behind  map[topology.NodeID]int               // gateways of each back end
	storage map[topology.NodeID]bool              // storage servers that report
	facts   map[fact]map[string][]topology.NodeID // nodes by what they say
	// Storage servers that count reads and writes or metadata operations, and not the other.
	noData, noMeta []topology.NodeID
}

func readHealth(p *Picture, now time.Time) health {
	h := health{reports: map[topology.NodeID]bool{}, ahead: map[topology.NodeID]time.Duration{},
		failing: map[string][]topology.NodeID{}, behind: map[topology.NodeID]int{}, storage: map[topology.NodeID]bool{},
		facts: map[fact]map[string][]topology.NodeID{}}
	p.cfg.Board.All(func(f *window.Node) {
		if now.Sub(f.Arrived) > remap.StaleAfter {
			return
		}
		h.reports[f.Node] = true
		h.ahead[f.Node] = f.Ahead
		h.storage[f.Node] = f.Role == topology.Storage
		for one := range strings.SplitSeq(f.Facts, ";") {
			if name, says, ok := strings.Cut(one, "="); ok {
				at := fact{f.Role, name}
				if h.facts[at] == nil {
					h.facts[at] = map[string][]topology.NodeID{}
				}
				h.facts[at][says] = append(h.facts[at][says], f.Node)
			}
		}
		_, data := f.Value(collector.WriteOps)
		_, meta := f.Value(collector.MetaOps)
		switch {
		case data && !meta:
			h.noMeta = append(h.noMeta, f.Node)
		case meta && !data:
			h.noData = append(h.noData, f.Node)
		}
		for _, src := range f.Sources {
			if src.Name == "ganesha" && f.Role == topology.Forwarder {
				for _, t := range f.Targets {
					h.behind[topology.NodeID(t.Target)]++
				}
			}
			if src.Err != "" {
				key := src.Name + ": " + strings.TrimPrefix(src.Err, src.Name+": ")
				h.failing[key] = append(h.failing[key], f.Node)
			}
		}
	})
	return h
}

func agentsCheck(s *Snapshot, h health) api.Check {
	c := api.Check{Name: "agents"}
	var silent []topology.NodeID
	for _, n := range s.Machine.Nodes {
		if !h.reports[n.ID] && (n.Role == topology.Forwarder || n.Role == topology.Compute) {
			silent = append(silent, n.ID)
		}
	}
	text := fmt.Sprintf("%d of %d nodes reported in the last %s", len(h.reports), len(s.Machine.Nodes),
		remap.StaleAfter)
	switch {
	case len(h.reports) == 0:
		return c.Is(api.CheckFailed, text,
			"give the nodes their settings and start fairway-agent there (docs/install.md); 'fairway-agent check' "+
				"says what keeps one from reaching the daemon")
	case len(silent) > 0:
		return c.Is(api.CheckWarned, text+"; silent: "+some(silent),
			"run 'fairway-agent check' there, or take the nodes out of the machine's configuration")
	}
	return c.Is(api.CheckOK, text, "")
}

// clocksCheck compares the nodes' clocks with this host's, and where most are off alike, with each other: then the
// daemon, its clock or the way to it is late, and not they.
func clocksCheck(h health) api.Check {
	c := api.Check{Name: "clocks", Level: api.CheckOK,
		Text: fmt.Sprintf("every node's seconds arrive within %s of their time", 2*clockLimit)}
	if len(h.ahead) == 0 {
		return c.Is(api.CheckUnknown, "no node reports", "")
	}
	// A frame describes the second that begins at its time and is sent when that is over.
	off := func(ahead time.Duration) bool { return ahead > clockLimit || ahead < -2*clockLimit }
	all := slices.Sorted(maps.Values(h.ahead))
	shared := all[len(all)/2]
	if len(all) < fewestAlike || !off(shared) {
		shared = 0
	}
	var bad []topology.NodeID
	worst := time.Duration(0)
	for n, ahead := range h.ahead {
		// What was kept waiting comes in at different ages: only who differs by more than all are late is named.
		if ahead -= shared; off(ahead) && ahead.Abs() > shared.Abs() {
			bad = append(bad, n)
			if ahead.Abs() > worst.Abs() {
				worst = ahead
			}
		}
	}
	word := "ahead"
	if worst < 0 {
		word = "behind, or its seconds come late"
	}
	var texts []string
	if shared != 0 {
		texts = append(texts, fmt.Sprintf("the seconds of most nodes are %s off alike: it is this host's clock, the "+
			"daemon or the network, not they", shared.Abs().Round(100*time.Millisecond)))
		c.Fix = "set this host's clock (chrony); look at its load and network"
	}
	if len(bad) > 0 {
		texts = append(texts, fmt.Sprintf("the clocks of %s are off, the worst %s %s: %s",
			anomaly.Counted(len(bad), "node"), worst.Abs().Round(100*time.Millisecond), word, some(bad)))
		c.Fix = "set the clocks (chrony); a node whose spool is being replayed is late only for a while"
	}
	if len(texts) > 0 {
		c.Level, c.Text = api.CheckFailed, strings.Join(texts, "; ")
	}
	return c
}

func sourcesCheck(h health) api.Check {
	c := api.Check{Name: "sources", Level: api.CheckOK, Text: "every source of every agent answers"}
	switch {
	case len(h.reports) == 0:
		return c.Is(api.CheckUnknown, "no node reports", "")
	case len(h.failing) == 0:
		return c
	}
	return c.Is(api.CheckWarned, listed(h.failing), "do what it says, or run 'fairway-agent check' on such a node; "+
		"switch the source off where it has nothing to read")
}

// listed names what fails, and where.
func listed(failing map[string][]topology.NodeID) string {
	texts := make([]string, 0, len(failing))
	for what, nodes := range failing {
		texts = append(texts, fmt.Sprintf("%s (%s)", what, some(nodes)))
	}
	slices.Sort(texts)
	if len(texts) > nameAtMost {
		texts = append(texts[:nameAtMost], fmt.Sprintf("and %d more", len(texts)-nameAtMost))
	}
	return strings.Join(texts, "; ")
}

// refusal is what a source says that lacks a right; lnetctl exits so without CAP_NET_ADMIN.
var refusal = regexp.MustCompile(`(?i)permission denied|operation not permitted|as root|lnetctl.*exit status 234`)

// rightsCheck names what agents may not read; lacking is false where nothing is refused.
func rightsCheck(h health) (c api.Check, lacking bool) {
	refused := maps.Clone(h.failing)
	maps.DeleteFunc(refused, func(what string, _ []topology.NodeID) bool { return !refusal.MatchString(what) })
	return api.Check{Name: "rights", Level: api.CheckWarned, Text: listed(refused),
			Fix: "give the agent's unit the capabilities that 'fairwayd init' writes for the node's role " +
				"(capabilities.conf), or run it as root; docs/layers.md has the right that each file needs"},
		len(refused) > 0
}

// fact is one of the things in which nodes of a role should be alike.
type fact struct {
	role topology.Role
	name string
}

// alikeCheck names the nodes that are set up in another way than most of their role; known is false where none says how
// it is. Compute nodes may be of several kinds: there only those count that are few.
func alikeCheck(facts map[fact]map[string][]topology.NodeID) (c api.Check, known bool) {
	const fewOf = 20 // one in so many
	c = api.Check{Name: "alike", Level: api.CheckOK, Text: "nodes of a role are set up alike: releases, MTU, tunables"}
	var odd []string
	for of, by := range facts {
		var most string
		count := 0
		for says, nodes := range by {
			if count += len(nodes); len(nodes) > len(by[most]) || len(nodes) == len(by[most]) && says < most {
				most = says
			}
		}
		others := maps.Clone(by)
		maps.DeleteFunc(others, func(says string, nodes []topology.NodeID) bool {
			return says == most || of.role == topology.Compute && len(nodes)*fewOf > count
		})
		if count >= fewestAlike && len(others) > 0 {
			odd = append(odd, fmt.Sprintf("%s of %s nodes: %s, where %d have %s", of.name, of.role, listed(others),
				len(by[most]), most))
		}
	}
	slices.Sort(odd)
	if len(odd) > nameAtMost {
		odd = append(odd[:nameAtMost], fmt.Sprintf("and %d things more", len(odd)-nameAtMost))
	}
	if len(odd) > 0 {
		c = c.Is(api.CheckWarned, strings.Join(odd, ". "),
			"set them up alike: they are compared with each other, and who differs may be slow for that alone")
	}
	return c, len(facts) > 0
}

func peaksCheck(s *Snapshot) api.Check {
	c := api.Check{Name: "peaks", Level: api.CheckOK, Text: "every forwarder's peak bandwidth is known"}
	if len(s.Machine.ByRole(topology.Forwarder)) == 0 {
		return c.Is(api.CheckUnknown, "no forwarder is known", "")
	}
	var without []topology.NodeID
	for _, n := range s.Machine.ByRole(topology.Forwarder) {
		if n.PeakBytesPerSec <= 0 {
			without = append(without, n.ID)
		}
	}
	if len(without) > 0 {
		return c.Is(api.CheckWarned, "no peak bandwidth, and so no occupancy: "+some(without),
			"set forwarder.peak_bytes_per_sec, or a [[node]]'s own, in fairwayd's configuration")
	}
	return c
}

func mappingCheck(s *Snapshot) api.Check {
	compute := s.Machine.ByRole(topology.Compute)
	c := api.Check{Name: "mapping", Level: api.CheckOK,
		Text: fmt.Sprintf("the forwarder of every one of %d compute nodes is observed", len(compute))}
	switch len(compute) {
	case 0:
		return c.Is(api.CheckUnknown, "no compute node is known",
			"a forwarder's source that lists its clients, or fairway-mount on compute nodes, shows which exist")
	case 1:
		c.Text = "the forwarder of the only compute node is observed"
	}
	var unseen, lost []topology.NodeID
	for _, n := range compute {
		switch r, ok := s.Situation.Routes[n.ID]; {
		case !ok || r.Stale:
			unseen = append(unseen, n.ID)
		case r.Lost:
			lost = append(lost, n.ID)
		}
	}
	switch {
	case len(lost) > 0:
		return c.Is(api.CheckFailed, fmt.Sprintf("%d of %d compute nodes have no forwarder, theirs does not answer: %s",
			len(lost), len(compute), some(lost)),
			"their I/O waits: start the forwarder again, or move them off it by force (fairway remap --force)")
	case len(unseen) > 0:
		return c.Is(api.CheckWarned, fmt.Sprintf("%d of %d compute nodes' forwarders are not observed: %s",
			len(unseen), len(compute), some(unseen)),
			"such a node cannot be moved: there would be no way back; look at its agent, or at its forwarder's; "+
				"on LNet, NFS, DVS and LWFS its agent needs [routes], and where the addresses of NFS's servers float "+
				"theirs, too, by = \"addresses\" (docs/agent.md)")
	}
	return c
}

// backEndsCheck says whether the servers behind gateways report themselves.
func backEndsCheck(h health) api.Check {
	gateways := 0
	var silent []topology.NodeID
	for n, count := range h.behind {
		if gateways += count; !h.storage[n] {
			silent = append(silent, n)
		}
	}
	c := api.Check{Name: "back ends", Level: api.CheckOK, Text: fmt.Sprintf("%s in front of %s; every back end reports",
		anomaly.Counted(gateways, "gateway"), anomaly.Counted(len(h.behind), "back end"))}
	if len(silent) > 0 {
		return c.Is(api.CheckWarned,
			"back ends of gateways do not report, so a slow one is taken for its gateways: "+some(silent),
			`run fairway-agent there, with role = "storage" and [source.ganesha]`)
	}
	for _, lack := range []struct {
		of           []topology.NodeID
		what, toHave string
	}{{h.noData, "reads and writes", "Enable_NFS_Stats"}, {h.noMeta, "metadata operations", "Enable_FULLV4_Stats"}} {
		lack.of = slices.DeleteFunc(lack.of, func(n topology.NodeID) bool { return h.behind[n] == 0 })
		if len(lack.of) > 0 {
			c = c.Is(api.CheckWarned, fmt.Sprintf("back ends of gateways do not count %s, so one that is slow at them "+
				"is taken for its gateways: %s", lack.what, some(lack.of)),
				"set "+lack.toHave+" = true in NFS_CORE_PARAM of their ganesha")
		}
	}
	return c
}

// judgedCheck says how much of what came the detectors judged.
func judgedCheck(j watch.Judged) api.Check {
	c := api.Check{Name: "detection", Level: api.CheckOK}
	came := j.Judged + j.Late + j.Skipped
	if came == 0 {
		return c.Is(api.CheckUnknown, "no second of a forwarder came in the last ten minutes", "")
	}
	share := func(part, of uint64) float64 { return 100 * float64(part) / float64(max(of, 1)) }
	c.Text = fmt.Sprintf("%.1f %% of the forwarders' seconds of the last ten minutes were judged",
		share(j.Judged, came))
	if j.Late+j.Skipped > 0 {
		c.Text += fmt.Sprintf("; %d came too late, %d came while the daemon was busy", j.Late, j.Skipped)
	}
	if j.Unknown > 0 {
		c.Text += fmt.Sprintf("; of %.1f %% of the seconds of reads or writes it is not known yet what they need",
			share(j.Unknown, j.Served))
	}
	switch {
	case j.Starting:
		c.Text += "; the daemon began a moment ago, and agents send what they kept meanwhile"
	case share(j.Judged, came) < mostlyJudged:
		return c.Is(api.CheckWarned, c.Text, "a slow forwarder is found late: give the daemon's host more processor "+
			"time, or look at the network of the agents")
	}
	return c
}

// driverCheck asks a few compute nodes through the driver where they are and compares.
func driverCheck(ctx context.Context, s *Snapshot, driver Observer) api.Check {
	c := api.Check{Name: "driver"}
	if driver == nil {
		return c.Is(api.CheckWarned, "none is configured: remaps can be proposed, not applied",
			"set driver.kind in fairwayd's configuration")
	}
	var ask []topology.NodeID
	for n, r := range s.Situation.Routes {
		if !r.Stale {
			ask = append(ask, n)
		}
	}
	slices.Sort(ask)
	ask = ask[:min(len(ask), askNodes)]
	if len(ask) == 0 {
		return c.Is(api.CheckUnknown, "no compute node's forwarder is known, so none was asked", "")
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	says, err := driver.Observe(ctx, ask)
	if err != nil {
		quiet := slices.DeleteFunc(slices.Clone(ask), func(n topology.NodeID) bool { return says[n] != "" })
		level := api.CheckWarned
		if len(quiet) == len(ask) {
			level = api.CheckFailed
		}
		return c.Is(level, fmt.Sprintf("%d of %s cannot be asked where they are, nor moved: %s (%v)", len(quiet),
			anomaly.Counted(len(ask), "compute node"), some(quiet), err),
			"run fairway-agent on such nodes with orders.enabled = true (with driver.kind = \"ces\" on their "+
				"protocol nodes), or set driver.kind = \"exec\" and a command of the site that moves them; what is "+
				"seen of them comes from their forwarders and goes on")
	}
	for _, n := range ask {
		if is := s.Situation.Routes[n].Forwarder; says[n] != is {
			return c.Is(api.CheckWarned, fmt.Sprintf("%s says that it uses %q, observed is %q", n, says[n], is),
				"wait for the move under way, or look at the forwarder's list of clients")
		}
	}
	return c.Is(api.CheckOK, fmt.Sprintf("asked %s, and %s what is observed",
		anomaly.Counted(len(ask), "compute node"), anomaly.VerbOf(len(ask), "it says", "they say")), "")
}

// some names a few nodes and counts the rest.
func some(nodes []topology.NodeID) string {
	slices.Sort(nodes)
	names := make([]string, 0, nameAtMost)
	for _, n := range nodes[:min(len(nodes), nameAtMost)] {
		names = append(names, string(n))
	}
	text := strings.Join(names, " ")
	if more := len(nodes) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
