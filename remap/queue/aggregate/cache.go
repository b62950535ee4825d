package aggregate

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Cache keeps for a moment what was read of files, for all who have opened them, and reads ahead for those who read on.
// Three rules say whom an answer serves:
//
//   - who opened the file before the answer was asked for: it has all that was closed before that open, wherever it was
//     written (close to open, as with NFS);
//   - nobody once a change of the file was under way here since it was asked for: clients of one queue have the
//     order of POSIX. A change that gets no answer may still be made: it counts as under way for lateFor more;
//   - for KeepFor, and not after the file was seen to have another time or size: so long may a change that comes
//     another way be missed by who had the file open.
//
// The end of a file is not remembered. A Cache is not safe for concurrent use.
type Cache[ID any] struct {
	most    int // bytes
	bytes   int
	files   map[uint64]*contents[ID] // by Reader.Path
	order   []*block[ID]             // the oldest first; with those that are gone
	changes                          // of files that are not known
	clock   uint64
	swept   time.Time
	counts  CacheCounts
}

// changes are what is known of the changes of a file, or of any.
type changes struct {
	underWay int
	void     uint64    // by the clock: what was asked for before serves nobody else
	late     time.Time // until then a change that got no answer may still be made
}

// allow says that what was asked for then may serve others.
func (c *changes) allow(asked uint64, since time.Time) bool {
	return c.underWay == 0 && asked > c.void && !since.Before(c.late)
}

// CacheCounts are what a Cache did: reads that were answered from it or by what was under way, and those that were not;
// the bytes that were read ahead, and those of them that nobody asked for.
type CacheCounts struct{ Hits, Misses, AheadBytes, UnusedBytes int64 }

// Reader is an open file that is read: the server's number of the file, its place (as in Target), and when it was
// opened by the Cache's clock.
type Reader struct{ Path, Place, Opened uint64 }

// Fetch is a read that the server is asked for. ID is the caller's.
type Fetch[ID any] struct {
	ID         ID
	Begin, End int64
	wanted     int64 // the end of what was asked for: the rest is ahead
	reached    int64 // the end of what those who have joined asked for
	place      uint64
	asked      uint64 // by the clock; 0: not yet
	since      time.Time
	file       *contents[ID] // nil: nothing is kept of it
}

// Ahead says that more is read than was asked for.
func (f *Fetch[ID]) Ahead() bool { return f.End > f.wanted }

// contents is what is known of a file.
type contents[ID any] struct {
	path uint64
	changes
	blocks []*block[ID] // by begin; they do not overlap
	flying []*Fetch[ID]
	ends   [readEnds]readEnd
	next   int       // in ends
	last   uint64    // who read it last, by Opened; 0: nobody
	shared time.Time // when readers took turns last
	others time.Time // when another reader than before read last
	attr   string    // as it was seen last
	used   time.Time
}

// readEnd is where a read ended, and how long it was.
type readEnd struct {
	at int64
	n  int
}

// block is a range that was read.
type block[ID any] struct {
	file    *contents[ID]
	place   uint64
	asked   uint64
	since   time.Time
	begin   int64
	data    []byte
	reached int64 // how far it was asked for
	gone    bool
}

func (b *block[ID]) end() int64 { return b.begin + int64(len(b.data)) }

const (
	// KeepFor is how long an answer is kept: clients that read side by side are less apart, and a change that comes
	// another way is not missed for longer.
	KeepFor = time.Second
	// lateFor is how long a server may take over a change that was given up.
	lateFor = 30 * time.Second
	// readEnds is how many of a file's last reads are known, to see who reads on.
	readEnds = 64
	// aheadPart is the part of a message that a read has at most where more is read ahead.
	aheadPart = 2
)

// NewCache makes a cache of so many bytes.
func NewCache[ID any](most int) *Cache[ID] {
	return &Cache[ID]{most: most, files: map[uint64]*contents[ID]{}}
}

// Counts is what was done so far.
func (c *Cache[ID]) Counts() CacheCounts { return c.counts }

// Bytes are how many are kept.
func (c *Cache[ID]) Bytes() int { return c.bytes }

// Tick is the time of an open.
func (c *Cache[ID]) Tick() uint64 {
	c.clock++
	return c.clock
}

// Find appends the pieces of what is kept of a range to into; none unless all of it is.
func (c *Cache[ID]) Find(now time.Time, r Reader, offset int64, n int, into [][]byte) [][]byte {
	f := c.files[r.Path]
	if f == nil {
		return nil
	}
	end := offset + int64(n)
	from := f.search(offset)
	at, k := offset, from
	for ; at < end && k < len(f.blocks); k++ {
		b := f.blocks[k]
		if b.begin > at || b.place != r.Place || b.asked < r.Opened || now.Sub(b.since) > KeepFor ||
			!c.allow(b.asked, b.since) || !f.allow(b.asked, b.since) {
			return nil
		}
		at = b.end()
	}
	if at < end {
		return nil
	}
	for _, b := range f.blocks[from:k] {
		begin, stop := max(offset, b.begin), min(end, b.end())
		into = append(into, b.data[begin-b.begin:stop-b.begin])
		b.reached = max(b.reached, stop)
	}
	f.read(now, r, end, n)
	c.counts.Hits++
	return into
}

// search is the first block that ends behind an offset.
func (f *contents[ID]) search(offset int64) int {
	i, _ := slices.BinarySearchFunc(f.blocks, offset, func(b *block[ID], at int64) int {
		return cmp.Compare(b.end(), at+1)
	})
	return i
}

// read notes a read. Readers take turns where one reads again who opened the file before another who has read it: of
// those who come one after the other each has opened it too late for what the one before has read.
func (f *contents[ID]) read(now time.Time, r Reader, end int64, n int) {
	f.used = now
	f.ends[f.next] = readEnd{end, n}
	f.next = (f.next + 1) % readEnds
	if r.Opened < f.last {
		f.shared = now
	}
	if r.Opened != f.last && f.last != 0 {
		f.others = now
	}
	f.last = r.Opened
}

// goesOn says that a small read begins where another ended: of large ones the last piece is small, too.
func (f *contents[ID]) goesOn(offset int64, most int) bool {
	return slices.ContainsFunc(f.ends[:], func(e readEnd) bool { return e.n > 0 && e.at == offset && e.n <= most })
}

// Join is a read under way whose answer will have a range and may serve a reader; nil where nothing fits. The reader
// has joined it where the caller calls Joined.
func (c *Cache[ID]) Join(now time.Time, r Reader, offset int64, n int) *Fetch[ID] {
	f := c.files[r.Path]
	if f == nil {
		return nil
	}
	for _, g := range f.flying {
		if g.place == r.Place && g.Begin <= offset && offset+int64(n) <= g.End && (g.asked == 0 ||
			g.asked > r.Opened && now.Sub(g.since) <= KeepFor && c.serves(g)) {
			return g
		}
	}
	return nil
}

// serves says that a read that was sent may serve others.
func (c *Cache[ID]) serves(g *Fetch[ID]) bool {
	return c.allow(g.asked, g.since) && g.file.allow(g.asked, g.since)
}

// Joined notes that a reader waits for a read that was there.
func (c *Cache[ID]) Joined(now time.Time, g *Fetch[ID], r Reader, offset int64, n int) {
	c.counts.Hits++
	end := offset + int64(n)
	g.reached = max(g.reached, end)
	g.file.read(now, r, end, n)
}

// Pass notes a large read of a file that nobody else reads now and that needs nothing; false: it may serve others.
func (c *Cache[ID]) Pass(now time.Time, r Reader, offset int64, n, most int) bool {
	f := c.files[r.Path]
	if f == nil || n <= most/aheadPart || f.last != r.Opened || now.Sub(f.others) <= KeepFor {
		return false
	}
	c.counts.Misses++
	f.read(now, r, offset+int64(n), n)
	return true
}

// Ask begins a read of a range. Most is how many bytes a message carries: where somebody reads on, so many whole reads
// as it can carry are read ahead.
func (c *Cache[ID]) Ask(now time.Time, r Reader, offset int64, n, most int) *Fetch[ID] {
	c.counts.Misses++
	end := offset + int64(n)
	g := &Fetch[ID]{Begin: offset, End: end, wanted: end, reached: end, place: r.Place}
	f := c.files[r.Path]
	if f == nil && len(c.files) < maxTargets {
		f = c.know(r.Path)
	}
	if f == nil {
		return g
	}
	if n <= most/aheadPart && c.allow(math.MaxUint64, now) && f.allow(math.MaxUint64, now) &&
		f.goesOn(offset, most/aheadPart) {
		g.End = offset + int64(most/n*n)
	}
	g.file = f
	f.flying = append(f.flying, g)
	f.read(now, r, end, n)
	return g
}

func (c *Cache[ID]) know(path uint64) *contents[ID] {
	f := c.files[path]
	if f == nil {
		f = &contents[ID]{path: path}
		c.files[path] = f
	}
	return f
}

// Sent notes that a read goes to the server now.
func (c *Cache[ID]) Sent(now time.Time, g *Fetch[ID]) { g.asked, g.since = c.Tick(), now }

// Lost ends a read that nobody else is to join, and of which nothing is kept.
func (c *Cache[ID]) Lost(g *Fetch[ID]) {
	if f := g.file; f != nil {
		f.flying = slices.DeleteFunc(f.flying, func(o *Fetch[ID]) bool { return o == g })
		g.file = nil
	}
}

// Done ends a read that was answered by data, which may be less than was asked for, and keeps a copy where others may
// ask for it.
func (c *Cache[ID]) Done(now time.Time, g *Fetch[ID], data []byte) {
	f := g.file
	data = data[:min(int64(len(data)), g.End-g.Begin)]
	end := g.Begin + int64(len(data))
	c.counts.AheadBytes += max(0, end-g.wanted)
	keep := f != nil && c.serves(g) && (g.Ahead() || now.Sub(f.shared) <= KeepFor) && len(data) > 0 &&
		len(data) <= c.most && now.Sub(g.since) <= KeepFor
	c.Lost(g)
	if !keep || !c.clear(f, g, end) {
		c.counts.UnusedBytes += max(0, end-max(g.reached, g.wanted))
		return
	}
	b := &block[ID]{file: f, place: g.place, asked: g.asked, since: g.since, begin: g.Begin, reached: g.reached,
		data: slices.Clone(data)}
	f.blocks = slices.Insert(f.blocks, f.search(b.begin), b)
	c.order = append(c.order, b)
	for c.bytes += len(b.data); c.bytes > c.most; {
		c.drop(c.order[0])
		c.order = c.order[1:]
	}
}

// clear makes room for what was read up to an end, if it is newer than what is there.
func (c *Cache[ID]) clear(f *contents[ID], g *Fetch[ID], end int64) bool {
	from := f.search(g.Begin)
	to := from
	for ; to < len(f.blocks) && f.blocks[to].begin < end; to++ {
		if f.blocks[to].asked > g.asked {
			return false
		}
	}
	for _, old := range f.blocks[from:to] {
		c.end(old)
	}
	f.blocks = slices.Delete(f.blocks, from, to)
	return true
}

// drop takes a block out, if it is still there.
func (c *Cache[ID]) drop(b *block[ID]) {
	if f := b.file; !b.gone {
		at := f.search(b.begin)
		f.blocks = slices.Delete(f.blocks, at, at+1)
		c.end(b)
	}
}

// end counts a block out that its file has no more.
func (c *Cache[ID]) end(b *block[ID]) {
	b.gone = true
	c.bytes -= len(b.data)
	c.counts.UnusedBytes += max(0, b.end()-b.reached)
	b.data = nil
}

// of are the changes of a file that is known, or of any.
func (c *Cache[ID]) of(path uint64, known bool) *changes {
	if known {
		return &c.know(path).changes
	}
	return &c.changes
}

// Change notes that something may change a file from now on; not known: any file.
func (c *Cache[ID]) Change(path uint64, known bool) {
	of := c.of(path, known)
	of.underWay++
	of.void = c.Tick()
}

// Changed notes that what Change noted was answered, or never will be. What was asked for meanwhile is not kept.
func (c *Cache[ID]) Changed(now time.Time, path uint64, known, answered bool) {
	of := c.of(path, known)
	of.underWay--
	of.void = c.Tick()
	if !answered {
		if len(c.files) > maxTargets {
			of = &c.changes // for so long no further ones can be known
		}
		of.late = now.Add(lateFor)
	}
	if f := c.files[path]; known && f.last == 0 && f.allow(math.MaxUint64, now) {
		delete(c.files, path) // it is not read
	}
}

// Seen takes what a file was seen to have of times and size: what was read before of another is not served any more.
func (c *Cache[ID]) Seen(path uint64, attr string) {
	if f := c.files[path]; f != nil && f.attr != attr {
		f.attr, f.void = attr, c.Tick()
	}
}

// Next is when Sweep has something to do at the latest; zero: nothing is kept.
func (c *Cache[ID]) Next() time.Time {
	if len(c.files) == 0 {
		return time.Time{}
	}
	return c.swept.Add(KeepFor)
}

// Sweep forgets what is too old to serve anybody.
func (c *Cache[ID]) Sweep(now time.Time) {
	c.swept = now
	c.order = slices.DeleteFunc(c.order, func(b *block[ID]) bool {
		if !b.gone && now.Sub(b.since) > KeepFor {
			c.end(b)
		}
		return b.gone
	})
	for path, f := range c.files {
		f.blocks = slices.DeleteFunc(f.blocks, func(b *block[ID]) bool { return b.gone })
		if len(f.blocks) == 0 && len(f.flying) == 0 && f.allow(math.MaxUint64, now) && now.Sub(f.used) >= KeepFor {
			delete(c.files, path)
		}
	}
}
