package dfra

import (
	"fmt"
	"math"

	"fairway/collector/topology"
)

// Wished is what a job would be granted if there were forwarders enough, for policies that decide
// otherwise who gets them.
type Wished struct {
	Decision
	// Base is the size of the job's default allocation.
	Base int
	last Run
	f    float64
}

// Wish decides a case as Decide does, as if enough idle forwarders existed. The forwarders of the
// answer are placeholders.
func Wish(c Case) Wished {
	c.Config = c.Config.withDefaults()
	last, _ := Predict(c.History, c.Job)
	s := start(c)
	enough := max(s.base, int(math.Ceil(min(last.IONodes/c.Config.F, math.MaxInt16))))
	s.idle = s.idle[:0]
	for i := range enough {
		s.idle = append(s.idle, topology.ForwarderID(fmt.Sprint(i)))
	}
	s.decide()
	s.d.Count = len(s.d.Forwarders)
	return Wished{Decision: s.d, Base: s.base, last: last, f: c.Config.F}
}

// Seconds is the expected time for the last run's volume through so many forwarders that each serve
// sharers jobs alike, in units in which one compute node moves one byte: the slower of the forwarders
// (F nodes' bandwidth each) and the nodes that do I/O. Without I/O nodes it is infinite.
func (w *Wished) Seconds(forwarders, sharers int) float64 {
	return w.last.VolumeBytes / min(float64(forwarders)*w.f/float64(sharers), w.last.IONodes)
}

// Because gives a decision the reasons and the eligibility of another look at the same case; its own
// reasons follow.
func (d Decision) Because(reasons []Reason, w Wished) Decision {
	d.Reasons = append(append([]Reason{}, reasons...), d.Reasons...)
	d.Wanted, d.FirstFailed, d.Interference = w.Wanted, w.FirstFailed, w.Interference
	return d
}
