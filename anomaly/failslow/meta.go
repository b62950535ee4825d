package failslow

import (
	"math"

	"fairway/anomaly/compare"
)

// Metadata operations have a tail so heavy that their mean says nothing: most are answered from memory
// within microseconds, a few wait for the metadata server. What distinguishes a slow node from a slow server is
// the share of quick answers, counted in seconds with few operations, in which no job floods it.
// metaState counts a node's metadata operations in quiet seconds.
type metaState struct {
	Quick, All   float64 // since the last judged block
	Share, Count float64 // the node's own share, learnt
}

// metaLayer is the share of the whole layer.
type metaLayer struct{ Quick, All float64 }

func (l *metaLayer) share() float64 { return (l.Quick + 5) / (l.All + 10) }

// collectMeta counts a second. Without a histogram a lone operation is its own.
func (d *Detector) collectMeta(n *node, o *Observation) {
	k := &o.Class[Meta]
	if !(k.Ops >= 1) {
		return
	}
	if k.Ops > metaQuiet {
		d.collectStorm(n, k)
		return
	}
	switch {
	case k.Hist != nil:
		all := 0.0
		for _, v := range k.Hist {
			all += float64(v)
		}
		n.Habit.Meta.Quick += float64(k.Hist[0])
		n.Habit.Meta.All += all
	case k.Ops == 1 && known(k.Exec):
		n.Habit.Meta.All++
		if k.Exec < metaQuick {
			n.Habit.Meta.Quick++
		}
	}
}

// collectStorm compares what a job's metadata operations took with those of the slowest of its other forwarders.
func (d *Detector) collectStorm(n *node, k *ClassSecond) {
	if !known(k.Exec) {
		return
	}
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

func (d *Detector) closeMeta(n *node) {
	m := &n.Habit.Meta
	if m.All < metaBlock {
		return
	}
	share := m.Quick / m.All
	if !n.Alarm {
		d.meta.Quick += m.Quick
		d.meta.All += m.All
		if d.meta.All > metaMemory {
			d.meta.Quick /= 2
			d.meta.All /= 2
		}
	}
	if d.meta.All > metaMuch {
		usual := min(d.meta.share(), (m.Share*m.Count+d.meta.share()*10)/(m.Count+10))
		n.Tests[metaSlow].Bet(d.now, clip(betShare(m.Quick, m.All, usual), -metaMost, metaMost), d.limit+overThreshold)
	}
	if n.Tests[metaSlow].Log < noExample {
		m.Count = min(m.Count+1, 100)
		m.Share += (share - m.Share) / m.Count
	}
	m.Quick, m.All = 0, 0
}

// betShare bets that of all operations only a quarter as many as usual were quick, against six tenths as
// many. Operations come in bunches that share a fate, so that each counts for half.
func betShare(quick, all, usual float64) float64 {
	p0, p1 := metaWell*usual, metaSick*usual
	if usual < metaUsual {
		return 0
	}
	return 0.5 * (quick*ln(p1/p0) + (all-quick)*ln((1-p1)/(1-p0)))
}
