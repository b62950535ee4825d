package recorded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/targetslow"
	"fairway/collector/topology"
)

// detectTargets judges targets.csv[.gz] of dir: rx, target, group and cost_us, the mean microseconds of an
// operation (or, of rates, of a number of bytes that is the same for the whole group). Its rows are in order
// of rx. ok is false where there is none.
func detectTargets(ctx context.Context, dir string, set Settings, emit func(Event) error, sum *Summary, bad func(*RowError)) (ok bool, err error) {
	t, err := openTable(dir, "targets.csv", []string{"rx", "target", "group?", "cost_us"}, func(e *RowError) {
		sum.Bad++
		bad(e)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	r := targetReplay{set: set, emit: emit, open: map[[2]string]Event{}}
	for {
		if err = t.next(); errors.Is(err, io.EOF) {
			return true, r.finish()
		}
		if err != nil {
			return true, errors.Join(err, r.finish())
		}
		at, badAt := t.seconds(0)
		cost, badCost := t.number(3)
		switch {
		case badAt != nil || badCost != nil:
			t.bad(cmp.Or(badAt, badCost))
			continue
		case at < r.at:
			t.bad(&RowError{t.name, t.line, "rx", fmt.Sprintf("%d comes after %d", at, r.at)})
			continue
		}
		sum.Rows++
		if at != r.at {
			sum.Seconds++
			if err := errors.Join(r.judge(at), ctx.Err()); err != nil {
				return true, err
			}
		}
		r.points = append(r.points, targetslow.Point{Target: topology.NodeID(t.text(1)), Group: string(t.text(2)), Cost: cost * 1e-6})
	}
}

// targetReplay gathers the points of one time and judges them when the next begins.
type targetReplay struct {
	set    Settings
	emit   func(Event) error
	slow   *targetslow.Detector // made when the interval is known
	at     int64
	points []targetslow.Point
	open   map[[2]string]Event
}

// judge takes what was gathered; next is the time of what follows.
func (r *targetReplay) judge(next int64) error {
	if r.slow == nil && len(r.points) > 0 {
		r.slow = targetslow.New(r.set.FailSlow.FalseAlarmEvery, time.Duration(max(next-r.at, 1))*time.Second)
	}
	at := r.at
	r.at = next
	if r.slow == nil {
		return nil
	}
	verdicts := r.slow.Take(time.Unix(at, 0), r.points)
	r.points = r.points[:0]
	for i := range verdicts {
		v := &verdicts[i]
		key := [2]string{string(v.Node), v.Class}
		e, was := r.open[key]
		switch alarm := v.Level == anomaly.Alarm; {
		case alarm && !was:
			r.open[key] = Event{Type: "target_slow", Node: v.Node, Start: at, Detail: v.Sentence, Sentence: v.Sentence, Confidence: v.Confidence}
		case !alarm && was:
			delete(r.open, key)
			e.End = at
			if err := r.emit(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *targetReplay) finish() error {
	errs := []error{r.judge(r.at + 1)}
	for _, key := range slices.SortedFunc(maps.Keys(r.open), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		errs = append(errs, r.emit(r.open[key]))
	}
	return errors.Join(errs...)
}
