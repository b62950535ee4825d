// Package dfra decides how many and which forwarding nodes a starting job gets. Its rules are those of "Automatic,
// Application-Aware I/O Forwarding Resource Allocation" (FAST'19): scale out jobs that have the volume and the
// parallelism, isolate those that would interfere with a neighbour, keep everybody off anomalous forwarders, and change
// nothing without history.
//
// Decide is a pure function: it reads no clock, file or network.
package dfra

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"fairway/anomaly"
	"fairway/collector/topology"
)

// Action is what a decision does to the default allocation.
type Action string

// The actions: keep it, grant more dedicated forwarders, or as many but dedicated ones.
const (
	Default Action = "default"
	Upgrade Action = "upgrade"
	Isolate Action = "isolate"
)

// Reason is one rule that was tried. Value and Threshold are in the unit that Text states.
type Reason struct {
	Rule      string  `json:"rule"`
	Value     float64 `json:"value"`
	Threshold float64 `json:"threshold"`
	Passed    bool    `json:"passed"`
	Text      string  `json:"text"`
}

// Interference names a neighbour with which interference is likely, and why.
type Interference struct {
	Job topology.JobID `json:"job"`
	Why []string       `json:"why"`
}

// Decision is the answer for one case; it explains itself through Reasons, in the order tried.
type Decision struct {
	Action Action `json:"action"`
	// Remap is true where the job's compute nodes must leave their default forwarders.
	Remap      bool                   `json:"remap"`
	Forwarders []topology.ForwarderID `json:"forwarders"`
	Count      int                    `json:"count"`
	// Wanted is S, the forwarders the job could use; 0 where it is not eligible for more.
	Wanted int `json:"wanted"`
	// FirstFailed is the first eligibility test that failed, nil where all passed.
	FirstFailed  *string        `json:"first_failed"`
	Reasons      []Reason       `json:"reasons"`
	Interference []Interference `json:"interference"`
}

// decider carries one case through its rules.
type decider struct {
	c    Case
	d    Decision
	idle []topology.ForwarderID // healthy ones only
	base int                    // D, the size of the default allocation
}

// Decide answers one case (DFRA sections 4 and 5). Defaults must have been filled in by ReadCase;
// a Config that was not is completed the same way.
func Decide(c Case) Decision {
	s := start(c)
	s.decide()
	return s.end()
}

// KeepDefault answers a case without granting anything: the job keeps its default forwarders, except
// that anomalous ones are replaced while idle healthy ones exist.
func KeepDefault(c Case) Decision {
	s := start(c)
	return s.end()
}

// start puts the default mapping on the table.
func start(c Case) *decider {
	c.Config = c.Config.withDefaults()
	s := &decider{c: c, base: len(c.Job.DefaultForwarders), idle: c.Healthy()}
	if s.base == 0 {
		s.base = int(math.Ceil(float64(c.Job.Nodes) / c.Config.DefaultRatio))
	}
	s.d = Decision{Action: Default, Forwarders: slices.Clone(c.Job.DefaultForwarders), Reasons: []Reason{},
		Interference: []Interference{}}
	return s
}

// end replaces what is anomalous in a mapping that is still the default one.
func (s *decider) end() Decision {
	if s.d.Action == Default {
		s.replaceAnomalous()
	}
	if s.d.Forwarders == nil {
		s.d.Forwarders = []topology.ForwarderID{}
	}
	s.d.Count = len(s.d.Forwarders)
	return s.d
}

// Healthy returns the idle forwarders that are not anomalous.
func (c *Case) Healthy() []topology.ForwarderID {
	idle := make([]topology.ForwarderID, 0, len(c.Forwarders.Idle))
	for _, f := range c.Forwarders.Idle {
		if !slices.Contains(c.Forwarders.Anomalous, f) {
			idle = append(idle, f)
		}
	}
	return idle
}

// decide runs history, eligibility, scaling and interference.
func (s *decider) decide() {
	run, depth := Predict(s.c.History, s.c.Job)
	if depth > 0 {
		depth = max(depth, s.c.Depth)
	}
	blind := ""
	if depth == 0 && s.c.Blind > 0 {
		blind = fmt.Sprintf("; of %s nothing reported what the compute nodes moved",
			anomaly.Counted(s.c.Blind, "further run"))
	}
	if !s.tried("history", float64(depth), 1, depth >= 1,
		"runs known of this application, user, project and node count: %d (at least 1 needed)%s", depth, blind) {
		s.fail("history")
		return
	}
	if s.eligible(run) && s.scale(run) {
		return
	}
	s.avoidInterference(run)
}

// Predict is the latest run with the job's application, user, project and node count, and how many
// such runs there are (DFRA section 6.1: last-run prediction). Of runs that ended together the one
// listed last counts.
func Predict(history []Run, j Job) (latest Run, depth int) {
	for _, r := range history {
		if r.App != j.App || r.User != j.User || r.Project != j.Project || r.Nodes != j.Nodes {
			continue
		}
		if depth == 0 || r.End >= latest.End {
			latest = r
		}
		depth++
	}
	return latest, depth
}

// eligible runs the three tests of DFRA section 4. All of them are tried, so that the answer shows
// each value even after the first one failed.
func (s *decider) eligible(r Run) bool {
	c := s.c.Config
	volume := s.tried("volume", r.VolumeBytes, c.VMinBytes, r.VolumeBytes > c.VMinBytes,
		"last run moved %s (more than %s needed)", anomaly.Size(r.VolumeBytes), anomaly.Size(c.VMinBytes))
	nodes := s.tried("io-nodes", r.IONodes, c.NMin, r.IONodes >= c.NMin,
		"%s did I/O (at least %s needed)", anomaly.Counted(r.IONodes, "compute node"), figure(c.NMin))
	waited := figure(r.MetaQueue)
	light := max(1, r.MetaWithin)*r.MetaQueue < c.WMetadata
	if r.MetaWithin > 1 {
		waited = fmt.Sprintf("about %s (known to a factor of %s)", waited, figure(r.MetaWithin))
	}
	if r.MetaUnknown {
		waited, light = "it is not known how many", c.UnknownMetadata == UnknownLight
		if light {
			waited += " (unknown_metadata takes them for few):"
		}
	}
	meta := s.tried("metadata", r.MetaQueue, c.WMetadata, light,
		"%s metadata operations waited on average (fewer than %s needed)", waited, figure(c.WMetadata))
	switch {
	case !volume:
		s.fail("volume")
	case !nodes:
		s.fail("io-nodes")
	case !meta:
		s.fail("metadata")
	}
	return volume && nodes && meta
}

// scale grants min(S, idle) dedicated forwarders and reports whether the decision is made. With S
// not above the default count the job goes on to the interference check; with nothing idle it keeps
// its default mapping.
func (s *decider) scale(r Run) bool {
	f := s.c.Config.F
	s.d.Wanted = int(math.Ceil(min(r.IONodes/f, math.MaxInt32)))
	if !s.tried("scale", float64(s.d.Wanted), float64(s.base), s.d.Wanted > s.base,
		"S = ceil(%s / F %s) = %s (more than the default %d needed)", anomaly.Counted(r.IONodes, "I/O node"),
		figure(f), anomaly.Counted(s.d.Wanted, "forwarder"), s.base) {
		return false
	}
	if s.tried("idle", float64(len(s.idle)), 1, len(s.idle) > 0,
		"%s (%d wanted, at least 1 needed)", anomaly.Counted(len(s.idle), "idle healthy forwarder"), s.d.Wanted) {
		s.grant(Upgrade, min(s.d.Wanted, len(s.idle)))
	}
	return true
}

// avoidInterference isolates the job on as many dedicated forwarders as it has by default, when any
// neighbour makes interference likely (DFRA section 5).
func (s *decider) avoidInterference(r Run) {
	own := s.flags(&r, nil)
	neighbours := 0
	for _, n := range s.c.Neighbours {
		if !shares(n.Forwarders, s.c.Job.DefaultForwarders) || (n.History == nil && n.Live == nil) {
			continue
		}
		neighbours++
		why := prefixed("this job is ", own)
		why = append(why, prefixed("the neighbour is ", s.flags(n.History, n.Live))...)
		if len(why) > 0 {
			s.d.Interference = append(s.d.Interference, Interference{Job: n.Job, Why: why})
		}
	}
	likely := len(s.d.Interference)
	if s.tried("interference", float64(likely), 0, likely == 0,
		"interference likely with %d of %d neighbours on the default forwarders", likely, neighbours) {
		return
	}
	if s.tried("isolation", float64(len(s.idle)), float64(s.base), len(s.idle) >= s.base,
		"%s (%d needed to isolate the job)", anomaly.Counted(len(s.idle), "idle healthy forwarder"), s.base) {
		s.grant(Isolate, s.base)
	}
}

// flags lists what makes a job a bad neighbour. Live data override history: a quiet job has no
// flags, a louder one counts with the larger value of each dimension.
func (s *decider) flags(r *Run, live *Live) []string {
	c := s.c.Config
	var mode topology.Mode
	var now Live
	if r != nil {
		mode, now = r.Mode, Live{BW: r.BW, IOPS: r.IOPS, MetaQueue: r.MetaQueue}
	}
	if live != nil {
		if live.BW <= c.LowBW && live.IOPS <= c.LowIOPS && live.MetaQueue <= c.LowMeta {
			return nil
		}
		now = Live{BW: max(now.BW, live.BW), IOPS: max(now.IOPS, live.IOPS),
			MetaQueue: max(now.MetaQueue, live.MetaQueue)}
	}
	var out []string
	if mode == topology.ModeN1 {
		out = append(out, "N-1")
	}
	if now.MetaQueue > c.WMetadata {
		out = append(out, "metadata-heavy")
	}
	if c.HighBW > 0 && now.BW >= c.HighBW {
		out = append(out, "high-bandwidth")
	}
	if c.HighIOPS > 0 && now.IOPS >= c.HighIOPS {
		out = append(out, "high-IOPS")
	}
	return out
}

// replaceAnomalous swaps each anomalous default forwarder for an idle healthy one while there are
// any, whatever the job's history says.
func (s *decider) replaceAnomalous() {
	spare := slices.DeleteFunc(slices.Clone(s.idle), func(f topology.ForwarderID) bool {
		return slices.Contains(s.d.Forwarders, f)
	})
	for i, f := range s.d.Forwarders {
		if !slices.Contains(s.c.Forwarders.Anomalous, f) {
			continue
		}
		if !s.tried("anomaly", float64(len(spare)), 1, len(spare) > 0,
			"its forwarder %s %s; %s can take its place%s", f, cmp.Or(s.c.Forwarders.Why[f], "is not well"),
			anomaly.Counted(len(spare), "idle healthy forwarder"), s.promised()) {
			continue
		}
		s.d.Forwarders[i], spare = spare[0], spare[1:]
		s.d.Remap = true
	}
}

// promised says which idle forwarders plans speak for; empty where there are none.
func (s *decider) promised() string {
	var out []string
	for _, f := range slices.Sorted(maps.Keys(s.c.Forwarders.Promised)) {
		out = append(out, fmt.Sprintf("%s to %s", f, s.c.Forwarders.Promised[f]))
	}
	switch n := len(out); {
	case n == 0:
		return ""
	case n > shownPromises:
		out = append(out[:shownPromises], fmt.Sprintf("%d more", n-shownPromises))
	}
	return "; promised: " + strings.Join(out, ", ")
}

// shownPromises is how many forwarders that plans speak for are named.
const shownPromises = 3

func (s *decider) grant(a Action, n int) {
	s.d.Action, s.d.Remap, s.d.Forwarders = a, true, slices.Clone(s.idle[:n])
}

// tried records a rule and hands its outcome back.
func (s *decider) tried(rule string, value, threshold float64, passed bool, text string, args ...any) bool {
	s.d.Reasons = append(s.d.Reasons, Reason{Rule: rule, Value: value, Threshold: threshold, Passed: passed,
		Text: fmt.Sprintf(text, args...)})
	return passed
}

// figure writes what is a quotient or a mean with two places at most, and never as a power of ten.
func figure(v float64) string { return strconv.FormatFloat(math.Round(100*v)/100, 'f', -1, 64) }

func (s *decider) fail(rule string) { s.d.FirstFailed = &rule }

func shares(a, b []topology.ForwarderID) bool {
	return slices.ContainsFunc(a, func(f topology.ForwarderID) bool { return slices.Contains(b, f) })
}

func prefixed(p string, words []string) []string {
	out := make([]string, 0, len(words))
	for _, w := range words {
		out = append(out, p+w)
	}
	return out
}

// Wished is what a job would be granted if there were forwarders enough, for policies that decide
// otherwise who gets them.
type Wished struct {
	Decision
	// Base is the size of the job's default allocation.
	Base int
	last Run
	f    float64
}

// Wish decides a case as Decide does, as if enough idle forwarders existed. The forwarders of the
// answer are placeholders.
func Wish(c Case) Wished {
	c.Config = c.Config.withDefaults()
	last, _ := Predict(c.History, c.Job)
	s := start(c)
	enough := max(s.base, int(math.Ceil(min(last.IONodes/c.Config.F, math.MaxInt16))))
	s.idle = s.idle[:0]
	for i := range enough {
		s.idle = append(s.idle, topology.ForwarderID(fmt.Sprint(i)))
	}
	s.decide()
	s.d.Count = len(s.d.Forwarders)
	return Wished{Decision: s.d, Base: s.base, last: last, f: c.Config.F}
}

// Seconds is the expected time for the last run's volume through so many forwarders that each serve
// sharers jobs alike, in units in which one compute node moves one byte: the slower of the forwarders
// (F nodes' bandwidth each) and the nodes that do I/O. Without I/O nodes it is infinite.
func (w *Wished) Seconds(forwarders, sharers int) float64 {
	return w.last.VolumeBytes / min(float64(forwarders)*w.f/float64(sharers), w.last.IONodes)
}

// Because gives a decision the reasons and the eligibility of another look at the same case; its own
// reasons follow.
func (d Decision) Because(reasons []Reason, w Wished) Decision {
	d.Reasons = append(append([]Reason{}, reasons...), d.Reasons...)
	d.Wanted, d.FirstFailed, d.Interference = w.Wanted, w.FirstFailed, w.Interference
	return d
}
