package model

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A site whose conditions do not change need not move each message to show what its nodes would show. It coasts: its
// counters and gauges go on as in seconds that were recorded before, which are drawn a piece at a time. Those seconds
// were made message by message under the same conditions, so that means, spread and what the nodes have in common are
// theirs. A queue of this model remembers some seconds; a piece is longer than these and than the five seconds over
// which detectors take means, so that most of these means are as they were recorded. The longer a site coasts by the
// same seconds, the more often a chance of these comes again: record more of them from time to time.
const (
	// CoastStep is the time between two readings of a router's gauges, which each Run of a recording or coasting
	// site takes.
	CoastStep  = 50 * time.Millisecond
	secondOf   = int(time.Second / CoastStep) // steps
	coastPiece = 20                           // seconds in a row that are drawn together
)

// coasting is what a site has recorded, and what it plays.
type coasting struct {
	rng        *rand.Rand
	fast, slow tape   // of each step, and of each second
	steps      int    // since the recording or the coasting began
	on         bool   // it plays
	at, left   int    // the second that is played, and how many follow it
	was        []uint // the gauges when it began
}

// Record begins to record how the site goes on from now on. A site that coasts goes on from where it began to, and what
// it recorded is added to; any other forgets that.
func (s *Site) Record() {
	if c := s.coast; c != nil && c.on {
		c.restore()
		c.fast.begin()
		c.slow.begin()
		c.on, c.steps = false, 0
		return
	}
	s.coast = &coasting{rng: rand.New(rand.NewPCG(s.cfg.Seed, uint64(s.Now())))}
	for _, n := range s.Nodes {
		n.shown(&s.coast.fast, &s.coast.slow)
	}
	for _, j := range s.Jobs {
		s.coast.slow.grows(&j.MetaWaited)
	}
	s.coast.fast.begin()
	s.coast.slow.begin()
}

// Coast has the site go on by what was recorded, until Resume.
func (s *Site) Coast() error {
	c := s.coast
	if c == nil || len(c.slow.rows) < coastPiece {
		return fmt.Errorf("a site coasts by %d recorded seconds at least", coastPiece)
	}
	c.on, c.steps, c.left = true, 0, 0
	c.was = append(c.fast.now(nil), c.slow.now(nil)...)
	return nil
}

// Resume has the site move its messages again, from where it was when it began to coast.
func (s *Site) Resume() {
	if c := s.coast; c != nil && c.on {
		c.restore()
	}
	s.coast = nil
}

// restore sets the gauges to what they were when the coasting began.
func (c *coasting) restore() { c.slow.restore(c.fast.restore(c.was)) }

// Now returns the time since the start. The clock of the site's events stands while it coasts.
func (s *Site) Now() time.Duration { return s.now + s.coasted }

// Run lets everything happen that is due until t.
func (s *Site) Run(t time.Duration) {
	c := s.coast
	if c == nil {
		s.Engine.Run(t - s.coasted)
		return
	}
	for s.Now() < t {
		if c.on {
			s.coasted += CoastStep
			c.play()
		} else {
			s.Engine.Run(s.now + CoastStep)
			c.record()
		}
	}
}

func (c *coasting) record() {
	c.steps++
	c.fast.take()
	if c.steps%secondOf == 0 {
		c.slow.take()
	}
}

func (c *coasting) play() {
	step := c.steps % secondOf
	if step == 0 {
		if c.left--; c.left < 0 { // every second is drawn as often: after the last comes the first
			c.at, c.left = c.rng.IntN(len(c.slow.rows)), coastPiece-1
		}
		c.at = (c.at + 1) % len(c.slow.rows)
	}
	c.fast.play(c.at*secondOf + step)
	if step == secondOf-1 {
		c.slow.play(c.at)
	}
	c.steps++
}

// tape records numbers of the model at equal intervals: of those that grow by how much, of gauges what they were.
type tape struct {
	counts []*uint32
	sums   []*uint64
	times  []*time.Duration
	gauges []*int
	last   []uint
	rows   [][]uint // the gauges last
}

func (t *tape) grows(d ...*time.Duration) { t.times = append(t.times, d...) }

func (t *tape) begin() { t.last = t.all(nil) }

// all appends everything as it is now.
func (t *tape) all(to []uint) []uint {
	for _, p := range t.counts {
		to = append(to, uint(*p))
	}
	for _, p := range t.sums {
		to = append(to, uint(*p))
	}
	for _, p := range t.times {
		to = append(to, uint(*p))
	}
	return t.now(to)
}

// now appends the gauges.
func (t *tape) now(to []uint) []uint {
	for _, p := range t.gauges {
		to = append(to, uint(*p))
	}
	return to
}

// take ends an interval.
func (t *tape) take() {
	is := t.all(make([]uint, 0, len(t.last)))
	row := make([]uint, len(is))
	copy(row, is)
	for i := range len(is) - len(t.gauges) {
		row[i] -= t.last[i]
	}
	t.last, t.rows = is, append(t.rows, row)
}

// play has an interval pass again.
func (t *tape) play(i int) {
	row := t.rows[i]
	for k, p := range t.counts {
		*p += uint32(row[k])
	}
	row = row[len(t.counts):]
	for k, p := range t.sums {
		*p += uint64(row[k])
	}
	row = row[len(t.sums):]
	for k, p := range t.times {
		*p += time.Duration(row[k])
	}
	t.restore(row[len(t.times):])
}

// restore sets the gauges and returns what follows them.
func (t *tape) restore(from []uint) []uint {
	for k, p := range t.gauges {
		*p = int(from[k])
	}
	return from[len(t.gauges):]
}

// shown lists what a node's files show: what is read many times a second, and the rest. Water marks, the least and the
// most of a statistic and the truth by client stay as they were.
func (n *Node) shown(fast, slow *tape) {
	often := slow
	if n.Role == Router {
		often = fast
	}
	c := &n.LNet
	often.gauges = append(often.gauges, &c.Alloc)
	often.counts = append(often.counts, &c.Errors, &c.Resent, &c.Sent, &c.Received, &c.Routed, &c.Dropped)
	often.sums = append(often.sums, &c.SentBytes, &c.ReceivedBytes, &c.RoutedBytes, &c.DroppedBytes)
	for _, size := range n.Buffers {
		for _, p := range size {
			often.gauges = append(often.gauges, &p.Credits)
		}
	}
	for _, ni := range n.NIs {
		for i := range ni.Tx {
			often.gauges = append(often.gauges, &ni.Tx[i].Now)
		}
		slow.sums = append(slow.sums, &ni.InBytes, &ni.OutBytes)
		slow.messages(&ni.Sent, &ni.Received)
	}
	for _, p := range n.Peers {
		slow.gauges = append(slow.gauges, &p.Tx.Now, &p.Rtr.Now, &p.Queued)
		slow.messages(&p.Sent, &p.Received)
	}
	slow.grows(&n.CPU.Ran, &n.CPU.Waited, &n.CPU.Stalls, &n.Truth.Inside, &n.Truth.Bulk)
	slow.sums = append(slow.sums, &n.CPU.Slices, &n.Truth.Left, &n.Truth.BulkLeft)
	if f := n.Front; f != nil {
		slow.stats(&f.Ops)
		for _, im := range f.Imports {
			slow.stats(&im.Stats)
			slow.gauges = append(slow.gauges, &im.InFlight)
			for op := range im.Pages {
				slow.numbers(im.Pages[op][:])
			}
		}
	}
	if v := n.Server; v != nil {
		slow.stats(&v.Service.Stats)
		slow.gauges = append(slow.gauges, &v.Service.Active)
		for _, t := range v.Targets {
			slow.stats(&t.Stats)
			for _, j := range t.Jobs {
				slow.stats(&j.Stats)
			}
			for op := range t.Took {
				slow.numbers(t.Took[op][:])
			}
		}
	}
}

func (t *tape) messages(of ...*Counts) {
	for _, c := range of {
		for i := range c {
			t.counts = append(t.counts, &c[i])
		}
	}
}

func (t *tape) numbers(of []uint64) {
	for i := range of {
		t.sums = append(t.sums, &of[i])
	}
}

func (t *tape) stats(s *Stats) {
	for _, st := range s.List {
		t.sums = append(t.sums, &st.N, &st.Sum, &st.SquareS)
	}
}
