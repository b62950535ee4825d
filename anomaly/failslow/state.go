package failslow

import (
	"fairway/anomaly"
	"fairway/anomaly/compare"
)

// state is what outlives a restart: what was learnt and the evidence so far.
type state struct {
	Now    int64
	Model  model
	Peak   peak
	Canary canaryLayer
	Nodes  compare.Subjects[node, *node]
}

// MarshalBinary saves what was learnt and the evidence so far.
func (d *Detector) MarshalBinary() ([]byte, error) {
	return anomaly.Save(&state{d.now, d.model, d.peak, d.canaries, d.nodes})
}

// UnmarshalBinary takes up a saved state; the settings stay those of New. Evidence and habits go on from
// where they were; a pause counts as a gap of the whole layer. On an error the detector is as it was.
func (d *Detector) UnmarshalBinary(b []byte) error {
	var s state
	if err := anomaly.Load(b, &s); err != nil {
		return err
	}
	s.Peak.fixed = d.peak.fixed
	d.now, d.began, d.model, d.peak = s.Now, s.Now, s.Model, s.Peak
	d.canaries, d.nodes, d.jobs = s.Canary, s.Nodes, nil
	return nil
}
