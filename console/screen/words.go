package screen

import (
	"cmp"
	"fmt"
	"strings"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/remap"
)

// OpenFindings are those that are not over.
func OpenFindings(all []anomaly.Finding) []anomaly.Finding {
	var out []anomaly.Finding
	for _, f := range all {
		if f.State != anomaly.Returned && f.State != anomaly.Dismissed {
			out = append(out, f)
		}
	}
	return out
}

// Subject is what a finding is about.
func Subject(n topology.NodeID) string {
	if n == anomaly.Everywhere {
		return "back end"
	}
	return chart.Clean(string(n))
}

// SignNote ends a name with N where a person wrote a note about it.
func SignNote(name string, noted bool, width int) string {
	if !noted {
		return name
	}
	return chart.Clip(name, width-1) + "N"
}

// NoteWords say what the sign means.
func NoteWords(f *anomaly.Finding) string {
	return fmt.Sprintf("N: %s, the newest by %s", anomaly.Counted(f.Notes, "note"), chart.Clean(f.Note))
}

// FindingTitle is a finding in three words.
func FindingTitle(f *anomaly.Finding) string {
	if f.Kind == anomaly.FailSlow && f.Class != "" && f.Condition.Serves() {
		return "slow " + map[string]string{"read": "reads", "write": "writes", "meta": "metadata"}[f.Class]
	}
	return chart.Clean(remap.FindingWords(f))
}

// Says is a finding in a sentence.
func Says(f *anomaly.Finding) string {
	return cmp.Or(chart.Clean(f.Sentence), Subject(f.Node)+": "+FindingTitle(f))
}

// EstimatedShare is an estimated share in percent: a little is not nothing.
func EstimatedShare(v float64) string {
	switch {
	case v == 0:
		return "0%"
	case v < 0.005:
		return "<1%"
	}
	return fmt.Sprintf("~%.0f%%", 100*v)
}

// StateWords is a finding's state; in probation also how far that has come.
func StateWords(f *anomaly.Finding) string {
	if f.State == anomaly.Probation && f.Stage == anomaly.StageCanary {
		return "canary I/O"
	}
	if f.State == anomaly.Probation {
		return "on trial"
	}
	return chart.Clean(string(f.State))
}

// NextCommand is what an operator would do about a finding, as a command; empty when nothing.
func NextCommand(f *anomaly.Finding) string {
	node := chart.Clean(string(f.Node))
	switch {
	case !f.Open() || !f.Kind.Accuses():
		return ""
	case f.State == anomaly.Excluded || f.State == anomaly.Probation && f.Stage == anomaly.StageCanary:
		return fmt.Sprintf("fairway return %s, once it is repaired", node)
	case f.State == anomaly.Confirmed:
		return fmt.Sprintf("fairway drain %s --reason %q", node, f.ID+" "+strings.ReplaceAll(FindingTitle(f), "\"",
			""))
	}
	return fmt.Sprintf("fairway findings ack %s", f.ID)
}

// NextKey is the key that does what NextCommand says.
func NextKey(s *State, f *anomaly.Finding) string {
	if f.State == anomaly.Suspect || f.State == anomaly.Probation && f.Stage == anomaly.StageJob {
		return s.Key(ActAck) + " acknowledge"
	}
	if f.State == anomaly.Confirmed {
		return s.Key(ActExclude) + " drain it"
	}
	return s.Key(ActExclude) + " return it"
}

// StateOf is a finding's state, or for how long it does not alert.
func StateOf(s *State, f *anomaly.Finding) string {
	if f.Open() && f.Silent(s.Now) {
		return "silent " + chart.Age(f.Silenced.Sub(s.Now))
	}
	return StateWords(f)
}
