package screen

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/remap"
	"fairway/webui/api"
)

// Judging is what the pages of findings and of a forwarder do to one: acknowledge, dismiss, exclude,
// take back. Nobody is moved by any of it.
type Judging struct {
	reason *reasoned
	waits  *confirmed
}

// reasoned is a reason being typed, and what takes it: an error says what it lacks.
type reasoned struct {
	Input
	what string
	take func(text string) (tea.Cmd, error)
}

func (j *Judging) Field() *Input {
	if j.reason == nil {
		return nil
	}
	return &j.reason.Input
}

// Typed sends what was asked with its reason.
func (j *Judging) Typed(s *State, ok bool) tea.Cmd {
	if !ok {
		j.reason = nil
		return nil
	}
	r := j.reason
	cmd, err := r.take(strings.TrimSpace(r.Text))
	if err != nil {
		r.Label = fmt.Sprintf("%s (%v):", r.what, err)
		return nil
	}
	j.reason = nil
	return cmd
}

// confirmed is what waits for the one capital key that does it.
type confirmed struct {
	Question
	text string
	send func() tea.Cmd
}

func (c *confirmed) ask(s *State) {
	s.Note = fmt.Sprintf("%s %s does it, any other key does not.", c.text, s.Key(ActApprove))
}

// Approve does what waits for it; else it opens the plan that waits because of a finding or a node.
func (j *Judging) Approve(s *State, about string) tea.Cmd {
	if n := NeedOf(s, about); j.waits == nil && n != nil && n.Action != nil && n.Action.Name == remap.ActApprove {
		return s.Host.Open(AtDecision(n.Plan))
	}
	switch why := RefusesForwarder(s, ActExclude, nil, nil); {
	case j.waits == nil:
		s.Note = "refused: nothing waits for it; " + s.Key(ActExclude) + " says first what, and why"
	case why != "":
		j.waits = nil
		s.Note = "refused: " + why
	case !j.waits.Again(s, ActApprove):
		j.waits.ask(s)
	default:
		send := j.waits.send
		j.waits = nil
		return send()
	}
	return nil
}

// Unask takes a question back when another key comes.
func (j *Judging) Unask(a Action) {
	if a != ActApprove {
		j.waits = nil
	}
}

// Refuses says why something cannot be done with a finding or its forwarder here and now; the server decides again
// for itself. f is nil without a finding, sent is what the server sent with the finding, nil where it is not known.
func (j *Judging) Refuses(s *State, a Action, f *anomaly.Finding, sent *remap.Options) string {
	act, judges := map[Action]remap.Action{ActAck: remap.ActAcknowledge, ActSilence: remap.ActSilence,
		ActDismiss: remap.ActDismiss, ActNote: remap.ActNote}[a]
	switch {
	case !judges && a != ActExclude && a != ActPropose:
		return ""
	case f == nil || f.ID == "":
		return "no finding is here"
	case !judges && s.Forwarder(topology.ForwarderID(f.Node)) == nil:
		return Subject(f.Node) + " is not a forwarder"
	case !judges:
		return RefusesForwarder(s, a, s.Forwarder(topology.ForwarderID(f.Node)), nil)
	}
	if s.Replays() && a != ActNote {
		return inReplay
	}
	if sent != nil {
		return sent.WhyNot[act]
	}
	options := remap.FindingOptions(s.person(), f)
	return options.WhyNot[act]
}

const inReplay = "actions are off in a replay"

// RefusesForwarder says why nobody, or not this person, can do something with a forwarder. sent is what the server sent
// with it, nil where that is not known; row is nil for an unknown one.
func RefusesForwarder(s *State, a Action, row *api.ForwarderRow, sent *remap.Options) string {
	act, ok := map[Action]remap.Action{ActExclude: remap.ActExclude, ActCanary: remap.ActCanary}[a]
	if !ok {
		return ""
	}
	excluded := row != nil && row.State == remap.ForwarderExcluded
	if act == remap.ActExclude && excluded {
		act = remap.ActReturn
	}
	if sent == nil {
		sent = new(remap.ForwarderOptions(s.person(), excluded, nil))
	}
	switch {
	case s.Replays():
		return inReplay
	case sent.WhyNot[act] != "":
		return sent.WhyNot[act]
	case s.Stale():
		return s.TooOld()
	}
	return ""
}

// person is who looks at the screen.
func (s *State) person() remap.Person {
	return remap.Person{Name: s.Shown.User, Role: remap.Role(s.Shown.Role)}
}

// askWhy asks for a reason of least letters, and sends it.
func (j *Judging) askWhy(what, hint string, least int, send func(why string) tea.Cmd) {
	j.reason = &reasoned{Input: Input{Label: what + hint + ":"}, what: what, take: func(text string) (tea.Cmd, error) {
		if n := len([]rune(text)); n < least {
			return nil, fmt.Errorf("%d of %d letters", n, least)
		}
		return send(text), nil
	}}
}

// enough says how long a reason is.
func enough() string { return fmt.Sprintf(" (%d letters or more)", remap.ReasonLetters) }

// askFirst asks why, and then once whether.
func (j *Judging) askFirst(s *State, what, means string, send func(why string) tea.Cmd) {
	j.askWhy("Why: "+strings.ToLower(what[:1])+what[1:], enough(), remap.ReasonLetters, func(why string) tea.Cmd {
		j.waits = &confirmed{Question: Question{ActApprove, s.Now}, text: what + "? " + means,
			send: func() tea.Cmd { return send(why) }}
		j.waits.ask(s)
		return nil
	})
}

// askLong asks for how long a finding is to be silent, and why.
func (j *Judging) askLong(s *State, f *anomaly.Finding) {
	what := "Silence " + chart.Clean(f.ID) + " for how long, and why"
	j.reason = &reasoned{Input: Input{Label: what + " (30m, 4h, 2d; 0 ends it):", Text: "4h "}, what: what,
		take: func(text string) (tea.Cmd, error) {
			first, why, _ := strings.Cut(text, " ")
			long, err := readLong(first)
			return say(s, "silence "+f.ID, func(ctx context.Context) (anomaly.Finding, error) {
				return s.Server.Silence(ctx, f.ID, long, strings.TrimSpace(why))
			}), err
		}}
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
		return 0, fmt.Errorf("%q is not a time such as 30m, 4h or 2d", text)
	}
	return long, nil
}

// excludeFor is how long a key excludes a forwarder; the command takes any time.
const excludeFor = 4 * time.Hour

// Judge does what a key asks of a finding.
func (j *Judging) Judge(s *State, a Action, f *anomaly.Finding, sent *remap.Options) tea.Cmd {
	if why := j.Refuses(s, a, f, sent); why != "" {
		s.Note = "refused: " + why
		return nil
	}
	switch a {
	case ActApprove:
		return j.Approve(s, f.ID)
	case ActAck:
		return say(s, "acknowledge "+f.ID,
			func(ctx context.Context) (anomaly.Finding, error) { return s.Server.Acknowledge(ctx, f.ID, "") })
	case ActSilence:
		j.askLong(s, f)
	case ActDismiss:
		j.askWhy("Why is "+chart.Clean(f.ID)+" not a fault", enough(), remap.ReasonLetters, func(why string) tea.Cmd {
			return say(s, "dismiss "+f.ID,
				func(ctx context.Context) (anomaly.Finding, error) { return s.Server.Dismiss(ctx, f.ID, why) })
		})
	case ActNote:
		about := s.Past
		j.askWhy("Note about "+chart.Clean(f.ID), "", 1, func(text string) tea.Cmd {
			return say(s, "note about "+f.ID,
				func(ctx context.Context) (anomaly.Finding, error) { return s.Server.Note(ctx, f.ID, text, about) })
		})
	case ActExclude:
		j.Exclude(s, s.Forwarder(topology.ForwarderID(f.Node)))
	case ActPropose:
		return s.Host.Propose(topology.ForwarderID(f.Node), "", nil)
	}
	return nil
}

// Exclude asks why a forwarder is excluded from allocation or, if it is, returned.
func (j *Judging) Exclude(s *State, row *api.ForwarderRow) {
	fwd := row.ID
	if row.State == remap.ForwarderExcluded {
		j.askFirst(s, "Back into allocation with "+chart.Clean(string(fwd)), "Jobs get it again.",
			func(why string) tea.Cmd {
				return say(s, "return "+string(fwd),
					func(ctx context.Context) (remap.Feed, error) { return s.Server.Return(ctx, fwd, why) })
			})
		return
	}
	j.askFirst(s, fmt.Sprintf("Drain %s for 4 h", chart.Clean(string(fwd))), "No job gets it, nobody is moved.",
		func(why string) tea.Cmd {
			return say(s, "drain "+string(fwd), func(ctx context.Context) (remap.Exclusion, error) {
				return s.Server.Exclude(ctx, fwd, excludeFor, why)
			})
		})
}

// Judged is the answer to a decision about a finding.
type Judged struct{ what string }

func say[T any](s *State, call string, f func(context.Context) (T, error)) tea.Cmd {
	return Ask(s, call, func(ctx context.Context) (Judged, error) {
		_, err := f(ctx)
		return Judged{call}, err
	})
}

func (j *Judging) Answer(s *State, msg tea.Msg) {
	if a, ok := msg.(Answer[Judged]); ok {
		Report(s, "done: "+chart.Clean(a.Value.what))
		if a.Err != nil {
			s.Note = "refused: " + chart.Clean(a.Err.Error())
		}
	}
}
