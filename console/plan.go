package console

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/remap"
	"fairway/webui/api"
)

const reasonLetters = remap.ReasonLetters

// The fields of the plan page that can hold the focus. Cancel holds it first: Enter leaves the page.
const (
	focusCancel = iota
	focusReason
)

// planPage is one plan: what it changes, what is checked, who must say yes, how far it is.
type planPage struct {
	id     string
	plan   api.PlanView
	have   bool
	err    error
	asking bool
	focus  int
	reason input
	all    bool
	// evidence says that what the desk knew is shown instead of the plan.
	evidence bool
	top      int // first line shown
	asked    question
	// changes are the lines that differ from the preview an approval was refused for.
	changes []string
}

func newPlanPage(id string) *planPage {
	return &planPage{id: id, reason: input{label: "Reason:"}}
}

func (p *planPage) name() string           { return onPlan }
func (p *planPage) address(*State) Address { return Address{Page: "plans", ID: p.id} }

func (p *planPage) field() *input {
	if p.focus == focusReason {
		return &p.reason
	}
	return nil
}

// typed ends the reason; both ways keep the text, so that a slip of a finger loses nothing.
func (p *planPage) typed(*State, *asker, bool) tea.Cmd {
	p.focus = focusCancel
	return nil
}

func (p *planPage) refresh(_ *State, ask *asker) tea.Cmd {
	if p.asking {
		return nil
	}
	p.asking = true
	return ask.plan(p.id)
}

func (p *planPage) answer(s *State, ask *asker, msg tea.Msg) tea.Cmd {
	switch a := msg.(type) {
	case answer[api.PlanView]:
		p.asking = false
		if p.err = a.req.Err; p.err == nil && a.value.ID == p.id {
			p.show(a.value)
		}
	case answer[decided]:
		return p.decided(s, ask, a)
	}
	return nil
}

// show takes a new view of the plan. A preview that changed while its approval was half way asks
// to be read again: the question is dropped.
func (p *planPage) show(v api.PlanView) {
	switch {
	case v.State != remap.Proposed:
		p.changes = nil // nothing is approved any more by what it was
	case p.have && v.PreviewHash != p.plan.PreviewHash:
		p.changes = diff(previewLines(&p.plan), previewLines(&v))
		p.asked = question{}
	}
	p.plan, p.have = v, true
}

// decided takes the answer to a key that changes something.
func (p *planPage) decided(s *State, ask *asker, a answer[decided]) tea.Cmd {
	switch err := a.req.Err; {
	case err == nil:
		p.changes = nil
		p.reason.text = "" // it was said of this step, not of the next
		p.plan, p.have = a.value.PlanView, true
		s.Note = a.req.Call + ": accepted"
	case errors.Is(err, api.ErrChanged):
		s.Note = "nothing was applied: the plan changed under you; read it again"
	default:
		s.Note = "refused: " + err.Error()
	}
	p.asking = false
	return p.refresh(s, ask)
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

func (p *planPage) act(s *State, ask *asker, a action) tea.Cmd {
	switch a {
	case actOpen:
		return s.back(ask) // the focus is on Cancel whenever a key arrives here
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
		p.top += steps[a] // kept in range where it is drawn
	case actApprove, actRollBack:
		if why := p.refuses(s, a); why != "" {
			s.Note = "refused: " + why
			return nil
		}
		if !p.asked.again(s, a) {
			s.Note = p.question(s, a)
			return nil
		}
		return p.send(ask, a)
	case actReject, actStop:
		if why := p.refuses(s, a); why != "" {
			s.Note = "refused: " + why
			return nil
		}
		return p.send(ask, a)
	}
	return nil
}

// unask takes a question back when another key comes.
func (p *planPage) unask(a action) {
	if a != p.asked.act {
		p.asked = question{}
	}
}

func (p *planPage) question(s *State, a action) string {
	what := "Approve " + p.id + ": " + moving(len(p.plan.Moves))
	if a == actRollBack {
		what = "Roll back " + p.id + ": 1 compute node goes back to where it was"
		if n := len(p.plan.Moves); n != 1 {
			what = fmt.Sprintf("Roll back %s: %d compute nodes go back to where they were", p.id, n)
		}
	}
	return fmt.Sprintf("%s. %s again does it, any other key does not.", what, s.key(a))
}

// moving says how many compute nodes a plan moves.
func moving(n int) string {
	if n == 1 {
		return "1 compute node changes its forwarder"
	}
	return fmt.Sprintf("%d compute nodes change their forwarder", n)
}

func (p *planPage) send(ask *asker, a action) tea.Cmd {
	reason := strings.TrimSpace(p.reason.text)
	switch a {
	case actApprove:
		return ask.approve(p.id, p.plan.PreviewHash, reason)
	case actReject:
		return ask.reject(p.id, reason)
	case actStop:
		return ask.stop(p.id)
	}
	return ask.rollBack(p.id, reason)
}

// refuses says why an action is not possible here and now; the server decides again for itself.
func (p *planPage) refuses(s *State, a action) string {
	st := p.plan.State
	if !slices.Contains([]action{actApprove, actReject, actRollBack, actStop}, a) {
		return ""
	}
	switch {
	case !p.have:
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
	case a == actApprove && s.stale():
		return "the data on screen is too old to decide by (" + ageWords(s) + ")"
	case a == actApprove && p.plan.MayApprove != "":
		return p.plan.MayApprove
	}
	if n := len([]rune(strings.TrimSpace(p.reason.text))); n < reasonLetters && a == actApprove {
		return fmt.Sprintf("the reason has %d of at least %d letters; %s goes to it", n, reasonLetters, s.key(actPanel))
	}
	return ""
}

func ageWords(s *State) string {
	if s.Shown.At.IsZero() {
		return "none yet"
	}
	return "since " + clock(s.Shown.At)
}

// words is a plan's state as people write it.
func words(st remap.PlanState) string { return strings.ReplaceAll(string(st), "_", " ") }

func (p *planPage) title(s *State, w int) string {
	if !p.have {
		return " " + clean(p.id)
	}
	v := &p.plan
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

func (p *planPage) body(s *State, w, h int) []string {
	if !p.have {
		if p.err != nil {
			return s.notListed(p.err, actPlans, w)
		}
		return []string{"", " Asking for plan " + clean(p.id) + "."}
	}
	foot, text := p.buttons(s, w), p.text
	if p.evidence {
		text = p.evidenceLines
	}
	return append(scroll(text(s, w), &p.top, max(0, h-len(foot))), foot...)
}

// shownMoves is how many changes are listed before `d` is pressed.
const shownMoves = 4

// text is the plan in words: what it changes, checks, needs, and what became of it.
func (p *planPage) text(s *State, w int) []string {
	v := &p.plan
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
		lines = append(lines, fmt.Sprintf("   : %d more (%s for all)", len(v.Lines)-n, s.key(actAll)))
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
			line = s.Palette.paint(s.Palette.bold, clip(line, w))
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
	v := &p.plan
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
	v := &p.plan
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
	lines[1] = s.Palette.paint(s.Palette.bold, clip(lines[1], w))
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
	if p.plan.State != remap.Proposed {
		can := ""
		if p.refuses(s, actStop) == "" {
			can += "     " + s.key(actStop) + " stop after this batch"
		}
		if p.refuses(s, actRollBack) == "" {
			can += "     " + s.key(actRollBack) + " roll back (shift)"
		}
		lines := []string{rule(w), " " + pal.paint(pal.reverse, "[ Close ]") + clip(can, w-11)}
		if p.refuses(s, actRollBack) == "" {
			lines = slices.Insert(lines, 1,
				p.reasonLine(fmt.Sprintf(" Reason (kept in the audit; %s): ", s.key(actPanel)), w))
		}
		return lines
	}
	return []string{
		rule(w),
		p.reasonLine(fmt.Sprintf(" Reason (kept in the audit, %d letters or more; %s): ", reasonLetters,
			s.key(actPanel)), w),
		" " + pal.paint(pal.reverse, "[ Cancel ]") + clip("     "+s.key(actApprove)+" approve (shift)     "+
			s.key(actReject)+" reject", w-11),
	}
}

// reasonLine is what was typed as the reason, or the room for it.
func (p *planPage) reasonLine(label string, w int) string {
	if p.reason.text == "" {
		return clip(label+strings.Repeat("_", max(3, min(30, w-1-len(label)))), w)
	}
	return clip(label+p.reason.text, w)
}
