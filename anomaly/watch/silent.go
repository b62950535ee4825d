package watch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/capacity"
	"fairway/collector"
	"fairway/collector/ingest"
	"fairway/collector/topology"
)

// silence watches for what needs no statistics: forwarders that no longer report what they serve, dead, hung or cut
// off; links that run at a part of their rate; nodes of which another one reports; and what explains that one is slow.
type silence struct {
	intruders func(since time.Time) []ingest.Intruder // nil: nobody knows
	last      map[topology.NodeID]int64               // newest second with service figures, Unix
	agents    map[topology.NodeID]agentSays           // what agents say, whatever they know of the service
	quiet     map[topology.NodeID]int64               // since when, of those that are or were silent
	order     []topology.NodeID
	rates     linkRates
	causes    causes
	full      capacity.Judge
}

// everyRole stands for the nodes of all roles that serve.
const everyRole = topology.RoleUnknown

const (
	// silentAfter is longer than an agent or diod takes to restart, seconds.
	silentAfter = 15
	// afterSilence is how long a forwarder that reports again gets clean verdicts, seconds.
	afterSilence = 900
)

// agentSays is a node's newest frame in short: when, as what, and what its sources could not read.
type agentSays struct {
	at   int64
	role topology.Role
	why  string
}

// served are the metrics of which a node at work that serves others always reports one, whatever its layer.
var served = []collector.Metric{collector.ReadOps, collector.WriteOps, collector.MetaOps, collector.ReadBytes,
	collector.WriteBytes, collector.RoutedOps}

// beside are the sources that say nothing of what a node serves.
var beside = map[string]bool{"routes": true, "procfs": true}

// refuses reports whether a source says of a service that it takes no connections, or has ended.
func refuses(why string) bool {
	return strings.Contains(why, "connection refused") || strings.Contains(why, collector.ServiceEnded)
}

// take notes that a node reports what it serves. Frames of an agent that outlives its service do not count as that.
func (s *silence) take(f *collector.Frame, now int64) {
	says := agentSays{at: now, role: f.Role}
	for i := range f.Sources {
		err := f.Sources[i].Err
		if err != "" && !beside[f.Sources[i].Name] && (says.why == "" || refuses(err)) {
			says.why = f.Sources[i].Name + ": " + err
		}
	}
	s.agents[f.Node] = says
	if !slices.ContainsFunc(served, func(m collector.Metric) bool { _, ok := f.Value(m); return ok }) {
		return
	}
	if s.last[f.Node] == 0 {
		s.order = append(s.order, f.Node)
		slices.Sort(s.order)
	}
	s.last[f.Node] = now
}

// verdicts accuse the nodes that stopped reporting what they serve while most others report: otherwise the fault is the
// collector's. Whether the agent or the counters are missing, or the service refuses, is the condition. used counts the
// compute nodes that are mapped to a forwarder.
func (s *silence) verdicts(now time.Time, used func(topology.NodeID) int) (out []anomaly.Verdict) {
	t, fresh, all := now.Unix(), map[topology.Role]int{}, map[topology.Role]int{}
	for n, at := range s.last {
		for _, role := range []topology.Role{s.agents[n].role, everyRole} {
			all[role]++
			if t-at <= silentAfter/3 {
				fresh[role]++
			}
		}
	}
	for _, n := range s.order {
		at, others := s.last[n], s.agents[n].role
		if all[others] == 1 { // the only metadata server is compared with all that serve
			others = everyRole
		}
		most := fresh[others] > 0 && 2*fresh[others] >= all[others]
		since := s.quiet[n]
		switch {
		case t-at > silentAfter && most && !s.idle(n, t):
			if since == 0 {
				since = at
				s.quiet[n] = at
			}
			begun := time.Unix(since, 0).UTC()
			condition, sentence := s.condition(n, t, others, fresh[others])
			if clients := used(n); clients > 0 {
				sentence += "; " + anomaly.Counted(clients, "compute node") + anomaly.VerbOf(clients, " is", " are") +
					" mapped to it"
			}
			out = append(out, anomaly.Verdict{Node: n, Kind: s.kind(n, condition), Level: anomaly.Alarm,
				Condition: condition, Since: begun, Confidence: 0.95,
				Score: float64(t - at), Model: "silence-1",
				Evidence: map[string]float64{"silent_seconds": float64(t - at)}, Sentence: sentence})
		case since != 0 && t == at:
			out = append(out, anomaly.Verdict{Node: n, Kind: s.kind(n, anomaly.Silent), Level: anomaly.Clean,
				Condition: anomaly.Silent})
		}
		if since != 0 && t-since > afterSilence && t == at {
			delete(s.quiet, n)
		}
	}
	return out
}

// condition says what is missing of a node that does not report what it serves.
func (s *silence) condition(n topology.NodeID, now int64, others topology.Role, fresh int) (anomaly.Condition,
	string) {
	a := s.agents[n]
	switch {
	case now-a.at > silentAfter/3:
		who := "other node"
		if others != everyRole {
			who = "other " + others.String()
		}
		return anomaly.Silent, fmt.Sprintf("%s does not report, while %s", n,
			anomaly.CountedAs(fresh, who+" does", who+"s do"))
	case refuses(a.why):
		return anomaly.Dead, fmt.Sprintf("%s answers nobody, its agent is well: %s", n, a.why)
	}
	sentence := fmt.Sprintf("%s: its counters cannot be read, its agent is well", n)
	if a.why != "" {
		sentence += ": " + a.why
	}
	return anomaly.Unreadable, sentence
}

// idle says that a server's agent is well and none of its readers failed: it serves nobody just now.
func (s *silence) idle(n topology.NodeID, now int64) bool {
	a := s.agents[n]
	return a.role != topology.Forwarder && a.why == "" && now-a.at <= silentAfter/3
}

// kind is what a verdict of silence is about: only a forwarder is ever excluded for it.
func (s *silence) kind(n topology.NodeID, c anomaly.Condition) anomaly.Kind {
	switch {
	case s.agents[n].role == topology.Storage, s.agents[n].role == topology.Metadata:
		return anomaly.TargetSlow
	case c == anomaly.Dead:
		return anomaly.FailSlow
	}
	return anomaly.ForwarderSilent
}

// speakerFor is how long a second speaker that was refused counts as present: longer than an agent waits between tries.
const speakerFor = time.Minute

// speakerVerdicts report whoever spoke for a node that has another speaker. Nothing of what he brought was taken.
func (s *silence) speakerVerdicts(now time.Time) (out []anomaly.Verdict) {
	if s.intruders == nil {
		return nil
	}
	for _, i := range s.intruders(now.Add(-speakerFor)) {
		sentence := fmt.Sprintf("%s with the token %q speaks for %s, which has a speaker already, at %s; refused %s",
			i.Remote, i.Token, i.Node, i.Owner, anomaly.Counted(int(i.Times), "time"))
		kind := anomaly.SecondSpeaker
		if i.Owner == "" {
			kind = anomaly.LongList
			sentence = fmt.Sprintf("%s with the token %q lists more clients of %s than can be; left out %s; if they "+
				"exist, name the compute nodes in the settings", i.Remote, i.Token, i.Node,
				anomaly.Counted(int(i.Times), "time"))
		}
		out = append(out, anomaly.Verdict{Node: i.Node, Kind: kind, Level: anomaly.Alarm,
			Since:      i.First,
			Confidence: 1, Score: float64(i.Times), Model: "speaker-1",
			Evidence: map[string]float64{"refused": float64(i.Times)},
			Sentence: sentence})
	}
	return out
}

// Speakers has the detectors ask who has spoken for others' nodes since a time. It is called before the first second.
func (d *Detectors) Speakers(of func(since time.Time) []ingest.Intruder) { d.silence.intruders = of }
