// Package compare judges subjects beside their peers. It is what all detectors that do so have in common: evidence
// against a subject that adds up to doubt, an accusation and a clearing, is saved, and is forgotten. What else is
// compared, and with whom, is the detector's; for nodes that others see it is a row of Rules.
package compare

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
)

const (
	// release is the share of an alarm's wealth below which an accused subject is cleared.
	release anomaly.Share = 0.1
	// kept is the wealth above an alarm's that is kept: a healed subject is to be cleared.
	kept anomaly.LogWealth = 3
	// sure is the share of an alarm's wealth at which confidence is whole.
	sure anomaly.Share = 1.2
)

// Bar is what evidence must reach.
type Bar struct {
	Kind  anomaly.Kind
	Model string // version that findings carry
	Alarm anomaly.LogWealth
	Doubt anomaly.Share // of an alarm's wealth
}

// Case is what is held against one subject, and saved.
type Case struct {
	Tests []Test // one for each way in which it may be slow, as far as they were bet on
	Alarm bool
	Since int64 // of the alarm's first evidence, Unix
}

// Test returns a test of the case.
func (c *Case) Test(i int) *Test {
	for len(c.Tests) <= i {
		c.Tests = append(c.Tests, Test{})
	}
	return &c.Tests[i]
}

// Worst is the test with the most wealth.
func (c *Case) Worst() (worst int) {
	for i := range c.Tests {
		if c.Tests[i].Log > c.Tests[worst].Log {
			worst = i
		}
	}
	return worst
}

// Wealth is the most of all tests.
func (c *Case) Wealth() anomaly.LogWealth { return c.Test(c.Worst()).Log }

// Bet lets an observation speak to a test.
func (c *Case) Bet(b *Bar, test int, now int64, log anomaly.LogWealth) {
	c.Test(test).Bet(now, log, b.Alarm+kept)
}

// Forget ends what is held against a subject that has shown that it is well.
func (c *Case) Forget() {
	clear(c.Tests)
	c.Alarm = false
}

// Verdict accuses or clears the subject of a name by its worst test. Ratio and sentence are the detector's.
func (c *Case) Verdict(b *Bar, id topology.NodeID) (v anomaly.Verdict, worst int) {
	worst = c.Worst()
	t := c.Test(worst)
	score := t.Log / b.Alarm
	switch {
	case !c.Alarm && score >= 1:
		c.Alarm, c.Since = true, t.Start
	case c.Alarm && score < release:
		c.Alarm = false
	}
	v = anomaly.Verdict{Node: id, Kind: b.Kind, Level: anomaly.Clean, Score: score, Model: b.Model}
	since := t.Start
	switch {
	case c.Alarm:
		v.Level, since = anomaly.Alarm, c.Since
	case score >= b.Doubt:
		v.Level = anomaly.Doubt
	default:
		return v, worst
	}
	v.Since, v.Confidence = time.Unix(since, 0).UTC(), min(0.99, score/sure)
	v.Evidence = map[string]float64{"score": score}
	return v, worst
}

// Subjects are those that a detector judges, by name; they are what is saved of it.
type Subjects[T any, P interface {
	*T
	Forget()
}] struct {
	byName map[topology.NodeID]P
	sorted []named[P]
}

type named[P any] struct {
	id topology.NodeID
	is P
}

// Known returns a subject; nil where it was never seen.
func (s *Subjects[T, P]) Known(id topology.NodeID) P { return s.byName[id] }

// Get returns a subject, a new one where it was never seen.
func (s *Subjects[T, P]) Get(id topology.NodeID) P {
	if s.byName[id] == nil {
		if s.byName == nil {
			s.byName = map[topology.NodeID]P{}
		}
		s.byName[id] = P(new(T))
	}
	return s.byName[id]
}

// Count is how many there are.
func (s *Subjects[T, P]) Count() int { return len(s.byName) }

// All are the subjects in order of their names.
func (s *Subjects[T, P]) All() iter.Seq2[topology.NodeID, P] {
	if len(s.sorted) != len(s.byName) {
		s.sorted = s.sorted[:0]
		for id, is := range s.byName {
			s.sorted = append(s.sorted, named[P]{id, is})
		}
		slices.SortFunc(s.sorted, func(a, b named[P]) int { return cmp.Compare(a.id, b.id) })
	}
	return func(yield func(topology.NodeID, P) bool) {
		for _, n := range s.sorted {
			if !yield(n.id, n.is) {
				return
			}
		}
	}
}

// Forget ends what is held against a subject; what it is used to stays.
func (s *Subjects[T, P]) Forget(id topology.NodeID) {
	if is := s.byName[id]; is != nil {
		is.Forget()
	}
}

// MarshalBinary saves what was learnt of the subjects, and the evidence so far.
func (s *Subjects[T, P]) MarshalBinary() ([]byte, error) { return anomaly.Save(s.byName) }

// UnmarshalBinary takes up saved subjects. On an error they are as they were.
func (s *Subjects[T, P]) UnmarshalBinary(b []byte) error {
	s.sorted = nil
	return anomaly.Load(b, &s.byName)
}

// Mean is a running mean of N values.
type Mean struct{ Mean, N float64 }

// Teach takes a value: as one of N, of more than fast as one of slow.
func (m *Mean) Teach(x, fast, slow float64) {
	m.N++
	n := m.N
	if n > fast {
		n = slow
	}
	m.Mean += (x - m.Mean) / n
}

// Others are the two values in the middle of n sorted ones without one's own, which are one if n is odd. Not a number
// stands for an own one that is not among them.
func Others(sorted []float64, own float64) (low, high float64, n int) {
	at, found := slices.BinarySearch(sorted, own)
	n = len(sorted)
	if found {
		n--
	} else {
		at = n
	}
	if n == 0 {
		return 0, 0, 0
	}
	get := func(i int) float64 {
		if i >= at {
			i++
		}
		return sorted[i]
	}
	return get((n - 1) / 2), get(n / 2), n
}

// MedianOfOthers is the median of sorted values without one's own.
func MedianOfOthers(sorted []float64, own float64) float64 {
	low, high, _ := Others(sorted, own)
	return (low + high) / 2
}

// Milliseconds is a time, given as log seconds, as sentences say it.
func Milliseconds(log float64) string { return anomaly.Digits(1000 * math.Exp(log)) }
