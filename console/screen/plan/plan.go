// Package plan shows plans: the list, one with its checks and its progress, and the proposal of one.
package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
	"fairway/remap"
	"fairway/webui/api"
)

// The fields of the plan page that can hold the focus. Cancel holds it first: Enter leaves the page.
const (
	focusCancel = iota
	focusReason
)

// Screen is one plan: what it changes, what is checked, who must say yes, how far it is.
type Screen struct {
	screen.Place
	id     string
	plan   screen.Load[api.PlanView]
	focus  int
	reason screen.Input
	all    bool
	// evidence says that what the desk knew is shown instead of the plan.
	evidence bool
	top      int // first line shown
	asked    screen.Question
	// decides says that the approval is asked about as soon as the plan is known.
	decides bool
	// changes are the lines that differ from the preview an approval was refused for.
	changes []string
}

// New is the screen of a plan; one of AtDecision asks at once whether to approve it.
func New(a screen.Address) *Screen {
	return &Screen{Place: screen.Place{On: screen.OnPlan, At: screen.AtPlan(a.ID)}, id: a.ID,
		decides: a.View == "approve", plan: screen.Load[api.PlanView]{Again: screen.EverySecond},
		reason: screen.Input{Label: "Reason:"}}
}

// Shown is the plan that a screen shows; nil of another screen, and before the plan is known.
func Shown(p screen.Screen) *api.PlanView {
	if one, ok := p.(*Screen); ok && one.plan.Have {
		return &one.plan.Value
	}
	return nil
}

func (p *Screen) Field() *screen.Input {
	if p.focus == focusReason {
		return &p.reason
	}
	return nil
}

// Typed ends the reason; both ways keep the text, so that a slip of a finger loses nothing.
func (p *Screen) Typed(*screen.State, bool) tea.Cmd {
	p.focus = focusCancel
	return nil
}

func (p *Screen) Refresh(s *screen.State) tea.Cmd {
	return p.plan.Refresh(s, "plan "+p.id, screen.With(s.Server.Plan, p.id))
}

func (p *Screen) Answer(s *screen.State, msg tea.Msg) tea.Cmd {
	if a, ok := msg.(screen.Answer[decided]); ok {
		return p.decided(s, a)
	}
	if was, had := p.plan.Value, p.plan.Have; p.plan.Take(msg) {
		p.changed(&was, had)
		if !had && p.plan.Have {
			p.reason.Text = p.plan.Value.SuggestedReason
			if p.decides && p.Refuses(s, screen.ActApprove) == "" {
				p.asked.Again(s, screen.ActApprove)
			}
		}
	}
	return nil
}

// changed looks at a new view of the plan. A preview that changed while its approval was half way asks to be read
// again: the question is dropped.
func (p *Screen) changed(was *api.PlanView, had bool) {
	v := &p.plan.Value
	switch {
	case v.State != remap.Proposed:
		p.changes = nil // nothing is approved any more by what it was
	case had && v.PreviewHash != was.PreviewHash:
		p.changes = diff(previewLines(was), previewLines(v))
		p.asked = screen.Question{}
	}
}

// decided takes the answer to a key that changes something.
func (p *Screen) decided(s *screen.State, a screen.Answer[decided]) tea.Cmd {
	switch err := a.Err; {
	case err == nil:
		p.changes = nil
		p.reason.Text = "" // it was of this step, not of the next
		p.plan.Value, p.plan.Have = a.Value.PlanView, true
		screen.Report(s, a.Call+": accepted")
	case errors.Is(err, api.ErrChanged):
		s.Note = "nothing was applied: the plan changed under you; read it again"
	default:
		s.Note = "refused: " + err.Error()
	}
	p.plan.Expire()
	return p.Refresh(s)
}

func (p *Screen) Act(s *screen.State, a screen.Action) tea.Cmd {
	switch a {
	case screen.ActOpen:
		return s.Host.Back() // the focus is on Cancel whenever a key arrives here
	case screen.ActPanel:
		p.focus = focusReason
	case screen.ActEvidence:
		p.evidence = !p.evidence
		p.top = 0
	case screen.ActAll:
		p.evidence = false
		p.all = !p.all
		p.top = 0
	case screen.ActUp, screen.ActDown, screen.ActPageUp, screen.ActPageDown:
		p.top += a.Step() // kept in range where it is drawn
	case screen.ActApprove, screen.ActRollBack, screen.ActReject, screen.ActStop:
		if why := p.Refuses(s, a); why != "" {
			s.Note = "refused: " + why
			return nil
		}
		if (a == screen.ActApprove || a == screen.ActRollBack) && !p.asked.Again(s, a) {
			return nil
		}
		return p.send(s, a)
	}
	return nil
}

func (p *Screen) Unask(a screen.Action) { p.asked.Unask(a) }

func (p *Screen) question(s *screen.State, a screen.Action) string {
	what := "Approve " + p.id + ": " + chart.Clean(p.plan.Value.Change())
	if a == screen.ActRollBack {
		what = "Roll back " + p.id + ": 1 compute node goes back"
		if n := len(p.plan.Value.Moves); n != 1 {
			what = fmt.Sprintf("Roll back %s: %d compute nodes go back", p.id, n)
		}
		what += " " + cmp.Or(chart.Clean(p.plan.Value.BackTo), "to where they were")
		if p.plan.Value.Limits() {
			what = "Roll back " + p.id + ": the limit is lifted"
		}
	}
	return fmt.Sprintf("%s. %s again does it, any other key does not.", what, s.Key(a))
}

func (p *Screen) send(s *screen.State, a screen.Action) tea.Cmd {
	id, hash, reason := p.id, p.plan.Value.PreviewHash, strings.TrimSpace(p.reason.Text)
	call, act := "roll back ", s.Server.RollBack
	switch a {
	case screen.ActApprove:
		return decide(s, "approve "+id,
			func(ctx context.Context) (api.PlanView, error) { return s.Server.Approve(ctx, id, hash, reason) })
	case screen.ActReject:
		call, act = "reject ", s.Server.Reject
	case screen.ActStop:
		call, act, reason = "stop ", s.Server.Stop, "stopped from the terminal"
	}
	return decide(s, call+id, func(ctx context.Context) (api.PlanView, error) { return act(ctx, id, reason) })
}

// decided is the answer to a request for a change.
type decided struct{ api.PlanView }

func decide(s *screen.State, call string, f func(context.Context) (api.PlanView, error)) tea.Cmd {
	return screen.Ask(s, call, func(ctx context.Context) (decided, error) {
		v, err := f(ctx)
		return decided{v}, err
	})
}

// actions are those of plans that keys ask for.
var actions = map[screen.Action]remap.Action{screen.ActApprove: remap.ActApprove, screen.ActReject: remap.ActReject,
	screen.ActStop: remap.ActStop, screen.ActRollBack: remap.ActRollBack}

// Refuses says why an action is not possible here and now: what the server sent with the plan, and what it cannot know.
func (p *Screen) Refuses(s *screen.State, a screen.Action) string {
	act, ok := actions[a]
	v := &p.plan.Value
	switch {
	case !ok:
		return ""
	case !p.plan.Have:
		return "the plan is not on screen yet"
	case !v.Options.Permits(act):
		return cmp.Or(v.Options.WhyNot[act], "the server does not offer it")
	case a == screen.ActApprove && s.Stale():
		return s.TooOld()
	}
	if n, least := len([]rune(strings.TrimSpace(p.reason.Text))), v.Options.ReasonLetters[act]; n < least {
		return fmt.Sprintf("the reason has %d of at least %d letters; %s goes to it", n, least,
			s.Key(screen.ActPanel))
	}
	return ""
}

// words is a plan's state as people write it.
func words(st remap.PlanState) string { return strings.ReplaceAll(string(st), "_", " ") }

func (p *Screen) Title(s *screen.State, w int) string {
	if !p.plan.Have {
		return " " + chart.Clean(p.id)
	}
	v := &p.plan.Value
	title, by := " "+chart.Clean(v.ID)+"  "+strings.ToUpper(words(v.State)),
		"  proposed by "+chart.Clean(v.ProposedBy())+" "+chart.Clock(v.Created)
	if v.State != remap.Proposed {
		return title + by
	}
	expires := "  expires in " + chart.Age(v.Expires.Sub(s.Now))
	if w < 110 { // by whom gives way before until when
		return title + expires + "  by " + chart.Clean(v.ProposedBy())
	}
	return title + by + expires
}

func (p *Screen) Body(s *screen.State, w, h int) []string {
	if !p.plan.Have {
		return p.plan.MissingOf(s, "plan "+chart.Clean(p.id), screen.ActPlans, w)
	}
	foot, text := p.buttons(s, w), p.text
	if p.evidence {
		text = p.evidenceLines
	}
	return append(table.Scroll(text(s, w), &p.top, max(0, h-len(foot))), foot...)
}

// first labels the first line of several.
func first(i int, label string) string {
	if i > 0 {
		return ""
	}
	return label
}

// shownMoves is how many changes are listed before `d` is pressed.
const shownMoves = 4

// text is the plan in words: what it changes, checks, needs, and what became of it.
func (p *Screen) text(s *screen.State, w int) []string {
	v := &p.plan.Value
	var lines []string
	say := func(label, text string) {
		lines = append(lines, chart.Labelled(label, chart.Clean(text), w)...)
	}
	say("", v.Title)
	change := v.Change()
	if v.Force {
		change += "; forced: the old forwarder is cut off, not drained"
	}
	if v.Dedicated {
		change += "; the targets become dedicated to job " + string(v.Job)
	}
	say("CHANGE", change)
	n := len(v.Lines)
	if !p.all {
		n = min(n, shownMoves)
	}
	for _, l := range v.Lines[:n] {
		for _, l := range chart.Wrap(chart.Clean(l), w-3) {
			lines = append(lines, "   "+l)
		}
	}
	if n < len(v.Lines) {
		lines = append(lines, fmt.Sprintf("   : %d more (%s for all)", len(v.Lines)-n, s.Key(screen.ActAll)))
	}
	if n := screen.NeedOf(s, v.ID); n != nil && n.Finding != "" {
		why := "BECAUSE"
		if v.State != remap.Proposed { // the card has gone on since
			why = "NOW"
		}
		say(why, fmt.Sprintf("%s (%s)", n.Sentence, n.Finding))
		if len(n.Victims) > 0 {
			say("SUFFERS", screen.Fitting(screen.VictimWords(n.Victims), w-12))
		}
	}
	say("WHY", v.Reason)
	for _, one := range []struct{ label, text string }{{"EXPECTED", v.Expected}, {"BEFORE", v.Track},
		{"MEASURED", v.Outcome}} {
		if one.text != "" {
			say(one.label, one.text)
		}
	}
	if v.Brought != "" {
		text := v.Brought
		if v.Effect.InVain() && slices.Contains(v.Can, remap.ActRollBack) {
			text += ": " + s.Key(screen.ActRollBack) + " takes it back"
		}
		say("EFFECT", text)
	}
	checks := v.Checks
	if v.State != remap.Proposed {
		checks = nil // they are of this second, not of the one in which it was approved
	}
	for i, c := range checks {
		sign := map[remap.CheckLevel]string{remap.Green: "ok", remap.Amber: "!!", remap.Red: "XX"}[c.Level]
		line := " " + chart.Left(first(i, "CHECKS"), 10) + chart.Left(sign, 3) + chart.Clean(c.Text)
		if c.Level != remap.Green {
			line = s.Bold(chart.Clip(line, w))
		}
		lines = append(lines, chart.Clip(line, w))
	}
	if v.State == remap.Proposed {
		say("NEEDS", p.needs())
	}
	for i, a := range v.Approvals {
		say(first(i, "APPROVED"), fmt.Sprintf("by %s at %s: %s", a.By, chart.Clock(a.At), a.Reason))
	}
	if e := v.Ended; e != nil {
		label := "ROLL BACK" // asked for; it ends when every node has followed
		if !v.State.Moved() {
			label = strings.ToUpper(words(v.State))
		}
		say(label, fmt.Sprintf("by %s at %s: %s", e.By, chart.Clock(e.At), chart.OrMissing(e.Reason)))
	}
	for i, c := range p.changes {
		say(first(i, "CHANGED"), c)
	}
	return append(lines, p.progress(s, w)...)
}

func (p *Screen) needs() string {
	v := &p.plan.Value
	text := "1 approval"
	if v.Needs > 1 {
		text = fmt.Sprintf("%d approvals, %d given", v.Needs, len(v.Approvals))
	}
	if v.MayApprove != "" {
		return text + "; not by you: " + v.MayApprove
	}
	return text
}

// progress is what the moves came to, in a line, and every failure in its own.
func (p *Screen) progress(s *screen.State, w int) []string {
	v := &p.plan.Value
	if slices.Contains([]remap.PlanState{remap.Proposed, remap.Rejected, remap.Withdrawn, remap.Expired}, v.State) {
		return nil
	}
	n, ok, failed, verified := v.Plan.Progress()
	results := v.Results
	if v.Goal != "" {
		results = v.Undo
	}
	retry := 0
	for _, r := range results {
		if r.Tries > 1 {
			retry++
		}
	}
	lines := []string{""}
	switch v.State {
	case remap.Verified:
		lines = append(lines, fmt.Sprintf(" verified %d of %d at %s", verified, n, chart.Clock(v.Changed)))
	case remap.Applied:
		lines = append(lines, fmt.Sprintf(" applied %d of %d; verified %d: waiting until the new mapping is observed",
			ok, n, verified))
	default:
		lines = append(lines, fmt.Sprintf(" %s %d/%d  ok %d  retry %d  failed %d  verified %d  %s", words(v.State),
			ok+failed, n, ok, retry, failed, verified,
			chart.Bar(float64(ok+failed)/float64(max(1, n)), 20)))
	}
	lines[1] = s.Bold(chart.Clip(lines[1], w))
	if v.Error != "" {
		for _, l := range chart.Wrap(chart.Clean(v.Error), w-2) {
			lines = append(lines, " "+l)
		}
	}
	for _, r := range results {
		if !r.OK {
			lines = append(lines, chart.Clip(fmt.Sprintf("   %s failed after %s: %s", chart.Clean(string(r.Node)),
				anomaly.CountedAs(r.Tries, "try", "tries"),
				chart.Clean(r.Error)), w))
		}
	}
	return lines
}

// buttons are the reason and what can be pressed; Cancel is where the focus is. A question stands in their place: there
// the eye is.
func (p *Screen) buttons(s *screen.State, w int) []string {
	pal := s.Palette
	if a := p.asked.Asked(); a != screen.ActNone {
		lines := []string{pal.Rule(w)}
		for _, l := range chart.Paragraphs(w, p.question(s, a)) {
			lines = append(lines, pal.Paint(pal.Reverse, chart.Left(l, w)))
		}
		return append(lines, chart.Clip(" reason: "+chart.OrMissing(strings.TrimSpace(p.reason.Text)), w))
	}
	if p.plan.Value.State != remap.Proposed {
		can, moves := "", false
		for _, one := range []struct {
			act  screen.Action
			does string
		}{{screen.ActReject, " reject"}, {screen.ActStop, " stop after this batch"},
			{screen.ActRollBack, " roll back (shift)"}} {
			if p.Refuses(s, one.act) == "" {
				can += "     " + s.Key(one.act) + one.does
				moves = moves || one.act != screen.ActStop
			}
		}
		lines := []string{s.Palette.Rule(w), " " + pal.Paint(pal.Reverse, "[ Close ]") + chart.Clip(can, w-11)}
		if moves {
			lines = slices.Insert(lines, 1,
				p.reasonLine(fmt.Sprintf(" Reason (kept in the audit; %s): ", s.Key(screen.ActPanel)), w))
		}
		return lines
	}
	return []string{
		s.Palette.Rule(w),
		p.reasonLine(fmt.Sprintf(" Reason (kept in the audit, %d letters or more; %s): ", remap.ReasonLetters,
			s.Key(screen.ActPanel)), w),
		" " + pal.Paint(pal.Reverse, "[ Cancel ]") +
			chart.Clip("     "+s.Key(screen.ActApprove)+" approve (shift)     "+
				s.Key(screen.ActReject)+" reject", w-11),
	}
}

// reasonLine is what was typed as the reason, or the room for it.
func (p *Screen) reasonLine(label string, w int) string {
	if p.reason.Text == "" {
		return chart.Clip(label+strings.Repeat("_", max(3, min(30, w-1-len(label)))), w)
	}
	return chart.Clip(label+p.reason.Text, w)
}

func (p *Screen) Twin(_ *screen.State, a screen.Action) string {
	verb := map[screen.Action]string{screen.ActApprove: "approve", screen.ActReject: "reject",
		screen.ActRollBack: "rollback", screen.ActAll: "show"}[a]
	if verb == "" {
		return ""
	}
	return "fairway plan " + verb + " " + chart.Clean(p.id)
}

// Hides leaves out what is refused, except for the approval of a plan that waits for a person: why it is refused now
// is shown when it is tried.
func (p *Screen) Hides(s *screen.State, a screen.Action) bool {
	if a == screen.ActApprove && (!p.plan.Have || p.plan.Value.State == remap.Proposed) {
		return false
	}
	return p.Refuses(s, a) != ""
}
