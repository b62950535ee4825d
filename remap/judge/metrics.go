package judge

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"fairway/anomaly"
)

// cost is what judging takes and says.
type cost struct {
	seconds uint64
	cpu     time.Duration
	alarms  map[anomaly.Kind]uint64
}

func (c *cost) take(cpu time.Duration, verdicts []anomaly.Verdict) {
	c.seconds++
	c.cpu += cpu
	if c.alarms == nil {
		c.alarms = map[anomaly.Kind]uint64{}
	}
	for i := range verdicts {
		if verdicts[i].Level == anomaly.Alarm {
			c.alarms[verdicts[i].Kind]++
		}
	}
}

// cpuTime is the processor time of the calling thread: what others do meanwhile does not count.
func cpuTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// WriteMetrics writes the detector's cost and the findings' states in Prometheus text format.
func (j *Judge) WriteMetrics(w io.Writer) {
	j.mu.Lock()
	c := j.cost
	c.alarms = maps.Clone(c.alarms)
	j.mu.Unlock()
	fmt.Fprintf(w, "fairway_detector_seconds_total %d\n", c.seconds)
	fmt.Fprintf(w, "fairway_detector_cpu_seconds_total %g\n", c.cpu.Seconds())
	for _, k := range slices.Sorted(maps.Keys(c.alarms)) {
		fmt.Fprintf(w, "fairway_detector_alarm_seconds_total{kind=%q} %d\n", k, c.alarms[k])
	}
	type key struct {
		kind  anomaly.Kind
		state anomaly.State
	}
	count := map[key]int{}
	for _, f := range j.Findings() {
		count[key{f.Kind, f.State}]++
	}
	for k, n := range count {
		fmt.Fprintf(w, "fairway_findings{kind=%q,state=%q} %d\n", k.kind, k.state, n)
	}
}
