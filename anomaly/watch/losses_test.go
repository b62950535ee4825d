package watch

import (
	"fmt"
	"math"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// TestAJobThatHangsLosesItsTime: a job whose nodes behind a forwarder get no answer for a while loses all of it, from
// the first second on and not longer, whether its source counts by job or by node, and in each list of what it waits
// for.
func TestAJobThatHangsLosesItsTime(t *testing.T) {
	for name, byJob := range map[string]bool{"counted by job": true, "counted by node": false} {
		for _, hung := range []int{8, 30, 600} {
			for _, moved := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " for ", hung, " moved ", moved), func(t *testing.T) {
					h := hangingSite(hung, byJob, moved)
					if h.share < 0.999 || math.Abs(h.lost-float64(hung)) > 0.05*float64(hung)+0.5 {
						t.Errorf("it hung for %d s: lost %.1f s, at most %.2f of its time", hung, h.lost, h.share)
					}
					if math.Abs(h.trend-min(float64(hung), jobSteps*TrendStep)) > 0.1*float64(hung)+TrendStep {
						t.Errorf("it hung for %d s: its trend shows %.1f s", hung, h.trend)
					}
				})
			}
		}
	}
}

type hang struct{ lost, share, trend float64 }

// hangingSite has three forwarders with two nodes each; those of the first get no answer for so many seconds, and are
// moved then or not.
func hangingSite(seconds int, byJob, moved bool) (h hang) {
	board, start := window.NewBoard(0), time.Unix(1_800_000_000, 0)
	d := NewDetectors(board, failslow.DefaultSettings())
	m := &Machine{Mapping: topology.Mapping{}}
	m.Jobs = append(m.Jobs, Job{ID: "7"})
	track := anomaly.NewTracker(anomaly.DefaultSettings(), nil)
	const before = 30
	for s := range before + seconds + 60 {
		now := start.Add(time.Duration(s) * time.Second)
		var frames []collector.Frame
		for i := range 6 {
			id := topology.NodeID(fmt.Sprintf("cn%d", i))
			m.Mapping[id] = topology.ForwarderID(fmt.Sprint("f", i/2))
			if moved && i < 2 && s >= before+seconds {
				m.Mapping[id] = "f2"
			}
			all := samples(collector.WriteOps, 100.0, collector.WriteBytes, 1e6, collector.ClientWrite, 0.004,
				collector.MetaOps, 0.0, collector.InFlight, 0.4, collector.MetaInFlight, 0.0,
				collector.RequestAge, 0.003)
			switch at := s - before; {
			case i < 2 && at >= 0 && at < seconds:
				all = samples(collector.WriteOps, 0.0, collector.WriteBytes, 0.0, collector.MetaOps, 0.0,
					collector.InFlight, 2.0, collector.MetaInFlight, 0.0, collector.RequestAge, float64(at))
			case i < 2 && at == seconds: // all that hung ends in this second
				all = samples(collector.WriteOps, 100.0, collector.WriteBytes, 1e6,
					collector.ClientWrite, float64(seconds)/50, collector.InFlight, 0.4, collector.RequestAge, 0.003)
			}
			f := collector.Frame{Node: id, Role: topology.Compute, TimeMillis: now.Add(-time.Second).UnixMilli(),
				Samples: all, Jobs: []collector.JobSamples{{Job: "7", Samples: all}}}
			if !byJob {
				f.Jobs[0].Samples = samples(collector.WriteBytes, 1e6)
			}
			frames = append(frames, f)
		}
		board.Take(frames, now)
		verdicts := d.Verdicts(now, m)
		if moved && s >= before+seconds { // it stays accused, as one that does not report is
			v := anomaly.Verdict{Node: "f0", Kind: anomaly.FailSlow, Level: anomaly.Alarm}
			d.addImpact(now, &v)
			verdicts = append(verdicts, v)
		}
		track.Step(now, verdicts, anomaly.Pool{})
		for _, f := range track.Findings(start) {
			for _, i := range f.Impact {
				if f.Node == "f0" && i.Job == "7" {
					h.lost, h.share = i.CostSeconds, max(h.share, i.Share)
				}
			}
		}
	}
	past, _ := PastOf(d, "7", jobSteps)
	steps := past.Steps
	for _, step := range steps {
		if w := float64(step.Waits[ByForwarder]); w > 0.05 {
			h.trend += w * TrendStep
		}
	}
	return h
}
