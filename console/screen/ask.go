package screen

import (
	"cmp"
	"context"
	"errors"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/console/chart"
	"fairway/webui/api"
	"fairway/webui/client"
)

// askTimeout bounds every request of a screen, except for a canary: that is answered when the canary is, which
// may be as slow as the longest probe.timeout.
const (
	askTimeout    = 10 * time.Second
	CanaryTimeout = 70 * time.Second
)

// Server is whom screens ask: requests end with Ctx, Clock says when they were sent.
type Server struct {
	*client.Client
	Ctx   context.Context
	Clock func() time.Time
}

// Request is one request that this console sent.
type Request struct {
	At   time.Time
	Call string
	Took time.Duration
	Err  error
}

// Logged is an answer of any kind.
type Logged interface{ Sent() Request }

// Answer is what came back from one request.
type Answer[T any] struct {
	Request
	Value T
}

// Sent is the request.
func (a Answer[T]) Sent() Request { return a.Request }

// With is a call with its one argument.
func With[A, T any](call func(context.Context, A) (T, error), arg A) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) { return call(ctx, arg) }
}

// Ask makes a call of the server a command whose answer says which request it was.
func Ask[T any](s *State, call string, f func(context.Context) (T, error)) tea.Cmd {
	return AskWithin(s, askTimeout, call, f)
}

// AskWithin is Ask with another limit of time.
func AskWithin[T any](s *State, within time.Duration, call string, f func(context.Context) (T, error)) tea.Cmd {
	k := s.Server
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(k.Ctx, within)
		defer cancel()
		start := k.Clock()
		v, err := f(ctx)
		return Answer[T]{Request{At: start, Call: call, Took: k.Clock().Sub(start), Err: err}, v}
	}
}

// again is how often a screen asks again for what does not change every second.
const again = 10 * time.Second

// EverySecond is a Load's Again of what is asked for with each new second.
const EverySecond time.Duration = -1

// Load is one thing that a screen shows and asks for now and then.
type Load[T any] struct {
	Value  T
	Have   bool
	Err    error
	Again  time.Duration // how old an answer may become; 0 is ten seconds
	call   string        // the question; answers to an earlier one are ignored
	asking bool
	asked  time.Time
}

// Page is a page of one answer.
type Page[T any] struct{ Load Load[T] }

// Answer takes it.
func (p *Page[T]) Answer(_ *State, msg tea.Msg) tea.Cmd {
	p.Load.Take(msg)
	return nil
}

// Of says that the value answers this question.
func (l *Load[T]) Of(call string) bool { return l.Have && l.call == call }

// Asking says that an answer is awaited.
func (l *Load[T]) Asking() bool { return l.asking }

// Expire lets the next Refresh ask.
func (l *Load[T]) Expire() { l.asking, l.asked = false, time.Time{} }

// Refresh asks when the question is a new one or the answer is old. A server that does not answer is asked again
// every second.
func (l *Load[T]) Refresh(s *State, call string, f func(context.Context) (T, error)) tea.Cmd {
	lost := errors.Is(l.Err, api.ErrUnreachable)
	if call == l.call && (l.asking || !lost && s.Now.Sub(l.asked) < cmp.Or(l.Again, again)) {
		return nil
	}
	l.call, l.asking, l.asked = call, true, s.Now
	return Ask(s, call, f)
}

// Take keeps an answer if it is one to this question, and says whether there is a new value.
func (l *Load[T]) Take(msg tea.Msg) bool {
	a, ok := msg.(Answer[T])
	if !ok || a.Call != l.call {
		return false
	}
	l.asking = false
	if l.Err = a.Err; l.Err == nil {
		l.Value, l.Have = a.Value, true
	}
	return l.Err == nil
}

// Missing is the body of a screen that has nothing to show yet, or was refused.
func (l *Load[T]) Missing(s *State, what string, w int) []string {
	if l.Err == nil {
		return []string{"", chart.Clip(" Asking for "+what+".", w)}
	}
	return s.Failed(l.Err, w)
}

// MissingOf is Missing of one of those that a list shows: where it is not found, it leads to the list.
func (l *Load[T]) MissingOf(s *State, what string, list Action, w int) []string {
	lines := l.Missing(s, what, w)
	if errors.Is(l.Err, api.ErrNotFound) {
		lines = append(lines, chart.Clip(" "+s.Key(list)+" lists those that are kept.", w))
	}
	return lines
}

// Old is a line that says why a value is not newer; none where it is.
func (l *Load[T]) Old(s *State, as string, w int) []string {
	if l.Err == nil {
		return nil
	}
	return []string{s.Bold(chart.Clip(" "+as+": "+chart.Clean(l.Err.Error()), w))}
}

// Failed is the body of a screen that could not be read: why, and what to do about it.
func (s *State) Failed(err error, w int) []string {
	return append([]string{""}, chart.Paragraphs(w, chart.Clean(err.Error()), s.Advice(err))...)
}

// Advice says what to do about an error of a read.
func (s *State) Advice(err error) string {
	switch {
	case errors.Is(err, api.ErrNotFound):
		return "The server does not know it, or no longer; " + s.Key(ActGo) + " finds what it knows."
	case errors.Is(err, api.ErrNotAllowed):
		return "Ask an admin of the site for the viewer role, or sign in with --token-file."
	case errors.Is(err, api.ErrUnreachable):
		return "Asking again with the next second."
	}
	return s.Key(ActRequests) + " shows the requests that were sent."
}
