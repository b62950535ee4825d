package periodic

import (
	"cmp"
	"math"
	"slices"
)

// builder makes one pattern after another in the same memory. The pattern is a chain of segments of
// constant free bandwidth that covers [0, t); an instance splits segments, none is ever joined.
type builder struct {
	set    Set
	t      float64
	seg    []segment
	apps   []running
	pieces []piece
	// record keeps each instance's I/O; a search only counts.
	record bool
}

type segment struct {
	start, end, free float64
	next             int32 // -1 for the last, which ends at t
}

// running is an application in the pattern so far. Its times are unrolled: they grow from first on,
// beyond t where its I/O runs over the pattern's end.
type running struct {
	work, volume, rate, cycle, ratio float64
	n                                int
	open                             bool    // not known to be unschedulable
	first                            float64 // start of the first instance's I/O
	end                              float64 // end of the last one's
	at                               int32   // segment where that end lies, or one before it
	lap                              float64 // what to add to its times: a multiple of t
	io                               [][]piece
}

// piece is I/O in one segment, in the pattern's time [0, t].
type piece struct {
	seg            int32
	from, to, rate float64
}

func newBuilder(s Set) *builder {
	b := &builder{set: s, apps: make([]running, len(s.Apps))}
	for i, a := range s.Apps {
		b.apps[i] = running{work: a.Work, volume: a.Volume, rate: s.rate(a), cycle: s.cycle(a),
			ratio: a.Work / s.ioTime(a)}
	}
	return b
}

// build makes a pattern of length t (algorithms 2 and 3) and returns its work in processor seconds;
// false when an application has no place in it.
func (b *builder) build(t float64) (work float64, whole bool) {
	b.t = t
	b.seg = append(b.seg[:0], segment{0, t, b.set.Bandwidth, -1})
	for i := range b.apps {
		a := &b.apps[i]
		a.n, a.open, a.io = 0, true, nil
	}
	for {
		i := b.worst()
		if i < 0 {
			break
		}
		a := &b.apps[i]
		switch {
		case a.n > 0:
			a.open = b.insertNext(a)
		case !b.insertFirst(a):
			return 0, false
		}
	}
	for i, a := range b.apps {
		work += b.set.Apps[i].Procs * a.work * float64(a.n)
	}
	return work, true
}

// dilation is the largest of an application of the pattern just built.
func (b *builder) dilation() float64 {
	least := math.Inf(1)
	for i := range b.apps {
		least = min(least, float64(b.apps[i].n)*b.apps[i].cycle)
	}
	return max(b.t/least, 1)
}

// worst is the open application with the largest dilation, which is t / (n * cycle); -1 for none.
func (b *builder) worst() int {
	best, least := -1, math.Inf(1)
	for i := range b.apps {
		a := &b.apps[i]
		if !a.open {
			continue
		}
		done := float64(a.n) * a.cycle
		if done < least || best >= 0 && done == least && a.ratio > b.apps[best].ratio {
			best, least = i, done
		}
	}
	return best
}

// insertFirst is Insert-First-Instance: water-filling where it can use most bandwidth, the earlier of equal places.
// What is free beyond its own rate does not draw it, so that first instances lie close together.
func (b *builder) insertFirst(a *running) bool {
	b.pieces = b.pieces[:0]
	for left := a.volume; left > a.volume*tiny; {
		best, most := int32(-1), 0.0
		for i := int32(0); i >= 0; i = b.seg[i].next {
			if usable := min(b.seg[i].free, a.rate); usable > most && !b.taken(i) {
				best, most = i, usable
			}
		}
		if best < 0 {
			return false
		}
		s, rate := &b.seg[best], most
		to := s.end
		if s.start+left/rate < s.end-b.t*tiny {
			to = s.start + left/rate
		}
		left -= rate * (to - s.start)
		b.pieces = append(b.pieces, piece{best, s.start, to, rate})
	}
	return b.settleFirst(a)
}

func (b *builder) taken(seg int32) bool {
	return slices.ContainsFunc(b.pieces, func(p piece) bool { return p.seg == seg })
}

// settleFirst finds the largest gap between the pieces of a first instance, in which its computation
// must fit, and puts it in.
func (b *builder) settleFirst(a *running) bool {
	slices.SortFunc(b.pieces, func(x, y piece) int { return cmp.Compare(x.from, y.from) })
	last, gap := len(b.pieces)-1, -1.0
	for i := range b.pieces { // the gap behind piece i
		next := b.t + b.pieces[0].from
		if i < len(b.pieces)-1 {
			next = b.pieces[i+1].from
		}
		if g := next - b.pieces[i].to; g > gap {
			last, gap = i, g
		}
	}
	if gap < a.work*(1-tiny) {
		return false
	}
	a.first, a.end, a.lap = b.pieces[0].from, b.pieces[last].to, 0
	if last < len(b.pieces)-1 {
		a.first, a.end, a.lap = b.pieces[last+1].from, a.end+b.t, b.t
	}
	a.at = b.pieces[last].seg
	// The instance begins behind the gap.
	b.pieces = append(b.pieces, b.pieces[:last+1]...)[last+1:]
	b.add(a)
	return true
}

// tiny is the part of a volume or a length that rounding may take.
const tiny = 1e-12

// insertNext is Insert-In-Pattern (algorithm 1): as soon as the last instance's end leaves time to
// compute, with all the bandwidth there is; it must end so that the first can compute again.
func (b *builder) insertNext(a *running) bool {
	from, limit := a.end+a.work, a.first+b.t-a.work
	if from+a.volume/a.rate > limit+b.t*tiny {
		return false
	}
	at, lap := a.at, a.lap
	for lap+b.seg[at].end <= from {
		at, lap = b.step(at, lap)
	}
	a.at, a.lap = at, lap
	b.pieces = b.pieces[:0]
	for left := a.volume; ; at, lap = b.step(at, lap) {
		s := &b.seg[at]
		rate, to := min(s.free, a.rate), min(lap+s.end, limit)
		if rate > 0 && to > from {
			done := left <= rate*(to-from)*(1+tiny)
			if done && from+left/rate < to-b.t*tiny {
				to = from + left/rate
			}
			b.pieces = append(b.pieces, piece{at, max(from-lap, s.start), min(to-lap, s.end), rate})
			if done {
				a.end = to
				break
			}
			left -= rate * (to - from)
		}
		if lap+s.end >= limit {
			return false
		}
		from = max(from, lap+s.end)
	}
	a.at, a.lap = at, lap
	b.add(a)
	return true
}

// step goes to the segment after at, round the pattern's end.
func (b *builder) step(at int32, lap float64) (int32, float64) {
	if next := b.seg[at].next; next >= 0 {
		return next, lap
	}
	return 0, lap + b.t
}

// add takes the pieces' bandwidth out of the pattern: one more instance.
func (b *builder) add(a *running) {
	for i := range b.pieces {
		p := &b.pieces[i]
		if p.from > b.seg[p.seg].start {
			p.seg = b.split(p.seg, p.from)
		}
		if p.to < b.seg[p.seg].end {
			b.split(p.seg, p.to)
		}
		free := &b.seg[p.seg].free
		if *free -= p.rate; *free < b.set.Bandwidth*tiny {
			*free = 0
		}
	}
	a.n++
	if b.record {
		a.io = append(a.io, append([]piece(nil), b.pieces...))
	}
}

// split cuts a segment and returns the later part.
func (b *builder) split(at int32, time float64) int32 {
	s := &b.seg[at]
	later := int32(len(b.seg))
	rest := segment{time, s.end, s.free, s.next}
	s.end, s.next = time, later
	b.seg = append(b.seg, rest)
	return later
}
