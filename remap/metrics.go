package remap

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
)

// WriteMetrics writes the desk's counters in Prometheus text format.
func (d *Desk) WriteMetrics(w io.Writer) {
	var states map[PlanState]int
	var runs, broken int
	var records uint64
	err := d.do(context.Background(), func() error {
		states = maps.Clone(d.book.count)
		runs, records = len(d.runs), d.journal.seq
		if d.journal.broken != nil {
			broken = 1
		}
		return nil
	})
	if err != nil {
		return // closed: there is nothing to say any more
	}
	for _, s := range slices.Sorted(maps.Keys(states)) {
		if states[s] > 0 {
			fmt.Fprintf(w, "fairway_plans{state=%q} %d\n", s, states[s])
		}
	}
	fmt.Fprintf(w, "fairway_plan_runs %d\n", runs)
	fmt.Fprintf(w, "fairway_journal_records %d\n", records)
	fmt.Fprintf(w, "fairway_journal_broken %d\n", broken)
	fmt.Fprintf(w, "fairway_plan_notices_dropped_total %d\n", d.DroppedChanges())
}
