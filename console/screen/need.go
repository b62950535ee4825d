package screen

import (
	"fmt"

	"github.com/charmbracelet/x/ansi"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/remap"
	"fairway/webui/api"
)

// NeedOf is what waits for a person because of a finding, a plan or a node; nil where nothing does.
func NeedOf(s *State, id string) *api.Need {
	for i := range s.Shown.Needs {
		n := &s.Shown.Needs[i]
		if id != "" && (n.Finding == id || n.Plan == id || n.Node == topology.NodeID(id)) {
			return n
		}
	}
	return nil
}

// NeedLines are who waits because of it and what helps, behind labels; without what is read on the page itself.
func NeedLines(s *State, n *api.Need, w int) (lines []string) {
	if n == nil {
		return nil
	}
	if len(n.Victims) > 0 {
		lines = append(lines, Labelled(s, "SUFFERS", Fitting(VictimWords(n.Victims), w-12), w)...)
	}
	if n.Remedy != nil && n.Remedy.Action != api.ActLook {
		lines = append(lines, Labelled(s, "HELPS", RemedyWords(s, n.Remedy), w)...)
	}
	return lines
}

// Labelled is a text behind a label, in bold.
func Labelled(s *State, label, text string, w int) []string {
	lines := chart.Labelled(label, text, w)
	for i := range lines {
		lines[i] = s.Bold(lines[i])
	}
	return lines
}

// RemedyWords is what helps and the key that does it.
func RemedyWords(s *State, r *api.Remedy) string {
	if r == nil {
		return ""
	}
	text := chart.Clean(r.Text)
	if act, ok := keyOf[r.Action]; ok {
		text += ": " + s.Key(act)
	}
	if r.Else != nil {
		text += ", or " + RemedyWords(s, r.Else)
	}
	return text
}

var keyOf = map[remap.Action]Action{remap.ActApprove: ActApprove, api.ActPropose: ActPropose,
	remap.ActExclude: ActExclude, api.ActLook: ActNext}

// VictimWords says who waits, the job that loses most first, in words that get shorter: how much it waits stays.
func VictimWords(all []api.Victim) []string {
	if len(all) == 0 {
		return nil
	}
	v, more := &all[0], ""
	if n := len(all) - 1; n > 0 {
		more = ", " + anomaly.Counted(n, "more job")
	}
	name := "job " + string(v.Job)
	if v.App != "" {
		name = fmt.Sprintf("%s (%s)", v.App, name)
	}
	short := *v
	short.CostSeconds = 0
	short.Write()
	out := []string{v.Text + more, short.Text + more}
	if v.Share >= 0.005 {
		for _, short := range []string{name, "job " + string(v.Job)} {
			out = append(out, fmt.Sprintf("%s waits %.0f %%%s", short, 100*v.Share, more))
		}
	}
	for i := range out {
		out[i] = chart.Clean(out[i])
	}
	return out
}

// Fitting is the first of some words that fits w columns, else the last.
func Fitting(words []string, w int) string {
	for _, text := range words {
		if ansi.StringWidth(text) <= w {
			return text
		}
	}
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}
