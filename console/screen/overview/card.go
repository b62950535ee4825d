package overview

import (
	"cmp"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/remap/advise"
)

const (
	// fullCard are the lines of the story card inside its frame, and of the one in a small terminal.
	fullCard, smallCard = 8, 3
	// cardChart is how many columns the card's chart has, its scale beside it.
	cardChart = 46
)

// storyCard is the first card in a frame: what is so, how much and why, who suffers, what to press; its chart beside
// it where there is room. Further cards have a line each below it. chosen has the cursor, -1: another panel has it.
func storyCard(s *screen.State, w, h, chosen int) []string {
	pal := s.Palette
	if len(s.Shown.Needs) == 0 || s.Stale() {
		words, stage, word := chart.Wrap(calm(s), w-4), advise.Cleared, chart.Clean(s.Shown.CalmWord)
		switch {
		case s.Stale() || s.Shown.LateSeconds > 0 || word == "":
			stage, word = advise.NotKnown, "not known"
		case word == "watched":
			stage = advise.Suspect
		}
		return pal.Card(pal.Frame, screen.Pill(pal, stage, word), "", words, w, 2+len(words))
	}
	c := &s.Shown.Needs[0]
	inside := w - 4
	words := inside
	var beside []string
	if h >= fullCard && w >= 110 {
		if beside = proof(s, c, cardChart, h); beside != nil {
			words -= cardChart + 2
		}
	}
	lines := cardLines(s, c, words, h)
	if beside != nil {
		lines = chart.Beside(lines, words+2, beside)
	}
	tail := cmp.Or(c.Finding, c.Plan) + " "
	if node := string(c.Node); c.Node != anomaly.Everywhere && !strings.Contains(c.Sentence, node) {
		tail += node + " " // the sentence is about what was done
	}
	tail = strings.TrimSpace(tail + since(s, c))
	if !c.Since.IsZero() && w >= 110 {
		tail += ", since " + chart.Clock(c.Since)
	}
	look := screen.CardLook(pal, c)
	if chosen == 0 {
		look = pal.Accent
	}
	out := pal.Card(look, screen.Pill(pal, c.Stage, ""), chart.Clean(tail), lines, w, h+2)
	return append(out, furtherCards(s, w, chosen)...)
}

// furtherCards are the cards after the first, a line each.
func furtherCards(s *screen.State, w, chosen int) (out []string) {
	const most = 3
	all := s.Shown.Needs
	for i := 1; i < min(len(all), 1+most); i++ {
		c := &all[i]
		sign := screen.SignOfCard(c)
		line := chart.Ends(sign+" "+chart.Clean(c.Sentence)+"  "+s.Palette.Paint(s.Palette.Dim, screen.Helps(s, c)),
			" "+since(s, c)+" ", w)
		if i == chosen {
			line = s.Palette.Paint(s.Palette.Reverse, ansi.Strip(line))
		}
		out = append(out, line)
	}
	if more := len(all) - 1 - most; more > 0 {
		out = append(out, chart.Clip("   and "+chart.Count(new(float64(more)))+" more: "+s.Key(screen.ActNext), w))
	}
	return out
}

// cardLines are a card's words in w columns and h lines.
func cardLines(s *screen.State, c *advise.Card, w, h int) []string {
	pal := s.Palette
	sentence, second := chart.Clean(c.Sentence), chart.Clean(c.Second)
	keys := screen.Buttons(s, c)
	var who string
	if len(c.Victims) > 0 {
		bar := screen.ShareBar(pal, c.Victims[0].Share, 8)
		who = bar + " " + screen.Fitting(screen.VictimWords(c.Victims), w-9)
	}
	if h <= smallCard {
		between := ": "
		if strings.HasSuffix(sentence, "?") {
			between = " "
		}
		head := pal.Paint(pal.Bold, sentence)
		if beside := chart.Clauses(second, w-ansi.StringWidth(sentence+between)); beside != "" && who != "" {
			head += between + beside
		}
		lines := []string{head}
		if who != "" {
			lines = append(lines, who)
		} else if second != "" {
			lines = append(lines, cmp.Or(chart.Clauses(second, w), chart.Clip(second, w)))
		}
		if done := " " + screen.DoneStep(s, c); ansi.StringWidth(keys+done) <= w {
			keys = chart.Ends(keys, done, w)
		}
		return append(lines, keys)
	}
	lines := []string{pal.Paint(pal.Bold, chart.Clip(sentence, w))}
	for _, text := range []string{second, chart.Clean(c.Cause)} {
		if text != "" {
			wrapped := chart.Wrap(text, w)
			if len(wrapped) > 2 {
				rest := strings.Join(wrapped[1:], " ")
				wrapped = []string{wrapped[0], cmp.Or(chart.Clauses(rest, w), chart.Clip(rest, w))}
			}
			for _, l := range wrapped {
				lines = append(lines, pal.Paint(pal.Dim, l))
			}
		}
	}
	if who != "" {
		lines = append(lines, who)
	}
	if c.Action != nil && c.Action.Text != "" {
		lines = append(lines, screen.Arrow(pal)+" "+chart.Clip(chart.Clean(c.Action.Text), w-2))
	}
	if steps := screen.StepLine(s, c, w); steps != "" && len(lines) < h-1 {
		lines = append(lines, steps)
	}
	lines = lines[:min(len(lines), h-1)]
	for len(lines) < h-1 {
		lines = append(lines, "")
	}
	return append(lines, keys)
}

// proof is the chart beside a card: how many times as long as its peers the node took; nil where that is not at hand.
func proof(s *screen.State, c *advise.Card, w, h int) []string {
	r := s.Forwarder(topology.ForwarderID(c.Node))
	if r == nil || s.Replays() {
		return nil
	}
	lines := ratioGraph(s, r, w, h-1, screen.CardLook(s.Palette, c))
	if lines == nil {
		return nil
	}
	head := chart.Ends("times its peers, 5 min", chart.Clean(string(r.ID))+" "+chart.Times(s.Value(r, r.Slow)), w)
	return append([]string{s.Palette.Paint(s.Palette.Dim, head)}, lines...)
}
