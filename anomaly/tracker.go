package anomaly

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"fairway/collector/topology"
)

// Tracker leads every finding through its states: suspect, confirmed, excluded, probation, returned, or dismissed by a
// person. It has no clock and no I/O: Step is called once a second with the detectors' verdicts and returns the
// changes for the journal. Its methods must not be called concurrently.
type Tracker struct {
	set    Settings
	made   int
	open   map[subject]*track
	closed []Finding // the newest last, at most maxClosed
	muted  map[subject]time.Time
	doubts map[subject]doubt // seconds of doubt about nodes without a finding
	pasts  map[subject]*past // ratios of nodes and targets that are judged
}

// subject is what a finding is about; there is at most one open one of each. What a job does is about the job, on
// whichever nodes it does it.
type subject struct {
	node topology.NodeID
	kind Kind
	job  topology.JobID
}

// subjectOf is the subject of a kind of finding on a node, caused by jobs.
func subjectOf(n topology.NodeID, k Kind, culprits []topology.JobID) subject {
	switch {
	case k.OfJob() && len(culprits) > 0:
		return subject{kind: k, job: culprits[0]}
	case k.Accuses(): // slow or silent: one node, one incident
		k = FailSlow
	}
	return subject{node: n, kind: k}
}

type doubt struct {
	seconds int
	last    time.Time
}

const (
	maxClosed = 200
	// doubtGap is the pause after which seconds of doubt are counted anew.
	doubtGap = 30 * time.Second
)

// Pool is the forwarders of which some may be excluded.
type Pool struct {
	Forwarders int
	Healthy    int // that may carry new work and are not excluded
	// Excluded names who excluded each excluded forwarder; ByPolicy is the tracker itself.
	Excluded map[topology.NodeID]string
}

// NewTracker makes a tracker that continues with the findings of a journal, in the order in which they were made.
func NewTracker(set Settings, findings []Finding) *Tracker {
	t := &Tracker{set: set, open: map[subject]*track{}, muted: map[subject]time.Time{}, doubts: map[subject]doubt{},
		pasts: map[subject]*past{}}
	for _, f := range findings {
		var n int
		if _, err := fmt.Sscanf(f.ID, "F-%d", &n); err == nil {
			t.made = max(t.made, n)
		}
		s := subjectOf(f.Node, f.Kind, f.Jobs)
		if f.Condition == "" {
			f.Condition = f.Kind.condition()
		}
		switch {
		case f.Open():
			t.open[s] = &track{Finding: f, about: s, graded: graded{slowToo: f.Kind == FailSlow}}
		case f.State == Dismissed:
			t.muted[s] = f.Changed.Add(set.Mute)
			t.close(f)
		default:
			t.close(f)
		}
	}
	return t
}

func (t *Tracker) close(f Finding) {
	t.closed = append(t.closed, f)
	if over := len(t.closed) - maxClosed; over > 0 {
		t.closed = slices.Delete(t.closed, 0, over)
	}
}

// Findings returns the open findings, the oldest first, then those closed since then.
func (t *Tracker) Findings(closedSince time.Time) []Finding {
	out := make([]Finding, 0, len(t.open))
	for _, k := range t.open {
		out = append(out, k.copy())
	}
	slices.SortFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)),
			cmp.Compare(a.ID, b.ID))
	})
	for _, f := range slices.Backward(t.closed) {
		if f.Changed.After(closedSince) {
			out = append(out, f)
		}
	}
	return out
}

// Suspected lists the nodes that should get canaries more often: under suspicion or excluded, and not cleared yet.
func (t *Tracker) Suspected() []topology.NodeID {
	var out []topology.NodeID
	for s := range t.open {
		if s.kind.Accuses() {
			out = append(out, s.node)
		}
	}
	slices.Sort(out)
	return out
}

func (k *track) copy() Finding {
	f := k.Finding
	f.Evidence = maps.Clone(f.Evidence)
	f.Impact = slices.Clone(f.Impact)
	return f
}

// Step takes one second: its verdicts, at most one for a node and kind, and the pool as it is. It returns what
// changed, in order.
func (t *Tracker) Step(now time.Time, verdicts []Verdict, pool Pool) []Change {
	for _, k := range t.open {
		if k.named.IsZero() { // taken up from a journal: nobody looked until now
			k.seen, k.named = now, now
		}
	}
	var changes []Change
	verdicts = Merge(nil, verdicts)
	for i := range verdicts {
		v := &verdicts[i]
		v.Condition = v.condition()
		s := t.subject(now, v)
		t.remember(now, s, v)
		if k := t.open[s]; k != nil {
			if was := k.Condition; k.take(now, v) {
				changes = append(changes, k.turn(now, was))
			}
		} else if t.suspicious(now, s, v) {
			changes = append(changes, t.suspect(now, s, v))
		}
	}
	for _, s := range t.subjects() {
		if k := t.open[s]; now.Sub(k.bad) > waitLasts && len(k.Impact) > 0 && k.Impact[0].Share > 0 {
			k.hurt(now, nil)
		}
		changes = append(changes, t.advance(now, t.open[s], &pool)...)
	}
	return changes
}

// remember keeps the ratio of a node or target, from which the start of what slows it is read.
func (t *Tracker) remember(now time.Time, s subject, v *Verdict) {
	if !(v.Ratio > 0) && v.Waits == nil || !s.kind.Accuses() && s.kind != TargetSlow {
		return
	}
	Entry(t.pasts, s).note(now.Unix(), v)
}

// subjects are the open ones in a fixed order: the first one found is excluded first.
func (t *Tracker) subjects() []subject {
	return slices.SortedFunc(maps.Keys(t.open), func(a, b subject) int {
		x, y := t.open[a], t.open[b]
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(a.node, b.node), cmp.Compare(a.kind, b.kind),
			cmp.Compare(a.job, b.job))
	})
}

// suspicious counts doubt about a node without an open finding.
func (t *Tracker) suspicious(now time.Time, s subject, v *Verdict) bool {
	if until, ok := t.muted[s]; ok {
		if now.Before(until) {
			return false
		}
		delete(t.muted, s)
	}
	d := t.doubts[s]
	switch {
	case v.Level == Alarm:
		delete(t.doubts, s)
		return true
	case v.Level != Doubt:
		if v.Level == Clean || now.Sub(d.last) > doubtGap {
			delete(t.doubts, s)
		}
		return false
	case now.Sub(d.last) > doubtGap:
		d.seconds = 0
	}
	d.seconds, d.last = d.seconds+1, now
	t.doubts[s] = d
	if d.seconds < t.set.SuspectSeconds {
		return false
	}
	delete(t.doubts, s)
	return true
}

// takesOver is how long a job must go unnamed for its node before another job's finding takes its place. A shorter
// doubt about another makes no other finding.
const takesOver = 10 * time.Second

// subject is what a verdict is about: of a node that the open finding of a job lists already it is that job, while it
// is among those that are named.
func (t *Tracker) subject(now time.Time, v *Verdict) subject {
	s := subjectOf(v.Node, v.Kind, v.Culprits)
	if t.open[s] != nil || !v.Kind.OfJob() {
		return s
	}
	var best *track
	for _, k := range t.open {
		if k.about.kind == v.Kind && (k.Node == v.Node || slices.Contains(k.Nodes, v.Node)) &&
			(names(v, k) || now.Sub(k.named) <= takesOver) && (best == nil || nearer(v, k, best)) {
			best = k
		}
	}
	if best != nil {
		return best.about
	}
	return s
}

// names says whether the job of a finding is among those that a verdict names.
func names(v *Verdict, k *track) bool { return slices.Contains(v.Culprits, k.about.job) }

// nearer says whether a verdict is about a rather than about b: that whose job it names, else that whose job was named
// last, else the older one.
func nearer(v *Verdict, a, b *track) bool {
	if x, y := names(v, a), names(v, b); x != y {
		return x
	}
	return cmp.Or(b.named.Compare(a.named), cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID)) < 0
}

// returnsWithin is the longest pause after which what a job does is the same finding again: bursts of I/O
// are minutes apart.
const returnsWithin = 10 * time.Minute

// again takes up a finding that was over for a while; nil without one. What comes and goes is one incident.
func (t *Tracker) again(now time.Time, s subject) *track {
	if !s.kind.OfJob() && !s.kind.Accuses() {
		return nil
	}
	for i, f := range slices.Backward(t.closed) {
		if f.State != Returned || now.Sub(f.Changed) > returnsWithin || subjectOf(f.Node, f.Kind, f.Jobs) != s {
			continue
		}
		t.closed = slices.Delete(t.closed, i, i+1)
		f.Times, f.Again, f.Condition = max(1, f.Times)+1, now, ""
		f.Factor, f.FactorAtLeast, f.FactorNow = 0, false, 0
		return &track{Finding: f, about: s}
	}
	return nil
}

func (t *Tracker) suspect(now time.Time, s subject, v *Verdict) Change {
	if k := t.again(now, s); k != nil {
		t.open[s] = k
		if rose := t.begin(k, v); rose.After(k.Changed) {
			k.Again = rose
		}
		k.take(now, v)
		return t.move(now, k, Suspect, fmt.Sprintf("it is seen again, for the %s time", ordinal(k.Times)))
	}
	t.made++
	since := v.Since
	if since.IsZero() || since.After(now) {
		since = now
	}
	k := &track{Finding: Finding{ID: fmt.Sprintf("F-%04d", t.made), Node: v.Node, Kind: v.Kind, Since: since},
		about: s}
	if rose := t.begin(k, v); !rose.IsZero() {
		k.Since = rose
	}
	t.open[s] = k
	k.take(now, v)
	return t.move(now, k, Suspect, v.first())
}

// begin begins a finding's headline where its node's ratios rose, and returns when that was; zero: it is not seen.
func (t *Tracker) begin(k *track, v *Verdict) (rose time.Time) {
	if p := t.pasts[k.about]; p != nil && v.Ratio > 0 && !v.Fact() {
		k.head, rose = p.since()
	}
	return rose
}

// first says why there is a finding now and was none before.
func (v *Verdict) first() string {
	switch {
	case v.Kind == SecondSpeaker:
		return "somebody else spoke for it, and was refused"
	case v.Kind == LongList:
		return "it lists clients that cannot be, which are left out"
	case v.Kind.OfJob() || v.Fact():
		return "it is seen for the first time"
	}
	return "it is slower than its peers for longer than chance explains"
}

// ordinal is a small number as people count: 2nd, 3rd, 4th.
func ordinal(n int) string {
	switch {
	case n%100/10 == 1:
	case n%10 == 1:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}

// Probe takes the outcome of one canary of a node with an open finding. One that fails takes back as many as must pass
// the first time: on a busy host one is late now and then, and many in a row would never be seen.
func (t *Tracker) Probe(node topology.NodeID, ok bool) {
	for s, k := range t.open {
		if s.node != node || !s.kind.Accuses() {
			continue
		}
		k.probed = true
		if ok {
			k.passes, k.graded.answers = k.passes+1, true
		} else {
			k.passes = max(0, k.passes-t.set.ProbePasses)
		}
	}
}

// move makes a change of state true.
func (t *Tracker) move(now time.Time, k *track, to State, why string) Change {
	c := Change{From: k.State, At: now, Why: why}
	k.enter(now, to, why)
	k.alarm, k.clean, k.head.well, k.passes, k.probed, k.seen = 0, 0, 0, 0, false, now
	c.Finding = k.copy()
	if !k.Open() {
		delete(t.open, k.about)
		t.close(c.Finding)
	}
	return c
}

// Adopt takes what a person did to an open finding: its owner, its notes, its silence, or its end; of one that has
// ended its notes.
func (t *Tracker) Adopt(f Finding) {
	s := subjectOf(f.Node, f.Kind, f.Jobs)
	for about, k := range t.open {
		if k.ID == f.ID {
			s = about
		}
	}
	k := t.open[s]
	if k == nil || k.ID != f.ID {
		if i := slices.IndexFunc(t.closed, func(c Finding) bool { return c.ID == f.ID }); i >= 0 {
			t.closed[i].Notes, t.closed[i].Note = f.Notes, f.Note
		}
		return
	}
	k.Owner, k.Notes, k.Note = f.Owner, f.Notes, f.Note
	switch {
	case f.State == Dismissed:
		t.muted[s] = f.Changed.Add(t.set.Mute)
		delete(t.open, s)
		t.close(f)
	case f.State == k.State: // a silence holds for the state in which it was asked for
		k.Silenced = f.Silenced
	}
}
