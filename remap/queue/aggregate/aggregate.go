// Package aggregate gathers the small writes of many clients to one file into few large ones, and keeps for all what
// one has read, as the delegates of "I/O Delegation" do (Northwestern, Scalable I/O Optimizations for Peta-scale
// Systems) for independent requests. It says which requests go together and when; who sends and answers them is the
// caller's affair.
//
// No write is answered before the message that carries it was. So each that waits here is under way for the program
// that sent it, and may go before or after whatever else is under way: that is all the order that POSIX knows.
package aggregate

import (
	"cmp"
	"slices"
	"time"
)

// Target is where writes must agree to go in one message: the same file, written by the same user through files that
// were opened alike.
type Target struct {
	// Path is the server's number of the file (qid.path): what Flush knows a file by.
	Path uint64
	// Place is a hash of the names that lead there from the root of the server. Where one tree holds several file
	// systems their numbers repeat; two files of one number have two places.
	Place uint64
	// User is a hash of who attached.
	User uint64
	// Flags are those of the open that change what a write is.
	Flags uint32
	// Most is how many bytes of data a message can carry.
	Most int
}

// Write is a write of one program. ID is the caller's name for it, By the open file that it comes through.
type Write[ID, File comparable] struct {
	ID     ID
	By     File
	Offset int64
	Length int
}

// end is the offset behind the write.
func (w *Write[ID, File]) end() int64 { return w.Offset + int64(w.Length) }

// Message is writes that go as one: each begins where the one before ends.
type Message[ID, File comparable] struct {
	To     Target
	Writes []Write[ID, File]
}

// The rules of waiting.
const (
	// smallPart of a message is the largest write that is gathered: of larger ones too few fit into a message.
	smallPart = 3
	// patience is how many times as long a write may wait beside one that is on its way: those whom that one answers
	// will write again.
	patience = 16
	// recent is how many waits long a file that was written through counts as one that is written through.
	recent = 8
	// aloneMost is how many times in a row a file's writes may wait and find no neighbour before they wait no more, or
	// aloneEach times as many as write, if that is more; aloneRest after how many writes that is tried again. Each time
	// that fails doubles it, up to aloneRestMost.
	aloneMost     = 8
	aloneEach     = 2
	aloneRest     = 256
	aloneRestMost = 1 << 16
	// maxBytes bounds what is gathered, maxTargets how many files are known.
	maxBytes   = 16 << 20
	maxTargets = 1 << 12
	// remembered is how many of the last messages of a file are known.
	remembered = 64
)

// Table holds the writes that wait for their neighbours. It is not safe for concurrent use.
type Table[ID, File comparable] struct {
	wait    time.Duration
	targets map[Target]*target[ID, File]
	files   map[uint64][]*target[ID, File] // by Target.Path
	busy    map[*target[ID, File]]bool     // those with runs
	bytes   int
}

// target is what is known of a file and its writers.
type target[ID, File comparable] struct {
	to      Target
	runs    []*run[ID, File] // by offset; they neither overlap nor touch
	writers map[File]*writer
	waiting int // writers that have a write here
	pruned  time.Time
	flying  int       // messages on their way
	landed  time.Time // when the last of them was answered
	sent    []extent  // the last messages
	alone   int       // times in a row that nobody found a neighbour
	skip    int       // writes that need not wait
	rest    int       // what skip becomes next
}

// extent is a range of a file.
type extent struct{ begin, end int64 }

// writer is an open file that writes come through.
type writer struct {
	seen            time.Time
	waiting, flying int // its writes here, and in messages on their way
}

// run is writes that wait, each beginning where the one before ends.
type run[ID, File comparable] struct {
	writes []Write[ID, File]
	bytes  int
	since  time.Time
}

func (r *run[ID, File]) begin() int64 { return r.writes[0].Offset }
func (r *run[ID, File]) end() int64   { return r.writes[len(r.writes)-1].end() }

// New makes a table in which a write waits for its neighbours for about so long.
func New[ID, File comparable](wait time.Duration) *Table[ID, File] {
	return &Table[ID, File]{wait: wait, targets: map[Target]*target[ID, File]{},
		files: map[uint64][]*target[ID, File]{}, busy: map[*target[ID, File]]bool{}}
}

// Bytes are how many wait.
func (t *Table[ID, File]) Bytes() int { return t.bytes }

// Add takes a write and returns the messages that are to be sent now, which may hold it, and others before it. A write
// that is not small is sent alone.
func (t *Table[ID, File]) Add(now time.Time, to Target, w Write[ID, File]) (send []Message[ID, File]) {
	send = t.Flush(to.Path, w.Offset, w.end())
	alone := append(send, Message[ID, File]{to, []Write[ID, File]{w}})
	if w.Length <= 0 || w.Length > to.Most/smallPart || t.bytes+w.Length > maxBytes {
		return alone
	}
	g := t.target(now, to)
	if g == nil {
		return alone
	}
	g.see(now, t.wait, w.By)
	if g.skip > 0 {
		g.skip--
		return alone
	}

	r := t.put(now, g, w)
	for r != nil && r.bytes+w.Length > to.Most {
		send = append(send, t.take(g, r, to.Most))
		if len(r.writes) == 0 {
			r = nil
		}
	}
	if r != nil && g.encloses(r) {
		send = append(send, t.release(g, func(o *run[ID, File]) bool { return o == r }, false)...)
	}
	// Where nobody else will come, who is behind goes first, so that they meet the others.
	if g.waiting == len(g.writers) && g.waiting > 0 {
		first := g.runs[0]
		send = append(send, t.release(g, func(r *run[ID, File]) bool { return r == first }, true)...)
	}
	return send
}

// target finds or makes what is known of a file; nil where no more can be known.
func (t *Table[ID, File]) target(now time.Time, to Target) *target[ID, File] {
	if g := t.targets[to]; g != nil {
		return g
	}
	if len(t.targets) >= maxTargets {
		t.forget(now)
		if len(t.targets) >= maxTargets {
			return nil
		}
	}
	g := &target[ID, File]{to: to, writers: map[File]*writer{}, rest: aloneRest}
	t.targets[to] = g
	t.files[to.Path] = append(t.files[to.Path], g)
	return g
}

// forget drops what is known of files that are written no more.
func (t *Table[ID, File]) forget(now time.Time) {
	for to, g := range t.targets {
		g.prune(now, t.wait)
		if len(g.writers) > 0 || len(g.runs) > 0 || g.flying > 0 {
			continue
		}
		delete(t.targets, to)
		left := slices.DeleteFunc(t.files[to.Path], func(o *target[ID, File]) bool { return o == g })
		if t.files[to.Path] = left; len(left) == 0 {
			delete(t.files, to.Path)
		}
	}
}

// see notes that a file is written through.
func (g *target[ID, File]) see(now time.Time, wait time.Duration, by File) {
	w := g.writers[by]
	if w == nil {
		w = &writer{}
		g.writers[by] = w
	}
	w.seen = now
	if now.Sub(g.pruned) > wait {
		g.prune(now, wait)
	}
}

// prune drops writers that have not written for a while.
func (g *target[ID, File]) prune(now time.Time, wait time.Duration) {
	g.pruned = now
	for by, w := range g.writers {
		if w.waiting == 0 && w.flying == 0 && now.Sub(w.seen) > recent*wait {
			delete(g.writers, by)
		}
	}
}

// put adds a write to the runs that it touches and returns the run that it is then in.
func (t *Table[ID, File]) put(now time.Time, g *target[ID, File], w Write[ID, File]) *run[ID, File] {
	t.bytes += w.Length
	t.busy[g] = true
	by := g.writers[w.By]
	if by.waiting++; by.waiting == 1 {
		g.waiting++
	}
	i, _ := slices.BinarySearchFunc(g.runs, w.Offset, func(r *run[ID, File], at int64) int {
		return cmp.Compare(r.begin(), at)
	})
	left := i > 0 && g.runs[i-1].end() == w.Offset
	right := i < len(g.runs) && g.runs[i].begin() == w.end()
	switch {
	case left:
		r := g.runs[i-1]
		r.writes, r.bytes = append(r.writes, w), r.bytes+w.Length
		if right {
			next := g.runs[i]
			r.writes, r.bytes = append(r.writes, next.writes...), r.bytes+next.bytes
			if next.since.Before(r.since) {
				r.since = next.since
			}
			g.runs = slices.Delete(g.runs, i, i+1)
		}
		return r
	case right:
		r := g.runs[i]
		r.writes, r.bytes = slices.Insert(r.writes, 0, w), r.bytes+w.Length
		return r
	}
	r := &run[ID, File]{writes: []Write[ID, File]{w}, bytes: w.Length, since: now}
	g.runs = slices.Insert(g.runs, i, r)
	return r
}

// take cuts a message off the front of a run; a run that is used up goes.
func (t *Table[ID, File]) take(g *target[ID, File], r *run[ID, File], most int) Message[ID, File] {
	n, bytes := 0, 0
	for n < len(r.writes) && bytes+r.writes[n].Length <= most {
		bytes += r.writes[n].Length
		n++
	}
	m := Message[ID, File]{g.to, slices.Clone(r.writes[:n])}
	r.writes, r.bytes = slices.Delete(r.writes, 0, n), r.bytes-bytes
	t.bytes -= bytes
	g.remember(extent{m.Writes[0].Offset, m.Writes[n-1].end()})
	for i := range m.Writes {
		g.left(m.Writes[i].By)
	}
	if len(r.writes) == 0 {
		g.runs = slices.DeleteFunc(g.runs, func(o *run[ID, File]) bool { return o == r })
		t.idle(g)
	}
	if n < 2 {
		return m
	}
	g.alone, g.rest = 0, aloneRest
	g.flying++
	for i := range m.Writes {
		g.writers[m.Writes[i].By].flying++
	}
	return m
}

// idle notes that nothing waits for a file, where that is so.
func (t *Table[ID, File]) idle(g *target[ID, File]) {
	if len(g.runs) == 0 {
		delete(t.busy, g)
	}
}

// remember keeps where a message went.
func (g *target[ID, File]) remember(e extent) {
	if len(g.sent) == remembered {
		g.sent = slices.Delete(g.sent, 0, remembered/2)
	}
	g.sent = append(g.sent, e)
}

// meets says that what is right before, or behind, a run went lately: nobody will join it there.
func (g *target[ID, File]) meets(r *run[ID, File]) (before, behind bool) {
	begin, end := r.begin(), r.end()
	for _, e := range g.sent {
		before = before || e.begin < begin && begin <= e.end
		behind = behind || e.begin <= end && end < e.end
	}
	return before, behind
}

// encloses says that a run can meet no neighbours any more.
func (g *target[ID, File]) encloses(r *run[ID, File]) bool {
	before, behind := g.meets(r)
	return behind && (before || r.begin() == 0)
}

// left notes that a write of a writer waits here no more.
func (g *target[ID, File]) left(by File) {
	if w := g.writers[by]; w != nil {
		if w.waiting--; w.waiting == 0 {
			g.waiting--
		}
	}
}

// release empties the runs of a file that are due. Waited says that they had their time: where none of them found a
// neighbour among several writers, those to come may not have to wait.
func (t *Table[ID, File]) release(g *target[ID, File], due func(*run[ID, File]) bool,
	waited bool) (send []Message[ID, File]) {
	paid := len(g.writers) < 2 || !waited
	for _, r := range slices.Clone(g.runs) {
		if !due(r) {
			continue
		}
		paid = paid || len(r.writes) > 1
		for len(r.writes) > 0 {
			send = append(send, t.take(g, r, g.to.Most))
		}
	}
	if len(send) == 0 || paid {
		return send
	}
	if g.alone++; g.alone >= max(aloneMost, aloneEach*len(g.writers)) {
		g.alone, g.skip, g.rest = g.alone-1, g.rest, min(2*g.rest, aloneRestMost)
	}
	return send
}

// Flush returns the writes to a file that overlap a range, whatever they wait for, in the messages that they are in.
func (t *Table[ID, File]) Flush(path uint64, begin, end int64) (send []Message[ID, File]) {
	for _, g := range t.files[path] {
		if len(g.runs) == 0 {
			continue
		}
		send = append(send, t.release(g, func(r *run[ID, File]) bool {
			return r.begin() < end && begin < r.end()
		}, false)...)
	}
	return send
}

// FlushWhere returns all writes that wait for the files that fit.
func (t *Table[ID, File]) FlushWhere(fits func(Target) bool) (send []Message[ID, File]) {
	for g := range t.busy {
		if fits(g.to) {
			send = append(send, t.release(g, func(*run[ID, File]) bool { return true }, false)...)
		}
	}
	return send
}

// Due returns the writes that have waited long enough.
func (t *Table[ID, File]) Due(now time.Time) (send []Message[ID, File]) {
	for g := range t.busy {
		send = append(send, t.release(g, func(r *run[ID, File]) bool { return !t.until(g, r).After(now) }, true)...)
	}
	return send
}

// Next is when something will be due if nothing else happens; zero while nothing waits.
func (t *Table[ID, File]) Next() (next time.Time) {
	for g := range t.busy {
		for _, r := range g.runs {
			if u := t.until(g, r); next.IsZero() || u.Before(next) {
				next = u
			}
		}
	}
	return next
}

// until is how long a run may wait: longer where it touches a message that went lately while one is on its way, and a
// little behind the last one's answer.
func (t *Table[ID, File]) until(g *target[ID, File], r *run[ID, File]) time.Time {
	soon, latest := r.since.Add(t.wait), r.since.Add(patience*t.wait)
	if g.flying > 0 {
		if before, behind := g.meets(r); before || behind {
			return latest
		}
		return soon
	}
	if after := g.landed.Add(t.wait); after.After(soon) {
		soon = after
	}
	if soon.After(latest) {
		return latest
	}
	return soon
}

// Answered says that a message of several writes was answered, or will never be.
func (t *Table[ID, File]) Answered(now time.Time, m Message[ID, File]) {
	g := t.targets[m.To]
	if g == nil {
		return
	}
	g.flying--
	g.landed = now
	for i := range m.Writes {
		if w := g.writers[m.Writes[i].By]; w != nil {
			w.flying--
			w.seen = now
		}
	}
}

// Remove takes one write out that nobody wants any more; false where it does not wait here.
func (t *Table[ID, File]) Remove(to Target, offset int64, id ID) bool {
	g := t.targets[to]
	if g == nil {
		return false
	}
	for i, r := range g.runs {
		k := slices.IndexFunc(r.writes, func(w Write[ID, File]) bool { return w.ID == id && w.Offset == offset })
		if k < 0 {
			continue
		}
		w := r.writes[k]
		t.bytes -= w.Length
		g.left(w.By)
		var parts []*run[ID, File]
		for _, writes := range [][]Write[ID, File]{r.writes[:k], r.writes[k+1:]} {
			if len(writes) == 0 {
				continue
			}
			part := &run[ID, File]{writes: slices.Clone(writes), since: r.since}
			part.bytes = int(part.end() - part.begin())
			parts = append(parts, part)
		}
		g.runs = slices.Replace(g.runs, i, i+1, parts...)
		t.idle(g)
		return true
	}
	return false
}
