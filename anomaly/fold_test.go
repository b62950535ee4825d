package anomaly

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/collector/topology"
)

// What one job does on several forwarders is one finding; when it comes back it is the same one, with a count; what it
// costs others adds up and is not forgotten.
func TestOneFindingForWhatAJobDoes(t *testing.T) {
	b := newBench(t, quick())
	storm := func(n topology.NodeID) Verdict {
		return Verdict{Node: n, Kind: MetaStorm, Level: Alarm, Culprits: []topology.JobID{"7"}, Sentence: "7 floods",
			Impact: []Impact{{Job: "5", Share: 0.5}}}
	}
	b.say(8, storm("fwd1"), storm("fwd2"))
	all := b.Findings(b.now)
	if len(all) != 1 || len(all[0].Nodes) != 2 || len(all[0].Jobs) != 1 || all[0].Jobs[0] != "7" {
		t.Fatalf("%+v", all)
	}
	if i := all[0].Impact; len(i) != 1 || i[0].CostSeconds != 4 || i[0].Share != 0.5 {
		t.Errorf("eight seconds at a half cost four, on two nodes as on one: %+v", i)
	}
	other := storm("fwd1")
	other.Culprits, other.Sentence = []topology.JobID{"9"}, "9 floods"
	if b.say(1, other); b.Findings(b.now)[0].Sentence != "7 floods" {
		t.Errorf("the finding of job 7 says: %s", b.Findings(b.now)[0].Sentence)
	}
	b.say(40)
	if b.Findings(b.now.Add(-time.Hour))[0].Open() {
		t.Fatal("it is over")
	}
	b.say(3, storm("fwd3"))
	all = b.Findings(b.now.Add(-time.Hour))
	if len(all) != 1 || all[0].ID != "F-0001" || all[0].Times != 2 || all[0].State != Suspect ||
		all[0].Impact[0].CostSeconds != 6 {
		t.Errorf("the same again: %+v", all)
	}
	b.say(40)
	b.now = b.now.Add(returnsWithin)
	b.say(3, storm("fwd1"))
	if all = b.Findings(b.now.Add(-time.Minute)); len(all) != 1 || all[0].ID != "F-0002" || all[0].Times != 0 {
		t.Errorf("a storm of another hour: %+v", all)
	}
}

// A second in which another job is named more makes no other finding. One that goes on where the first has gone has its
// own: nobody is blamed for what another does after him.
func TestAnotherJobTakesOver(t *testing.T) {
	b := newBench(t, quick())
	fill := func(job topology.JobID) Verdict {
		return Verdict{Node: "fwd1", Kind: HighBandwidth, Level: Alarm, Culprits: []topology.JobID{job},
			Sentence: "fwd1 is filled by " + string(job)}
	}
	for range 6 {
		b.say(5, fill("7"))
		b.say(3, fill("9"))
	}
	if all := b.Findings(b.now); len(all) != 1 || all[0].Jobs[0] != "7" {
		t.Fatalf("now one and now the other: %+v", all)
	}
	b.say(30, fill("9"))
	var of []topology.JobID
	for _, f := range b.Findings(b.now.Add(-time.Hour)) {
		of = append(of, f.Jobs...)
		if f.Jobs[0] == "9" && f.State != Confirmed {
			t.Errorf("job 9 fills it for half a minute: %+v", f)
		}
	}
	slices.Sort(of)
	if !slices.Equal(of, []topology.JobID{"7", "9"}) {
		t.Errorf("findings of %v", of)
	}
}

// TestNobodyWaitsForWhatIsOver: what jobs have lost stays, that they wait does not.
func TestNobodyWaitsForWhatIsOver(t *testing.T) {
	set := quick()
	set.ClearSeconds = 600
	b := newBench(t, set)
	b.say(20, Verdict{Node: "fwd1", Kind: FailSlow, Level: Alarm, Sentence: "fwd1 is slow",
		Impact: []Impact{{Job: "5", Share: 0.5}}})
	for _, c := range []struct {
		seconds int
		share   float64
	}{{20, 0.5}, {20, 0}} {
		b.say(c.seconds, Verdict{Node: "fwd1", Kind: FailSlow, Level: Clean})
		all := b.Findings(b.now)
		if len(all) != 1 || len(all[0].Impact) != 1 || all[0].Impact[0].Share != c.share ||
			all[0].Impact[0].CostSeconds < 5 {
			t.Errorf("%d s later: %+v, want a share of %g and the cost", c.seconds, all, c.share)
		}
	}
}

// Where findings of several jobs are open on a node, what a third one does there for a moment counts for the one that
// is named beside it, else for the one that was named last.
func TestAThirdJobBesideTwoFindings(t *testing.T) {
	fill := func(jobs ...topology.JobID) Verdict {
		return Verdict{Node: "fwd1", Kind: HighBandwidth, Level: Alarm, Culprits: jobs, Sentence: "it is filled",
			Impact: []Impact{{Job: "5", Share: 1}}}
	}
	lost := func(b *bench, of topology.JobID) float64 {
		for _, f := range b.Findings(b.now) {
			if slices.Equal(f.Jobs, []topology.JobID{of}) {
				return f.Impact[0].CostSeconds
			}
		}
		b.Errorf("no finding of job %s in %+v", of, b.Findings(b.now))
		return 0
	}
	for range 50 { // whichever comes first in a map
		set := quick()
		set.ClearSeconds = 60
		b := newBench(t, set)
		b.say(6, fill("7"))
		b.say(16, fill("9"))
		b.say(1, fill("7"))
		was7, was9 := lost(b, "7"), lost(b, "9")
		b.say(1, fill("3", "9"))
		b.say(1, fill("7"))
		b.say(2, fill("3"))
		if now7, now9 := lost(b, "7"), lost(b, "9"); now7 != was7+3 || now9 != was9+1 || len(b.Findings(b.now)) != 2 {
			t.Fatalf("finding of job 7 went from %g s lost to %g, of job 9 from %g to %g; findings: %d", was7, now7,
				was9, now9, len(b.Findings(b.now)))
		}
	}
}

// A finding that is taken up after a restart counts from there on: it is not over because nobody looked, and a second
// in which another job is named makes no other finding.
func TestARestartEndsNoFindingOfAJob(t *testing.T) {
	b := newBench(t, quick())
	fill := func(job topology.JobID) Verdict {
		return Verdict{Node: "fwd1", Kind: HighBandwidth, Level: Alarm, Culprits: []topology.JobID{job},
			Sentence: "full"}
	}
	b.say(60, fill("7"))
	b.Tracker = NewTracker(quick(), b.Findings(time.Time{}))
	b.now = b.now.Add(time.Minute)
	if got := b.say(5); len(got) != 0 {
		t.Errorf("until the detectors see anything: %+v", got)
	}
	b.say(3, fill("9"))
	b.say(5, fill("7"))
	if all := b.Findings(time.Time{}); len(all) != 1 || all[0].State != Confirmed || all[0].Jobs[0] != "7" {
		t.Errorf("findings: %+v", all)
	}
	if got := b.say(quick().ClearSeconds); len(got) != 1 || got[0].Finding.State != Returned {
		t.Errorf("it is over: %+v", got)
	}
}

// clockTime is a time of day as text.
var clockTime = regexp.MustCompile(`\b\d{1,2}:\d{2}\b`)

// Faces write times in their reader's zone: no sentence has one.
func TestReasonsHoldNoClockTimes(t *testing.T) {
	b := newBench(t, quick())
	for _, c := range append(b.say(30, slow("fwd1", Alarm)), b.say(60)...) {
		if clockTime.MatchString(c.Why + c.Finding.Held + c.Finding.Sentence) {
			t.Errorf("%q %q %q", c.Why, c.Finding.Held, c.Finding.Sentence)
		}
	}
}

// No detector writes a time of day into its sentence.
func TestDetectorsWriteNoClockTimes(t *testing.T) {
	read := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		if read++; strings.Contains(string(b), "15:04") {
			t.Errorf("%s formats a time of day", path)
		}
		return err
	})
	if err != nil || read < 20 {
		t.Fatalf("%d files, %v", read, err)
	}
}
