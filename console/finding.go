package console

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// judging is what both pages of findings do to one: acknowledge, dismiss, withhold, take back.
// Nobody is moved by any of it.
type judging struct{ reason *reasoned }

// reasoned is a reason being typed, and what is sent with it.
type reasoned struct {
	input
	what string
	send func(reason string) tea.Cmd
	// long says that how long stands before the reason, which may then be short; sendLong takes it.
	long     bool
	sendLong func(long time.Duration, reason string) tea.Cmd
}

func (j *judging) field() *input {
	if j.reason == nil {
		return nil
	}
	return &j.reason.input
}

// typed sends what was asked with its reason.
func (j *judging) typed(_ *State, _ *asker, ok bool) tea.Cmd {
	if !ok {
		j.reason = nil
		return nil
	}
	r := j.reason
	reason := strings.TrimSpace(r.text)
	if r.long {
		return j.silence(r, reason)
	}
	if n := len([]rune(reason)); n < reasonLetters {
		r.label = fmt.Sprintf("%s (%d of %d letters):", r.what, n, reasonLetters)
		return nil
	}
	j.reason = nil
	return r.send(reason)
}

func (j *judging) askWhy(what string, send func(string) tea.Cmd) {
	j.reason = &reasoned{what: what, send: send}
	j.reason.label = fmt.Sprintf("%s (%d letters or more):", what, reasonLetters)
}

// silence sends what was asked with how long, and the reason behind it.
func (j *judging) silence(r *reasoned, text string) tea.Cmd {
	first, why, _ := strings.Cut(text, " ")
	long, err := readLong(first)
	if err != nil {
		r.label = r.what + " (" + err.Error() + "):"
		return nil
	}
	j.reason = nil
	return r.sendLong(long, strings.TrimSpace(why))
}

// readLong reads how long something is to be: 30m, 4h, 2d, 1h30m, or 0.
func readLong(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	long, err := time.ParseDuration(text)
	if err != nil || long < 0 {
		return 0, fmt.Errorf("%q is no time such as 30m, 4h or 2d", text)
	}
	return long, nil
}

// excludeFor is how long a key withholds a forwarder; the command takes any time.
const excludeFor = 4 * time.Hour

func (j *judging) judge(s *State, ask *asker, a action, f *anomaly.Finding) tea.Cmd {
	fwd := topology.ForwarderID(f.Node)
	row := s.forwarder(fwd)
	switch a {
	case actAck:
		return ask.judge("acknowledge "+f.ID, func(ctx context.Context) error {
			_, err := ask.backend.Acknowledge(ctx, f.ID, "")
			return err
		})
	case actSilence:
		j.reason = &reasoned{long: true, what: "Silence " + clean(f.ID) + " for how long, and why", sendLong: func(long time.Duration, why string) tea.Cmd {
			return ask.judge("silence "+f.ID, func(ctx context.Context) error {
				_, err := ask.backend.Silence(ctx, f.ID, long, why)
				return err
			})
		}}
		j.reason.text, j.reason.label = "4h ", j.reason.what+" (30m, 4h, 2d; 0 ends it):"
	case actDismiss:
		j.askWhy("Why is "+clean(f.ID)+" no fault", func(why string) tea.Cmd {
			return ask.judge("dismiss "+f.ID, func(ctx context.Context) error {
				_, err := ask.backend.Dismiss(ctx, f.ID, why)
				return err
			})
		})
	case actExclude:
		if row == nil {
			s.Note = "refused: " + subject(f.Node) + " is no forwarder"
			return nil
		}
		j.withhold(ask, row)
	case actPropose:
		if row == nil {
			s.Note = "refused: " + subject(f.Node) + " is no forwarder"
			return nil
		}
		return s.open(ask, newProposePage(fwd, nil))
	}
	return nil
}

// withhold asks why a forwarder is withheld from allocation or, if it is, taken back.
func (j *judging) withhold(ask *asker, row *ForwarderRow) {
	fwd := row.ID
	if row.State == remap.ForwarderExcluded {
		j.askWhy("Why back into allocation with "+clean(string(fwd)), func(why string) tea.Cmd {
			return ask.judge("return "+string(fwd), func(ctx context.Context) error {
				_, err := ask.backend.Return(ctx, fwd, why)
				return err
			})
		})
		return
	}
	j.askWhy(fmt.Sprintf("Why withhold %s from allocation for 4 h", clean(string(fwd))), func(why string) tea.Cmd {
		return ask.judge("exclude "+string(fwd), func(ctx context.Context) error {
			_, err := ask.backend.Exclude(ctx, fwd, excludeFor, why)
			return err
		})
	})
}

// judged is the answer to something said about a finding.
type judged struct{ what string }

func (k *asker) judge(call string, f func(context.Context) error) tea.Cmd {
	return ask(k, call, func(ctx context.Context) (judged, error) { return judged{call}, f(ctx) })
}

func (k *asker) finding(id string) tea.Cmd {
	return ask(k, "finding "+id, func(ctx context.Context) (FindingView, error) { return k.backend.Finding(ctx, id) })
}

func (j *judging) answer(s *State, msg tea.Msg) {
	if a, ok := msg.(answer[judged]); ok {
		s.Note = "done: " + clean(a.value.what)
		if a.req.Err != nil {
			s.Note = "refused: " + clean(a.req.Err.Error())
		}
	}
}

// findingPage is one finding: its sentence, its life, whom it hits, and the evidence as it was
// when it last changed.
type findingPage struct {
	judging
	id     string
	view   FindingView
	have   bool
	err    error
	asking bool
	asked  time.Time
}

func newFindingPage(id string) *findingPage { return &findingPage{id: id} }

func (p *findingPage) name() string           { return onFinding }
func (p *findingPage) address(*State) Address { return Address{Page: "findings", ID: p.id} }

// refresh asks for the life again when the finding has changed since, and now and then.
func (p *findingPage) refresh(s *State, ask *asker) tea.Cmd {
	f := p.shown(s)
	if p.asking || p.have && (f == nil || f.Changed.Equal(p.view.Changed)) && s.Now.Sub(p.asked) < 10*time.Second {
		return nil
	}
	p.asking, p.asked = true, s.Now
	return ask.finding(p.id)
}

// shown is the finding in the shown second; nil once it has left the list.
func (p *findingPage) shown(s *State) *anomaly.Finding {
	i := slices.IndexFunc(s.Shown.Findings, func(f anomaly.Finding) bool { return f.ID == p.id })
	if i < 0 {
		return nil
	}
	return &s.Shown.Findings[i]
}

func (p *findingPage) newest(s *State) *anomaly.Finding {
	if f := p.shown(s); f != nil && !f.Changed.Before(p.view.Changed) {
		return f
	}
	return &p.view.Finding
}

func (p *findingPage) answer(s *State, ask *asker, msg tea.Msg) tea.Cmd {
	if a, ok := msg.(answer[FindingView]); ok {
		p.asking = false
		if p.err = a.req.Err; p.err == nil && a.value.ID == p.id {
			p.view, p.have = a.value, true
		}
		return nil
	}
	p.judging.answer(s, msg)
	if _, ok := msg.(answer[judged]); ok && !p.asking {
		p.asking = true
		return ask.finding(p.id)
	}
	return nil
}

func (p *findingPage) act(s *State, ask *asker, a action) tea.Cmd {
	f := p.newest(s)
	if f.ID == "" {
		s.Note = "the finding is not known yet"
		return nil
	}
	if a == actOpen {
		if s.forwarder(topology.ForwarderID(f.Node)) == nil {
			s.Note = subject(f.Node) + " has no page"
			return nil
		}
		return s.open(ask, newForwarderPage(string(f.Node)))
	}
	return p.judge(s, ask, a, f)
}

func (p *findingPage) title(s *State, _ int) string {
	f := p.newest(s)
	if f.ID == "" {
		return " finding " + clean(p.id)
	}
	return fmt.Sprintf(" %s   %s   %s   %s for %s", clean(f.ID), subject(f.Node), findingTitle(f), strings.ToUpper(s.stateOf(f)), age(s.Now.Sub(f.Changed)))
}

func (p *findingPage) body(s *State, w, h int) []string {
	switch {
	case !p.have && p.err != nil:
		return []string{"", clip(" "+clean(p.err.Error()), w), " " + s.adviceFor(p.err)}
	case !p.have:
		return []string{"", " Asking for " + clean(p.id) + "."}
	}
	f := p.newest(s)
	lines := append([]string{""}, indent(wrap(clean(f.Sentence), max(1, w-2)), w)...)
	lines = append(lines, "", clip(fmt.Sprintf(" confidence %.2f   score %.2g   model %s   since %s", f.Confidence, f.Score, orMissing(f.Model), clock(f.Since)), w))
	for _, i := range f.Impact {
		lines = append(lines, clip(fmt.Sprintf(" job %s waits here for %.0f%% of its nodes' time", clean(string(i.Job)), 100*i.Share), w))
	}
	if f.Open() && f.Silent(s.Now) {
		lines = append(lines, clip(fmt.Sprintf(" silent until %s: it calls nobody, unless it is confirmed or excluded before", moment(f.Silenced, s.Now)), w))
	}
	if f.Held != "" {
		lines = append(lines, clip(" not excluded: "+clean(f.Held), w))
	}
	if next := NextCommand(f); next != "" {
		lines = append(lines, s.Palette.paint(s.Palette.bold, clip(" next: "+s.nextKey(f)+"   or "+next, w)))
	}
	lines = append(lines, rule(w))
	lines = append(lines, p.life(s, w)...)
	lines = append(lines, rule(w))
	lines = append(lines, p.evidence(w, h-len(lines))...)
	return lines
}

// nextKey is the key that does what NextCommand says.
func (s *State) nextKey(f *anomaly.Finding) string {
	if f.State == anomaly.Suspect || f.State == anomaly.Probation && f.Stage == anomaly.StageJob {
		return s.key(actAck) + " acknowledge"
	}
	if f.State == anomaly.Confirmed {
		return s.key(actExclude) + " withhold it"
	}
	return s.key(actExclude) + " take it back"
}

// life are the newest changes.
func (p *findingPage) life(_ *State, w int) []string {
	const shown = 8
	changes := p.view.Changes
	var lines []string
	if over := len(changes) - shown; over > 0 {
		lines = append(lines, clip(fmt.Sprintf(" : %d earlier changes; fairway findings %s shows them", over, clean(p.id)), w))
		changes = changes[over:]
	}
	for i := range changes {
		c := &changes[i]
		by := "tracker"
		if c.By != "" {
			by = clean(c.By)
		}
		lines = append(lines, clip(" "+left(clock(c.At), 10)+left(stateWords(&c.Finding), 12)+left(by, 12)+clean(c.Why), w))
	}
	return lines
}

// evidence draws the frozen series of the newest change, with the peers' middle beside them.
func (p *findingPage) evidence(w, room int) []string {
	var frozen *anomaly.Frozen
	var at time.Time
	for i := range p.view.Changes {
		if c := &p.view.Changes[i]; c.Frozen != nil && len(c.Frozen.Series) > 0 {
			frozen, at = c.Frozen, c.At
		}
	}
	if frozen == nil || room < 2 {
		return nil
	}
	lines := []string{clip(fmt.Sprintf(" EVIDENCE as it was at %s: the two minutes before, and the peers' middle", clock(at)), w)}
	names := make([]string, 0, len(frozen.Series))
	for n := range frozen.Series {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		if len(lines) == room {
			break
		}
		points := make([]Point, 0, len(frozen.Series[n]))
		for _, v := range frozen.Series[n] {
			points = append(points, Point(v))
		}
		top := 0.0
		for _, v := range points {
			top = max(top, v.Value)
		}
		last := points[len(points)-1].Value
		tail := fmt.Sprintf("  now %s", quantity(n, last))
		if peer, ok := frozen.Peers[n]; ok {
			tail += ", peers " + quantity(n, peer)
		}
		head := " " + left(n, 12)
		lines = append(lines, clip(head+sparkline(points, at, 2*time.Minute, top, max(1, min(60, w-1-len(head)-len(tail))))+tail, w))
	}
	return lines
}

// quantity writes a value in the unit that its metric's name tells.
func quantity(metric string, v float64) string {
	switch {
	case strings.HasSuffix(metric, "_bytes"):
		return mega(&v) + " MB/s"
	case strings.HasSuffix(metric, "_ops"):
		return count(&v) + "/s"
	case strings.HasSuffix(metric, "_exec"), strings.HasSuffix(metric, "_wait"), strings.HasSuffix(metric, "_time"), strings.HasPrefix(metric, "probe_"):
		return millis(&v) + " ms"
	}
	return number(v)
}
