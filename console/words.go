package console

import (
	"fmt"
	"strings"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// openFindings are those that are not over.
func openFindings(all []anomaly.Finding) []anomaly.Finding {
	var out []anomaly.Finding
	for _, f := range all {
		if f.State != anomaly.Returned && f.State != anomaly.Dismissed {
			out = append(out, f)
		}
	}
	return out
}

// subject is what a finding is about.
func subject(n topology.NodeID) string {
	if n == anomaly.Everywhere {
		return "back end"
	}
	return clean(string(n))
}

// findingTitle is a finding in three words.
func findingTitle(f *anomaly.Finding) string {
	if f.Kind == anomaly.FailSlow && f.Class != "" {
		return "slow " + map[string]string{"read": "reads", "write": "writes", "meta": "metadata"}[f.Class]
	}
	return clean(remap.KindWords(f.Kind))
}

// estimatedShare is an estimated share in percent: a little is not nothing.
func estimatedShare(v float64) string {
	if v > 0 && v < 0.005 {
		return "<1%"
	}
	return fmt.Sprintf("~%.0f%%", 100*v)
}

// stateWords is a finding's state; in probation also how far that has come.
func stateWords(f *anomaly.Finding) string {
	if f.State == anomaly.Probation && f.Stage == anomaly.StageCanary {
		return "canary I/O"
	}
	if f.State == anomaly.Probation {
		return "on trial"
	}
	return clean(string(f.State))
}

// NextCommand is what an operator would do about a finding, as a command; empty when nothing.
func NextCommand(f *anomaly.Finding) string {
	node := clean(string(f.Node))
	switch {
	case !f.Open() || !f.Kind.Accuses():
		return ""
	case f.State == anomaly.Excluded || f.State == anomaly.Probation && f.Stage == anomaly.StageCanary:
		return fmt.Sprintf("fairway return %s, once it is repaired", node)
	case f.State == anomaly.Confirmed:
		return fmt.Sprintf("fairway exclude %s --reason %q", node, f.ID+" "+strings.ReplaceAll(findingTitle(f), "\"",
			""))
	}
	return fmt.Sprintf("fairway findings ack %s", f.ID)
}

// nextKey is the key that does what NextCommand says.
func nextKey(s *State, f *anomaly.Finding) string {
	if f.State == anomaly.Suspect || f.State == anomaly.Probation && f.Stage == anomaly.StageJob {
		return s.Key(actAck) + " acknowledge"
	}
	if f.State == anomaly.Confirmed {
		return s.Key(actExclude) + " withhold it"
	}
	return s.Key(actExclude) + " take it back"
}

// stateOf is a finding's state, or for how long it calls nobody.
func stateOf(s *State, f *anomaly.Finding) string {
	if f.Open() && f.Silent(s.Now) {
		return "silent " + age(f.Silenced.Sub(s.Now))
	}
	return stateWords(f)
}
