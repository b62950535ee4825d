package console

import (
	"cmp"
	"context"
	"errors"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/webui/api"
)

// loadAgain is how often a page asks again for what does not change every second.
const loadAgain = 10 * time.Second

// load is one thing that a page shows and asks for now and then.
type load[T any] struct {
	value  T
	have   bool
	err    error
	call   string // the question; answers to an earlier one are not heeded
	asking bool
	asked  time.Time
	again  time.Duration // how old an answer may become; 0 is loadAgain
}

// refresh asks when the question is a new one or the answer is old; a server that did not answer is
// asked with every second.
func (l *load[T]) refresh(s *State, k *asker, call string, f func(context.Context) (T, error)) tea.Cmd {
	lost := errors.Is(l.err, api.ErrUnreachable)
	if call == l.call && (l.asking || !lost && s.Now.Sub(l.asked) < cmp.Or(l.again, loadAgain)) {
		return nil
	}
	l.call, l.asking, l.asked = call, true, s.Now
	return ask(k, call, f)
}

// take keeps an answer if it is one to this question.
func (l *load[T]) take(msg tea.Msg) {
	a, ok := msg.(answer[T])
	if !ok || a.req.Call != l.call {
		return
	}
	l.asking = false
	if l.err = a.req.Err; l.err == nil {
		l.value, l.have = a.value, true
	}
}

// missing is the body of a page that has nothing to show yet, or was refused.
func (l *load[T]) missing(s *State, what string, w int) []string {
	if l.err == nil {
		return []string{"", clip(" Asking for "+what+".", w)}
	}
	return s.failed(l.err, w)
}

// notListed is failed for a page of one of those that a list shows: it leads to the list.
func (s *State) notListed(err error, list action, w int) []string {
	lines := s.failed(err, w)
	if errors.Is(err, api.ErrNotFound) {
		lines = append(lines, clip(" "+s.key(list)+" lists those that are kept.", w))
	}
	return lines
}

// failed is the body of a page that could not be read: why, and what to do about it.
func (s *State) failed(err error, w int) []string {
	lines := append([]string{""}, indent(wrap(clean(err.Error()), max(1, w-2)), w)...)
	return append(lines, indent(wrap(s.adviceFor(err), max(1, w-2)), w)...)
}
