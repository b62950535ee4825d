package lustre

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

const (
	// mostEntries bounds what is remembered of entries over all targets, some 200 bytes each. One that is beyond has no
	// name, and its work is in what is attributed to nobody.
	mostEntries = 1 << 18
	// mostProbes is how many entries are looked at for one that is idle and gives its room.
	mostProbes = 64
	// mostRows is how many jobs and others a server reports at once, over all its targets. The smaller ones are one.
	mostRows = 2048
	// longestSpan between two readings makes rates.
	longestSpan = 3 * time.Minute
)

// The counters of an entry.
const (
	readBytes = iota
	writeBytes
	readOps
	writeOps
	metaOps
	metaMicros // of those metadata operations that are timed, from 2.14 on
	created
	opened
	counters
)

// reported are the counters' metrics. MetaExec is a mean.
var reported = [counters]collector.Metric{readBytes: collector.ReadBytes, writeBytes: collector.WriteBytes,
	readOps: collector.ReadOps, writeOps: collector.WriteOps, metaOps: collector.MetaOps,
	metaMicros: collector.MetaExec, created: collector.FilesCreated, opened: collector.FilesOpened}

// ofTotal are those that a target counts of all its work.
const ofTotal = metaMicros

// tally is what was counted, and which of the counters were.
type tally struct {
	n     [counters]uint64
	known [counters]bool
}

func (t *tally) add(counter int, n uint64) { t.n[counter], t.known[counter] = t.n[counter]+n, true }

// count adds an operation. An open that creates is counted as mknod, too: both are one operation.
func (t *tally) count(name []byte, o op) {
	switch string(name) {
	case "read_bytes":
		t.add(readBytes, o.sum)
		t.add(readOps, o.samples)
	case "write_bytes":
		t.add(writeBytes, o.sum)
		t.add(writeOps, o.samples)
	case "mknod":
		t.add(created, o.samples)
	case "open":
		t.add(opened, o.samples)
	}
	if isMetaOp[string(name)] {
		t.add(metaOps, o.samples)
		if o.hasSum && len(o.unit) >= len("usec") && string(o.unit[:len("usec")]) == "usec" {
			t.add(metaMicros, o.sum)
		}
	}
}

// isCounted says whether a tally has a counter for an operation.
func isCounted(name []byte) bool {
	switch string(name) {
	case "read_bytes", "write_bytes", "mknod":
		return true
	}
	return isMetaOp[string(name)]
}

// since is the increase of a tally; ok is false where a counter went back, and then it is the whole tally: the counts
// began anew.
func (t *tally) since(was *tally) (inc tally, ok bool) {
	for c := range t.n {
		if t.n[c] < was.n[c] {
			return *t, false
		}
		inc.n[c], inc.known[c] = t.n[c]-was.n[c], t.known[c]
	}
	return inc, true
}

func (t *tally) sum(inc *tally) {
	for c := range inc.n {
		t.n[c], t.known[c] = t.n[c]+inc.n[c], t.known[c] || inc.known[c]
	}
}

func (t *tally) empty() bool { return t.n == [counters]uint64{} }

// entry is one id at one target.
type entry struct {
	id              string
	who             topology.JobID
	tally           tally
	snapshot, start uint64 // ns; 0 where the release does not print it
	length          int    // of its text
	seen            uint32 // the reading that had it last
	next            int32  // which came behind it then
	unread          bool   // it could not be understood: what it did since it could is not known
}

// row is one job, or what else an id names, at one target in one reading.
type row struct {
	who topology.JobID
	tally
}

// memory is what is remembered of a table's entries.
type memory struct {
	entries []entry
	free    []int32
	place   map[string]int32 // by id
	reading uint32
	quiet   uint64 // an entry that was last used before then is as the reading before had it, ns
	most    int    // entries that may be remembered
	full    bool   // some are not
	hand    int    // where room was looked for last
}

// trouble counts entries of one reading: those that were not understood, did not fit, went back, or are shown as one.
type trouble struct {
	unread, beyond, resets, folded int
	err                            error
}

// table follows one target's job_stats from reading to reading.
type table struct {
	memory
	trouble
	target topology.TargetID
	whole  bool  // the reading before had all there was: what is new began at 0
	before int32 // the entry that came before
	at     int32 // the entry that is looked at; -1: a new one
	idle   bool  // it was not used of late
	found  int   // entries
	rows   []row
	rowOf  map[topology.JobID]int32

	total   tally // of the target
	counted bool  // total is known
	// ahead is by how much more than the target the entries have counted: they are read at different times.
	ahead [ofTotal]uint64
}

func newTable(target topology.TargetID) *table {
	return &table{target: target, memory: memory{place: map[string]int32{}}, rowOf: map[topology.JobID]int32{}}
}

// begin starts a reading of at most so many entries; before is when the one before was.
func (t *table) begin(before time.Time, most int) {
	t.most, t.full = most, false
	t.reading++
	t.before, t.rows, t.found, t.trouble = -1, t.rows[:0], 0, trouble{}
	clear(t.rowOf)
	// An entry that was last used some time before is as it was.
	if t.quiet = 0; !before.IsZero() {
		t.quiet = uint64(max(0, before.Add(-time.Second).UnixNano()))
	}
}

// lengthOf finds the entry that a text begins with, and says how long it is where nothing happened.
func (t *table) lengthOf(b []byte) int {
	h := headOf(b)
	t.at = t.find(h.id)
	last := stampOf(h.snapshot)
	t.idle = last != 0 && last < t.quiet
	if t.at < 0 {
		return 0
	}
	e := &t.entries[t.at]
	if e.seen == t.reading || e.unread || last == 0 || last != e.snapshot || !t.idle {
		return 0
	}
	return e.length
}

// find looks where it was last time first, which is behind the one before.
func (t *table) find(id []byte) int32 {
	if t.before >= 0 {
		i := t.entries[t.before].next
		if int(i) < len(t.entries) && t.entries[i].seen > 0 && t.entries[i].id == string(id) {
			return i
		}
	}
	if i, ok := t.place[string(id)]; ok {
		return i
	}
	return -1
}

// take counts what an entry did since the reading before.
func (t *table) take(text []byte, known bool) {
	i := t.at
	if known {
		t.follow(i)
		return
	}
	h := headOf(text)
	now := entry{length: len(text), snapshot: stampOf(h.snapshot), next: math.MaxInt32}
	if err := now.read(h); err != nil {
		t.unread++
		t.err = firstOf(t.err, err)
		now.unread = true
	}
	if i < 0 {
		if t.idle && len(t.entries)-len(t.free) >= t.most {
			t.full = true // and it did nothing
			return
		}
		now.id = string(h.id)
		if i = t.room(now.id); i < 0 {
			t.beyond++
			return
		}
		now.who = whoOf(givenAs(h.id))
		t.entries[i] = now
		if t.whole && !t.full && !now.unread {
			t.count(now.who, &now.tally)
		}
		t.follow(i)
		return
	}
	was := &t.entries[i]
	inc, grown := now.tally.since(&was.tally)
	again := was.seen == t.reading // the table changed while it was read: it was here already
	if now.unread || again && !grown {
		was.unread = was.unread || now.unread
		t.follow(i)
		return
	}
	if now.start != was.start && !again {
		inc, grown = now.tally, true // it had ended, and is another one
	}
	if !grown {
		t.resets++
	}
	if !was.unread {
		t.count(was.who, &inc)
	}
	now.id, now.who, now.next, now.seen = was.id, was.who, was.next, was.seen
	*was = now
	t.follow(i)
}

// follow notes that an entry came behind another one.
func (t *table) follow(i int32) {
	if t.entries[i].seen != t.reading {
		t.found++
	}
	t.entries[i].seen = t.reading
	if t.before >= 0 {
		t.entries[t.before].next = i
	}
	t.before = i
}

// room makes room for a new entry; -1: as many are remembered as may be. An idle one gives its
// room then.
func (m *memory) room(id string) (i int32) {
	switch n := len(m.free); {
	case n > 0:
		i, m.free = m.free[n-1], m.free[:n-1]
	case len(m.entries) < m.most:
		i = int32(len(m.entries))
		m.entries = append(m.entries, entry{})
	default:
		m.full = true
		if i = m.victim(); i < 0 {
			return -1
		}
		delete(m.place, m.entries[i].id)
	}
	m.place[id] = i
	return i
}

// victim finds an entry that was not used of late; -1: none is near.
func (m *memory) victim() int32 {
	for range min(mostProbes, len(m.entries)) {
		m.hand = (m.hand + 1) % len(m.entries)
		if e := &m.entries[m.hand]; e.snapshot != 0 && e.snapshot < m.quiet {
			return int32(m.hand)
		}
	}
	return -1
}

// maxName bounds how much of an id or of a target's name is reported, bytes.
const maxName = 100

// whoOf is the job that an id names, or the id itself behind the mark of what is not a job.
func whoOf(id string) topology.JobID {
	if job := topology.JobOf(id); job != "" {
		return job[:min(len(job), maxName)]
	}
	return topology.JobID(topology.NoJob + strings.TrimLeft(shown(id), " "))
}

// shown is a name from outside as it is reported: three letters may stand for one that cannot be printed, and no name
// may be longer than a frame takes.
func shown(name string) string {
	name = topology.Clean(name[:min(len(name), maxName)])
	return strings.ToValidUTF8(name[:min(len(name), maxName)], "")
}

// read counts an entry's operations.
func (e *entry) read(h head) error {
	for rest := h.rest; len(rest) > 0; {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		name, value := nameAndValue(line)
		if string(name) == "start_time" {
			e.start = stampOf(value)
			continue
		}
		if !isCounted(name) {
			continue
		}
		o, why := parseOp(value)
		if why != "" {
			return badEntry(h.id, line, why)
		}
		e.tally.count(name, o)
	}
	return nil
}

// count adds to what a job or another did in this reading.
func (t *table) count(who topology.JobID, inc *tally) {
	if inc.empty() {
		return
	}
	i, ok := t.rowOf[who]
	if !ok {
		i = int32(len(t.rows))
		t.rowOf[who] = i
		t.rows = append(t.rows, row{who: who})
	}
	t.rows[i].sum(inc)
}

// end forgets entries that two readings did not have: one that was passed over because the table changed while it was
// read must not count from 0 when it is there again.
func (t *table) end(whole bool) {
	if t.whole = whole && !t.full; t.found == len(t.place) {
		return
	}
	for id, i := range t.place {
		if t.entries[i].seen+1 < t.reading {
			delete(t.place, id)
			t.entries[i] = entry{}
			t.free = append(t.free, i)
		}
	}
}

// lose forgets all: the table could not be read to its end.
func (t *table) lose() {
	clear(t.place)
	clear(t.rowOf)
	t.entries, t.free, t.rows, t.whole = t.entries[:0], t.free[:0], t.rows[:0], false
}

// rest is what the target counted and no entry did.
func (t *table) rest(now *tally, counted bool) (rest tally, known bool) {
	was, before := t.total, t.counted
	t.total, t.counted = *now, counted
	inc, grown := now.since(&was)
	if !before || !counted || !grown {
		t.ahead = [ofTotal]uint64{}
		return rest, false
	}
	for c := range t.ahead {
		if !inc.known[c] {
			continue
		}
		did := t.ahead[c]
		for i := range t.rows {
			did += t.rows[i].n[c]
		}
		t.ahead[c] = max(did, inc.n[c]) - inc.n[c]
		rest.add(c, max(did, inc.n[c])-did)
	}
	return rest, true
}

// fold leaves the largest rows, by their parts of bytes, requests and metadata operations, and makes one of the others.
func (t *table) fold(most int) (folded int) {
	if len(t.rows) <= most {
		return 0
	}
	var all tally
	for i := range t.rows {
		all.sum(&t.rows[i].tally)
	}
	weight := func(r *row) (w float64) {
		for _, set := range [][]int{{readBytes, writeBytes}, {readOps, writeOps}, {metaOps}} {
			own, of := uint64(0), uint64(0)
			for _, c := range set {
				own, of = own+r.n[c], of+all.n[c]
			}
			if of > 0 {
				w = max(w, float64(own)/float64(of))
			}
		}
		return w
	}
	slices.SortFunc(t.rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(weight(&b), weight(&a)), cmp.Compare(a.who, b.who))
	})
	small := row{who: collector.SmallJobs}
	for i := range t.rows[most:] {
		small.sum(&t.rows[most+i].tally)
	}
	folded = len(t.rows) - most
	t.rows = append(t.rows[:most], small)
	return folded
}

// samples are a row's rates.
func (r *row) samples(seconds float64) (out []collector.Sample) {
	for c, m := range reported {
		switch {
		case !r.known[c]:
		case c != metaMicros:
			out = append(out, collector.Sample{Metric: m, Value: float64(r.n[c]) / seconds})
		case r.n[metaOps] > 0:
			out = append(out, collector.Sample{Metric: m,
				Value: float64(r.n[c]) / float64(r.n[metaOps]) * microsecond})
		}
	}
	return out
}
