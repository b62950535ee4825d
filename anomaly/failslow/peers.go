package failslow

import "math"

// shown is what a node showed lately of one class and regime: its residual without the common factor, over about
// shownSeconds, and the size of its newest requests.
type shown struct {
	at         int64
	mean, size float64
}

const (
	shownSeconds = 4
	// shownFor is how long it is compared with: where all wait for the slowest, the others have long been done.
	shownFor = 30
	// What a comparison with the other forwarders of a node's jobs takes.
	amongLeast = 2   // that stream like it
	amongMost  = 8   // with so many it is sure enough
	amongNear  = 0.7 // log of how much the sizes may differ
)

func (s *shown) add(now int64, residual, size float64) {
	if now-s.at > shownFor {
		s.mean = residual
	}
	s.mean += (residual - s.mean) / shownSeconds
	s.at, s.size = now, size
}

// jobLevel is by how much requests like the node's are slower than the fleet needs them through the other forwarders
// of its jobs, log: of the slowest of them, for what two of them share is the job. It is sure where each job has
// enough of them, and alone says that a job has none.
func (d *Detector) jobLevel(n *node, c Class) (level float64, sure, alone bool) {
	regime, size := n.now.regime[c], n.now.size[c]
	jobs := d.jobs[n]
	sure, alone = len(jobs) > 0, len(jobs) == 0 && regime == large
	level = math.Inf(-1)
	for _, job := range jobs {
		found := 0
		for _, p := range job {
			s := &p.shown[c][regime]
			if p == n || p.Alarm || s.at == 0 || d.now-s.at > shownFor || math.Abs(math.Log(s.size/size)) > amongNear {
				continue
			}
			level = max(level, s.mean)
			if found++; found == amongMost {
				break
			}
		}
		sure = sure && found >= amongLeast
		alone = alone || found == 0
	}
	return level, sure, alone
}
