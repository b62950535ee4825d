package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/remap"
	"fairway/webui/api"
)

// The fields of the plan page that can hold the focus. Cancel holds it first: Enter leaves the page.
const (
	focusCancel = iota
	focusReason
)

// planPage is one plan: what it changes, what is checked, who must say yes, how far it is.
type planPage struct {
	id     string
	plan   Load[api.PlanView]
	focus  int
	reason Input
	all    bool
	// evidence says that what the desk knew is shown instead of the plan.
	evidence bool
	top      int // first line shown
	asked    question
	// changes are the lines that differ from the preview an approval was refused for.
	changes []string
}

func newPlanPage(id string) *planPage {
	return &planPage{id: id, plan: Load[api.PlanView]{Again: EverySecond}, reason: Input{Label: "Reason:"}}
}

func (p *planPage) Name() string           { return onPlan }
func (p *planPage) Address(*State) Address { return Address{Page: "plans", ID: p.id} }

func (p *planPage) Field() *Input {
	if p.focus == focusReason {
		return &p.reason
	}
	return nil
}

// typed ends the reason; both ways keep the text, so that a slip of a finger loses nothing.
func (p *planPage) Typed(*State, bool) tea.Cmd {
	p.focus = focusCancel
	return nil
}

func (p *planPage) Refresh(s *State) tea.Cmd {
	return p.plan.Refresh(s, "plan "+p.id,
		func(ctx context.Context) (api.PlanView, error) { return s.Server.Plan(ctx, p.id) })
}

func (p *planPage) Answer(s *State, msg tea.Msg) tea.Cmd {
	if a, ok := msg.(Answer[decided]); ok {
		return p.decided(s, a)
	}
	if was, had := p.plan.Value, p.plan.Have; p.plan.Take(msg) {
		p.changed(&was, had)
	}
	return nil
}

// changed looks at a new view of the plan. A preview that changed while its approval was half way asks to be read
// again: the question is dropped.
func (p *planPage) changed(was *api.PlanView, had bool) {
	v := &p.plan.Value
	switch {
	case v.State != remap.Proposed:
		p.changes = nil // nothing is approved any more by what it was
	case had && v.PreviewHash != was.PreviewHash:
		p.changes = diff(previewLines(was), previewLines(v))
		p.asked = question{}
	}
}

// decided takes the answer to a key that changes something.
func (p *planPage) decided(s *State, a Answer[decided]) tea.Cmd {
	switch err := a.Err; {
	case err == nil:
		p.changes = nil
		p.reason.Text = "" // it was said of this step, not of the next
		p.plan.Value, p.plan.Have = a.Value.PlanView, true
		s.Note = a.Call + ": accepted"
	case errors.Is(err, api.ErrChanged):
		s.Note = "nothing was applied: the plan changed under you; read it again"
	default:
		s.Note = "refused: " + err.Error()
	}
	p.plan.Expire()
	return p.Refresh(s)
}

func previewLines(v *api.PlanView) []string {
	lines := slices.Clone(v.Lines)
	for _, c := range v.Checks {
		lines = append(lines, string(c.Level)+" "+c.Name)
	}
	return lines
}

// diff lists what is only in was and only in is; the order of a preview carries no meaning.
func diff(was, is []string) []string {
	var out []string
	for _, l := range was {
		if !slices.Contains(is, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range is {
		if !slices.Contains(was, l) {
			out = append(out, "+ "+l)
		}
	}
	return out
}

func (p *planPage) Act(s *State, a Action) tea.Cmd {
	switch a {
	case actOpen:
		return s.Host.Back() // the focus is on Cancel whenever a key arrives here
	case actPanel:
		p.focus = focusReason
	case actEvidence:
		p.evidence = !p.evidence
		p.top = 0
	case actAll:
		p.evidence = false
		p.all = !p.all
		p.top = 0
	case actUp, actDown, actPageUp, actPageDown:
		p.top += a.Step() // kept in range where it is drawn
	case actApprove, actRollBack:
		if why := p.Refuses(s, a); why != "" {
			s.Note = "refused: " + why
			return nil
		}
		if !p.asked.again(s, a) {
			s.Note = p.question(s, a)
			return nil
		}
		return p.send(s, a)
	case actReject, actStop:
		if why := p.Refuses(s, a); why != "" {
			s.Note = "refused: " + why
			return nil
		}
		return p.send(s, a)
	}
	return nil
}

func (p *planPage) Unask(a Action) { p.asked.Unask(a) }

func (p *planPage) question(s *State, a Action) string {
	what := "Approve " + p.id + ": " + moving(len(p.plan.Value.Moves))
	if a == actRollBack {
		what = "Roll back " + p.id + ": 1 compute node goes back to where it was"
		if n := len(p.plan.Value.Moves); n != 1 {
			what = fmt.Sprintf("Roll back %s: %d compute nodes go back to where they were", p.id, n)
		}
	}
	return fmt.Sprintf("%s. %s again does it, any other key does not.", what, s.Key(a))
}

// moving says how many compute nodes a plan moves.
func moving(n int) string {
	if n == 1 {
		return "1 compute node changes its forwarder"
	}
	return fmt.Sprintf("%d compute nodes change their forwarder", n)
}

func (p *planPage) send(s *State, a Action) tea.Cmd {
	id, hash, reason := p.id, p.plan.Value.PreviewHash, strings.TrimSpace(p.reason.Text)
	switch a {
	case actApprove:
		return decide(s, "approve "+id,
			func(ctx context.Context) (api.PlanView, error) { return s.Server.Approve(ctx, id, hash, reason) })
	case actReject:
		return decide(s, "reject "+id,
			func(ctx context.Context) (api.PlanView, error) { return s.Server.Reject(ctx, id, reason) })
	case actStop:
		return decide(s, "stop "+id, func(ctx context.Context) (api.PlanView, error) {
			return s.Server.Stop(ctx, id, "stopped from the terminal")
		})
	}
	return decide(s, "roll back "+id,
		func(ctx context.Context) (api.PlanView, error) { return s.Server.RollBack(ctx, id, reason) })
}

// decided is the answer to a request for a change.
type decided struct{ api.PlanView }

func decide(s *State, call string, f func(context.Context) (api.PlanView, error)) tea.Cmd {
	return Ask(s, call, func(ctx context.Context) (decided, error) {
		v, err := f(ctx)
		return decided{v}, err
	})
}

// refuses says why an action is not possible here and now; the server decides again for itself.
func (p *planPage) Refuses(s *State, a Action) string {
	st := p.plan.Value.State
	if !slices.Contains([]Action{actApprove, actReject, actRollBack, actStop}, a) {
		return ""
	}
	switch {
	case !p.plan.Have:
		return "the plan is not on screen yet"
	case a == actRollBack:
		if !slices.Contains([]remap.PlanState{remap.Approved, remap.Applying, remap.Applied, remap.Verified,
			remap.Partial, remap.Failed}, st) {
			return fmt.Sprintf("it is %s; there is nothing to roll back", words(st))
		}
		return ""
	case a == actStop:
		if st != remap.Applying {
			return fmt.Sprintf("it is %s, not being applied", words(st))
		}
		return ""
	case st != remap.Proposed:
		return fmt.Sprintf("it is %s, not waiting for a person", words(st))
	case a == actApprove && s.Stale():
		return s.TooOld()
	case a == actApprove && p.plan.Value.MayApprove != "":
		return p.plan.Value.MayApprove
	}
	if n := len([]rune(strings.TrimSpace(p.reason.Text))); n < remap.ReasonLetters && a == actApprove {
		return fmt.Sprintf("the reason has %d of at least %d letters; %s goes to it", n, remap.ReasonLetters, s.Key(actPanel))
	}
	return ""
}

// words is a plan's state as people write it.
func words(st remap.PlanState) string { return strings.ReplaceAll(string(st), "_", " ") }

func (p *planPage) Title(s *State, w int) string {
	if !p.plan.Have {
		return " " + clean(p.id)
	}
	v := &p.plan.Value
	title, by := " "+clean(v.ID)+"  "+strings.ToUpper(words(v.State)),
		"  proposed by "+clean(v.Proposer)+" "+clock(v.Created)
	if v.State != remap.Proposed {
		return title + by
	}
	expires := "  expires in " + age(v.Expires.Sub(s.Now))
	if w < 110 { // by whom gives way before until when
		return title + expires + "  by " + clean(v.Proposer)
	}
	return title + by + expires
}

func (p *planPage) Body(s *State, w, h int) []string {
	if !p.plan.Have {
		return p.plan.MissingOf(s, "plan "+clean(p.id), actPlans, w)
	}
	foot, text := p.buttons(s, w), p.text
	if p.evidence {
		text = p.evidenceLines
	}
	return append(Scroll(text(s, w), &p.top, max(0, h-len(foot))), foot...)
}

// shownMoves is how many changes are listed before `d` is pressed.
const shownMoves = 4

// text is the plan in words: what it changes, checks, needs, and what became of it.
func (p *planPage) text(s *State, w int) []string {
	v := &p.plan.Value
	var lines []string
	say := func(label, text string) {
		for i, l := range wrap(clean(text), w-12) {
			if i > 0 {
				label = ""
			}
			lines = append(lines, " "+left(label, 10)+l)
		}
	}
	say("", v.Title)
	change := moving(len(v.Moves))
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
		for _, l := range wrap(clean(l), w-3) {
			lines = append(lines, "   "+l)
		}
	}
	if n < len(v.Lines) {
		lines = append(lines, fmt.Sprintf("   : %d more (%s for all)", len(v.Lines)-n, s.Key(actAll)))
	}
	say("WHY", v.Reason)
	if v.Expected != "" {
		say("EXPECTED", v.Expected)
	}
	if v.Outcome != "" {
		say("MEASURED", v.Outcome)
	}
	checks := v.Checks
	if v.State != remap.Proposed {
		checks = nil // they are of this second, not of the one in which it was approved
	}
	for i, c := range checks {
		label := ""
		if i == 0 {
			label = "CHECKS"
		}
		sign := map[remap.CheckLevel]string{remap.Green: "ok", remap.Amber: "!!", remap.Red: "XX"}[c.Level]
		line := " " + left(label, 10) + left(sign, 3) + clean(c.Text)
		if c.Level != remap.Green {
			line = s.Bold(clip(line, w))
		}
		lines = append(lines, clip(line, w))
	}
	if v.State == remap.Proposed {
		say("NEEDS", p.needs())
	}
	for i, a := range v.Approvals {
		label := ""
		if i == 0 {
			label = "APPROVED"
		}
		say(label, fmt.Sprintf("by %s at %s: %s", a.By, clock(a.At), a.Reason))
	}
	if e := v.Ended; e != nil {
		label := "ENDED"
		if v.State == remap.RollingBack || v.State == remap.Partial {
			label = "ROLL BACK" // asked for; it ends when every node has followed
		}
		say(label, fmt.Sprintf("by %s at %s: %s", e.By, clock(e.At), orMissing(e.Reason)))
	}
	for i, c := range p.changes {
		label := ""
		if i == 0 {
			label = "CHANGED"
		}
		say(label, c)
	}
	return append(lines, p.progress(s, w)...)
}

// tried counts the tries of a node's change.
func tried(n int) string {
	if n == 1 {
		return "1 try"
	}
	return fmt.Sprintf("%d tries", n)
}

func (p *planPage) needs() string {
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
func (p *planPage) progress(s *State, w int) []string {
	v := &p.plan.Value
	if slices.Contains([]remap.PlanState{remap.Proposed, remap.Rejected, remap.Expired}, v.State) {
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
		lines = append(lines, fmt.Sprintf(" verified %d of %d at %s", verified, n, clock(v.Changed)))
	case remap.Applied:
		lines = append(lines, fmt.Sprintf(" applied %d of %d; verified %d: waiting until the new mapping is observed",
			ok, n, verified))
	default:
		lines = append(lines, fmt.Sprintf(" %s %d/%d  ok %d  retry %d  failed %d  verified %d  %s", words(v.State),
			ok+failed, n, ok, retry, failed, verified,
			bar(float64(ok+failed)/float64(max(1, n)), 20)))
	}
	lines[1] = s.Bold(clip(lines[1], w))
	if v.Error != "" {
		for _, l := range wrap(clean(v.Error), w-2) {
			lines = append(lines, " "+l)
		}
	}
	for _, r := range results {
		if !r.OK {
			lines = append(lines, clip(fmt.Sprintf("   %s failed after %s: %s", clean(string(r.Node)), tried(r.Tries),
				clean(r.Error)), w))
		}
	}
	return lines
}

// buttons are the reason and what can be pressed; Cancel is where the focus is.
func (p *planPage) buttons(s *State, w int) []string {
	pal := s.Palette
	if p.plan.Value.State != remap.Proposed {
		can := ""
		if p.Refuses(s, actStop) == "" {
			can += "     " + s.Key(actStop) + " stop after this batch"
		}
		if p.Refuses(s, actRollBack) == "" {
			can += "     " + s.Key(actRollBack) + " roll back (shift)"
		}
		lines := []string{rule(w), " " + pal.paint(pal.reverse, "[ Close ]") + clip(can, w-11)}
		if p.Refuses(s, actRollBack) == "" {
			lines = slices.Insert(lines, 1,
				p.reasonLine(fmt.Sprintf(" Reason (kept in the audit; %s): ", s.Key(actPanel)), w))
		}
		return lines
	}
	return []string{
		rule(w),
		p.reasonLine(fmt.Sprintf(" Reason (kept in the audit, %d letters or more; %s): ", remap.ReasonLetters,
			s.Key(actPanel)), w),
		" " + pal.paint(pal.reverse, "[ Cancel ]") + clip("     "+s.Key(actApprove)+" approve (shift)     "+
			s.Key(actReject)+" reject", w-11),
	}
}

// reasonLine is what was typed as the reason, or the room for it.
func (p *planPage) reasonLine(label string, w int) string {
	if p.reason.Text == "" {
		return clip(label+strings.Repeat("_", max(3, min(30, w-1-len(label)))), w)
	}
	return clip(label+p.reason.Text, w)
}

func (p *planPage) Twin(_ *State, a Action) string {
	verb := map[Action]string{actApprove: "approve", actReject: "reject", actRollBack: "rollback", actAll: "show"}[a]
	if verb == "" {
		return ""
	}
	return "fairway plan " + verb + " " + clean(p.id)
}

// Hides leaves out what is refused, except for the approval of a plan that waits for a person: why it is refused now
// is said when it is tried.
func (p *planPage) Hides(s *State, a Action) bool {
	if a == actApprove && (!p.plan.Have || p.plan.Value.State == remap.Proposed) {
		return false
	}
	return p.Refuses(s, a) != ""
}
