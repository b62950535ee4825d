package live

import (
	"fairway/anomaly/watch"
	"fairway/collector/topology"
	"fairway/webui/api"
)

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
)

// JobsNow is what each running job does that the detectors follow.
func JobsNow(p *Picture) map[topology.JobID]*api.JobNow {
	d := p.cfg.detectors()
	if d == nil {
		return nil
	}
	out := map[topology.JobID]*api.JobNow{}
	for id, steps := range d.Jobs().Minutes() {
		out[id] = jobNow(steps)
	}
	for _, jobs := range p.Snapshot().Situation.ClientsByJob() {
		for id := range jobs {
			if now := out[id]; now != nil {
				now.Forwarders++
			}
		}
	}
	return out
}

func jobNow(steps []watch.JobStep) *api.JobNow {
	now := &api.JobNow{StepSeconds: watch.TrendStep, Moved: make([]*float64, 0, len(steps))}
	for _, s := range steps {
		now.Moved = append(now.Moved, api.Known(float64(s.Moved)))
	}
	if m, known := watch.MeanOf(newest(steps, nowSteps)); known > 0 {
		now.MovedBytesPerSec = api.Known(float64(m.Moved))
	}
	if m, known := watch.MeanOf(newest(steps, minuteSteps)); known > 0 {
		cause, wait := m.Worst()
		now.Wait = api.Known(float64(wait))
		if now.Waiting = wait > api.WaitsFrom; wait >= 0.005 {
			now.Cause = causes[cause].name
		}
	}
	return now
}

func newest(steps []watch.JobStep, n int) []watch.JobStep { return steps[max(0, len(steps)-n):] }

// JobWaits is a running job's last quarter of an hour; nil of one that is not followed.
func JobWaits(p *Picture, id topology.JobID) *api.JobWaits {
	d := p.cfg.detectors()
	if d == nil {
		return nil
	}
	steps, end := d.Jobs().Of(id)
	if steps == nil {
		return nil
	}
	w := &api.JobWaits{End: end.UTC(), StepSeconds: watch.TrendStep}
	for _, s := range steps {
		w.Moved = append(w.Moved, api.Known(float64(s.Moved)))
	}
	m, known := watch.MeanOf(newest(steps, minuteSteps))
	for c, words := range causes {
		row := api.WaitCause{Cause: words.name, Text: words.text}
		for _, s := range steps {
			row.Waits = append(row.Waits, api.Known(float64(s.Waits[c])))
		}
		if known > 0 {
			row.Now = api.Known(float64(m.Waits[c]))
		}
		w.Causes = append(w.Causes, row)
	}
	return w
}
