package screen

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/webui/api"
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

// SharedLines are who of other sites uses storage targets that are slow here.
func SharedLines(list []api.SharedTarget, w int) (lines []string) {
	for i := range list {
		text := strings.Join(append([]string{list[i].Text}, list[i].Lines...), ". ")
		lines = append(lines, chart.Labelled("SHARED", chart.Clean(text), w)...)
	}
	return lines
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
	return BoldLines(s, chart.Labelled(label, text, w))
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

// CardLook is the colour of a card: of what is wrong, of what can be pressed, of what helped; grey is over.
func CardLook(p *chart.Palette, c *advise.Card) string {
	switch c.Stage {
	case advise.Suspect, advise.Starved:
		return p.Suspect
	case advise.Waits, advise.Moving, advise.Measuring:
		return p.Accent
	case advise.Helped:
		return p.Well
	case advise.Cleared, advise.NotKnown, advise.InVain, advise.Silent, advise.AllSilent, advise.Odd:
		return p.Dim
	}
	return p.Slow
}

// Pill is a card's stage with its sign, in capitals; text replaces the stage.
func Pill(p *chart.Palette, stage advise.Stage, text string) string {
	signs := map[advise.Stage][2]string{advise.Suspect: {"△", "?!"}, advise.Silent: {"?", "?"},
		advise.AllSilent: {"?", "?"}, advise.Starved: {"?", "?"}, advise.NotKnown: {"?", "?"},
		advise.Waits: {"⇥", ">"}, advise.Moving: {"⇥", ">"}, advise.Measuring: {"⇥", ">"},
		advise.Helped: {"✓", "+"}, advise.Cleared: {"✓", "+"}, advise.InVain: {"x", "x"}}
	sign, ok := signs[stage]
	if !ok {
		sign = [2]string{"▲", "!"}
	}
	return p.Glyph(sign[0], sign[1]) + " " + strings.ToUpper(cmp.Or(text, string(stage)))
}

// Arrow stands before what is proposed.
func Arrow(p *chart.Palette) string {
	return p.Paint(p.Accent, p.Glyph("⇥", ">"))
}

// Buttons are what can be pressed about a card, with the keys; the one that is expected has a ground of its own.
func Buttons(s *State, c *advise.Card) string {
	var out []string
	all := c.Others
	if c.Action != nil {
		all = append([]advise.Action{*c.Action}, all...)
	}
	for i := range all {
		a := &all[i]
		act, ok := KeyOf(a.Name)
		if !ok || a.Name == advise.ActDoctor {
			continue
		}
		key := s.Key(act)
		look := s.Palette.Accent
		if a.Filled {
			look, key = s.Palette.Accent+s.Palette.Reverse, " "+key+" "
		}
		out = append(out, s.Palette.Paint(look, key)+" "+chart.Clean(strings.ToLower(a.Label[:1])+a.Label[1:]))
	}
	return strings.Join(out, "   ")
}

// ShareBar is a bar of w columns for a share of time that is waited.
func ShareBar(p *chart.Palette, share float64, w int) string {
	full, empty, look := p.Glyph("━", "#"), p.Glyph("━", "-"), p.Dim
	if share >= 0.05 {
		look = p.Slow
	}
	n := max(0, min(w, int(share*float64(w)+0.5)))
	return p.Paint(look, strings.Repeat(full, n)) + p.Paint(p.Frame, strings.Repeat(empty, w-n))
}

// DoneStep is the newest step of a card that was done, with its time; empty before the first.
func DoneStep(s *State, c *advise.Card) string {
	newest := advise.Card{}
	for _, step := range c.Steps {
		if step.State == "done" && !step.At.IsZero() {
			newest.Steps = []advise.Step{step}
		}
	}
	return StepLine(s, &newest, math.MaxInt)
}

// StepLine are the steps of a card in one line, as far as it is wide.
func StepLine(s *State, c *advise.Card, w int) string {
	var out []string
	done := s.Palette.Glyph("✓", "+")
	for _, step := range c.Steps {
		text := chart.Clean(step.Name)
		switch step.State {
		case "done":
			text = s.Palette.Paint(s.Palette.Dim, done+" "+text)
			if !step.At.IsZero() {
				text += s.Palette.Paint(s.Palette.Dim, " "+chart.Clock(step.At))
			}
		case "next":
			text = s.Palette.Paint(s.Palette.Accent, "> "+text)
		case "failed":
			text = s.Palette.Paint(s.Palette.Slow, "x "+text)
		default:
			text = s.Palette.Paint(s.Palette.Dim, "  "+text)
		}
		out = append(out, text)
	}
	for len(out) > 0 {
		if line := strings.Join(out, "  "); ansi.StringWidth(line) <= w {
			return line
		}
		out = out[1:] // the oldest gives way
	}
	return ""
}
