package screen

import "time"

// questionTime is how long a question must have been on screen: keys that arrive as one, typed
// ahead or pasted, do not answer it.
const questionTime = 200 * time.Millisecond

// Question is what a key asked once: the same key again answers it, any other takes it back.
type Question struct {
	act Action
	at  time.Time
}

// Again says that a answers the question; else it is the one asked from now on.
func (q *Question) Again(s *State, a Action) bool {
	if q.act == a && s.Now.Sub(q.at) >= questionTime {
		*q = Question{}
		return true
	}
	*q = Question{a, s.Now}
	return false
}

// Asked is the key that was asked about and not answered; ActNone of no question.
func (q *Question) Asked() Action { return q.act }

// Unask takes the question back unless a answers it.
func (q *Question) Unask(a Action) {
	if a != q.act {
		*q = Question{}
	}
}
