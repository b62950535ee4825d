package anomaly

import (
	"fmt"
	"math"
	"slices"
	"time"

	"fairway/collector/topology"
)

// enter puts a finding into a state at now.
func (f *Finding) enter(now time.Time, to State, why string) {
	if f.State != to { // stages of probation are not listed
		f.step(now, to)
	}
	f.State, f.Changed, f.Why = to, now, why
	if to != Confirmed {
		f.Held = ""
	}
	if to == Confirmed || to == Excluded {
		f.Silenced = time.Time{} // graver than the finding that was silenced
	}
	if to != Excluded && !(to == Probation && f.Stage == StageCanary) {
		f.ExcludedBy = ""
	}
	if to != Probation {
		f.Stage = ""
	}
}

// step lists a state, and the condition that the finding has then.
func (f *Finding) step(now time.Time, state State) {
	s := Step{State: state, At: now, Condition: f.Condition}
	if s.Condition == Slow {
		s.Condition = ""
	}
	f.Steps = append(slices.Clip(f.Steps), s)
	f.Steps = f.Steps[max(0, len(f.Steps)-maxSteps):]
}

// Acknowledge is the change by which a person takes a finding on, or gives it back to its owner before.
func Acknowledge(f Finding, now time.Time, by, owner, why string) Change {
	f.Owner = owner
	return Change{Finding: f, From: f.State, At: now, By: by, Why: why}
}

// Silence is the change by which a person keeps a finding from alerting until then; a time that has passed ends
// a silence.
func Silence(f Finding, now time.Time, by, why string, until time.Time) Change {
	f.Silenced = until
	if !until.After(now) {
		f.Silenced = time.Time{}
	}
	return Change{Finding: f, From: f.State, At: now, By: by, Why: why}
}

// Note is what a person wrote about a moment of a finding.
func Note(f Finding, now time.Time, by, text string, about time.Time) Change {
	if about.IsZero() {
		about = now
	}
	f.Notes, f.Note = f.Notes+1, by+": "+text
	return Change{Finding: f, From: f.State, At: now, By: by, Why: "note: " + text, Noted: about}
}

// Dismiss is the change by which a person ends a finding as wrong.
func Dismiss(f Finding, now time.Time, by, why string) Change {
	c := Change{From: f.State, At: now, By: by, Why: why}
	f.enter(now, Dismissed, why)
	c.Finding = f
	return c
}

// advance takes an open finding as many steps further as its counts allow.
func (t *Tracker) advance(now time.Time, k *track, pool *Pool) (changes []Change) {
	for range 4 { // no path is longer
		c, ok := t.next(now, k, pool)
		if !ok {
			return changes
		}
		changes = append(changes, c)
		if !k.Open() {
			return changes
		}
	}
	return changes
}

// next is the step that a finding can take now.
func (t *Tracker) next(now time.Time, k *track, pool *Pool) (Change, bool) {
	if by, out := pool.Excluded[k.Node]; out && k.Kind.Accuses() && !k.drained() {
		k.ExcludedBy = by
		return t.move(now, k, Excluded, "it was excluded by "+by), true
	}
	switch k.State {
	case Suspect:
		return t.ofSuspect(now, k)
	case Confirmed:
		return t.ofConfirmed(now, k, pool)
	case Excluded:
		return t.ofExcluded(now, k, pool)
	case Probation:
		return t.ofProbation(now, k, pool)
	}
	return Change{}, false
}

// drained reports whether the tracker takes the node for excluded.
func (k *track) drained() bool {
	return k.State == Excluded || k.State == Probation && k.Stage == StageCanary
}

// among returns a finding whose node's own ratio has been its peers' for the clearing time.
func (t *Tracker) among(now time.Time, k *track) (Change, bool) {
	if k.head.well < t.set.ClearSeconds || k.Condition != Slow {
		return Change{}, false
	}
	return t.clear(now, k, fmt.Sprintf("it takes %s of what its peers take for %d s at work", Times(k.FactorNow),
		k.head.well)), true
}

// clear returns a finding whose node shows that it is well while its detector may still hold the fault against it.
func (t *Tracker) clear(now time.Time, k *track, why string) Change {
	c := t.move(now, k, Returned, why)
	c.Cleared = true
	return c
}

func (t *Tracker) ofSuspect(now time.Time, k *track) (Change, bool) {
	quiet := now.Sub(k.seen)
	if c, ok := t.among(now, k); ok {
		return c, true
	}
	switch {
	case k.alarm >= t.set.ConfirmSeconds:
		return t.move(now, k, Confirmed, fmt.Sprintf("the alarm held for %d s", k.alarm)), true
	case k.clean >= t.set.ClearSeconds:
		return t.move(now, k, Returned, fmt.Sprintf("the suspicion has passed: %d s at work without doubt",
			k.clean)), true
	case quiet > t.set.ForgetAfter, !k.Kind.Accuses() && quiet >= time.Duration(t.set.ClearSeconds)*time.Second:
		return t.move(now, k, Returned, fmt.Sprintf("nothing more was seen of it for %s",
			quiet.Round(time.Second))), true
	}
	return Change{}, false
}

// mostDoubled is how often the canaries that must pass are doubled.
const mostDoubled = 2

func (t *Tracker) ofConfirmed(now time.Time, k *track, pool *Pool) (Change, bool) {
	quiet := now.Sub(k.seen)
	if !k.Kind.Accuses() {
		if k.clean >= t.set.ClearSeconds || quiet >= time.Duration(t.set.ClearSeconds)*time.Second {
			return t.move(now, k, Returned, "it is over"), true
		}
		return Change{}, false
	}
	if c, ok := t.among(now, k); ok {
		return c, true
	}
	if k.clean >= t.set.ClearSeconds { // it was never taken out: who is well again is watched as everybody is
		return t.move(now, k, Returned, fmt.Sprintf("it is over: %d s at work without doubt", k.clean)), true
	}
	// Who was left by all its clients shows in nothing else that it is well. Who came back ill passes twice as many
	// each time: a fault that comes and goes lets some through.
	cleared := time.Duration(t.set.ClearSeconds) * time.Second
	passes := t.set.ProbePasses << min(max(k.Times-1, 0), mostDoubled)
	if k.passes >= passes && now.Sub(k.bad) >= cleared {
		delete(t.pasts, k.about) // its ratios are of before
		return t.clear(now, k, "its canary probes passed"), true
	}
	if k.Held = t.held(pool); k.Held != "" {
		return Change{}, false
	}
	k.ExcludedBy = ByPolicy
	if pool.Excluded == nil {
		pool.Excluded = map[topology.NodeID]string{}
	}
	pool.Excluded[k.Node] = ByPolicy
	// The node's own finding has taken it out of the healthy ones already.
	return t.move(now, k, Excluded, "findings.mode is auto"), true
}

// held returns why the policy may not exclude one more forwarder; "" when it may. It does not depend on any detector.
func (t *Tracker) held(pool *Pool) string {
	out := len(pool.Excluded)
	most := max(1, int(math.Floor(t.set.MaxExcluded*float64(pool.Forwarders))))
	if t.set.MaxExcluded == 0 {
		most = 0
	}
	switch {
	case t.set.Mode != ModeAuto:
		return "you decide (e drains it)"
	case out+1 > most:
		return fmt.Sprintf("%d of %d forwarders are excluded, at most %d may be (findings.max_excluded)", out,
			pool.Forwarders, most)
	case pool.Healthy < t.set.HealthyFloor:
		return fmt.Sprintf("%d healthy forwarders would be left, at least %d must stay",
			pool.Healthy, t.set.HealthyFloor)
	}
	return ""
}

// hold is the shortest time of an exclusion after so many relapses.
func (s Settings) hold(relapses int) time.Duration {
	h := s.Hold
	for range relapses {
		if h *= 2; h >= s.HoldMost {
			return s.HoldMost
		}
	}
	return h
}

// Next returns what an open finding waits for, and from when on where that is known; "" for a closed one.
func (s Settings) Next(f *Finding) (words string, from time.Time) {
	switch {
	case f.State == Suspect:
		return fmt.Sprintf("confirmed after %d s of alarm", s.ConfirmSeconds), from
	case f.State == Confirmed && !f.Kind.Accuses():
		return "until it is over", from
	case f.State == Confirmed && s.Mode != ModeAuto:
		return "a person drains it", from
	case f.State == Confirmed:
		return "excluded when the floors allow", from
	case f.State == Excluded && f.ExcludedBy != ByPolicy:
		return "until a person returns it", from
	case f.State == Excluded:
		return "canary I/O from", f.Changed.Add(s.hold(f.Relapses))
	case f.State == Probation && f.Stage == StageCanary:
		return fmt.Sprintf("%d canaries must pass", s.ProbePasses), from
	case f.State == Probation:
		return "returned if all is well from", f.Changed.Add(s.Trial)
	}
	return "", from
}

func (t *Tracker) ofExcluded(now time.Time, k *track, pool *Pool) (Change, bool) {
	by, out := pool.Excluded[k.Node]
	if !out {
		k.Stage = StageJob
		return t.move(now, k, Probation, "its exclusion was ended"), true
	}
	// A forwarder that a person excluded is returned by a person.
	k.ExcludedBy = by
	if k.ExcludedBy != ByPolicy || now.Sub(k.Changed) < t.set.hold(k.Relapses) ||
		now.Sub(k.bad) < time.Duration(t.set.ClearSeconds)*time.Second {
		return Change{}, false
	}
	k.Stage = StageCanary
	return t.move(now, k, Probation, fmt.Sprintf("excluded for %s", t.set.hold(k.Relapses))), true
}

func (t *Tracker) ofProbation(now time.Time, k *track, pool *Pool) (Change, bool) {
	age := now.Sub(k.Changed)
	_, out := pool.Excluded[k.Node]
	switch {
	case k.Stage == StageCanary && !out:
		k.Stage = StageJob
		return t.move(now, k, Probation, "its exclusion was ended"), true
	case k.alarm > 0 && k.Stage == StageCanary:
		k.Relapses++
		return t.move(now, k, Excluded, "it was slow again in its canary probes"), true
	case k.alarm > 0:
		k.Relapses++
		return t.move(now, k, Confirmed, "it was slow again in probation"), true
	case k.Stage == StageCanary && t.passed(k, age):
		k.Stage = StageJob
		delete(pool.Excluded, k.Node)
		why, probed := "its canary probes passed", k.probed
		if !probed {
			why = fmt.Sprintf("it gets no canaries, and %s passed without an alarm", age.Round(time.Second))
		}
		c := t.move(now, k, Probation, why)
		c.Cleared = probed
		return c, true
	case k.Stage == StageJob && age >= t.set.Trial && (k.clean >= t.set.ClearSeconds || k.passes >= t.set.ProbePasses ||
		age >= 6*t.set.Trial):
		return t.move(now, k, Returned, "nothing was wrong with it in probation"), true
	}
	return Change{}, false
}

// passed reports whether canary I/O has shown nothing wrong. Without canaries this stage can show little: an excluded
// forwarder has no load, and its first job is watched for the whole trial.
func (t *Tracker) passed(k *track, age time.Duration) bool {
	if k.probed {
		return k.passes >= t.set.ProbePasses
	}
	return age >= min(t.set.Trial, 2*time.Duration(t.set.ClearSeconds)*time.Second)
}
