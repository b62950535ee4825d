package watch

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"fairway/anomaly"
)

// cost is what detection takes, and how often it alarms.
type cost struct {
	mu      sync.Mutex // guards everything that follows
	seconds uint64
	cpu     time.Duration
	alarms  map[anomaly.Kind]uint64
}

func (c *cost) take(cpu time.Duration, verdicts []anomaly.Verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
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
func (l *Loop) WriteMetrics(w io.Writer) {
	l.cost.mu.Lock()
	seconds, cpu, alarms := l.cost.seconds, l.cost.cpu, maps.Clone(l.cost.alarms)
	l.cost.mu.Unlock()
	fmt.Fprintf(w, "fairway_detector_seconds_total %d\n", seconds)
	fmt.Fprintf(w, "fairway_detector_cpu_seconds_total %g\n", cpu.Seconds())
	for _, k := range slices.Sorted(maps.Keys(alarms)) {
		fmt.Fprintf(w, "fairway_detector_alarm_seconds_total{kind=%q} %d\n", k, alarms[k])
	}
	if d, ok := l.cfg.Detector.(interface{ Judged() (lately, all Judged) }); ok {
		_, all := d.Judged()
		fmt.Fprintf(w, "fairway_detector_forwarder_seconds_total{outcome=\"judged\"} %d\n", all.Judged)
		fmt.Fprintf(w, "fairway_detector_forwarder_seconds_total{outcome=\"late\"} %d\n", all.Late)
		fmt.Fprintf(w, "fairway_detector_forwarder_seconds_total{outcome=\"skipped\"} %d\n", all.Skipped)
		fmt.Fprintf(w, "fairway_detector_class_seconds_total %d\n", all.Served)
		fmt.Fprintf(w, "fairway_detector_class_seconds_unknown_total %d\n", all.Unknown)
	}
	type key struct {
		kind  anomaly.Kind
		state anomaly.State
	}
	count := map[key]int{}
	for _, f := range l.Findings() {
		count[key{f.Kind, f.State}]++
	}
	for k, n := range count {
		fmt.Fprintf(w, "fairway_findings{kind=%q,state=%q} %d\n", k.kind, k.state, n)
	}
}
