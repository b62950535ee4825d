package desk

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"fairway/remap"
)

// counts are the desk's counters as they were after the newest step.
type counts struct {
	states  map[remap.PlanState]int
	runs    int
	records uint64
	broken  int
}

func (d *Desk) publishCounts() {
	c := counts{states: maps.Clone(d.book.count), runs: len(d.runs), records: d.journal.Records()}
	if d.journal.Broken() != nil {
		c.broken = 1
	}
	d.counts.Store(&c)
}

// WriteMetrics writes the desk's counters in Prometheus text format. It waits for nothing: a disk that
// hangs is seen in fairway_journal_write_seconds.
func (d *Desk) WriteMetrics(w io.Writer) {
	c, writing := d.counts.Load(), time.Duration(0)
	if since := d.writing.Load(); since != nil {
		writing = time.Since(*since)
	}
	for _, s := range slices.Sorted(maps.Keys(c.states)) {
		if c.states[s] > 0 {
			fmt.Fprintf(w, "fairway_plans{state=%q} %d\n", s, c.states[s])
		}
	}
	fmt.Fprintf(w, "fairway_plan_runs %d\n", c.runs)
	fmt.Fprintf(w, "fairway_journal_records %d\n", c.records)
	fmt.Fprintf(w, "fairway_journal_broken %d\n", c.broken)
	fmt.Fprintf(w, "fairway_journal_write_seconds %g\n", writing.Seconds())
	fmt.Fprintf(w, "fairway_plan_notices_dropped_total %d\n", d.DroppedChanges())
}
