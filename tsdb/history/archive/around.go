package archive

import (
	"context"
	"fmt"
	"maps"
	"time"

	"fairway/tsdb/history/iolog"
)

// maxLoads bounds the rows of storage targets that one job is judged by; of a long job they are longer intervals.
const maxLoads = 200_000

// Around returns what the storage targets did while a job of a log ran.
func (r *Reader) Around(ctx context.Context, j *iolog.Job) (a iolog.Around, err error) {
	err = r.inTurn(ctx, func(ctx context.Context) error {
		a, err = around(ctx, r.dir, j)
		return err
	})
	return a, err
}

func around(ctx context.Context, dir string, j *iolog.Job) (iolog.Around, error) {
	a := iolog.Around{PeakBytesPerSec: map[string]float64{}}
	when := map[string]any{"from": j.Start.UTC(), "to": j.End.UTC()}
	err := Each(ctx, dir, loadsSQL, with(when, "rows", maxLoads), func(row []any) error {
		o := iolog.OST{Time: row[0].(time.Time), Target: row[1].(string), FS: row[2].(string),
			Seconds: row[3].(float64), BytesRead: row[4].(float64)}
		a.OSTs = append(a.OSTs, o)
		return nil
	})
	if err != nil || len(a.OSTs) == 0 {
		return a, err
	}
	err = Each(ctx, dir, peaksSQL, when, func(row []any) error {
		a.PeakBytesPerSec[row[0].(string)] = row[1].(float64)
		return nil
	})
	if err != nil {
		return a, err
	}
	err = Each(ctx, dir, neighboursSQL, with(when, "log", j.Log), func(row []any) error {
		a.Neighbours = append(a.Neighbours, iolog.Neighbour{JobID: row[0].(string), App: row[1].(string),
			Mount: fmt.Sprint(row[2]), OST: int32(row[3].(int64)), Bytes: row[4].(float64)})
		return nil
	})
	return a, err
}

// with adds a parameter to others.
func with(params map[string]any, name string, value any) map[string]any {
	out := maps.Clone(params)
	out[name] = value
	return out
}

// loadsSQL takes every target's rows that overlap the job, in intervals so long that no more than $rows
// come of them. What a target read or wrote is one number: a row lacks both or none.
const loadsSQL = `WITH near AS (
  SELECT target, fs, time, seconds, coalesce(bytes_read, 0) + coalesce(bytes_written, 0) AS bytes FROM ost
` +
	"  WHERE day BETWEEN $from::DATE - 1 AND $to::DATE AND time < $to::TIMESTAMP AND time > $from::TIMESTAMP - " +
	"INTERVAL 1 HOUR\n" +
	`    AND epoch(time) + seconds > epoch($from::TIMESTAMP) AND seconds > 0),
` +
	"width AS (SELECT greatest(5, 5 * ceil((epoch($to::TIMESTAMP) - epoch($from::TIMESTAMP)) * count(DISTINCT " +
	"target) / 5 / $rows::DOUBLE)) AS w FROM near)\n" +
	`SELECT min(time) AS start, target, fs, sum(seconds) AS seconds, sum(bytes) AS bytes
FROM near, width GROUP BY target, fs, floor(epoch(time) / w) ORDER BY target, start`

// peaksSQL is the most that a target moved on the day of the job's end, up to that, and the two days before,
// where the readings span at least an hour. Rows over a gap are means and show no peak. (The number of different times
// would say more, and take longer than all else.)
const peaksSQL = `SELECT fs, max((coalesce(bytes_read, 0) + coalesce(bytes_written, 0)) / seconds) AS peak FROM ost
WHERE day BETWEEN $to::DATE - 2 AND $to::DATE AND time < $to::TIMESTAMP AND seconds BETWEEN 1 AND 7.5
GROUP BY fs HAVING max(time) - min(time) >= INTERVAL 1 HOUR`

// claimedJob is the job that a log o says it is of, where the batch system's accounts say the same of its user in that
// time; else whose log it is.
const claimedJob = `CASE WHEN o.owner = 'trusted' OR EXISTS (SELECT 1 FROM slurm s WHERE s.job_id = o.job_id
    AND s.user = o.user AND s.start_time < o.end_time AND s.end_time > o.start_time)
  THEN o.job_id ELSE 'uid ' || o.uid END`

// neighboursSQL is, for each target of the job's files, the three other logs that moved most on it in files
// that were in I/O while the job ran; the file that moved most there says under which mount. Joining by
// day too lets DuckDB open only the days that the other logs lie in.
const neighboursSQL = `WITH mine AS (SELECT day, log, job_id FROM job WHERE day = $from::DATE AND log = $log::BIGINT),
targets AS (SELECT DISTINCT unnest(osts) AS ost FROM jobfile JOIN mine USING (day, log)),
others AS (SELECT o.day, o.log, ` + claimedJob + ` AS job_id, o.app, epoch(o.start_time) AS begun
  FROM job o JOIN mine m ON o.log <> m.log AND o.owner <> '' AND o.job_id <> m.job_id
    AND o.start_time < $to::TIMESTAMP AND o.end_time > $from::TIMESTAMP),
` +
	"used AS (SELECT o.day, o.log, o.job_id, o.app, f.file, (f.bytes_read + f.bytes_written) / len(f.osts) AS " +
	"bytes, unnest(f.osts) AS ost\n" +
	`  FROM jobfile f JOIN others o USING (day, log)
` +
	"  WHERE o.begun + least(f.read_start, f.write_start) < epoch($to::TIMESTAMP) AND o.begun + " +
	"greatest(f.read_end, f.write_end) > epoch($from::TIMESTAMP)),\n" +
	"most AS (SELECT day, log, any_value(job_id) AS job_id, any_value(app) AS app, ost, sum(bytes) AS bytes, " +
	"arg_max(file, bytes) AS file\n" +
	`  FROM used WHERE ost IN (SELECT ost FROM targets) GROUP BY day, log, ost
  QUALIFY row_number() OVER (PARTITION BY ost ORDER BY sum(bytes) DESC, log) <= 3)
` +
	"SELECT job_id, app, (SELECT any_value(mount) FROM file WHERE file.day = most.day AND file.file = " +
	"most.file) AS mount, ost, bytes\n" +
	`FROM most ORDER BY ost, bytes DESC, log`
