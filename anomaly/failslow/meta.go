package failslow

import (
	"math"

	"fairway/anomaly/compare"
)

// collectMeta takes the metadata operations that jobs make. Of few a second the mean says nothing: most are answered
// from memory within microseconds, and a few wait for the metadata server.
func (d *Detector) collectMeta(n *node, o *Observation) {
	if k := &o.Class[Meta]; k.Ops > metaQuiet && known(k.Exec) {
		d.collectStorm(n, k)
	}
}

// collectStorm compares what a job's metadata operations took with those of the slowest of its other forwarders.
func (d *Detector) collectStorm(n *node, k *ClassSecond) {
	log := math.Log(k.Exec)
	n.storms.add(d.now, log, 0, k.Ops)
	if level, ok := d.stormLevel(n, k.Ops); ok {
		n.storm.add(log-level, stormScatter, 0)
	}
}

// stormLevel is what metadata operations take at the slowest of the other forwarders of the node's jobs, log; each job
// must have enough of them, that serve as many.
func (d *comparison) stormLevel(n *node, ops float64) (level float64, ok bool) {
	level, ok = math.Inf(-1), len(d.jobs[n]) > 0
	for _, job := range d.jobs[n] {
		found := 0
		for _, p := range job {
			s := &p.storms
			if p == n || p.Alarm || s.at == 0 || float64(d.now-s.at) > shownFor || s.ops < busyAlike*ops {
				continue
			}
			level = max(level, s.mean)
			if found++; found == amongMost {
				break
			}
		}
		ok = ok && float64(found) >= amongLeast
	}
	return level, ok
}

// closeStorm bets on what was compared. Ranks of a job may ask for different operations: that accuses nobody without a
// canary's stat.
func (d *Detector) closeStorm(n *node) {
	if n.storm.Weight > 0 {
		n.stormOver, n.stormed = n.storm.mean(), d.now
		bet := compare.Against(n.storm.mean(), n.storm.variance()+canaryMetaDoubt*canaryMetaDoubt, canaryMeta)
		n.Tests[metaSlow].Bet(d.now, clip(bet, -oneMost, oneMost), streamCeiling*d.limit)
	}
	n.storm = estimate{}
}
