package anomaly

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"fairway/collector/topology"
)

// One node has one incident: the worse condition supersedes, its history shows each, and a lesser one comes back only
// after a while.
func TestTheWorseConditionSupersedes(t *testing.T) {
	b := newBench(t, quick())
	silent := Verdict{Node: "fwd1", Kind: ForwarderSilent, Level: Alarm, Sentence: "fwd1 does not report"}
	hung := slow("fwd1", Alarm)
	hung.Condition, hung.Sentence = Hung, "fwd1 answers nothing"
	b.say(6, slow("fwd1", Alarm))
	b.say(3, slow("fwd1", Alarm), silent)
	if f := b.Findings(b.now); len(f) != 1 || f[0].Condition != Slow || f[0].Kind != FailSlow {
		t.Fatalf("slow and silent: its clients say more than its silence: %+v", f)
	}
	b.say(3, hung, silent)
	f := b.Findings(b.now)
	if len(f) != 1 || f[0].Condition != Hung || f[0].Kind != FailSlow || f[0].Condition.Serves() {
		t.Fatalf("hung: %+v", f)
	}
	var words []Condition
	for _, s := range f[0].Steps {
		words = append(words, s.Condition)
	}
	if len(words) != 3 || words[2] != Hung {
		t.Errorf("its history: %q", words)
	}
	if b.say(30, silent); b.Findings(b.now)[0].Condition != Hung {
		t.Error("that nobody uses or reads it any more says that it answers")
	}
	b.say(1, hung)
	if b.say(5, slow("fwd1", Alarm)); b.Findings(b.now)[0].Condition != Hung {
		t.Error("slow at once after hung")
	}
	if b.say(10, slow("fwd1", Alarm)); b.Findings(b.now)[0].Condition != Slow {
		t.Error("still hung though it answers")
	}
	b.say(3, hung)
	b.say(1, silent)
	b.Probe("fwd1", true)
	if b.say(15, silent); b.Findings(b.now)[0].Condition != Silent {
		t.Error("hung though a canary came back")
	}
	b.say(15, slow("fwd1", Alarm))
	again := NewTracker(quick(), b.Findings(b.now))
	if got := again.Findings(b.now)[0]; got.Condition != Slow || got.ID != f[0].ID {
		t.Errorf("after a restart: %+v", got)
	}
}

// That an agent reports again clears nothing that clients saw.
func TestASilenceThatEndsClearsNoSlowness(t *testing.T) {
	b := newBench(t, quick())
	reports := Verdict{Node: "fwd1", Kind: ForwarderSilent, Level: Clean}
	b.say(6, slow("fwd1", Alarm))
	if b.say(15, Verdict{Node: "fwd1", Kind: ForwarderSilent, Level: Alarm}); b.Findings(b.now)[0].Condition != Silent {
		t.Error("nothing but its silence is seen any more")
	}
	b.say(40, reports)
	if f := b.Findings(b.now); len(f) != 1 || f[0].State != Confirmed || f[0].Condition != Slow {
		t.Fatalf("it reports, and nobody knows whether it is well: %+v", f)
	}
	b.say(6, Verdict{Node: "fwd2", Kind: ForwarderSilent, Level: Alarm})
	b.say(10, Verdict{Node: "fwd2", Kind: ForwarderSilent, Level: Clean})
	if f := b.Findings(b.now); len(f) != 1 {
		t.Errorf("silence was all of it, and it is over: %+v", f)
	}
}

// The headline is the median since the change, on its steps, and changes at most four times an hour whatever a second
// says; since is when the ratio rose and not when a test first leaned.
func TestOneHeadline(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	b := newBench(t, quick())
	verdict := func(level Level, ratio float64) Verdict {
		v := slow("fwd1", level)
		v.Ratio, v.Since = ratio*math.Exp(0.5*r.NormFloat64()), b.now.Add(-3*time.Minute)
		return v
	}
	for range 100 {
		b.say(1, verdict(Clean, 1))
	}
	rose := b.now
	for range 20 {
		b.say(1, verdict(Clean, 8))
	}
	var shown []float64
	for range 3600 {
		b.say(1, verdict(Alarm, 8))
		if f := b.Findings(b.now)[0].Factor; len(shown) == 0 || f != shown[len(shown)-1] {
			shown = append(shown, f)
		}
	}
	f := b.Findings(b.now)[0]
	if off := f.Since.Sub(rose).Abs(); off > 4*time.Second {
		t.Errorf("since %s after it rose", off)
	}
	if last := shown[len(shown)-1]; last < 7 || last > 10 || len(shown) > mostChanges+1 || f.FactorNow < 3 ||
		f.FactorNow > 20 {
		t.Errorf("it shown %v, and now %g", shown, f.FactorNow)
	}
}

// No finding holds while its own ratio is its peers', whatever its test has left, which it forgets.
func TestAFindingEndsByItsOwnRatio(t *testing.T) {
	b := newBench(t, quick())
	with := func(ratio float64) Verdict {
		v := slow("fwd1", Alarm)
		v.Ratio = ratio
		return v
	}
	b.say(60, with(6))
	for range 40 {
		if c := b.say(1, with(0.9)); len(c) > 0 && c[len(c)-1].Cleared {
			break
		}
	}
	b.wantStates("suspect", "confirmed", "returned")
	well := with(0.9)
	well.Level = Clean
	b.say(60, well)
	back := b.now
	if b.say(30, with(5)); len(b.Findings(b.now)) != 1 || b.Findings(b.now)[0].Times != 2 {
		t.Errorf("slow again: %+v", b.Findings(b.now))
	}
	if f := b.Findings(b.now)[0]; f.Factor != 5 || f.Began().Sub(back).Abs() > 4*time.Second || !f.Since.Before(back) {
		t.Errorf("%gx since %s after it came back, %s", f.Factor, f.Began().Sub(back), f.Since)
	}
}

// TestMerge: of two verdicts about the same the worse state stays, of two alarms the worse condition, of equal ones the
// nearer judge's; jobs may each do the same on one node.
func TestMerge(t *testing.T) {
	say := func(k Kind, l Level, c Condition, model string,
		jobs ...topology.JobID) Verdict {
		return Verdict{Node: "f1", Kind: k, Level: l, Condition: c, Model: model, Culprits: jobs}
	}
	for _, c := range []struct{ first, then, want string }{
		{"doubt", "alarm", "[alarm]"}, {"alarm", "doubt", "[alarm]"}, {"clean", "doubt", "[doubt]"},
		{"alarm", "hung", "[hung]"}, {"hung", "alarm", "[hung]"}, {"hung", "dead", "[dead]"},
		{"alarm", "alarm too", "[alarm]"}, {"doubt", "doubt too", "[doubt]"}, {"alarm", "silent", "[alarm]"},
		{"silent", "alarm", "[alarm]"},
		{"job 1", "job 2", "[job 1 job 2]"}, {"job 1", "job 1 too", "[job 1]"},
	} {
		verdicts := map[string]Verdict{
			"clean":     say(FailSlow, Clean, Slow, "clean"),
			"doubt":     say(FailSlow, Doubt, Slow, "doubt"),
			"doubt too": say(FailSlow, Doubt, Slow, "doubt too"),
			"alarm":     say(FailSlow, Alarm, Slow, "alarm"),
			"alarm too": say(FailSlow, Alarm, Slow, "alarm too"),
			"hung":      say(FailSlow, Alarm, Hung, "hung"),
			"dead":      say(FailSlow, Alarm, Dead, "dead"),
			"silent":    say(ForwarderSilent, Alarm, Silent, "silent"),
			"job 1":     say(HighBandwidth, Alarm, "", "job 1", "1"),
			"job 1 too": say(HighBandwidth, Alarm, "", "job 1 too", "1"),
			"job 2":     say(HighBandwidth, Alarm, "", "job 2", "2"),
		}
		var got []string
		for _, v := range Merge([]Verdict{verdicts[c.first]}, []Verdict{verdicts[c.then]}) {
			got = append(got, v.Model)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s, then %s: %v", c.first, c.then, got)
		}
	}
	if out := Merge(nil, []Verdict{say(FailSlow, Doubt, "", "a"),
		say(FailSlow, Alarm, "", "b")}); len(out) != 1 || out[0].Model != "b" {
		t.Errorf("two of one judge: %+v", out)
	}
}

func TestSteps(t *testing.T) {
	for _, c := range []struct{ ratio, want float64 }{{0.5, 0}, {1.1, 0}, {1.25, 1.5}, {1.7, 1.5}, {1.8, 2}, {4.1, 4},
		{13, 12}, {24, 25}, {27, 25}, {28, 30}, {64, 60}, {900, Saturated}} {
		if got := stepOf(math.Log(c.ratio)); got != c.want {
			t.Errorf("%g: %g, want %g", c.ratio, got, c.want)
		}
	}
}
