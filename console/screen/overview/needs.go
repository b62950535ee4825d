package overview

import (
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/remap/advise"
)

// need is what waits for a person: what is wrong, who suffers by it, and which key does what about it.
type need struct {
	sign, what, tail string
	victims          []string // in words, the shortest last
	remedy           string
}

// needOn is the nth of what waits for a person, as the server lists it, in this console's keys.
func needOn(s *screen.State, nth int) need {
	n := &s.Shown.Needs[nth]
	return need{sign: screen.SignOfCard(n), what: chart.Clean(n.Sentence), tail: since(s, n),
		victims: screen.VictimWords(n.Victims), remedy: screen.Helps(s, n)}
}

// whereOf is the page of what waits.
func whereOf(n *advise.Card) screen.Address {
	switch {
	case n.Finding != "":
		return screen.AtFinding(n.Finding)
	case n.Plan != "":
		return screen.AtPlan(n.Plan)
	}
	return screen.AtForwarder(topology.ForwarderID(n.Node))
}

// since says for how long something waits, or has been over.
func since(s *screen.State, n *advise.Card) string {
	word := "for "
	switch {
	case n.Since.IsZero():
		return "never seen"
	case n.Over():
		word = "over for "
	case !n.Until().IsZero():
		return "lasted " + chart.Age(n.Until().Sub(n.Since))
	case n.Finding == "" && n.Plan != "":
		word = "waits "
	}
	return word + chart.Age(s.AsOf().Sub(n.Since))
}

// look is how loud a need is.
func (n *need) look(s *screen.State) string { return s.SignLook(n.sign) }

// lines draws a need in w columns: what, for how long; who suffers; what to press. Where there is room what is wrong
// and who suffers have a second line rather than an end that is missing; else how long it has been gives way to the
// next line. In brief who suffers is in the words that fit beside what to press, where there are any.
func (n *need) lines(s *screen.State, w int, room, brief bool) []string {
	p := s.Palette
	head, tail, behind := n.sign+" "+n.what, " "+n.tail, ""
	var out []string
	switch wide := w - ansi.StringWidth(tail); {
	case ansi.StringWidth(head) <= wide || len(n.victims) == 0 && !room:
		out = []string{chart.Ends(head, tail, w)}
	case room:
		wrapped := chart.Wrap(n.what, wide-ansi.StringWidth(n.sign+" "))
		out = []string{chart.Ends(n.sign+" "+wrapped[0], tail, w), chart.Clip("   "+strings.Join(wrapped[1:], " "), w)}
	default:
		out, behind = []string{chart.Clip(head, w)}, tail
	}
	for i := range out {
		out[i] = p.Paint(n.look(s), out[i])
	}
	out = append(out, n.help(s, w-3, room, brief, behind)...)
	if !p.Blocks {
		for i := range out {
			out[i] = strings.ReplaceAll(out[i], " · ", "; ")
		}
	}
	return out
}

// help is who suffers and what to press, in w columns behind an indent; behind stands at the end of its first line.
func (n *need) help(s *screen.State, w int, room, brief bool, behind string) []string {
	p := s.Palette
	wide := w - ansi.StringWidth(behind)
	who := []string{screen.Fitting(n.victims, wide)}
	if room && len(n.victims) > 0 && ansi.StringWidth(n.victims[0]) > wide {
		if whole := chart.Wrap(n.victims[0], wide); len(whole) == 2 {
			who = whole
		}
	}
	beside := wide - ansi.StringWidth(" · "+n.remedy)
	if short := screen.Fitting(n.victims, beside); brief && ansi.StringWidth(short) <= beside {
		who = []string{short}
	}
	remedy := p.Paint(p.Accent, n.remedy)
	last := &who[len(who)-1]
	switch both := *last + " · " + remedy; {
	case *last == "":
		*last = remedy
	case n.remedy != "" && ansi.StringWidth(both) <= wide:
		*last = both
	case n.remedy != "":
		who = append(who, remedy)
	}
	who[0] = chart.Ends(who[0], behind, w)
	for i := range who {
		who[i] = "   " + chart.Clip(who[i], w)
	}
	return who
}

const (
	needHeight = 3 // lines of a need: what, who suffers, what to press
	extraLines = 2 // that the first has besides, where there is room
	// firstNeeds is how many findings the first screen always has place for.
	firstNeeds = 3
)

// needsPlace is how many lines the needs want so that the first findings among them are seen, with who suffers and what
// helps; the lists of plans have a page of their own.
func needsPlace(s *screen.State, w int) int {
	lines := 0
	for i := range min(firstNeeds, len(s.Shown.Needs)) {
		if i == 0 || s.Shown.Needs[i].Finding != "" {
			n := needOn(s, i)
			lines += len(n.lines(s, w, false, i > 0))
		}
	}
	return max(needHeight, lines)
}

// needLines draws as many needs as fit h lines, and counts the others.
func (p *Screen) needLines(s *screen.State, w, h int) (out []string, shown int) {
	all := len(s.Shown.Needs)
	if all == 0 {
		return chart.Wrap(calm(s), w), 0
	}
	room := h >= needsPlace(s, w)+extraLines
	for i := range all {
		n := needOn(s, i)
		lines, left := n.lines(s, w, room && i == 0, i > 0), all-i-1
		if i > 0 && (len(out)+len(lines) > h || i >= firstNeeds && left > 0 && len(out)+len(lines) > h-1) {
			more := fmt.Sprintf("   and %d more: %s", left+1, s.Key(screen.ActNext))
			if last := out[len(out)-1]; len(out) < h {
				out, shown = append(out, chart.Clip(more, w)), all
			} else if ansi.StringWidth(last+more) <= w {
				out[len(out)-1], shown = chart.Ends(last, more, w), all
			}
			break
		}
		if p.panel == panelNeeds && i == p.need && !p.asTable {
			lines[0] = s.Palette.Paint(s.Palette.Reverse, ansi.Strip(lines[0]))
		}
		out, shown = append(out, lines...), i+1
	}
	return out[:min(len(out), h)], shown
}

// needsBox frames the needs; its title says how many of them it shows where nothing else counts the others.
func (p *Screen) needsBox(s *screen.State, w, h int) []string {
	lines, shown := p.needLines(s, w-2, h-frame)
	title := "NEEDS YOU"
	if all := len(s.Shown.Needs); shown < all {
		title += fmt.Sprintf(", %d of %d", shown, all)
	}
	return s.Palette.Box(title, lines, w, h)
}

// calm says what was compared, where nothing is wrong.
func calm(s *screen.State) string {
	if s.Stale() {
		return "What is wrong is not known: the data is too old."
	}
	return fmt.Sprintf("%s Last check %.1f s ago.", chart.Clean(s.Shown.Calm), s.Age().Seconds())
}

func (p *Screen) openNeed(s *screen.State) tea.Cmd {
	if p.need < 0 || p.need >= len(s.Shown.Needs) {
		s.Note = "nothing needs you"
		return nil
	}
	return s.Host.Open(whereOf(&s.Shown.Needs[p.need]))
}

// openPlan opens the chosen plan: it is read and approved there.
func (p *Screen) openPlan(s *screen.State) tea.Cmd {
	if id := p.chosenPlan(s); id != "" {
		return s.Host.Open(screen.AtDecision(id))
	}
	s.Note = "no plan waits; " + s.Key(screen.ActPropose) + " proposes one"
	return nil
}

// Next opens the next thing that needs a person, on says one further than the last.
func (p *Screen) Next(s *screen.State, on bool) tea.Cmd {
	if on {
		p.need = (p.need + 1) % max(1, len(s.Shown.Needs))
	} else {
		p.need = min(p.need, max(0, len(s.Shown.Needs)-1))
	}
	return p.openNeed(s)
}
