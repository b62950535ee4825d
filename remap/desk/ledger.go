package desk

import (
	"context"
	"fmt"
	"time"

	"fairway/remap"
	"fairway/remap/journal"
)

// Measure records what the job of a plan did. Errors: ErrNotFound, ErrState without a ledger.
func (d *Desk) Measure(ctx context.Context, id string, m remap.IOFigures) error {
	return d.do(ctx, func() error {
		e, err := d.book.get(id)
		if err != nil {
			return err
		}
		if e.Ledger == nil {
			return fmt.Errorf("plan %s: %w: nothing was predicted", id, remap.ErrState)
		}
		return d.record(&journal.Record{At: time.Now().UTC(), Kind: journal.StepMeasure, Plan: id, Measured: &m})
	})
}

// measured puts m into the ledger; ledgers that were handed out stay as they are.
func (e *entry) measured(r *journal.Record) {
	if e.Ledger == nil {
		return
	}
	l := *e.Ledger
	l.Measured, l.MeasuredAt = r.Measured, r.At
	e.Ledger = &l
}
