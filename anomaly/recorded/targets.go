package recorded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/targetslow"
	"fairway/collector/topology"
	"fairway/tsdb/history/iolog"
	"fairway/tsdb/history/logread"
)

// detectTargets judges targets.csv[.gz] of dir: rx, target, group and cost_us, the mean microseconds of an
// operation (or, of rates, of a number of bytes that is the same for the whole group). Its rows are in order
// of rx. ok is false without one.
func detectTargets(ctx context.Context, dir string, set Settings, emit func(Event) error, sum *Summary,
	bad func(*RowError)) (ok bool, err error) {
	t, err := openTable(dir, "targets.csv", []string{"rx", "target", "group?", "cost_us"}, bad)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	r := newTargetReplay(set, emit)
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
		p := targetslow.Point{Target: topology.NodeID(t.text(1)), Group: string(t.text(2)), Cost: cost * 1e-6}
		if err := r.take(ctx, sum, at, p); err != nil {
			return true, err
		}
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

func newTargetReplay(set Settings, emit func(Event) error) *targetReplay {
	return &targetReplay{set: set, emit: emit, open: map[[2]string]Event{}}
}

// expect says how far apart the points come.
func (r *targetReplay) expect(interval time.Duration) {
	r.slow = targetslow.New(targetslow.DefaultRules(), r.set.FailSlow.FalseAlarmEvery, interval)
}

// take takes a point; the first one of a time has those before it judged.
func (r *targetReplay) take(ctx context.Context, sum *Summary, at int64, p targetslow.Point) error {
	if at != r.at {
		sum.Seconds++
		if err := errors.Join(r.judge(at), ctx.Err()); err != nil {
			return err
		}
	}
	r.points = append(r.points, p)
	return nil
}

// judge takes what was gathered; next is the time of what follows.
func (r *targetReplay) judge(next int64) error {
	if r.slow == nil && len(r.points) > 0 {
		r.expect(time.Duration(max(next-r.at, 1)) * time.Second)
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
			r.open[key] = Event{Type: "target_slow", Node: v.Node, Start: at, Detail: v.Sentence, Sentence: v.Sentence,
				Confidence: v.Confidence}
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

// detectLogs judges the storage targets by the Darshan logs (*.darshan) of dir, in the order in which their jobs
// ended. ok is false without one. A log that cannot be read is left out and counted.
func detectLogs(ctx context.Context, dir string, set Settings, emit func(Event) error, sum *Summary,
	bad func(*RowError)) (ok bool, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.darshan"))
	if err != nil || len(paths) == 0 {
		return false, err
	}
	type interval struct {
		at     int64
		points []targetslow.Point
	}
	var all []interval
	for _, path := range paths {
		if ctx.Err() != nil {
			return true, ctx.Err()
		}
		l, err := readLog(path)
		if err != nil {
			bad(&RowError{path, 0, "", err.Error()})
			continue
		}
		sum.Rows += len(l.JobFiles)
		all = append(all, interval{l.Jobs[0].End.Unix(), targetslow.FromLog(l)})
	}
	slices.SortStableFunc(all, func(a, b interval) int { return cmp.Compare(a.at, b.at) })
	r := newTargetReplay(set, emit)
	r.expect(logEvery)
	for _, i := range all {
		sum.Seconds++
		r.at, r.points = i.at, i.points
		if err := r.judge(i.at); err != nil {
			return true, err
		}
	}
	return true, r.finish()
}

// logEvery is how often a job of which a log remains is taken to end.
const logEvery = time.Minute

func readLog(path string) (*iolog.Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return logread.Darshan(io.NewSectionReader(f, 0, info.Size()), 0)
}

func (r *targetReplay) finish() error {
	errs := []error{r.judge(r.at + 1)}
	for _, key := range slices.SortedFunc(maps.Keys(r.open),
		func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		errs = append(errs, r.emit(r.open[key]))
	}
	return errors.Join(errs...)
}
