package archive

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"fairway/collector/topology"
	"fairway/tsdb/history"
)

// runsQuery joins every ended batch job with the logs of its programs. A job number may come again
// years later or after a requeue, so the times must meet too; clocks differ by up to two minutes. Of
// several accounts of a job the one that knows its user counts, and a log is that user's or somebody vouched for it.
// procs_at_once is how many processes of the job's
// programs ran beside each other at most. own, everybody and users are how its bytes were shared, in files that one
// process moved, in files that all did, and how many processes had a part, over all of its programs.
const runsQuery = `WITH batch AS (
` +
	"  SELECT job_id, coalesce(nullif(app, ''), name, '') AS app, coalesce(user, '') AS user, coalesce(account," +
	" '') AS account,\n" +
	`    coalesce(node_count, len(nodes)) AS node_count, nodes, start_time, end_time
  FROM slurm WHERE end_time > start_time
  QUALIFY row_number() OVER (PARTITION BY job_id, start_time ORDER BY user <> '' DESC, end_time DESC) = 1),
logs AS (
` +
	"  SELECT b.*, j.log, j.app AS exe, j.uid, j.procs, j.partial, j.bytes_read, j.bytes_written, j.reads + " +
	"j.writes AS ops, coalesce(j.meta_ops, 0) AS meta_ops, j.meta_seconds,\n" +
	`    coalesce(j.read_io_seconds, 0) + coalesce(j.write_io_seconds, 0) AS io_seconds,
    greatest(coalesce(j.read_bytes_per_sec, 0), coalesce(j.write_bytes_per_sec, 0)) AS bytes_per_sec,
    j.start_time AS began, greatest(coalesce(j.end_time, j.start_time), j.start_time) AS ended
  FROM batch b JOIN job j ON j.job_id = b.job_id AND (j.owner = 'trusted' OR j.owner = 'file' AND j.user = b.user)
` +
	"    AND j.start_time < b.end_time + INTERVAL 2 MINUTE AND coalesce(j.end_time, j.start_time) > " +
	"b.start_time - INTERVAL 2 MINUTE),\n" +
	`at_once AS (
  SELECT job_id, start_time, max(procs) AS procs_at_once FROM (
    SELECT a.job_id, a.start_time, a.log, sum(o.procs) AS procs FROM logs a JOIN logs o
    ON o.job_id = a.job_id AND o.start_time = a.start_time AND o.began <= a.began AND (
	o.ended > a.began OR o.log = a.log)
    GROUP BY ALL) GROUP BY ALL),
files AS (
  SELECT job_id, start_time, file, sum(bytes) AS bytes, least(sum(users), any_value(procs_at_once)) AS users FROM (
    SELECT l.job_id, l.start_time, f.file, f.bytes_read + f.bytes_written AS bytes,
      least(coalesce(f.movers, f.procs), l.procs) AS users
    FROM jobfile f JOIN logs l USING (log) WHERE f.bytes_read + f.bytes_written > 0)
  JOIN at_once USING (job_id, start_time) GROUP BY ALL),
shared AS (
  SELECT job_id, start_time, sum(bytes) FILTER (users <= 1) AS own, count(*) FILTER (users <= 1) AS own_files,
    sum(bytes) FILTER (users > 1 AND users >= procs_at_once) AS everybody, sum(users) AS users
  FROM files JOIN at_once USING (job_id, start_time) GROUP BY ALL)
SELECT job_id, app, user, account, node_count, nodes, start_time, end_time, exe, uid, procs_at_once, partial,
  bytes_read::DOUBLE, bytes_written::DOUBLE, ops::DOUBLE, meta_ops::DOUBLE, meta_seconds, io_seconds, bytes_per_sec,
  coalesce(own, 0)::DOUBLE, coalesce(own_files, 0)::DOUBLE, coalesce(everybody, 0)::DOUBLE, coalesce(users, 0)::DOUBLE,
  began, ended
FROM logs JOIN at_once USING (job_id, start_time) LEFT JOIN shared USING (job_id, start_time)
ORDER BY end_time, job_id, start_time, log`

// Runs shows the batch jobs of which the archive in dir holds both the scheduler's account and the
// logs of their programs (Darshan), as runs of the history with a profile, in the order of their ends.
// A job of which a log is cut is left out: what it moved is not known. forwarders counts the
// forwarders that serve some nodes, 0 where that is not known; then neither is the metadata queue.
func Runs(ctx context.Context, dir string, forwarders func([]topology.NodeID) int) iter.Seq2[history.Run, error] {
	return func(yield func(history.Run, error) bool) {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return
		}
		var b batchRun
		stopped := false
		flush := func() bool {
			if b.r.Job != "" && !b.partial {
				stopped = !yield(b.run(forwarders), nil)
			}
			return !stopped
		}
		err := Each(ctx, dir, runsQuery, nil, func(row []any) error {
			l := readRunLog(row)
			if l.r.Job != b.r.Job || !l.r.Start.Equal(b.r.Start) {
				if !flush() {
					return io.EOF
				}
				b = batchRun{r: l.r}
			}
			b.add(&l)
			return nil
		})
		if err != nil {
			yield(history.Run{}, fmt.Errorf("archive %s: %w", dir, err))
		} else if !stopped {
			flush()
		}
	}
}

// State changes when logs of jobs come into the archive in dir; empty: there are none.
func State(dir string) string {
	var newest time.Time
	days := 0
	for _, t := range []*table{jobTable, slurmTable} {
		found, _ := filepath.Glob(filepath.Join(dir, t.name, "day=*")) // the pattern is ours, it cannot be bad
		for _, day := range found {
			if s, err := os.Stat(day); err == nil && s.ModTime().After(newest) {
				newest = s.ModTime()
			}
		}
		days += len(found)
	}
	if days == 0 {
		return ""
	}
	return fmt.Sprint(days, newest.UnixNano())
}

// runLog is one row of runsQuery: a log of one program of a batch job, and how the bytes of all of the job's programs
// were shared by the processes that ran at once.
type runLog struct {
	r                                            history.Run
	procs                                        float64
	partial                                      bool
	read, written, ops, metaOps                  float64
	metaSeconds                                  float64
	ownBytes, ownFiles, everybodysBytes, usersOf float64
	program
}

func readRunLog(row []any) (l runLog) {
	text := func(i int) string { s, _ := row[i].(string); return s }
	count := func(i int) int64 { n, _ := row[i].(int64); return n }
	l.r = history.Run{Job: topology.JobID(text(0)), App: text(1), User: text(2), Project: text(3), Nodes: int(count(4))}
	if list, ok := row[5].([]any); ok {
		for _, n := range list {
			name, _ := n.(string)
			l.r.NodeList = append(l.r.NodeList, topology.NodeID(name))
		}
	}
	l.r.Start, _ = row[6].(time.Time)
	l.r.End, _ = row[7].(time.Time)
	if l.r.App == "" {
		l.r.App = text(8)
	}
	if l.r.User == "" {
		l.r.User = strconv.FormatInt(count(9), 10)
	}
	l.procs = float64(count(10))
	l.partial, _ = row[11].(bool)
	for i, to := range []*float64{&l.read, &l.written, &l.ops, &l.metaOps, &l.metaSeconds, &l.ioSeconds, &l.bytesPerSec,
		&l.ownBytes, &l.ownFiles, &l.everybodysBytes, &l.usersOf} {
		var known bool
		if *to, known = row[12+i].(float64); !known {
			*to = math.NaN()
		}
	}
	l.began, _ = row[23].(time.Time)
	l.ended, _ = row[24].(time.Time)
	return l
}

// mode is how the larger part of a job's bytes was shared (N-N, N-1 and N-M as IOMiner, section III-D).
func (l *runLog) mode(bytes float64) topology.Mode {
	half := bytes / 2
	switch {
	case half == 0:
		return ""
	case l.procs <= 1 || l.ownBytes > half && l.ownFiles <= 1:
		return topology.Mode11
	case l.everybodysBytes > half:
		return topology.ModeN1
	case l.ownBytes > half && l.ownFiles >= l.procs:
		return topology.ModeNN
	}
	return topology.ModeNM
}

// batchRun puts the logs of a batch job together: its programs run one after another, or at the same time.
type batchRun struct {
	r           history.Run
	p           history.Profile
	partial     bool
	metaSeconds float64
	ops         float64
	programs    []program
}

// program is one log of the job: from when to when it ran, and for how long of that and how fast it was in I/O.
type program struct {
	began, ended           time.Time
	ioSeconds, bytesPerSec float64
}

func (b *batchRun) add(l *runLog) {
	b.partial = b.partial || l.partial
	b.p.ReadBytes += l.read
	b.p.WriteBytes += l.written
	b.p.MetaOps += l.metaOps
	b.ops += l.ops
	b.metaSeconds += l.metaSeconds
	b.programs = append(b.programs, l.program)
	b.p.Mode = l.mode(b.p.ReadBytes + b.p.WriteBytes)
	if l.procs > 0 { // processes lie evenly on the nodes
		share := min(1, l.usersOf/l.procs)
		b.p.IONodes = max(b.p.IONodes, int(math.Ceil(share*float64(b.r.Nodes))))
	}
}

// inIO is how long a job's programs were in I/O and the most that they moved at once, bytes/s. Of programs that ran at
// the same time the one that was most of its time in I/O counts: they work in phases, as their processes do.
func inIO(programs []program) (seconds, bytesPerSec float64) {
	var edges []time.Time
	for _, p := range programs {
		edges = append(edges, p.began, p.ended)
	}
	slices.SortFunc(edges, time.Time.Compare)
	for _, p := range programs {
		if !p.ended.After(p.began) { // it has no length to lie in
			seconds += p.ioSeconds
			bytesPerSec = max(bytesPerSec, p.bytesPerSec)
		}
	}
	for i := range edges {
		if i+1 == len(edges) || edges[i].Equal(edges[i+1]) {
			continue
		}
		var most, rate float64
		for _, p := range programs {
			if length := p.ended.Sub(p.began).Seconds(); !p.began.After(edges[i]) && p.ended.After(edges[i]) {
				most = max(most, min(1, p.ioSeconds/length))
				rate += p.bytesPerSec
			}
		}
		seconds += most * edges[i+1].Sub(edges[i]).Seconds()
		bytesPerSec = max(bytesPerSec, rate)
	}
	return seconds, bytesPerSec
}

// run closes the sums.
func (b *batchRun) run(forwarders func([]topology.NodeID) int) history.Run {
	r, p := b.r, b.p
	p.From, p.Coverage = history.FromDarshan, 1
	p.IOSeconds, p.PeakBytesPerSec = inIO(b.programs)
	p.IOSeconds = min(p.IOSeconds, r.Seconds())
	if p.IOSeconds > 0 {
		p.PeakOpsPerSec = b.ops / p.IOSeconds
		if n := forwarders(r.NodeList); n > 0 && !math.IsNaN(b.metaSeconds) {
			queue := b.metaSeconds / p.IOSeconds / float64(n) // Little's law: operations under way
			p.MetaQueue = &queue
		}
	}
	if p.IONodes > 0 {
		p.PeakNodeBytesPerSec = p.PeakBytesPerSec / float64(p.IONodes)
	}
	r.Profile, r.NodeList = &p, nil
	return r
}
