package collector

// Classes of requests, in the order of arrays by class: reads, writes, metadata operations.
const (
	ClassRead = iota
	ClassWrite
	ClassMeta
	Classes
)

// StuckAfter is the age, seconds, from which a request without an answer counts as lost time, whole.
const StuckAfter = 2.0

// Waiting is what the requests of a node, or of one job on it, waited in one second.
type Waiting struct {
	// UnderWay is how many requests were under way, the mean over the second. Each waits a second in a second.
	UnderWay float64
	// Counted is false where nothing counts requests under way: UnderWay is then of ended ones, without what hangs.
	Counted bool
	// Oldest is for how long the oldest request without an answer has waited, seconds; 0: none waits, or not known.
	Oldest float64
	// ended are the seconds that the requests of each class took together that ended in the second.
	ended [Classes]float64
	timed bool // ended are seconds
}

// endedOf are the metrics of the requests of a class that ended, and of their mean time.
var endedOf = [Classes][2]Metric{{ReadOps, ClientRead}, {WriteOps, ClientWrite}, {MetaOps, ClientMeta}}

// WaitingOf measures what a compute node's or a job's requests waited in its second. It is the one measure of waiting.
// It is not known where the samples neither count what is under way nor time all that ended.
func WaitingOf(samples []Sample) (w Waiting, known bool) {
	var ops, took [Classes]float64
	var seen, timed [Classes]bool
	for _, s := range samples {
		switch s.Metric {
		case InFlight:
			w.UnderWay, w.Counted = max(0, s.Value), true
			continue
		case RequestAge:
			w.Oldest = s.Value
			continue
		}
		for c, m := range endedOf {
			switch s.Metric {
			case m[0]:
				ops[c], seen[c] = max(0, s.Value), true
			case m[1]:
				took[c], timed[c] = max(0, s.Value), true
			}
		}
	}
	sum, whole := 0.0, true
	for c := range ops {
		w.ended[c] = ops[c] * took[c]
		sum += w.ended[c]
		whole = whole && (ops[c] == 0 || timed[c])
	}
	if !w.Counted {
		w.UnderWay = sum
		return w, whole && (seen[ClassRead] || seen[ClassWrite] || seen[ClassMeta])
	}
	if w.timed = sum > 0 || ops == [Classes]float64{}; !w.timed {
		w.ended = ops // nothing is timed: a request of one class weighs as much as one of another
	}
	return w, true
}

// CountsIO reports whether a compute node's second says anything of what it reads and writes: sources of some layers
// see its mounts and no request.
func (f *Frame) CountsIO() bool {
	for _, m := range []Metric{ReadBytes, WriteBytes, ReadOps, WriteOps, MetaOps, MetaInFlight, InFlight} {
		if _, ok := f.Value(m); ok {
			return true
		}
	}
	return false
}

// Stuck reports whether a request has waited for so long that no queue explains it.
func (w *Waiting) Stuck() bool { return w.Oldest >= StuckAfter }

// ByClass returns the waited seconds of this one second, by class. A request of a minute that ends in it has waited in
// the minute's other seconds. What is under way goes to the classes of those that ended.
func (w *Waiting) ByClass() (seconds [Classes]float64) {
	sum := w.ended[ClassRead] + w.ended[ClassWrite] + w.ended[ClassMeta]
	if sum <= 0 {
		return seconds
	}
	for c, s := range w.ended {
		seconds[c] = s * w.UnderWay / sum
	}
	return seconds
}

// Ended returns the seconds that the requests took together that ended in the second; of a source that times none all
// that were waited.
func (w *Waiting) Ended() float64 {
	if !w.timed {
		return w.UnderWay
	}
	return w.ended[ClassRead] + w.ended[ClassWrite] + w.ended[ClassMeta]
}

// LostSeconds returns the seconds of byClass that healthy service would have spared. ratio is how many times as long as
// the peers' requests those of a class take; stuck nodes lose their second whole.
func LostSeconds(byClass, ratio [Classes]float64, stuck float64) float64 {
	lost := stuck
	for c, r := range ratio {
		if r > 1 {
			lost += byClass[c] * (1 - 1/r)
		}
	}
	return lost
}
