// Package capacity says which storage targets are full, or soon will be.
package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
)

// Rules of what is full.
const (
	// fullFrom is from which used share on a target is full: ZFS searches for space below 4 % (metaslab_df_free_pct),
	// ldiskfs's allocator slows near there, and of dozens of targets one fills first.
	fullFrom = 0.95
	// fillingFrom is from which share on growth is looked at: below it a job's scratch files come and go.
	fillingFrom = 0.8
	// fullWithin is how soon a growing target must be full to be named, seconds: people need a day.
	fullWithin = 24 * 3600
	// fullAgain and fillingAgain is how much better it must be to be over, so that one finding does not come and go.
	fullAgain, fillingAgain = 0.01, 2
	// growthOver is the time over which growth is measured, leastGrowth the shortest one that shows any, seconds.
	growthOver, leastGrowth = 3600, 600
	// fillEvery is how often a share is kept, seconds, as sources read it.
	fillEvery = 60
	// mostNamed targets have a finding each: a balanced file system fills all of its hundreds at once.
	mostNamed = 16
	// mostKept bounds the targets of all servers, and so what one that makes up names can cost.
	mostKept = 32768
)

// lustreSource is the source whose notes are who has what of a target: behind its name stands one of whatOf.
const lustreSource = "lustre"

var whatOf = map[collector.Metric]string{collector.SpaceUsedRatio: " bytes", collector.InodesUsedRatio: " inodes"}

// ofTarget is what of a target is used up: bytes or inodes.
type ofTarget struct {
	target topology.NodeID
	metric collector.Metric
}

// Judge has what was used of each target within the last hour.
type Judge map[ofTarget]*fill

// fill is what was used of one target, a share a minute.
type fill struct {
	server topology.NodeID
	kept   []used
	newest used
	who    string // has most of it, and whose grew, in words
	full   bool
	named  bool // full, and among those that have a finding
}

type used struct {
	at    int64 // Unix seconds
	share float64
}

// Take notes how full a server's targets are; a server that names none is one itself.
func (j Judge) Take(f *collector.Frame, now int64) {
	for _, m := range []collector.Metric{collector.SpaceUsedRatio, collector.InodesUsedRatio} {
		if v, ok := f.Value(m); !ok {
			continue
		} else if len(f.Targets) == 0 {
			j.note(ofTarget{f.Node, m}, f.Node, used{now, v})
		}
		for _, t := range f.Targets {
			if v, ok := collector.SampleOf(t.Samples, m); ok {
				of := ofTarget{topology.NodeID(t.Target), m}
				j.note(of, f.Node, used{now, v})
				if fill := j[of]; fill != nil {
					fill.who = ""
					if v >= fillingFrom {
						fill.who = f.NoteOf(lustreSource, string(t.Target)+whatOf[m])
					}
				}
			}
		}
	}
}

func (j Judge) note(of ofTarget, server topology.NodeID, u used) {
	t := j[of]
	if t == nil && len(j) >= mostKept {
		return
	}
	if t == nil || u.at < t.newest.at { // the clock was set back
		t = &fill{}
		j[of] = t
	}
	t.server, t.newest = server, u
	if n := len(t.kept); n == 0 || u.at-t.kept[n-1].at >= fillEvery {
		t.kept = append(t.kept, u)
	}
	t.kept = slices.DeleteFunc(t.kept, func(old used) bool { return u.at-old.at > growthOver })
}

// growth is the share a second that was used up more; known only after a while.
func (f *fill) growth() (perSecond float64, known bool) {
	over := f.newest.at - f.kept[0].at
	if over < leastGrowth {
		return 0, false
	}
	return (f.newest.share - f.kept[0].share) / float64(over), true
}

// Verdicts name the targets that are full, or soon will be at their present growth: those named before, then the
// fullest, at most mostNamed. They accuse nobody.
func (j Judge) Verdicts(now time.Time) (out []anomaly.Verdict) {
	t := now.Unix()
	maps.DeleteFunc(j, func(_ ofTarget, f *fill) bool { return t-f.newest.at > growthOver })
	var full []ofTarget
	for of, f := range j {
		share, within := fullFrom, float64(fullWithin)
		if f.full {
			share, within = share-fullAgain, within*fillingAgain
		}
		left := f.left()
		f.full = f.newest.share >= share || f.newest.share >= fillingFrom && left > 0 && left <= within
		if f.full {
			full = append(full, of)
		}
		f.named = f.named && f.full
	}
	slices.SortFunc(full, func(a, b ofTarget) int {
		x, y := j[a], j[b]
		switch {
		case x.named && !y.named:
			return -1
		case y.named && !x.named:
			return 1
		}
		return cmp.Or(cmp.Compare(y.newest.share, x.newest.share), cmp.Compare(a.target, b.target),
			cmp.Compare(a.metric, b.metric))
	})
	more := max(0, len(full)-mostNamed)
	for _, of := range full[:len(full)-more] {
		f := j[of]
		f.named = true
		v := anomaly.Verdict{Node: of.target, Kind: anomaly.TargetFull, Level: anomaly.Alarm,
			Confidence: 1, Score: f.newest.share, Model: "capacity-1",
			Evidence: map[string]float64{of.metric.String(): f.newest.share}, Sentence: f.sentence(of)}
		if f.who != "" {
			v.Sentence += "; " + f.who
		}
		if more > 0 {
			v.Sentence += fmt.Sprintf("; %d more are as full", more)
		}
		out = append(out, v)
	}
	return out
}

// left is after how many seconds it is full at its growth; 0: not known, or never.
func (f *fill) left() float64 {
	if growth, known := f.growth(); known && growth > 0 {
		return max(1, (1-f.newest.share)/growth)
	}
	return 0
}

func (f *fill) sentence(of ofTarget) string {
	growth, known := f.growth()
	text := string(of.target)
	if f.server != of.target {
		text += " on " + string(f.server)
	}
	what := "full"
	if of.metric == collector.InodesUsedRatio {
		what = "out of inodes"
		text += fmt.Sprintf(" has %.0f %% of its inodes used: ", 100*f.newest.share)
	} else {
		text += fmt.Sprintf(" is %.0f %% full: ", 100*f.newest.share)
	}
	const leastShown = 1e-4 // of a target in an hour
	switch hourly := growth * 3600; {
	case !known:
		return text + fmt.Sprintf("its growth is known after %d minutes", leastGrowth/60)
	case hourly > leastShown:
		return text + fmt.Sprintf("at the growth of the last hour, %s an hour, it is %s in %s",
			anomaly.Percent(hourly), what, longTime(f.left()))
	case hourly < -leastShown:
		return text + fmt.Sprintf("it shrinks by %s an hour", anomaly.Percent(-hourly))
	}
	return text + "it does not grow"
}

// longTime writes a time that is not known to the minute.
func longTime(seconds float64) string {
	const hour, day = 3600, 24 * 3600
	switch {
	case seconds < 2*hour:
		return anomaly.Counted(max(1, int(seconds/60+0.5)), "minute")
	case seconds < 2*day:
		return anomaly.Counted(int(seconds/hour+0.5), "hour")
	}
	return anomaly.Counted(int(seconds/day+0.5), "day")
}
