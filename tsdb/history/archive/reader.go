package archive

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"fairway/collector/topology"
	"fairway/tsdb/history"
	"fairway/tsdb/history/iolog"
)

// Reader answers the questions of a daemon's many clients, two at a time.
type Reader struct {
	dir    string
	limits Limits
	child  []string
	turn   chan struct{}
}

// NewReader makes a reader of the archive in dir, which need not exist yet. SQL is answered by the command child, which
// calls Answer; nil: in this process.
func NewReader(dir string, l Limits, child []string) *Reader {
	return &Reader{dir: dir, limits: l, child: child, turn: make(chan struct{}, 2)}
}

// Ask answers a question with at most limit rows.
func (r *Reader) Ask(ctx context.Context, q iolog.Question, limit int) (res iolog.Result, err error) {
	err = r.inTurn(ctx, func(ctx context.Context) error {
		if q.Analysis.Name == "" && r.child != nil {
			res, err = askChild(ctx, r.child, asked{Dir: r.dir, SQL: q.SQL, Limit: limit, Limits: r.limits})
			return err
		}
		res, err = Ask(ctx, r.dir, q, limit)
		return err
	})
	return res, err
}

// JobLogs returns the logs of one run of a batch job with their files, in order of their start; none where the archive
// has none. A number comes again, and anybody can write a log with any number: a log is of the run where it is of the
// same user and time. Of a run without a start, which the daemon does not know, the batch system's accounts say both.
func (r *Reader) JobLogs(ctx context.Context, run history.Run) (logs []iolog.Log, err error) {
	if _, err := os.Stat(r.dir); os.IsNotExist(err) {
		return nil, nil
	}
	err = r.inTurn(ctx, func(ctx context.Context) error {
		jobs, err := scan[iolog.Job](ctx, r.dir, jobTable, "job_id = $job ORDER BY start_time, log",
			map[string]any{"job": string(run.Job)})
		if err != nil || len(jobs) == 0 {
			return err
		}
		runs := []history.Run{run}
		if run.Start.IsZero() {
			if runs, err = accounts(ctx, r.dir, run.Job); err != nil {
				return err
			}
			runs = append(runs, history.Run{}) // of which vouched logs are
		}
		for _, j := range jobs {
			if !slices.ContainsFunc(runs, func(one history.Run) bool { return isOf(&j, &one) }) {
				continue
			}
			l := iolog.Log{Kind: "darshan", Jobs: []iolog.Job{j}}
			one := map[string]any{"day": dayOf(j.Start), "log": j.Log}
			if l.JobFiles, err = scan[iolog.JobFile](ctx, r.dir, jobFileTable, "day = $day::DATE AND log = $log",
				one); err != nil {
				return err
			}
			where := "day = $day::DATE AND file IN (SELECT file FROM jobfile WHERE day = $day::DATE AND log = $log)"
			if l.Files, err = scan[iolog.File](ctx, r.dir, fileTable, where, one); err != nil {
				return err
			}
			logs = append(logs, l)
		}
		return nil
	})
	return logs, err
}

// clocksApart is by how much the clocks of a batch system and of its nodes may differ.
const clocksApart = 2 * time.Minute

// isOf says whether a log is of a run.
func isOf(j *iolog.Job, run *history.Run) bool {
	end := j.End
	if end.IsZero() {
		end = j.Start
	}
	return j.OwnedBy(run.User) && end.After(run.Start.Add(-clocksApart)) &&
		(run.End.IsZero() || j.Start.Before(run.End.Add(clocksApart)))
}

// accounts are a job's runs as the batch system accounts for them.
func accounts(ctx context.Context, dir string, job topology.JobID) (runs []history.Run, err error) {
	rows, err := scan[iolog.Slurm](ctx, dir, slurmTable, "job_id = $job", map[string]any{"job": string(job)})
	for _, s := range rows {
		runs = append(runs, history.Run{User: s.User, Start: s.Start, End: s.End})
	}
	return runs, err
}

// inTurn waits for a place: a question takes both CPUs and up to its limit of memory.
func (r *Reader) inTurn(ctx context.Context, f func(context.Context) error) error {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
		return f(WithLimits(ctx, r.limits))
	case <-ctx.Done():
		return fmt.Errorf("archive: waiting behind other questions: %w", ctx.Err())
	}
}

// scan reads rows of a table back into their structs; it is the inverse of table.values.
func scan[T any](ctx context.Context, dir string, t *table, where string, params map[string]any) ([]T, error) {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = fmt.Sprintf("%q", c.name)
	}
	var out []T
	err := Each(ctx, dir, fmt.Sprintf("SELECT %s FROM %q WHERE %s", strings.Join(names, ", "), t.name, where), params,
		func(row []any) error {
			var one T
			v := reflect.ValueOf(&one).Elem()
			for i, c := range t.columns {
				set(v.FieldByIndex(c.field), row[i])
			}
			out = append(out, one)
			return nil
		})
	return out, err
}

// set is the inverse of value. NULL is NaN for numbers that can say so, and the zero value otherwise.
func set(field reflect.Value, v any) {
	switch v := v.(type) {
	case nil:
		if field.Kind() == reflect.Float64 {
			field.SetFloat(nan)
		}
	case int64:
		if field.Kind() == reflect.Pointer {
			field.Set(reflect.ValueOf(&v))
			return
		}
		field.SetInt(v)
	case float64:
		field.SetFloat(v)
	case string:
		field.SetString(v)
	case bool:
		field.SetBool(v)
	case time.Time:
		field.Set(reflect.ValueOf(v))
	case []any:
		list := reflect.MakeSlice(field.Type(), len(v), len(v))
		for i := range v {
			set(list.Index(i), v[i])
		}
		field.Set(list)
	}
}
