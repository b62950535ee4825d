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
	if k.OfJob() && len(culprits) > 0 {
		return subject{kind: k, job: culprits[0]}
	}
	return subject{node: n, kind: k}
}

// track is an open finding with the seconds counted for its next step.
type track struct {
	Finding
	alarm, clean int
	certain      bool      // its sentence is an alarm's
	seen         time.Time // newest second with evidence either way
	bad          time.Time // newest second of doubt or alarm
	passes       int       // canary probes passed in a row
	probed       bool      // since the newest change
	about        subject
	took         time.Time // newest second taken
	named        time.Time // newest second in which the job that it is about was named
	// What jobs had lost before the second at hurtAt.
	hurtAt time.Time
	costs  map[topology.JobID]float64
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
	t := &Tracker{set: set, open: map[subject]*track{}, muted: map[subject]time.Time{}, doubts: map[subject]doubt{}}
	for _, f := range findings {
		var n int
		if _, err := fmt.Sscanf(f.ID, "F-%d", &n); err == nil {
			t.made = max(t.made, n)
		}
		s := subjectOf(f.Node, f.Kind, f.Jobs)
		switch {
		case f.Open():
			t.open[s] = &track{Finding: f, about: s}
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
	for i := range verdicts {
		v := &verdicts[i]
		s := t.subject(now, v)
		if k := t.open[s]; k != nil {
			k.take(now, v)
		} else if t.suspicious(now, s, v) {
			changes = append(changes, t.suspect(now, s, v))
		}
	}
	for _, s := range t.subjects() {
		changes = append(changes, t.advance(now, t.open[s], &pool)...)
	}
	return changes
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

// takesOver is how long a job is not named for its node before what goes on there is another one's: for less a
// second in which another is suspected more makes no other finding.
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

// returnsWithin is the longest pause after which what a job does is the same finding again: bursts of I/O are minutes
// apart.
const returnsWithin = 10 * time.Minute

// again takes up a finding that was over for a while; nil without one.
func (t *Tracker) again(now time.Time, s subject) *track {
	if !s.kind.OfJob() {
		return nil
	}
	for i, f := range slices.Backward(t.closed) {
		if f.State != Returned || now.Sub(f.Changed) > returnsWithin || subjectOf(f.Node, f.Kind, f.Jobs) != s {
			continue
		}
		t.closed = slices.Delete(t.closed, i, i+1)
		f.Times, f.Again = max(1, f.Times)+1, now
		return &track{Finding: f, about: s}
	}
	return nil
}

func (t *Tracker) suspect(now time.Time, s subject, v *Verdict) Change {
	if k := t.again(now, s); k != nil {
		t.open[s] = k
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
	t.open[s] = k
	k.take(now, v)
	why := "it is slower than its peers for longer than chance explains"
	if v.Kind.OfJob() || v.Kind == ForwarderSilent || v.Fact {
		why = "it is seen for the first time"
	}
	return t.move(now, k, Suspect, why)
}

// take counts one second of evidence and keeps its sentence and numbers.
func (k *track) take(now time.Time, v *Verdict) {
	switch v.Level {
	case Unseen:
		return
	case Clean:
		k.clean++
		k.seen = now
		return
	case Alarm:
		if !k.took.Equal(now) { // not once a node
			k.alarm++
		}
		k.certain = true
	}
	k.took = now
	k.clean, k.seen, k.bad = 0, now, now
	if v.Level == Doubt && k.certain {
		return // a doubt after an alarm does not replace its sentence
	}
	k.Confidence, k.Score, k.Class, k.Model = v.Confidence, v.Score, v.Class, v.Model
	k.hurt(now, v.Impact)
	switch {
	case k.about.job != "": // it is about this one
		if len(k.Jobs) == 0 {
			k.Jobs = v.Culprits
		}
	case v.Kind.OfJob():
		k.Jobs = v.Culprits
	default:
		k.Jobs = nil
		for _, i := range v.Impact {
			k.Jobs = append(k.Jobs, i.Job)
		}
	}
	if len(v.Culprits) > 0 && v.Node != k.Node && !slices.Contains(k.Nodes, v.Node) {
		if len(k.Nodes) == 0 {
			k.Nodes = []topology.NodeID{k.Node}
		}
		k.Nodes = append(slices.Clip(k.Nodes), v.Node)
		slices.Sort(k.Nodes)
	}
	// another job may do the same on that node for a while
	ofIt := k.about.job == "" || slices.Contains(v.Culprits, k.about.job)
	if ofIt {
		k.named = now
	}
	if v.Node == k.Node && ofIt || k.Sentence == "" {
		k.Sentence, k.Evidence = v.Sentence, v.Evidence
	}
}

// hurt counts what jobs lose in this second. Those that lose nothing now stay listed with what they have lost. Several
// nodes may hurt a job in one second: the most counts.
func (k *track) hurt(now time.Time, impact []Impact) {
	before := k.Impact
	if !k.hurtAt.Equal(now) {
		k.hurtAt, k.costs = now, map[topology.JobID]float64{}
		for _, i := range before {
			k.costs[i.Job] = i.CostSeconds
		}
		k.Impact = nil
	} else {
		k.Impact = slices.Clone(before)
	}
	for _, i := range impact {
		at := slices.IndexFunc(k.Impact, func(o Impact) bool { return o.Job == i.Job })
		if at < 0 {
			at = len(k.Impact)
			k.Impact = append(k.Impact, Impact{Job: i.Job})
		}
		o := &k.Impact[at]
		o.Share = max(o.Share, i.Share)
		o.CostSeconds = max(o.CostSeconds, k.costs[i.Job]+i.Share+i.CostSeconds)
	}
	for _, i := range before {
		if i.CostSeconds >= 0.5 && !slices.ContainsFunc(k.Impact, func(o Impact) bool { return o.Job == i.Job }) {
			k.Impact = append(k.Impact, Impact{Job: i.Job, CostSeconds: i.CostSeconds})
		}
	}
	slices.SortStableFunc(k.Impact, func(a, b Impact) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(b.CostSeconds, a.CostSeconds),
			cmp.Compare(a.Job, b.Job))
	})
	k.Impact = k.Impact[:min(len(k.Impact), mostHurt)]
}

// mostHurt bounds the jobs that a finding lists.
const mostHurt = 32

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

// Probe takes the outcome of one canary of a node with an open finding.
func (t *Tracker) Probe(node topology.NodeID, ok bool) {
	for s, k := range t.open {
		if s.node != node || !s.kind.Accuses() {
			continue
		}
		k.probed = true
		if ok {
			k.passes++
		} else {
			k.passes = 0
		}
	}
}

// move makes a change of state true.
func (t *Tracker) move(now time.Time, k *track, to State, why string) Change {
	c := Change{From: k.State, At: now, Why: why}
	k.enter(now, to, why)
	k.alarm, k.clean, k.passes, k.probed, k.seen = 0, 0, 0, false, now
	c.Finding = k.copy()
	if !k.Open() {
		delete(t.open, k.about)
		t.close(c.Finding)
	}
	return c
}

// Adopt takes what a person did to an open finding: its owner, its silence, or its end.
func (t *Tracker) Adopt(f Finding) {
	s := subjectOf(f.Node, f.Kind, f.Jobs)
	for about, k := range t.open {
		if k.ID == f.ID {
			s = about
		}
	}
	k := t.open[s]
	if k == nil || k.ID != f.ID {
		return
	}
	k.Owner = f.Owner
	switch {
	case f.State == Dismissed:
		t.muted[s] = f.Changed.Add(t.set.Mute)
		delete(t.open, s)
		t.close(f)
	case f.State == k.State: // a silence holds for the state in which it was asked for
		k.Silenced = f.Silenced
	}
}
