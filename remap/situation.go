package remap

import (
	"fmt"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap/place"
	"fairway/tsdb/window"
)

// ForwarderState is a forwarder's standing in one word, as every screen shows it.
type ForwarderState string

// The standings of a forwarder; of several that apply the last one here counts.
const (
	ForwarderIdle      ForwarderState = "idle"
	ForwarderOK        ForwarderState = "ok"
	ForwarderUnknown   ForwarderState = "unknown" // it reports, but not what it moves
	ForwarderDedicated ForwarderState = "dedicated"
	ForwarderTrial     ForwarderState = "trial" // in use again, and watched
	ForwarderSuspect   ForwarderState = "suspect"
	ForwarderSlow      ForwarderState = "slow" // confirmed
	ForwarderHung      ForwarderState = ForwarderState(anomaly.Hung)
	ForwarderDead      ForwarderState = ForwarderState(anomaly.Dead)
	ForwarderExcluded  ForwarderState = "drained"
	ForwarderStale     ForwarderState = "silent" // no news: whatever was known is old
)

// Text is the standing as screens write it: of one that carries work how much of its peak, where that is known.
func (s ForwarderState) Text(busy *float64) string {
	switch {
	case s == ForwarderOK && busy != nil:
		return fmt.Sprintf("busy %.0f %%", 100**busy)
	case s == ForwarderOK:
		return "busy"
	}
	return string(s)
}

// Healthy says whether a forwarder of this standing may carry new work. One whose load is not known may be full.
func (s ForwarderState) Healthy() bool {
	return s == ForwarderIdle || s == ForwarderOK || s == ForwarderDedicated
}

// Failed says that a forwarder is slow for certain, or worse: lists have it at the top.
func (s ForwarderState) Failed() bool {
	return s == ForwarderSlow || s == ForwarderHung || s == ForwarderDead
}

// Ages at which news is called late and stale.
const (
	LateAfter  = 3 * time.Second
	StaleAfter = window.DefaultStaleAfter
)

// SituationParts is what a Situation is made of; the maps are taken over, not copied.
type SituationParts struct {
	At       time.Time
	Machine  *topology.Machine
	Index    *topology.Index // of Machine; nil: it is made
	Routes   map[topology.NodeID]window.Route
	Load     map[topology.ForwarderID]Load
	Findings []anomaly.Finding
	Excluded map[topology.ForwarderID]string
	Owner    map[topology.ForwarderID]topology.JobID
	Jobs     []Job
	// Promised are the nodes that plans under way are bringing somewhere.
	Promised topology.Mapping
}

// BuildSituation makes the snapshot that deciders and operators share.
func BuildSituation(p SituationParts) *Situation {
	s := &Situation{At: p.At, Machine: p.Machine, Index: p.Index,
		Places: place.New(p.Machine.Default, p.Routes, p.Promised), Load: p.Load, Findings: p.Findings,
		Excluded: p.Excluded, Owner: p.Owner, Jobs: p.Jobs}
	if s.Index == nil {
		s.Index = topology.NewIndex(p.Machine)
	}
	return s
}

// State derives a forwarder's standing from the facts of the situation.
func (s *Situation) State(id topology.ForwarderID) ForwarderState {
	load, seen := s.Load[id]
	switch {
	case !seen || s.At.Sub(load.LastSeen) > StaleAfter:
		return ForwarderStale
	case s.Excluded[id] != "":
		return ForwarderExcluded
	}
	if f, ok := s.Accused(id); ok {
		switch {
		case f.Condition == anomaly.Hung, f.Condition == anomaly.Dead:
			return ForwarderState(f.Condition)
		case !f.Condition.Serves():
		case f.State == anomaly.Suspect:
			return ForwarderSuspect
		case f.State == anomaly.Probation:
			return ForwarderTrial
		}
		return ForwarderSlow
	}
	if _, ok := s.Owner[id]; ok {
		return ForwarderDedicated
	}
	return load.state()
}

// ClientsByJob counts the nodes of each job behind each forwarder; one that uses several counts at each.
func (s *Situation) ClientsByJob() map[topology.ForwarderID]map[topology.JobID]int {
	out := map[topology.ForwarderID]map[topology.JobID]int{}
	for i := range s.Jobs {
		for _, n := range s.Jobs[i].Nodes {
			on := s.SpreadOf(n)
			if f, ok := s.Observed[n]; ok {
				on = []topology.Share{{Forwarder: f, Part: 1}}
			}
			for _, over := range on {
				if id := over.Forwarder; out[id] == nil {
					out[id] = map[topology.JobID]int{}
				}
				out[over.Forwarder][s.Jobs[i].ID]++
			}
		}
	}
	return out
}

// IsForwarder reports whether a node is a forwarding node of the machine.
func (s *Situation) IsForwarder(id topology.ForwarderID) bool {
	n, ok := s.Machine.Node(id.Node())
	return ok && n.Role == topology.Forwarder
}

// Accused returns the open finding that holds a forwarder itself responsible, the gravest first.
func (s *Situation) Accused(id topology.ForwarderID) (f anomaly.Finding, ok bool) {
	for _, g := range s.Findings {
		if g.Node != id.Node() || !g.Kind.Accuses() {
			continue
		}
		switch g.State {
		case anomaly.Confirmed, anomaly.Excluded:
			return g, true
		case anomaly.Suspect, anomaly.Probation:
			f, ok = g, true
		}
	}
	return f, ok
}

// OutOfService returns the condition of a forwarder that an open finding says serves nobody: hung, dead or silent.
// It is empty for one that serves. Such a forwarder is not idle, is granted to nobody, and no plan moves nodes onto it.
func (s *Situation) OutOfService(id topology.ForwarderID) anomaly.Condition {
	if f, accused := s.Accused(id); accused && !f.Condition.Serves() {
		return f.Condition
	}
	return ""
}

// MayCarry says whether no finding that is more than a suspicion prevents giving a forwarder
// new work.
func (s *Situation) MayCarry(id topology.ForwarderID) bool {
	f, accused := s.Accused(id)
	return !accused || f.Condition.Serves() && (f.State == anomaly.Suspect || f.State == anomaly.Probation)
}

// SickBehind returns the confirmed finding that a forwarder's one back end is slow: no forwarder in front of it is to
// blame, and none of them is a place to go.
func (s *Situation) SickBehind(id topology.ForwarderID) (f anomaly.Finding, ok bool) {
	server := s.Load[id].BackEnd
	if server == "" {
		return f, false
	}
	for _, g := range s.Findings {
		if g.Node == server && g.Kind == anomaly.TargetSlow && g.State == anomaly.Confirmed {
			return g, true
		}
	}
	return f, false
}

// Healthy counts the forwarders that may carry new work, and how many of them are idle.
func (s *Situation) Healthy() (healthy, idle int) {
	for _, f := range s.Index.Forwarders() {
		st := s.State(f)
		if st.Healthy() {
			healthy++
		}
		if st == ForwarderIdle {
			idle++
		}
	}
	return healthy, idle
}

// Unknown counts the forwarders that report but not what they move.
func (s *Situation) Unknown() (n int) {
	for _, f := range s.Index.Forwarders() {
		if s.State(f) == ForwarderUnknown {
			n++
		}
	}
	return n
}

// ForEverybody counts the healthy forwarders that are dedicated to no job, without those that a plan
// would take.
func (s *Situation) ForEverybody(owners map[topology.ForwarderID]topology.JobID, taken []topology.ForwarderID) (n int) {
	for _, id := range s.Index.Forwarders() {
		if _, owned := owners[id]; owned || slices.Contains(taken, id) {
			continue
		}
		if s.State(id).Healthy() {
			n++
		}
	}
	return n
}

// idleShare is the share of its peak below which a forwarder counts as idle; idleBytesPerSec stands
// in where the peak is not known.
const (
	idleShare       = 0.01
	idleBytesPerSec = 1e6
	idleOps         = 10 // a storm of metadata moves no bytes and is work all the same
)

// LoadOf is the load that a forwarder's values of a second report; value returns nil for one that is not known.
func LoadOf(value func(collector.Metric) *float64, lastSeen time.Time, peakBytesPerSec float64) Load {
	l := Load{LastSeen: lastSeen, PeakBytesPerSec: peakBytesPerSec,
		ReadBytesPerSec: value(collector.ReadBytes), WriteBytesPerSec: value(collector.WriteBytes),
		RoutedBytesPerSec: value(collector.RoutedBytes), MetaOpsPerSec: value(collector.MetaOps)}
	if r, w := value(collector.ReadOps), value(collector.WriteOps); r != nil && w != nil {
		l.DataOpsPerSec = new(*r + *w)
	}
	return l
}

// LoadOfFrame is the load of a forwarder's newest second.
func LoadOfFrame(f *collector.Frame, peakBytesPerSec float64, now time.Time) Load {
	seen := time.UnixMilli(f.TimeMillis + 1000)
	if seen.After(now) {
		seen = now
	}
	return LoadOf(func(m collector.Metric) *float64 {
		if v, ok := f.Value(m); ok && collector.IsValue(v) {
			return &v
		}
		return nil
	}, seen, peakBytesPerSec)
}

// Rate is what the forwarder moves, in bytes/s, and whether all of it is known. Of one that reports one direction
// only, it is that direction.
func (l *Load) Rate() (bytesPerSec float64, known bool) {
	for _, v := range [...]*float64{l.ReadBytesPerSec, l.WriteBytesPerSec, l.RoutedBytesPerSec} {
		if v != nil {
			bytesPerSec += *v
		}
	}
	switch {
	case l.ReadBytesPerSec != nil && l.WriteBytesPerSec != nil, l.router():
		known = true
	case l.DataOpsPerSec != nil && *l.DataOpsPerSec == 0: // nothing was asked for, so nothing moved
		known = true
	}
	return bytesPerSec, known
}

// Known says whether all that the forwarder moves is known.
func (l *Load) Known() bool {
	_, known := l.Rate()
	return known
}

// router says that the forwarder forwards messages and knows no files: it has no metadata of its own.
func (l *Load) router() bool {
	return l.RoutedBytesPerSec != nil && l.ReadBytesPerSec == nil && l.WriteBytesPerSec == nil
}

// Busy is the rate as a share of the peak, at most 1; nil where either is not known.
func (l *Load) Busy() *float64 {
	rate, known := l.Rate()
	if !known || l.PeakBytesPerSec <= 0 {
		return nil
	}
	return new(min(1, rate/l.PeakBytesPerSec))
}

// state is what the load alone says: busy is shown by what is known, idle only when everything is.
func (l *Load) state() ForwarderState {
	rate, known := l.Rate()
	idleBelow := float64(idleBytesPerSec)
	if l.PeakBytesPerSec > 0 {
		idleBelow = idleShare * l.PeakBytesPerSec
	}
	atLeast := func(ops *float64) bool { return ops != nil && *ops >= idleOps }
	switch {
	case rate >= idleBelow, atLeast(l.MetaOpsPerSec), !known && atLeast(l.DataOpsPerSec):
		return ForwarderOK
	case known && (l.MetaOpsPerSec != nil || l.router()):
		return ForwarderIdle
	}
	return ForwarderUnknown
}
