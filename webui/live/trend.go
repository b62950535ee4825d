package live

import (
	"fairway/anomaly/watch"
	"fairway/collector/topology"
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
		w := api.WaitTrend{}
		for _, one := range waits[:len(waits)-1] {
			w.Took = append(w.Took, api.Known(one.Took))
			w.Slow = append(w.Slow, api.Known(one.Slow))
		}
		t.Waits[id] = w
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
	l := layerNow(now)
	o.Now = &l
	waits := d.Now()
	for i := range o.Forwarders {
		r := &o.Forwarders[i]
		w, ok := waits[r.ID]
		if !ok || r.State == api.StateStale {
			continue
		}
		r.Latency, r.Slow = api.Known(w.Took), api.Known(w.Slow)
		if r.Slow != nil && !w.Routed {
			r.SlowOp = w.Class.String()
		}
	}
}
