package watch

import (
	"fmt"
	"testing"

	"fairway/anomaly"
	"fairway/collector/topology"
)

// TestMerge: of two verdicts about the same the worse state stays, of two alarms the worse condition, of equal ones the
// nearer judge's; jobs may each do the same on one node.
func TestMerge(t *testing.T) {
	say := func(k anomaly.Kind, l anomaly.Level, c anomaly.Condition, model string,
		jobs ...topology.JobID) anomaly.Verdict {
		return anomaly.Verdict{Node: "f1", Kind: k, Level: l, Condition: c, Model: model, Culprits: jobs}
	}
	for _, c := range []struct{ first, then, want string }{
		{"doubt", "alarm", "[alarm]"}, {"alarm", "doubt", "[alarm]"}, {"clean", "doubt", "[doubt]"},
		{"alarm", "hung", "[hung]"}, {"hung", "alarm", "[hung]"}, {"hung", "dead", "[dead]"},
		{"alarm", "alarm too", "[alarm]"}, {"doubt", "doubt too", "[doubt]"}, {"alarm", "silent", "[alarm silent]"},
		{"job 1", "job 2", "[job 1 job 2]"}, {"job 1", "job 1 too", "[job 1]"},
	} {
		verdicts := map[string]anomaly.Verdict{
			"clean":     say(anomaly.FailSlow, anomaly.Clean, anomaly.Slow, "clean"),
			"doubt":     say(anomaly.FailSlow, anomaly.Doubt, anomaly.Slow, "doubt"),
			"doubt too": say(anomaly.FailSlow, anomaly.Doubt, anomaly.Slow, "doubt too"),
			"alarm":     say(anomaly.FailSlow, anomaly.Alarm, anomaly.Slow, "alarm"),
			"alarm too": say(anomaly.FailSlow, anomaly.Alarm, anomaly.Slow, "alarm too"),
			"hung":      say(anomaly.FailSlow, anomaly.Alarm, anomaly.Hung, "hung"),
			"dead":      say(anomaly.FailSlow, anomaly.Alarm, anomaly.Dead, "dead"),
			"silent":    say(anomaly.ForwarderSilent, anomaly.Alarm, anomaly.Silent, "silent"),
			"job 1":     say(anomaly.HighBandwidth, anomaly.Alarm, "", "job 1", "1"),
			"job 1 too": say(anomaly.HighBandwidth, anomaly.Alarm, "", "job 1 too", "1"),
			"job 2":     say(anomaly.HighBandwidth, anomaly.Alarm, "", "job 2", "2"),
		}
		var got []string
		for _, v := range merge([]anomaly.Verdict{verdicts[c.first]}, []anomaly.Verdict{verdicts[c.then]}) {
			got = append(got, v.Model)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s, then %s: %v", c.first, c.then, got)
		}
	}
	if out := merge(nil, []anomaly.Verdict{say(anomaly.FailSlow, anomaly.Doubt, "", "a"),
		say(anomaly.FailSlow, anomaly.Alarm, "", "b")}); len(out) != 1 || out[0].Model != "b" {
		t.Errorf("two of one judge: %+v", out)
	}
}

// TestJudgesHaveNames: a judge is a row of its own.
func TestJudgesHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, j := range judgesOf(&Detectors{}) {
		if j.name == "" || seen[j.name] || j.second == nil {
			t.Errorf("%q: no name, or twice, or it judges nothing", j.name)
		}
		seen[j.name] = true
	}
}
