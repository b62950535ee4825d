package watch

import (
	"fmt"
	"sync"
	"time"

	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// Judged counts the seconds of forwarders that came, by what became of them.
type Judged struct {
	// Judged were taken by the detectors. Late came when they were older than three seconds, or after a newer one;
	// Skipped were followed by a newer one before the detectors looked: the daemon was busy.
	Judged, Late, Skipped uint64
	// Served are seconds of one class of operations that forwarders with a clock of their own had, Unknown those of
	// them for which nobody had shown what such requests need.
	Served, Unknown uint64
	// Starting says that the daemon began a moment ago: agents still send what they kept meanwhile, which is late.
	Starting bool
}

func (j *Judged) add(o Judged) {
	j.Judged, j.Late, j.Skipped = j.Judged+o.Judged, j.Late+o.Late, j.Skipped+o.Skipped
	j.Served, j.Unknown = j.Served+o.Served, j.Unknown+o.Unknown
}

// judgedMinutes is how far back Judged looks.
const judgedMinutes = 10

// settling is how many minutes after a start are not counted among the last ones: what came late then says nothing of
// the host.
const settling = 2

// tally keeps the count by minute, and since the start. It is guarded by the detectors' mutex.
type tally struct {
	seen    map[topology.NodeID]int64  // newest second taken, Unix ms
	came    map[topology.NodeID]uint64 // frames of each forwarder that were seen to have come
	minutes [judgedMinutes]Judged
	newest  int64 // minute
	settled int64 // minute in which the count of the last ones begins; 0 before the first look
	last    int64 // second of the newest look
	gap     int64 // seconds between it and the one before
	all     Judged
	classes [2]uint64 // served and unknown at the newest look
}

// begin moves on to the second at now.
func (t *tally) begin(now time.Time) {
	if t.gap = now.Unix() - t.last; t.last == 0 {
		t.gap = 1
	}
	t.last = now.Unix()
	minute := t.last / 60
	for m := max(t.newest+1, minute-judgedMinutes+1); m <= minute; m++ {
		t.minutes[m%judgedMinutes] = Judged{}
	}
	if t.settled == 0 {
		t.settled = minute + settling
	}
	if t.newest < t.settled && minute >= t.settled {
		t.minutes = [judgedMinutes]Judged{}
	}
	t.newest = minute
}

// note counts what came of a node since the newest look; taken says that its newest second is judged now.
func (t *tally) note(n *window.Node, taken bool) {
	was, known := t.came[n.Node]
	t.came[n.Node] = n.Came
	var j Judged
	rest := n.Came - was
	if taken {
		j.Judged = 1
	}
	if !known || n.Came < was || rest < j.Judged {
		rest = j.Judged
	}
	switch rest -= j.Judged; {
	case taken && t.gap > 1: // no more than passed meanwhile
		j.Skipped = min(rest, uint64(t.gap-1))
		j.Late = rest - j.Skipped
	default:
		j.Late = rest
	}
	t.count(j)
}

func (t *tally) count(j Judged) {
	t.all.add(j)
	t.minutes[t.newest%judgedMinutes].add(j)
}

// noteClasses counts the seconds of classes, from the sums since the detector's start.
func (t *tally) noteClasses(s, u uint64) {
	if s >= t.classes[0] && u >= t.classes[1] {
		t.count(Judged{Served: s - t.classes[0], Unknown: u - t.classes[1]})
	}
	t.classes = [2]uint64{s, u}
}

// Judged returns what became of the forwarders' seconds in the last ten minutes, and since the start.
func (d *Detectors) Judged() (lately, all Judged) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, j := range d.tally.minutes {
		lately.add(j)
	}
	lately.Starting = d.tally.newest < d.tally.settled
	return lately, d.tally.all
}

// Lateness is by how much this daemon itself was late. One that gets too little of a processor takes what it sees late
// for silence and wrong clocks of nodes: it says so first, and records no finding until it has been on time for a
// while. Its methods may be called concurrently; of a nil one the daemon is on time.
type Lateness struct {
	mu sync.Mutex // guards everything that follows
	at time.Time  // the newest time that something was late
	by time.Duration
}

const (
	// lateFrom is by how much something that is due each second may be late: the step before still works, or a
	// collection of garbage does.
	lateFrom = 1500 * time.Millisecond
	// onTimeFor is how long nodes have to show themselves on time again.
	onTimeFor = 15 * time.Second
)

// Note says that what was due at a time is done at now.
func (l *Lateness) Note(due, now time.Time) {
	by := now.Sub(due)
	if l == nil || by <= lateFrom {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.at) > onTimeFor || by > l.by {
		l.by = by
	}
	l.at = now
}

// Within is by how much the daemon was late at most, until it has been on time for a while; then 0.
func (l *Lateness) Within(now time.Time) time.Duration {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.at) > onTimeFor {
		return 0
	}
	return l.by
}

// Notice is what every surface says first while the daemon is late; empty while it is on time.
func (l *Lateness) Notice(now time.Time) string {
	by := l.Within(now)
	if by == 0 {
		return ""
	}
	return fmt.Sprintf("fairway's own daemon was %.1f s late: what looks slow or silent may be only that, and nobody "+
		"is accused until it is on time; give its host more processor time", by.Seconds())
}
