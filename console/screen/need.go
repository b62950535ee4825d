package screen

import (
	"cmp"
	"fmt"

	"github.com/charmbracelet/x/ansi"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/remap"
	"fairway/remap/advise"
)

// NeedOf is what waits for a person because of a finding, a plan or a node; nil where nothing does.
func NeedOf(s *State, id string) *advise.Card {
	for i := range s.Shown.Needs {
		n := &s.Shown.Needs[i]
		if id != "" && (n.Finding == id || n.Plan == id || n.Node == topology.NodeID(id)) {
			return n
		}
	}
	return nil
}

// NeedLines are who waits because of it and what helps, behind labels; without what is read on the page itself.
func NeedLines(s *State, n *advise.Card, w int) (lines []string) {
	if n == nil {
		return nil
	}
	if len(n.Victims) > 0 {
		lines = append(lines, Labelled(s, "SUFFERS", Fitting(VictimWords(n.Victims), w-12), w)...)
	}
	if n.Action != nil && n.Action.Name != advise.ActLook {
		lines = append(lines, Labelled(s, "HELPS", Helps(s, n), w)...)
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

// Helps is what helps and the keys that do it.
func Helps(s *State, c *advise.Card) string {
	if c.Action == nil {
		return ""
	}
	text := helps(s, c.Action)
	for i := range c.Others {
		if a := &c.Others[i]; a.Name == remap.ActExclude {
			text += ", or " + helps(s, a)
		}
	}
	return text
}

func helps(s *State, a *advise.Action) string {
	text := chart.Clean(cmp.Or(a.Text, a.Label))
	if a.Name == remap.ActRollBack {
		text = "roll back " + chart.Clean(a.Text)
	}
	if act, ok := KeyOf(a.Name); ok {
		text += ": " + s.Key(act)
	}
	return text
}

// KeyOf is the action of the console that does what a card says; those of a plan are done on its page.
func KeyOf(a remap.Action) (Action, bool) {
	act, ok := map[remap.Action]Action{remap.ActApprove: ActApprove, advise.ActPropose: ActPropose,
		remap.ActExclude: ActExclude, remap.ActRollBack: ActRollBack, remap.ActStop: ActStop,
		advise.ActLook: ActNext, advise.ActOpen: ActNext, advise.ActDoctor: ActNext}[a]
	return act, ok
}

// VictimWords says who waits, the job that loses most first, in words that get shorter: how much it waits stays.
func VictimWords(all []advise.Victim) []string {
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
	if v.Job != "" && v.Share >= 0.005 {
		waits := fmt.Sprintf(" waits %.0f %%%s", 100*v.Share, more)
		out = append(out, name+waits, "job "+string(v.Job)+waits)
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

// SignOfCard is how loud a card is.
func SignOfCard(c *advise.Card) string {
	switch c.Stage {
	case advise.Suspect:
		return "?!"
	case advise.Silent, advise.AllSilent, advise.Starved:
		return " ?"
	case advise.Waits, advise.Moving, advise.Measuring, advise.Helped, advise.NotKnown, advise.Cleared:
		return "  "
	}
	return " !"
}
