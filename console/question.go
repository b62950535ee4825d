package console

import "time"

// questionTime is how long a question must have been on screen: keys that arrive as one, typed
// ahead or pasted, do not answer it.
const questionTime = 200 * time.Millisecond

// question is what a key asked once: the same key again answers it, any other takes it back.
type question struct {
	act action
	at  time.Time
}

// again says that a answers the question; else it is the one asked from now on.
func (q *question) again(s *State, a action) bool {
	if q.act == a && s.Now.Sub(q.at) >= questionTime {
		*q = question{}
		return true
	}
	*q = question{a, s.Now}
	return false
}

// questioner is a page that asks once before it changes the machine.
type questioner interface {
	// unask takes the question back unless a answers it. It hears of every key, also of those that lead
	// to other pages: coming back is no answer.
	unask(a action)
}
