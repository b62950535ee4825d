package failslow

import "math"

// shown is what a node showed lately of one class and regime: log of its execution time and its operations a second,
// over about shownSeconds, and the size of its newest requests.
type shown struct {
	at              int64
	mean, size, ops float64
}

const (
	shownSeconds = 4
	// amongMost forwarders of a job are looked at: where few of its nodes write, the first may serve none of those.
	amongMost = 32
)

func (s *shown) add(now int64, log, size, ops float64) {
	if float64(now-s.at) > shownFor {
		s.mean, s.ops = log, ops
	}
	s.mean += (log - s.mean) / shownSeconds
	s.ops += (ops - s.ops) / shownSeconds
	s.at, s.size = now, size
}

// serving is how many requests were in service in the mean (Little's law). Clients that wait for answers keep it the
// same, or raise it, however slow a forwarder is: who serves many more has another job's among them.
func (s *shown) serving() float64 { return s.ops * math.Exp(s.mean) }

func (s *second) serving(c Class) float64 { return s.ops[c] * math.Exp(s.log[c]) }

// jobLevel is by how much requests like the node's are slower than the fleet needs them through the other forwarders
// of its jobs, log: of the slowest of them, for what two of them share is the job. It is sure where each job has
// enough of them, and alone says that a job has none.
func (d *comparison) jobLevel(n *node, c Class) (level float64, sure, alone bool) {
	regime, size := n.now.regime[c], n.now.size[c]
	jobs, need := d.jobs[n], d.need()
	if n.now.guess[c] {
		need = 1
	}
	sure, alone = len(jobs) > 0, len(jobs) == 0 && regime == large
	level = math.Inf(-1)
	for _, job := range jobs {
		found, near := 0, 0
		for _, p := range job {
			s := &p.shown[c][regime]
			if p == n || p.Alarm || s.at == 0 || float64(d.now-s.at) > shownFor ||
				math.Abs(math.Log(s.size/size)) > excuseNear {
				continue
			}
			if math.Abs(math.Log(s.size/size)) <= amongNear && s.ops >= busyAlike*n.now.ops[c] &&
				s.serving() <= servingAlike*n.now.serving(c) {
				near++
			}
			// Not at its own utilisation: few may have taught what is usual there, and those may be its job's.
			usual, ok := d.model.expect(c, s.size, n.now.util, need)
			if !ok {
				usual = n.now.expected[c]
			}
			level = max(level, s.mean-usual-d.common[c])
			if found++; found == amongMost {
				break
			}
		}
		sure = sure && float64(near) >= amongLeast
		alone = alone || found == 0
	}
	return level, sure, alone
}
