package capacity

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
)

// second is what a server with two targets reports, the first with a used share.
func second(m collector.Metric, share float64) *collector.Frame {
	at := func(v float64) []collector.Sample { return []collector.Sample{{Metric: m, Value: v}} }
	return &collector.Frame{Node: "oss1", Role: topology.Storage, Samples: at(share),
		Targets: []collector.TargetSamples{{Target: "fs-OST0000", Samples: at(share)},
			{Target: "fs-OST0001", Samples: at(0.1)}}}
}

// TestFull: a target is named where it is full or soon will be, once it is known, and with what is known.
func TestFull(t *testing.T) {
	const minute, hour = 60, 3600
	space := collector.SpaceUsedRatio
	for name, c := range map[string]struct {
		metric collector.Metric
		used   func(second int) float64
		lasts  int
		want   string // in the sentence; "": none
	}{
		"half full":   {space, func(int) float64 { return 0.5 }, hour, ""},
		"nearly full": {space, func(int) float64 { return 0.94 }, hour, ""},
		"full at once": {space, func(int) float64 { return 0.96 }, 5,
			"fs-OST0000 on oss1 is 96 % full: its growth is known after 10 minutes"},
		"full, at rest": {space, func(int) float64 { return 0.96 }, hour, "is 96 % full: it does not grow"},
		"being emptied": {space, func(s int) float64 { return 0.99 - 0.03*float64(s)/hour }, hour / 2,
			"it shrinks by 3 % an hour"},
		"it grows": {space, func(s int) float64 { return 0.95 + 0.01*float64(s)/hour }, hour,
			"96 % full: at the growth of the last hour, 1 % an hour, it is full in 4 hours"},
		"before it is": {space, func(s int) float64 { return 0.85 + 0.01*float64(s)/hour }, hour,
			"86 % full: at the growth of the last hour, 1 % an hour, it is full in 14 hours"},
		"slowly":          {space, func(s int) float64 { return 0.85 + 0.001*float64(s)/hour }, hour, ""},
		"fast, yet empty": {space, func(s int) float64 { return 0.1 + 0.2*float64(s)/hour }, hour, ""},
		"fast, too early": {space, func(s int) float64 { return 0.85 + 0.2*float64(s)/hour }, 9 * minute, ""},
		"inodes": {collector.InodesUsedRatio, func(int) float64 { return 0.97 }, hour,
			"fs-OST0000 on oss1 has 97 % of its inodes used: it does not grow"},
	} {
		j, now := Judge{}, time.Unix(1_800_000_000, 0)
		var out []anomaly.Verdict
		for s := range c.lasts + 1 {
			j.Take(second(c.metric, c.used(s)), now.Unix())
			out = j.Verdicts(now)
			now = now.Add(time.Second)
		}
		switch {
		case c.want == "" && len(out) > 0, len(out) > 1:
			t.Errorf("%s: %+v", name, out)
		case c.want != "" && (len(out) != 1 || !strings.Contains(out[0].Sentence, c.want)):
			t.Errorf("%s: %+v, want %q", name, out, c.want)
		case c.want != "" && (out[0].Kind.Accuses() || !out[0].Fact() || out[0].Node != "fs-OST0000"):
			t.Errorf("%s accuses: %+v", name, out)
		}
	}
}

// TestWhoFills: a sentence names who has most of what fills, and of nothing else.
func TestWhoFills(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for metric, want := range map[collector.Metric]string{
		collector.SpaceUsedRatio:  "is 96 % full: its growth is known after 10 minutes; has most: uid 7",
		collector.InodesUsedRatio: "has 96 % of its inodes used: its growth is known after 10 minutes",
	} {
		j, f := Judge{}, second(metric, 0.96)
		f.Sources = []collector.SourceStatus{{Name: "procfs", Note: "fs-OST0000 bytes: no"}, {Name: "lustre",
			Note: "job_stats: means over 5 s\nfs-OST0001 bytes: has most: uid 1\nfs-OST0000 bytes: has most: uid 7"}}
		j.Take(f, now.Unix())
		if out := j.Verdicts(now); len(out) != 1 || out[0].Sentence != "fs-OST0000 on oss1 "+want {
			t.Errorf("%+v, want %s", out, want)
		}
	}
}

// TestFullForLess: what is about the border is one finding; it is over when it is a percent better, or nobody knows.
func TestFullForLess(t *testing.T) {
	j, now := Judge{}, time.Unix(1_800_000_000, 0)
	var got []string
	for _, share := range []float64{0.949, 0.951, 0.945, 0.951, 0.939, 0.949} {
		now = now.Add(time.Hour + time.Second) // nothing of before counts
		j.Take(second(collector.SpaceUsedRatio, share), now.Unix())
		got = append(got, fmt.Sprint(len(j.Verdicts(now))))
	}
	if want := "0 1 1 1 0 0"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
	j.Take(second(collector.SpaceUsedRatio, 0.99), now.Unix())
	if out := j.Verdicts(now.Add(2 * time.Hour)); len(out) != 0 {
		t.Errorf("of two hours ago: %+v", out)
	}
	alone := second(collector.SpaceUsedRatio, 0.99)
	alone.Targets = nil
	j.Take(alone, now.Unix())
	if out := j.Verdicts(now); len(out) != 1 || !strings.HasPrefix(out[0].Sentence, "oss1 is 99 % full") {
		t.Errorf("a server without targets: %+v", out)
	}
}

// TestAFileSystemThatFills: of hundreds of targets that fill together a few have a finding each, the same ones second
// by second, and the others are counted. Names that a server makes up cost a bounded memory.
func TestAFileSystemThatFills(t *testing.T) {
	j, now := Judge{}, time.Unix(1_800_000_000, 0)
	names := map[topology.NodeID]bool{}
	for s := range 20 {
		f := &collector.Frame{Node: "oss1", Role: topology.Storage,
			Samples: []collector.Sample{{Metric: collector.SpaceUsedRatio, Value: 0.99}}}
		for i := range 300 {
			share := 0.95 + 0.04*float64((i*7+s*31)%300)/300
			id := topology.TargetID(fmt.Sprintf("fs-OST%04x", i))
			f.Targets = append(f.Targets, collector.TargetSamples{Target: id,
				Samples: []collector.Sample{{Metric: collector.SpaceUsedRatio, Value: share}}})
		}
		j.Take(f, now.Unix())
		out := j.Verdicts(now)
		for i := range out {
			names[out[i].Node] = true
		}
		if len(out) != mostNamed || !strings.HasSuffix(out[0].Sentence, "; 284 more are as full") {
			t.Fatalf("%d are named: %s", len(out), out[0].Sentence)
		}
		now = now.Add(time.Second)
	}
	if len(names) != mostNamed {
		t.Errorf("%d had a finding in 20 seconds", len(names))
	}
	for i := range 2 * mostKept {
		made := topology.NodeID(fmt.Sprint("made-up", i))
		j.note(ofTarget{made, collector.SpaceUsedRatio}, "oss1", used{now.Unix(), 0.1})
	}
	if len(j) != mostKept {
		t.Errorf("%d targets are kept", len(j))
	}
}
