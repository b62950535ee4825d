package overview

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/remap"
	"fairway/webui/api"
)

// need is what waits for a person: what is wrong, who suffers by it, and which key does what about it.
type need struct {
	sign, what, tail string
	numbers          string // of it, where there is room
	victims, remedy  string
	at               screen.Address
	plan             string  // that would help
	hurts            float64 // the share of time that its victims lose
}

// needs lists what waits for a person, who suffers most first: slow forwarders, what else hurts jobs, waiting plans,
// silent forwarders. What hurts nobody is among the findings only.
func needs(s *screen.State) []need {
	var out []need
	planned, about := map[string]bool{}, map[topology.NodeID]bool{}
	open := screen.OpenFindings(s.Shown.Findings)
	slices.SortStableFunc(open, func(a, b anomaly.Finding) int { // what accuses comes before what only explains
		return map[bool]int{true: 0, false: 1}[a.Kind.Accuses()] - map[bool]int{true: 0, false: 1}[b.Kind.Accuses()]
	})
	for i := range open {
		f := &open[i]
		if f.Silent(s.AsOf()) || about[f.Node] && f.Node != anomaly.Everywhere || f.ExcludedBy != "" || !hurts(f) {
			continue
		}
		about[f.Node] = true
		n := ofFinding(s, f)
		planned[n.plan] = true
		out = append(out, n)
	}
	slices.SortStableFunc(out, func(a, b need) int {
		switch {
		case a.hurts > b.hurts:
			return -1
		case a.hurts < b.hurts:
			return 1
		}
		return 0
	})
	for _, w := range s.Shown.Waiting {
		if !planned[w.ID] {
			out = append(out, need{sign: "  ", what: chart.Clean(w.ID) + ": " + chart.Clean(w.Title),
				tail: "waits " + chart.Age(s.AsOf().Sub(w.Created)), plan: w.ID, at: screen.AtPlan(w.ID),
				remedy: "read and approve it: " + s.Key(screen.ActApprove)})
		}
	}
	return append(out, silent(s)...)
}

// hurts says that a person should look: a node is accused, or a job loses time.
func hurts(f *anomaly.Finding) bool {
	return f.Kind.Accuses() || len(f.Impact) > 0 && f.State != anomaly.Suspect
}

// confirmedFirst puts a forwarder that is slow for certain before everything that only hurts for a while.
const confirmedFirst = 1000

func ofFinding(s *screen.State, f *anomaly.Finding) need {
	what, numbers := sentence(s, f)
	n := need{sign: " !", what: what, numbers: numbers, tail: "for " + chart.Age(s.AsOf().Sub(f.Since)),
		at: screen.AtFinding(f.ID)}
	if f.State == anomaly.Suspect {
		n.sign = "?!"
	}
	for i := range f.Impact {
		n.hurts = max(n.hurts, f.Impact[i].Share)
	}
	if f.Kind == anomaly.FailSlow && f.State == anomaly.Confirmed {
		n.hurts += confirmedFirst
	}
	n.victims = victims(f)
	row := s.Forwarder(topology.ForwarderID(f.Node))
	if row == nil {
		return n
	}
	for _, w := range s.Shown.Waiting {
		if w.ID == row.Plan {
			n.plan, n.remedy = w.ID, chart.Clean(w.Title)+": "+s.Key(screen.ActApprove)
			return n
		}
	}
	if f.Kind.Accuses() {
		n.remedy = fmt.Sprintf("%s moves its jobs, %s drains it", s.Key(screen.ActPropose), s.Key(screen.ActExclude))
	}
	return n
}

// sentence is a finding in one line, in the numbers of now where they are known.
func sentence(s *screen.State, f *anomaly.Finding) (text, numbers string) {
	node := screen.Subject(f.Node)
	row := s.Forwarder(topology.ForwarderID(f.Node))
	if f.Kind != anomaly.FailSlow {
		return node + ": " + screen.FindingTitle(f), ""
	}
	slow, op := worst(f)
	if row != nil && row.Slow != nil && *row.Slow >= 1.5 {
		slow, op = *row.Slow, row.SlowOp
	}
	if slow < 1.5 {
		return node + " is slow" + screen.At(f.Class), ""
	}
	text = fmt.Sprintf("%s is %s slow%s", node, chart.Times(&slow), screen.At(op))
	if row != nil && row.Latency != nil && row.Slow != nil {
		peers := *row.Latency / slow
		numbers = fmt.Sprintf(": %s ms, peers %s", chart.Millis(row.Latency), chart.Millis(&peers))
	}
	return text, numbers
}

// worst is the largest ratio that a finding names.
func worst(f *anomaly.Finding) (slow float64, op string) {
	for _, c := range []string{"read", "write", "meta"} {
		if v := f.Evidence[c+"_ratio"]; v > slow {
			slow, op = v, c
		}
	}
	if v := f.Evidence["took_seconds"] / f.Evidence["peers_seconds"]; slow == 0 && !math.IsNaN(v) && !math.IsInf(v, 0) {
		slow, op = v, f.Class
	}
	return slow, op
}

// victims says who waits, the job that loses most first.
func victims(f *anomaly.Finding) string {
	if len(f.Impact) == 0 {
		return "no job waits for it now"
	}
	text := fmt.Sprintf("job %s waits %s", chart.Clean(string(f.Impact[0].Job)),
		strings.TrimPrefix(screen.EstimatedShare(f.Impact[0].Share), "~"))
	if more := len(f.Impact) - 1; more > 0 {
		text += ", " + api.Counted(more, "more job")
	}
	return text
}

// silent names the forwarders that do not report.
func silent(s *screen.State) []need {
	var names []string
	since, never := time.Time{}, 0
	first := ""
	for i := range s.Shown.Forwarders {
		r := &s.Shown.Forwarders[i]
		if r.State != remap.ForwarderStale {
			continue
		}
		if first == "" {
			first = string(r.ID)
		}
		names = append(names, chart.Clean(string(r.ID)))
		if r.LastSeen.IsZero() {
			never++
		} else if since.IsZero() || r.LastSeen.Before(since) {
			since = r.LastSeen
		}
	}
	if len(names) == 0 {
		return nil
	}
	tail := "for " + chart.Age(s.AsOf().Sub(since))
	if never == len(names) {
		tail = "never seen"
	}
	what := fmt.Sprintf("%s silent: %s", api.Counted(len(names), "forwarder"), strings.Join(names, " "))
	return []need{{sign: " ?", what: what, tail: tail, at: screen.AtForwarder(topology.ForwarderID(first)),
		remedy: "does its agent run?"}}
}

// look is how loud a need is.
func (n *need) look(s *screen.State) string { return s.SignLook(n.sign) }

// lines draws a need in w columns: what, for how long; who suffers; what to press.
func (n *need) lines(s *screen.State, w int) []string {
	p := s.Palette
	what := n.sign + " " + n.what
	if ansi.StringWidth(what+n.numbers+n.tail)+1 <= w {
		what += n.numbers
	}
	out := []string{p.Paint(n.look(s), chart.Ends(what, " "+n.tail, w))}
	switch {
	case n.victims == "" && n.remedy == "":
	case n.victims == "":
		out = append(out, chart.Clip("   "+p.Paint(p.Accent, n.remedy), w))
	case ansi.StringWidth(n.victims)+ansi.StringWidth(n.remedy)+6 <= w:
		out = append(out, "   "+n.victims+" · "+p.Paint(p.Accent, n.remedy))
	default:
		out = append(out, chart.Clip("   "+n.victims, w), chart.Clip("   "+p.Paint(p.Accent, n.remedy), w))
	}
	if !p.Blocks {
		for i := range out {
			out[i] = strings.ReplaceAll(out[i], " · ", "; ")
		}
	}
	return out
}

// needLines draws as many needs as fit h lines, and counts the others.
func (p *Screen) needLines(s *screen.State, w, h int) []string {
	all := needs(s)
	if len(all) == 0 {
		return chart.Wrap(calm(s), w)
	}
	var out []string
	for i := range all {
		lines := all[i].lines(s, w)
		left := len(all) - i - 1
		if i > 0 && (len(out)+len(lines) > h || left > 0 && len(out)+len(lines) > h-1) {
			out = append(out, chart.Clip(fmt.Sprintf("   and %d more: %s", left+1, s.Key(screen.ActNext)), w))
			break
		}
		if p.panel == panelNeeds && i == p.need && !p.asTable {
			lines[0] = s.Palette.Paint(s.Palette.Reverse, ansi.Strip(lines[0]))
		}
		out = append(out, lines...)
	}
	return out[:min(len(out), h)]
}

// calm says what was compared, where nothing is wrong.
func calm(s *screen.State) string {
	compared := 0
	for i := range s.Shown.Forwarders {
		if s.Shown.Forwarders[i].Slow != nil {
			compared++
		}
	}
	if s.Stale() {
		return "What is wrong is not known: the data is too old."
	}
	return fmt.Sprintf("Nothing is slow. %d of %s do I/O now and were compared; last check %.1f s ago.", compared,
		api.Counted(len(s.Shown.Forwarders), "forwarder"), s.Age().Seconds())
}

func (p *Screen) openNeed(s *screen.State) tea.Cmd {
	all := needs(s)
	if p.need < 0 || p.need >= len(all) {
		s.Note = "nothing needs you"
		return nil
	}
	return s.Host.Open(all[p.need].at)
}

// openPlan opens the plan that the first need waits for: it is read and approved there.
func openPlan(s *screen.State) tea.Cmd {
	for _, n := range needs(s) {
		if n.plan != "" {
			return s.Host.Open(screen.AtPlan(n.plan))
		}
	}
	s.Note = "no plan waits; " + s.Key(screen.ActPropose) + " proposes one"
	return nil
}

// Next opens the next thing that needs a person, on says one further than the last.
func (p *Screen) Next(s *screen.State, on bool) tea.Cmd {
	if on {
		p.need = (p.need + 1) % max(1, len(needs(s)))
	} else {
		p.need = min(p.need, max(0, len(needs(s))-1))
	}
	return p.openNeed(s)
}
