package live

import (
	"cmp"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/watch"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb/history"
	"fairway/webui/api"
)

// Trend is the layer's last minutes; without detectors there are none.
func (p *Picture) Trend() api.Trend {
	t := api.Trend{StepSeconds: watch.TrendStep, Layer: []api.LayerNow{},
		Waits: map[topology.ForwarderID]api.WaitTrend{}}
	d := p.cfg.detectors()
	if d == nil {
		return t
	}
	steps, _, end := d.Trend()
	t.End = end.UTC()
	for _, s := range steps {
		t.Layer = append(t.Layer, layerNow(s))
	}
	for id, waits := range d.Waits() {
		t.Waits[id] = api.WaitTrend{Took: api.KnownOf(waits, func(w watch.Wait) float64 { return w.Took }),
			Slow: api.KnownOf(waits, func(w watch.Wait) float64 { return w.Slow })}
	}
	return t
}

func layerNow(s watch.Second) api.LayerNow {
	return api.LayerNow{ReadBytesPerSec: api.Known(s.Read), WriteBytesPerSec: api.Known(s.Write),
		RoutedBytesPerSec: api.Known(s.Routed),
		MetaOpsPerSec:     api.Known(s.Meta), Waiting: api.Known(s.Waiting),
		P50: api.Known(s.P50), P95: api.Known(s.P95)}
}

func (c *Config) detectors() *watch.Detectors {
	if c.Detectors == nil {
		return nil
	}
	return c.Detectors()
}

// addWaits gives the overview the last seconds' means, and each row how long its clients wait.
func addWaits(d *watch.Detectors, o *api.Overview) {
	if d == nil {
		return
	}
	_, now, _ := d.Trend()
	o.Now = new(layerNow(now))
	waits := d.Now()
	for i := range o.Forwarders {
		r := &o.Forwarders[i]
		w, ok := waits[r.ID]
		if !ok || r.State == remap.ForwarderStale {
			continue
		}
		r.Latency, r.Slow = api.Known(w.Took), api.Known(w.Slow)
		if r.Slow != nil && !w.Routed {
			r.SlowOp = w.Class.String()
		}
	}
}

// causes are the words for what a job waits for, and what each is.
var causes = [watch.Causes]struct{ name, text string }{
	watch.ByForwarder: {"forwarder", "a forwarder that takes longer than its peers"},
	watch.ByNeighbour: {"neighbour", "another job on the same forwarder"},
	watch.ByBackEnd:   {"back end", "storage that is slower than usual for everybody"},
	watch.ByItself:    {"own pattern", "what the job does itself, such as a metadata storm or one shared file"},
}

const (
	minuteSteps = 60 / watch.TrendStep
	nowSteps    = 10 / watch.TrendStep
	listedSteps = 5 * minuteSteps
)

// JobsNow is what each running job does that the detectors follow.
func JobsNow(p *Picture) map[topology.JobID]*api.JobNow {
	d := p.cfg.detectors()
	if d == nil {
		return nil
	}
	out := map[topology.JobID]*api.JobNow{}
	sit := p.Snapshot().Situation
	for i := range sit.Jobs {
		if past, ok := watch.PastOf(d, sit.Jobs[i].ID, listedSteps); ok {
			out[sit.Jobs[i].ID] = jobNow(past.Steps)
		}
	}
	for _, jobs := range sit.ClientsByJob() {
		for id := range jobs {
			if now := out[id]; now != nil {
				now.Forwarders++
			}
		}
	}
	for id, now := range out {
		nameSlow(now, id, sit)
	}
	return out
}

// nameSlow names the slow forwarder that a job waits for, or has waited for, where one is accused.
func nameSlow(now *api.JobNow, id topology.JobID, sit *remap.Situation) {
	if now.Cause != causes[watch.ByForwarder].name {
		return
	}
	var most anomaly.Impact
	more := func(a anomaly.Impact) bool {
		return cmp.Or(cmp.Compare(a.Share, most.Share), cmp.Compare(a.CostSeconds, most.CostSeconds)) > 0
	}
	for i := range sit.Findings {
		f := &sit.Findings[i]
		if !f.Kind.Accuses() || f.State == anomaly.Dismissed {
			continue
		}
		for _, hurt := range f.Impact {
			if hurt.Job == id && more(hurt) {
				now.Slow, most = string(f.Node), hurt
			}
		}
	}
}

// JobWhole is what an ended run did: its last five minutes and how long it waited where the detectors followed it, what
// it moved as the history has it.
func JobWhole(p *Picture, run *history.Run) *api.JobNow {
	out := &api.JobNow{StepSeconds: watch.TrendStep, Moved: []*float64{}, Forwarders: len(run.Forwarders)}
	if d := p.cfg.detectors(); d != nil {
		past, _ := watch.PastOf(d, run.Job, listedSteps)
		itself := past.End.After(run.Start) && past.End.Before(run.End.Add(time.Minute)) // not another of its number
		if past.Known && itself {
			out.Moved = jobNow(past.Steps).Moved
			putWait(out, &watch.JobStep{Waits: past.Waits})
			nameSlow(out, run.Job, p.Snapshot().Situation)
		}
	}
	if run.Profile != nil {
		out.MovedBytesPerSec = api.Known(run.Profile.VolumeBytes() / max(1, run.End.Sub(run.Start).Seconds()))
	}
	return out
}

func jobNow(steps []watch.JobStep) *api.JobNow {
	now := &api.JobNow{StepSeconds: watch.TrendStep, Moved: api.KnownOf(steps, movedIn)}
	if m, known := watch.MeanOf(newest(steps, nowSteps)); known > 0 {
		now.MovedBytesPerSec = api.Known(float64(m.Moved))
	}
	if m, known := watch.MeanOf(newest(steps, minuteSteps)); known > 0 {
		putWait(now, &m)
		now.Waiting = *now.Wait > api.WaitsFrom
	}
	return now
}

// putWait says how long a job waits and for what.
func putWait(of *api.JobNow, mean *watch.JobStep) {
	cause, wait := mean.Worst()
	of.Wait = api.Known(float64(wait))
	if wait >= 0.005 {
		of.Cause = causes[cause].name
	}
}

func movedIn(s watch.JobStep) float64 { return float64(s.Moved) }

func newest(steps []watch.JobStep, n int) []watch.JobStep { return steps[max(0, len(steps)-n):] }

// JobWaits is a running job's last quarter of an hour; nil of one that is not followed.
func JobWaits(p *Picture, id topology.JobID) *api.JobWaits {
	d := p.cfg.detectors()
	if d == nil {
		return nil
	}
	past, ok := watch.PastOf(d, id, 15*minuteSteps)
	if !ok {
		return nil
	}
	steps := past.Steps
	w := &api.JobWaits{End: past.End.UTC(), StepSeconds: watch.TrendStep, Moved: api.KnownOf(steps, movedIn)}
	m, known := watch.MeanOf(newest(steps, minuteSteps))
	for c, words := range causes {
		row := api.WaitCause{Cause: words.name, Text: words.text,
			Waits: api.KnownOf(steps, func(s watch.JobStep) float64 { return float64(s.Waits[c]) })}
		if known > 0 {
			row.Now = api.Known(float64(m.Waits[c]))
		}
		w.Causes = append(w.Causes, row)
	}
	return w
}
