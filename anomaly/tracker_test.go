package anomaly

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/collector/topology"
)

// bench steps a tracker second by second and plays the desk: what the tracker excludes is in the
// pool's next second.
type bench struct {
	*testing.T
	*Tracker
	now     time.Time
	pool    Pool
	changes []Change
}

func quick() Settings {
	s := DefaultSettings()
	s.ClearSeconds, s.Hold, s.HoldMost, s.Trial, s.ForgetAfter = 10, 20*time.Second, time.Minute, 15*time.Second,
		time.Minute
	return s
}

func newBench(t *testing.T, set Settings) *bench {
	if err := set.Validate(); err != nil {
		t.Fatal(err)
	}
	return &bench{T: t, Tracker: NewTracker(set, nil), now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		pool: Pool{Forwarders: 40, Healthy: 39, Excluded: map[topology.NodeID]string{}}}
}

// say gives every verdict for n seconds.
func (b *bench) say(n int, vs ...Verdict) (changes []Change) {
	for range n {
		b.now = b.now.Add(time.Second)
		got := b.Step(b.now, vs, b.pool)
		b.follow(got)
		changes = append(changes, got...)
	}
	b.changes = append(b.changes, changes...)
	return changes
}

func (b *bench) follow(changes []Change) {
	for _, c := range changes {
		out := c.Finding.State == Excluded || c.Finding.State == Probation && c.Finding.Stage == StageCanary
		if _, was := b.pool.Excluded[c.Finding.Node]; out && !was {
			b.pool.Excluded[c.Finding.Node] = ByPolicy
		} else if !out {
			delete(b.pool.Excluded, c.Finding.Node)
		}
	}
}

func (b *bench) wantStates(want ...string) {
	b.Helper()
	var got []string
	for _, c := range b.changes {
		text := string(c.Finding.State)
		if c.Finding.Stage != "" {
			text += " " + string(c.Finding.Stage)
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		b.Errorf("the finding went through\n%q, want\n%q", got, want)
	}
}

func slow(node topology.NodeID, l Level) Verdict {
	return Verdict{Node: node, Kind: FailSlow, Level: l, Confidence: 0.9, Score: 12, Model: "m1", Class: "write",
		Sentence: "writes on " + string(node) + " take 9.8 times as long",
		Evidence: map[string]float64{"write_ratio": 9.8},
		Impact:   []Impact{{Job: "88231", Share: 0.12}}}
}

// A silence lasts until its time, and not longer than the finding keeps its state.
func TestASilenceEndsWithWhatItWasFor(t *testing.T) {
	tr := NewTracker(DefaultSettings(), nil)
	now := time.Unix(1_000_000, 0)
	step := func(n int, l Level) {
		for range n {
			now = now.Add(time.Second)
			tr.Step(now, []Verdict{{Node: "fwd1", Kind: FailSlow, Level: l}}, Pool{Forwarders: 10, Healthy: 9})
		}
	}
	step(3, Doubt)
	first := tr.Findings(now)[0]
	c := Silence(first, now, "olga", "its array rebuilds", now.Add(time.Hour))
	if c.Finding.State != Suspect || !c.Finding.Silent(now.Add(59*time.Minute)) ||
		c.Finding.Silent(now.Add(time.Hour)) {
		t.Errorf("%+v", c)
	}
	if c := Silence(c.Finding, now, "olga", "", now); c.Finding.Silent(now) || !c.Finding.Silenced.IsZero() {
		t.Errorf("a silence of no time: %+v", c.Finding)
	}
	tr.Adopt(c.Finding)
	step(2, Doubt)
	if f := tr.Findings(now)[0]; !f.Silent(now) {
		t.Errorf("doubt ended the silence: %+v", f)
	}
	step(6, Alarm)
	tr.Adopt(c.Finding) // comes late: it was for a suspicion
	if f := tr.Findings(now)[0]; f.State != Confirmed || f.Silent(now) {
		t.Errorf("confirmed and still silent: %+v", f)
	}
}

// The record of a finding does not speak of chance where nothing was left to it.
func TestTheRecordSaysHowItWasFound(t *testing.T) {
	for fact, want := range map[bool]string{true: "it is seen for the first time",
		false: "it is slower than its peers for longer than chance explains"} {
		v := Verdict{Node: "fwd001", Kind: FailSlow, Level: Alarm}
		if fact {
			v.Evidence = map[string]float64{LinkBits: 1}
		}
		if c := newBench(t, quick()).say(1, v); len(c) != 1 || c[0].Why != want {
			t.Errorf("%v: %+v", fact, c)
		}
	}
}

func TestAWholeLife(t *testing.T) {
	set := quick()
	set.Mode = ModeAuto
	b := newBench(t, set)
	b.say(2, slow("fwd1", Doubt))
	b.wantStates()
	b.say(1, slow("fwd1", Doubt))
	b.wantStates("suspect")
	b.say(set.ConfirmSeconds, slow("fwd1", Alarm))
	b.wantStates("suspect", "confirmed", "excluded")
	f := b.Findings(b.now)[0]
	if f.ID != "F-0001" || f.Jobs[0] != "88231" || f.Sentence == "" || f.ExcludedBy != ByPolicy || f.Model != "m1" {
		t.Errorf("the finding is %+v", f)
	}
	b.say(19)
	b.wantStates("suspect", "confirmed", "excluded")
	b.say(1)
	b.wantStates("suspect", "confirmed", "excluded", "probation canary")
	for range set.ProbePasses - 1 {
		b.Probe("fwd1", true)
	}
	b.say(60)
	b.wantStates("suspect", "confirmed", "excluded", "probation canary")
	b.Probe("fwd1", true)
	b.say(1)
	b.wantStates("suspect", "confirmed", "excluded", "probation canary", "probation first job")
	b.say(15, slow("fwd1", Clean))
	b.wantStates("suspect", "confirmed", "excluded", "probation canary", "probation first job", "returned")
	if len(b.pool.Excluded) != 0 {
		t.Error("it is still excluded")
	}
}

func TestRelapseDoublesTheHold(t *testing.T) {
	set := quick()
	set.Mode = ModeAuto
	b := newBench(t, set)
	b.say(6, slow("fwd1", Alarm))
	b.say(20)
	b.say(1, slow("fwd1", Alarm)) // a job that was left behind on it, or a failed probe
	b.wantStates("suspect", "confirmed", "excluded", "probation canary", "excluded")
	b.say(39)
	if n := len(b.changes); n != 5 {
		t.Errorf("the second hold ended early: %d changes", n)
	}
	b.say(1)
	b.wantStates("suspect", "confirmed", "excluded", "probation canary", "excluded", "probation canary")
}

func TestAFailedProbeCountsFromTheStart(t *testing.T) {
	set := quick()
	set.Mode = ModeAuto
	b := newBench(t, set)
	b.say(6, slow("fwd1", Alarm))
	b.say(20)
	for range 20 {
		for range set.ProbePasses - 1 {
			b.Probe("fwd1", true)
		}
		b.Probe("fwd1", false)
		b.say(10)
	}
	b.wantStates("suspect", "confirmed", "excluded", "probation canary")
}

// TestCanariesClearWhoNobodyUses: where its clients were moved away nothing else shows that it is well. What passed
// while clients were slow there does not count.
func TestCanariesClearWhoNobodyUses(t *testing.T) {
	set := quick()
	b := newBench(t, set)
	pass := func(times int) {
		for range times {
			b.Probe("fwd1", true)
		}
	}
	b.say(6, slow("fwd1", Alarm))
	pass(set.ProbePasses)
	b.say(1, slow("fwd1", Alarm))
	b.say(2 * set.ClearSeconds)
	b.wantStates("suspect", "confirmed")
	pass(set.ProbePasses - 1)
	b.say(2)
	b.wantStates("suspect", "confirmed")
	pass(1)
	b.say(1)
	b.wantStates("suspect", "confirmed", "returned")
	if c := b.changes[len(b.changes)-1]; !c.Cleared {
		t.Error("detectors do not learn that it was seen to be well")
	}
	b.say(10, slow("fwd1", Alarm))
	b.wantStates("suspect", "confirmed", "returned", "suspect", "confirmed")
	// It came back: what let six pass lets them pass again.
	pass(2*set.ProbePasses - 1)
	b.say(2 * set.ClearSeconds)
	b.wantStates("suspect", "confirmed", "returned", "suspect", "confirmed")
	pass(1)
	b.say(1)
	b.wantStates("suspect", "confirmed", "returned", "suspect", "confirmed", "returned")
	b.say(10, slow("fwd1", Alarm))
	count := len(b.changes)
	for range 40 { // ill for a seventh of the time
		pass(set.ProbePasses)
		b.Probe("fwd1", false)
		b.say(set.ClearSeconds)
	}
	pass(4*set.ProbePasses - 1)
	b.Probe("fwd1", false) // a busy host's
	pass(set.ProbePasses)
	b.say(1)
	if len(b.changes) != count {
		t.Errorf("cleared by %d canaries of %d", 4*set.ProbePasses-1, 4*set.ProbePasses)
	}
	pass(1)
	b.say(1)
	b.wantStates("suspect", "confirmed", "returned", "suspect", "confirmed", "returned", "suspect", "confirmed",
		"returned")
}

func TestWithoutEvidenceASuspicionIsForgotten(t *testing.T) {
	b := newBench(t, quick())
	b.say(3, slow("fwd1", Doubt))
	b.say(59)
	b.wantStates("suspect")
	b.say(2)
	b.wantStates("suspect", "returned")
}

func TestHysteresisOfAnIntermittentFault(t *testing.T) {
	b := newBench(t, quick())
	b.say(6, slow("fwd1", Alarm))
	for range 5 { // bursts shorter than the clear time keep one finding
		b.say(9, slow("fwd1", Clean))
		b.say(5, slow("fwd1", Alarm))
	}
	b.wantStates("suspect", "confirmed")
	b.say(10, slow("fwd1", Clean))
	b.say(1, slow("fwd1", Alarm))
	b.wantStates("suspect", "confirmed", "returned", "suspect") // what comes back within minutes is the same incident
	if f := b.Findings(b.now); len(f) != 1 || f[0].Times != 2 || f[0].ID != "F-0001" {
		t.Errorf("findings: %+v", f)
	}
}

func TestObserveNeverExcludes(t *testing.T) {
	b := newBench(t, quick())
	b.say(100, slow("fwd1", Alarm))
	b.wantStates("suspect", "confirmed")
	if f := b.Findings(b.now)[0]; !strings.Contains(f.Held, "you decide") {
		t.Errorf("it does not say why: %q", f.Held)
	}
	b.pool.Excluded["fwd1"] = "olga"
	b.say(1000)
	b.wantStates("suspect", "confirmed", "excluded") // a person's exclusion is ended by a person
	delete(b.pool.Excluded, "fwd1")
	b.say(1)
	b.wantStates("suspect", "confirmed", "excluded", "probation first job")
}

func TestDismissedIsNotMadeAgain(t *testing.T) {
	set := quick()
	set.Mute = time.Minute
	b := newBench(t, set)
	b.say(6, slow("fwd1", Alarm))
	c := Dismiss(b.Findings(b.now)[0], b.now, "olga", "a planned rebuild of its array")
	if c.Finding.State != Dismissed || c.By != "olga" || c.Finding.Held != "" || len(c.Finding.Steps) != 3 {
		t.Fatalf("%+v", c)
	}
	b.Adopt(c.Finding)
	b.say(58, slow("fwd1", Alarm))
	again := NewTracker(set, b.Findings(time.Time{})) // the mute holds over a restart
	if got := again.Step(b.now, []Verdict{slow("fwd1", Alarm)}, b.pool); len(got) != 0 {
		t.Errorf("after a restart: %+v", got)
	}
	b.say(2, slow("fwd1", Alarm))
	b.wantStates("suspect", "confirmed", "suspect")
	if f := b.Findings(b.now)[0]; f.ID != "F-0002" {
		t.Errorf("the next finding is %s", f.ID)
	}
}

// What persons wrote about a finding is counted and stays with it, also once it has ended.
func TestNotesStayWithAFinding(t *testing.T) {
	b := newBench(t, quick())
	b.say(4, slow("fwd1", Doubt))
	b.Adopt(Note(b.Findings(b.now)[0], b.now, "olga", "its fan", time.Time{}).Finding)
	b.say(6, slow("fwd1", Alarm))
	f := b.Findings(b.now)[0]
	if f.State != Confirmed || f.Notes != 1 || f.Note != "olga: its fan" {
		t.Errorf("confirmed: %+v", f)
	}
	f = Dismiss(f, b.now, "olga", "a planned rebuild").Finding
	b.Adopt(f)
	b.Adopt(Note(f, b.now, "ada", "it was the fan", time.Time{}).Finding)
	if f := b.Findings(time.Time{})[0]; f.State != Dismissed || f.Notes != 2 || f.Note != "ada: it was the fan" {
		t.Errorf("dismissed: %+v", f)
	}
}

func TestExplainedSlownessIsNeverExcluded(t *testing.T) {
	set := quick()
	set.Mode = ModeAuto
	b := newBench(t, set)
	storm := Verdict{Node: "fwd1", Kind: MetaStorm, Level: Alarm, Confidence: 0.9}
	b.say(20, storm)
	b.wantStates("suspect", "confirmed")
	b.say(10)
	b.wantStates("suspect", "confirmed", "returned")
}

func TestRestartTakesUpAFinding(t *testing.T) {
	set := quick()
	set.Mode = ModeAuto
	b := newBench(t, set)
	b.say(6, slow("fwd1", Alarm))
	b.Tracker = NewTracker(set, b.Findings(time.Time{}))
	b.say(20)
	b.wantStates("suspect", "confirmed", "excluded", "probation canary")
}

// TestFloorsHoldWhateverTheDetectorSays lets a detector accuse at random and looks at the floors
// after every second.
func TestFloorsHoldWhateverTheDetectorSays(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 4))
		set := quick()
		set.Mode, set.MaxExcluded, set.HealthyFloor = ModeAuto, float64(rng.IntN(5))/10, rng.IntN(20)
		b := newBench(t, set)
		accused := map[topology.NodeID]bool{}
		for range 400 {
			var vs []Verdict
			for i := range b.pool.Forwarders {
				vs = append(vs, slow(topology.NodeID(fmt.Sprint("fwd", i)), Level(rng.IntN(4))))
			}
			before := len(b.pool.Excluded)
			b.say(1, vs...)
			clear(accused)
			for _, n := range b.Suspected() {
				accused[n] = true
			}
			for n := range b.pool.Excluded {
				accused[n] = true
			}
			healthy := b.pool.Healthy
			b.pool.Healthy = b.pool.Forwarders - len(accused)
			if n := len(b.pool.Excluded); n > before && (n > max(1, int(set.MaxExcluded*40)) || set.MaxExcluded == 0 ||
				healthy < set.HealthyFloor) {
				t.Fatalf("seed %d: %d excluded with %d healthy; at most %g of 40, floor %d", seed, n, healthy,
					set.MaxExcluded, set.HealthyFloor)
			}
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	s := DefaultSettings()
	s.Mode = "maybe"
	if err := s.Validate(); err == nil || !strings.HasPrefix(err.Error(), "mode") {
		t.Error(err)
	}
}

// TestASmallSiteMayExcludeOne: a tenth of four forwarders is less than one, and one may be excluded; with a share of
// 0 not even that.
func TestASmallSiteMayExcludeOne(t *testing.T) {
	for share, want := range map[float64]int{0.1: 1, 0: 0} {
		set := quick()
		set.Mode, set.MaxExcluded = ModeAuto, share
		b := newBench(t, set)
		b.pool.Forwarders, b.pool.Healthy = 4, 3
		b.say(20, slow("fwd1", Alarm), slow("fwd2", Alarm))
		if len(b.pool.Excluded) != want {
			t.Errorf("a share of %g: %v are excluded, want %d", share, b.pool.Excluded, want)
		}
	}
}

// TestASuspicionOutlivesAGoodSecond: it ends after clear_seconds at work without doubt, and not before.
func TestASuspicionOutlivesAGoodSecond(t *testing.T) {
	b := newBench(t, quick())
	b.say(5, slow("fwd1", Doubt))
	if got := b.say(9, slow("fwd1", Clean)); len(got) > 0 {
		t.Errorf("after nine good seconds: %+v", got)
	}
	if got := b.say(1, slow("fwd1", Clean)); len(got) != 1 || got[0].Finding.State != Returned {
		t.Errorf("after ten: %+v", got)
	}
}

// TestSilenceAndWeakerWords: seconds in which nothing could be seen are no health, an alarm's words outlive a doubt,
// and seconds of doubt that lie far apart make no suspicion.
func TestSilenceAndWeakerWords(t *testing.T) {
	b := newBench(t, quick())
	b.say(2, slow("fwd1", Doubt))
	b.say(60)
	if got := b.say(1, slow("fwd1", Doubt)); len(got) > 0 {
		t.Errorf("three seconds of doubt, the last after a minute: %+v", got)
	}
	b.say(10, slow("fwd1", Alarm))
	weak := slow("fwd1", Doubt)
	weak.Sentence, weak.Confidence = "perhaps", 0.4
	b.say(1, weak)
	if f := b.Findings(b.now)[0]; f.State != Confirmed || f.Sentence == "perhaps" || f.Confidence != 0.9 {
		t.Errorf("after a doubt: %+v", f)
	}
	if got := b.say(50, slow("fwd1", Unseen)); len(got) > 0 {
		t.Errorf("nothing was seen of it: %+v", got)
	}
}
