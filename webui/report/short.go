package report

import (
	"cmp"
	"fmt"
	"strings"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// InShort is the report in sentences, for who reads nothing else of it.
func (r *Report) InShort() []string {
	l := &r.Layer
	did := fmt.Sprintf("read %s and wrote %s", anomaly.Size(l.ReadBytes), anomaly.Size(l.WriteBytes))
	switch passed := "passed on " + anomaly.Size(l.RoutedBytes); {
	case l.RoutedBytes > 0 && !r.Directed():
		did = passed
	case l.RoutedBytes > 0:
		did += ", routers " + passed
	}
	used := fmt.Sprintf("The forwarders %s; %s ended.", did, anomaly.Counted(r.Total.Runs, "job"))
	return []string{used, r.slowInShort(), r.movedInShort()}
}

// Directed says that it is known of bytes whether they were read or written: not of what routers alone pass on.
func (r *Report) Directed() bool {
	return r.Layer.ReadBytes+r.Layer.WriteBytes > 0 || r.Layer.RoutedBytes == 0
}

// SlowNodes counts the forwarders and back ends that were slow; what a person called wrong was not.
func (r *Report) SlowNodes() int {
	slow := map[string]bool{}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.State != anomaly.Dismissed {
			slow[f.Node] = true
		}
	}
	return len(slow)
}

func (r *Report) slowInShort() string {
	if r.SlowNodes() == 0 {
		return "No forwarder or back end was slow."
	}
	seconds, lost, open := 0.0, 0.0, 0
	jobs := map[topology.JobID]bool{}
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.State == anomaly.Dismissed {
			continue
		}
		if seconds += f.Seconds; f.Ended.IsZero() {
			open++
		}
		for _, h := range f.Hurt {
			jobs[h.Job] = true
			lost += h.CostSeconds
		}
	}
	text := fmt.Sprintf("%s %s slow, for %s in all", anomaly.Counted(r.SlowNodes(), "node"),
		anomaly.VerbOf(r.SlowNodes(), "was", "were"), spanText(seconds))
	if len(jobs) > 0 {
		text += "; " + anomaly.Counted(len(jobs), "job") + " lost time by it"
		if lost > 0 {
			text += ", " + spanText(lost) + " in all"
		}
	}
	if open > 0 {
		return text + fmt.Sprintf("; %s not ended yet.", anomaly.Counted(open, "finding"))
	}
	return text + "."
}

func (r *Report) movedInShort() string {
	if len(r.Plans) == 0 {
		return "No job was moved to other forwarders, and nobody proposed to."
	}
	moved := 0
	for i := range r.Plans {
		if r.Plans[i].State.Moved() {
			moved++
		}
	}
	return fmt.Sprintf("%s to move compute nodes to other forwarders; %d carried out, whole or in part.",
		anomaly.Counted(len(r.Plans), "proposal"), moved)
}

// endWords say how a finding stood at the end of the period.
func endWords(s anomaly.State) string {
	words := map[anomaly.State]string{anomaly.Confirmed: "not ended", anomaly.Excluded: "not ended; drained",
		anomaly.Probation: "in use again, on probation", anomaly.Returned: "well again",
		anomaly.Dismissed: "dismissed as wrong"}
	if w := words[s]; w != "" {
		return w
	}
	return string(s)
}

// planWords say what became of a proposal.
func planWords(p Moved) string {
	words := map[remap.PlanState]string{remap.Proposed: "waits for a person", remap.Approved: "approved",
		remap.Applied:  "moved, not yet observed",
		remap.Verified: "moved, and observed", remap.Partial: "moved in part", remap.RollingBack: "being undone",
		remap.Restored: "undone by itself", remap.RolledBack: "undone"}
	w := cmp.Or(words[p.State], string(p.State))
	if (p.State == remap.Withdrawn || p.State == remap.Expired) && p.Why != "" {
		w += ": " + p.Why
	}
	return w
}

// hurtWords names the jobs that a slow node held up, and what they lost.
func hurtWords(hurt []anomaly.Impact) string {
	all := make([]string, len(hurt))
	for i, h := range hurt {
		var lost []string
		if h.Share > 0 {
			lost = append(lost, fmt.Sprintf("%.0f %%", 100*h.Share))
		}
		if h.CostSeconds > 0 {
			lost = append(lost, spanText(h.CostSeconds))
		}
		if all[i] = string(h.Job); len(lost) > 0 {
			all[i] += " (" + strings.Join(lost, ", ") + ")"
		}
	}
	return strings.Join(all, ", ")
}
