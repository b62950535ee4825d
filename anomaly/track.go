package anomaly

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"fairway/collector/topology"
)

// track is an open finding with the seconds counted for its next step.
type track struct {
	Finding
	alarm, clean int
	head         headline
	graded       graded
	certain      bool      // its sentence is an alarm's
	seen         time.Time // newest second with evidence either way
	bad          time.Time // newest second of doubt or alarm
	passes       int       // canary probes passed, less those that failed (Tracker.Probe)
	probed       bool      // since the newest change
	about        subject
	named        time.Time // newest second in which the job that it is about was named
	// What jobs had lost before the second at hurtAt.
	hurtAt time.Time
	costs  map[topology.JobID]float64
}

// graded is what a finding's condition rests on.
type graded struct {
	at      time.Time // newest second of it
	slowToo bool      // the node was accused by what it answers, whatever its agent reports
	answers bool      // a canary passed since: that only its agent or counters are missing is believed then
}

// turn is the change of a finding whose condition is another one now.
func (k *track) turn(now time.Time, was Condition) Change {
	k.step(now, k.State)
	return Change{Finding: k.copy(), From: k.State, At: now,
		Why: fmt.Sprintf("it is %s now, it was %s", k.Condition, was)}
}

// conditionLasts is for how long a condition stays that only lesser evidence follows.
const conditionLasts = 10 * time.Second

// waitLasts is for how long a job waits after a second in which it did: programs do I/O in bursts.
const waitLasts = 30 * time.Second

// grade takes the condition of a second of doubt or alarm, and reports whether the finding's is another one now.
func (k *track) grade(now time.Time, v *Verdict) bool {
	k.graded.slowToo = k.graded.slowToo || v.Condition != Silent && v.Condition != Unreadable
	was := k.Condition
	switch {
	case was == "", v.Condition.Worse(was) && v.Level == Alarm,
		was.Worse(v.Condition) && now.Sub(k.graded.at) > conditionLasts && (was != Hung && was != Dead ||
			v.Condition == Slow || k.graded.answers):
		k.become(v.Condition)
	}
	if k.Condition == v.Condition {
		k.graded.at, k.graded.answers = now, false
	}
	return was != "" && k.Condition != was
}

// become sets the condition, and the kind that goes with it.
func (k *track) become(c Condition) {
	k.Condition = c
	if k.Kind.Accuses() {
		k.Kind = FailSlow
		if c == Silent || c == Unreadable {
			k.Kind = ForwarderSilent
		}
	}
}

// weigh takes a second's ratio, and what clients waited, into what the finding says.
func (k *track) weigh(v *Verdict) {
	k.head.measure.take(v.Waits)
	if !(v.Ratio > 0) {
		return
	}
	k.head.take(math.Log(v.Ratio))
	k.FactorNow, _ = strconv.ParseFloat(Digits(math.Exp(k.head.present)), 64)
	if k.head.present >= math.Log(AmongPeers) {
		k.head.well = 0
	} else {
		k.head.well++
	}
}

// take counts one second of evidence and keeps its sentence and numbers. It reports whether the condition changed.
func (k *track) take(now time.Time, v *Verdict) (turned bool) {
	k.weigh(v)
	switch v.Level {
	case Unseen:
		return false
	case Clean:
		if v.Condition == Silent && k.graded.slowToo { // its agent reports again, which clears nothing else
			if turned = k.Condition == Silent; turned {
				k.become(Slow)
			}
			return turned
		}
		k.clean++
		k.seen = now
		return false
	case Alarm:
		if !k.bad.Equal(now) { // not once a node
			k.alarm++
		}
		k.certain = true
	}
	k.clean, k.passes, k.seen, k.bad = 0, 0, now, now
	turned = k.grade(now, v)
	if v.Cause != "" {
		k.Cause = v.Cause
	}
	if v.Level == Alarm || !k.certain { // a doubt after an alarm does not replace its sentence
		k.describe(now, v)
	}
	if k.Condition == Slow || k.Condition == "" {
		next := k.head.say(now, heading{k.Factor, k.FactorAtLeast}, k.Class, k.State == "" || k.State == Suspect)
		k.Factor, k.FactorAtLeast = next.factor, next.atLeast
	}
	return turned
}

// describe takes what a second of evidence says, and of which jobs.
func (k *track) describe(now time.Time, v *Verdict) {
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
