package collector

import "iter"

// Metric identifies one measured quantity of a node and second. The numbers are part of the wire format and of
// the store's files: append, never renumber. What is known of each is its row in the catalogue.
type Metric uint8

// The metrics that sources report, with their rows in catalogue.go.
const (
	MetricNone Metric = iota
	ReadBytes
	WriteBytes
	ReadOps
	WriteOps
	MetaOps
	QueueLen
	MetaQueueLen
	ReadWait
	WriteWait
	MetaWait
	ReadExec
	WriteExec
	MetaExec
	ThreadsBusy
	Threads
	Connections
	CacheHitRatio
	LinkRxBytes
	LinkTxBytes
	ClientRead
	ClientWrite
	ClientMeta
	ProbeRead
	ProbeWrite
	ProbeMeta
	ServerTime
	CPUSeconds
	DiskReadBytes
	DiskWriteBytes
	DiskBusyRatio
	PSIIOSome
	PSIIOFull
	Errors
	Retransmits
	// RetiredBacklogLen is written no more. Agents before in_flight reported as queue_len what is in_flight now,
	// and beside it, under this number, what is queue_len now.
	RetiredBacklogLen
	PathLossRatio
	InFlight
	OpenHandles
	RoutedBytes
	AnswerTime
	RoutedOps
	TransitTime
	BuffersFreeRatio
	TxWaiting
	CPUWait
	// What agents reported that carried others' streams.
	retiredGatheredNodes
	retiredGatheredBytes
	LockCallbacks
	MetaInFlight
	RequestAge
	LinkRateBits
	LinkLanes
	LinkErrors
	WaiterAge
	DiskWaiterAge
	LinkWaitTicks
	ThrottledRatio
	ThrottleEvents
	ResentRatio
	RouteUp
	RoundTripTime
	RoundTrips
	NoThreadRatio
	SpaceUsedRatio
	InodesUsedRatio
	CPUBusyRatio
	MemoryUsedRatio
	Reconnects
	Recovering
	MergedOps
	MergedMessages
	MergedBytes
	metricEnd
)

// The metrics of a job's share of a node alone. They show how its nodes share files, are no series and
// have no place in the store: their numbers come from the other end of the wire's range, 1 to 127.
const (
	FilesRead Metric = 127 - iota
	FilesWritten
	LeastFileRead
	LeastFileWritten
	FilesCreated
	FilesOpened
	firstOfJobs = FilesOpened
)

// MetricCount is one more than the largest metric number in use.
const MetricCount = int(metricEnd)

// OfJobs says whether a metric is of a job's share alone.
func (m Metric) OfJobs() bool { return m >= firstOfJobs && m <= FilesRead }

// Known says whether a sample of a node may have the metric.
func (m Metric) Known() bool { return m != MetricNone && m < metricEnd && byNumber[m].Name != "" }

// Metrics lists the metrics that a node's samples may have, by number.
func Metrics() iter.Seq[Metric] {
	return func(yield func(Metric) bool) {
		for m := MetricNone + 1; m < metricEnd; m++ {
			if m.Known() && !yield(m) {
				return
			}
		}
	}
}

// MetricSet is a set of metrics that a node's samples may have.
type MetricSet [2]uint64 // bit m of them: metric m

// Has says whether a metric is in the set.
func (s *MetricSet) Has(m Metric) bool { return s[m>>6&1]>>(m&63)&1 != 0 }

// Add puts a metric into the set.
func (s *MetricSet) Add(m Metric) { s[m>>6&1] |= 1 << (m & 63) }

// All are the metrics of the set by number, those that are reported no more among them.
func (s *MetricSet) All() iter.Seq[Metric] {
	return func(yield func(Metric) bool) {
		for m := range metricEnd {
			if s.Has(m) && !yield(m) {
				return
			}
		}
	}
}

// String returns the metric's name as used in files, URLs and the API; "" for an unknown number.
func (m Metric) String() string {
	if m < metricEnd {
		return byNumber[m].Name
	}
	return m.Info().Name
}

// ParseMetric returns the metric of a name; ok is false for any other word.
func ParseMetric(name string) (m Metric, ok bool) {
	m, ok = byName[name]
	return m, ok
}

// MarshalText writes the metric's name.
func (m Metric) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads a metric's name; an unknown word becomes MetricNone.
func (m *Metric) UnmarshalText(b []byte) error {
	*m, _ = ParseMetric(string(b))
	return nil
}
