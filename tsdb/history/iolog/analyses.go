package iolog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrQuery marks a question that cannot be answered as it is put.
var ErrQuery = errors.New("query")

// Result is the answer to a question. A value is nil, bool, int64, float64, *big.Int, string, time.Time
// (UTC), or a list of such.
type Result struct {
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
	// Cut is true where there were more rows than asked for.
	Cut bool `json:"cut,omitempty"`
}

// Analysis is a question with a name, its parameters and the SQL that answers it.
type Analysis struct {
	Name string `json:"name"`
	// Does is one sentence; it names the paper's section where the question is IOMiner's.
	Does   string  `json:"does"`
	Params []Param `json:"params"`
	SQL    string  `json:"sql"`
}

// Param is one parameter of an analysis.
type Param struct {
	Name string `json:"name"`
	// Default is used where the parameter is not given; empty is NULL, which is "no limit".
	Default string `json:"default"`
	Does    string `json:"does"`
	kind    paramKind
	choices []string
}

type paramKind int

const (
	number paramKind = iota
	moment
	text
)

// The parameters that every analysis over jobs has, and the filter they make.
var period = []Param{
	{Name: "from", Does: "jobs started at or after (RFC 3339 or a day)", kind: moment},
	{Name: "to", Does: "jobs started before", kind: moment},
	{Name: "app", Does: "only this application", kind: text},
}

const inPeriod = `($from::TIMESTAMP IS NULL OR (day >= $from::DATE AND start_time >= $from::TIMESTAMP))
  AND ($to::TIMESTAMP IS NULL OR (day <= $to::DATE AND start_time < $to::TIMESTAMP))
  AND ($app::VARCHAR IS NULL OR app = $app::VARCHAR)`

func direction(fallback string) Param {
	return Param{Name: "op", Default: fallback, Does: "read, write or both", kind: text,
		choices: []string{"read", "write", "both"}}
}

func oneDirection(fallback string) Param {
	return Param{Name: "op", Default: fallback, Does: "read or write", kind: text, choices: []string{"read", "write"}}
}

func with(params ...Param) []Param { return append(params, period...) }

// Analyses are the named questions, IOMiner's section III among them.
var Analyses = []Analysis{
	{
		Name: "top-apps", Does: "Applications by bytes moved, with their share of all (III-C1)",
		Params: with(direction("both"), Param{Name: "n", Default: "10", Does: "how many", kind: number}),
		SQL: `WITH moved AS (
` +
			"  SELECT app, CASE $op::VARCHAR WHEN 'read' THEN bytes_read WHEN 'write' THEN bytes_written ELSE " +
			"bytes_read + bytes_written END AS bytes\n" +
			`  FROM job WHERE ` + inPeriod + `)
SELECT app, count(*) AS jobs, sum(bytes) AS bytes, sum(bytes) / nullif(sum(sum(bytes)) OVER (), 0) AS share
FROM moved GROUP BY app ORDER BY bytes DESC, app LIMIT $n::BIGINT`,
	},
	ratio("sequential", "seq", "Share of sequential requests (III-C2, P_seq): its percentiles over jobs"),
	ratio("consecutive", "consec", "Share of consecutive requests (III-C2): its percentiles over jobs"),
	{
		Name: "read-ratio", Does: "Jobs by the share of their bytes that is read (III-C3, P_read), in bins",
		Params: with(Param{Name: "bins", Default: "100", Does: "how many bins between 0 and 1", kind: number}),
		SQL: `WITH r AS (
  SELECT bytes_read / (bytes_read + bytes_written) AS read_ratio FROM job
  WHERE bytes_read + bytes_written > 0 AND ` + inPeriod + ")\n" +
			"SELECT floor(read_ratio * $bins::DOUBLE) / $bins::DOUBLE AS read_ratio_from, count(*) AS jobs," +
			" count(*) / " +
			"sum(count(*)) OVER () AS share\n" +
			`FROM r GROUP BY 1 ORDER BY 1`,
	},
	{
		Name: "sharing",
		Does: "Jobs of more than one process by file-sharing pattern N-N, N-1 and N-M, with the ratio " +
			"processes/files (III-D)",
		Params: with(),
		SQL: `WITH j AS (
  SELECT procs / files AS ratio,
    CASE WHEN full_files = files THEN 'N-1' WHEN shared_files = 0 AND files = procs THEN 'N-N' ELSE 'N-M' END AS pattern
  FROM job WHERE procs > 1 AND files > 0 AND ` + inPeriod + `)
SELECT pattern, count(*) AS jobs, count(*) / sum(count(*)) OVER () AS share,
  quantile_cont(ratio, 0.1) AS ratio_p10, median(ratio) AS ratio_median, quantile_cont(ratio, 0.9) AS ratio_p90
FROM j GROUP BY pattern ORDER BY jobs DESC, pattern`,
	},
	{
		Name:   "middleware",
		Does:   "Jobs by scale (One, Small <= 1024, Medium <= 8192, Large processes) and I/O middleware (III-E)",
		Params: with(),
		SQL: `WITH j AS (
` +
			"  SELECT CASE WHEN procs <= 1 THEN 1 WHEN procs <= 1024 THEN 2 WHEN procs <= 8192 THEN 3 ELSE 4 " +
			"END AS scale, * FROM job WHERE " + inPeriod + `)
SELECT ['One', 'Small', 'Medium', 'Large'][scale] AS scale, count(*) AS jobs,
` +
			"  count(*) FILTER (uses_posix AND NOT uses_mpiio) AS posix, count(*) FILTER (uses_mpiio AND " +
			"NOT uses_collective) AS mpiio_independent,\n" +
			`  count(*) FILTER (uses_collective) AS mpiio_collective, count(*) FILTER (uses_stdio) AS stdio,
  count(*) FILTER (uses_mpiio) / count(*) AS mpiio_share
FROM j GROUP BY j.scale ORDER BY j.scale`,
	},
	{
		Name: "stripes",
		Does: "Jobs on Lustre that stripe a file otherwise than by default (III-B, Figure 4's question)",
		Params: with(
			Param{Name: "size", Default: "1048576", Does: "the default stripe size, bytes", kind: number},
			Param{Name: "count", Default: "1", Does: "the default stripe count", kind: number},
			Param{Name: "offset", Default: "-1", Does: "the default stripe offset", kind: number}),
		SQL: `WITH striped AS (
` +
			"  SELECT log, max(stripe_size <> $size::BIGINT OR stripe_count <> $count::BIGINT OR " +
			"coalesce(stripe_offset <> $offset::BIGINT, false)) AS custom,\n" +
			`    max(stripe_count) AS widest
  FROM jobfile WHERE stripe_count IS NOT NULL
` +
			"    AND ($from::TIMESTAMP IS NULL OR day >= $from::DATE) AND ($to::TIMESTAMP IS NULL OR day <= " +
			"$to::DATE) GROUP BY log)\n" +
			"SELECT custom, count(*) AS jobs, count(*) / sum(count(*)) OVER () AS share, max(widest) AS " +
			"widest_stripe_count\n" +
			`FROM striped JOIN job USING (log) WHERE ` + inPeriod + ` GROUP BY custom ORDER BY custom DESC`,
	},
	{
		Name: "request-sizes", Does: "Requests by size, in Darshan's ten bins",
		Params: with(direction("both")),
		SQL: `WITH per_bin AS (
  SELECT generate_subscripts(size_reads, 1) AS bin, unnest(size_reads) AS r, unnest(size_writes) AS w FROM job
  WHERE ` + inPeriod + ")\n" +
			"SELECT ['0-100 B', '100 B-1 KiB', '1-10 KiB', '10-100 KiB', '100 KiB-1 MiB', '1-4 MiB', '4-10 MiB', " +
			"'10-100 MiB', '100 MiB-1 GiB', '1 GiB+'][bin] AS size,\n" +
			`  sum(CASE $op::VARCHAR WHEN 'read' THEN r WHEN 'write' THEN w ELSE r + w END) AS requests,
  sum(CASE $op::VARCHAR WHEN 'read' THEN r WHEN 'write' THEN w ELSE r + w END)
    / nullif(sum(sum(CASE $op::VARCHAR WHEN 'read' THEN r WHEN 'write' THEN w ELSE r + w END)) OVER (), 0) AS share
FROM per_bin GROUP BY bin ORDER BY bin`,
	},
	{
		Name: "low-bandwidth",
		Does: "Jobs of low bandwidth on their critical path, with the five contributing factors (II-D, III-F)",
		Params: with(oneDirection("write"),
			Param{Name: "max_bytes_per_sec", Default: "1e9", Does: "bandwidth below, bytes/s", kind: number},
			Param{Name: "min_procs", Default: "1000", Does: "more processes than", kind: number},
			Param{Name: "min_bytes_per_proc", Default: "1e7", Does: "bytes of each process at least", kind: number},
			Param{Name: "n", Default: "1000", Does: "how many", kind: number}),
		SQL: `WITH d AS (
  SELECT log, job_id, app, procs, start_time, u.* FROM job, LATERAL (SELECT
    CASE $op::VARCHAR WHEN 'read' THEN bytes_read ELSE bytes_written END AS bytes,
    CASE $op::VARCHAR WHEN 'read' THEN read_io_seconds ELSE write_io_seconds END AS io_seconds,
    CASE $op::VARCHAR WHEN 'read' THEN read_bytes_per_sec ELSE write_bytes_per_sec END AS bytes_per_sec,
    CASE $op::VARCHAR WHEN 'read' THEN read_small ELSE write_small END AS small,
    CASE $op::VARCHAR WHEN 'read' THEN read_nonconsec ELSE write_nonconsec END AS nonconsec,
    CASE $op::VARCHAR WHEN 'read' THEN read_collective ELSE write_collective END AS collective,
    CASE $op::VARCHAR WHEN 'read' THEN read_osts ELSE write_osts END AS osts,
    CASE $op::VARCHAR WHEN 'read' THEN read_procs_per_ost ELSE write_procs_per_ost END AS procs_per_ost,
    CASE $op::VARCHAR WHEN 'read' THEN read_longest_share ELSE write_longest_share END AS longest_share) u
  WHERE ` + inPeriod + "),\n" +
			`nodes AS (SELECT job_id, max(node_count) AS node_count FROM slurm GROUP BY job_id)
` +
			"SELECT job_id, app, procs, node_count, start_time, bytes, io_seconds, bytes_per_sec, small, nonconsec, " +
			"collective, osts, procs_per_ost, longest_share, log\n" +
			`FROM d LEFT JOIN nodes USING (job_id)
` +
			"WHERE bytes_per_sec < $max_bytes_per_sec::DOUBLE AND procs > $min_procs::DOUBLE AND bytes >= procs * " +
			"$min_bytes_per_proc::DOUBLE\n" +
			`ORDER BY bytes_per_sec, log LIMIT $n::BIGINT`,
	},
	{
		Name: "neighbours",
		Does: "Other jobs that used the same storage targets while a job ran (Figure 1's join by target and time)",
		Params: []Param{{Name: "job", Does: "the job (required)", kind: text},
			{Name: "n", Default: "20", Does: "how many", kind: number}},
		// Joined by day too, so that only the days are opened that the other jobs began on.
		SQL: `WITH mine AS (SELECT log, day, start_time, end_time FROM job WHERE job_id = $job::VARCHAR),
targets AS (SELECT DISTINCT unnest(osts) AS ost FROM jobfile JOIN mine USING (day, log)),
others AS (SELECT DISTINCT o.log, o.day, o.job_id, o.app, o.start_time, o.end_time FROM job o JOIN mine m
  ON o.owner <> '' AND o.job_id <> $job::VARCHAR AND o.start_time < m.end_time AND o.end_time > m.start_time),
` +
			"shared AS (SELECT o.job_id, o.app, o.start_time, o.end_time, bytes_read / len(osts) AS r, " +
			"bytes_written / len(osts) AS w, unnest(osts) AS ost\n" +
			`  FROM jobfile JOIN others o USING (day, log))
` +
			"SELECT job_id, app, count(DISTINCT ost) AS shared_osts, sum(r) AS bytes_read_there, sum(w) AS " +
			"bytes_written_there, min(start_time) AS start_time, max(end_time) AS end_time\n" +
			"FROM shared WHERE ost IN (SELECT ost FROM targets) GROUP BY job_id, app ORDER BY sum(r) + sum(w) " +
			"DESC, job_id LIMIT $n::BIGINT",
	},
	{
		Name: "bad-logs", Does: "Files that could not be read, or only in part",
		Params: []Param{{Name: "n", Default: "1000", Does: "how many", kind: number}},
		SQL: "SELECT imported, path, bad, problem FROM read WHERE problem <> '' ORDER BY imported DESC, path " +
			"LIMIT $n::BIGINT",
	},
}

// ratio is the distribution over jobs of a share of their POSIX requests.
func ratio(name, column, does string) Analysis {
	return Analysis{
		Name: name, Does: does, Params: with(direction("both")),
		SQL: strings.ReplaceAll(`WITH counted AS (
  SELECT CASE $op::VARCHAR WHEN 'read' THEN @_reads WHEN 'write' THEN @_writes ELSE @_reads + @_writes END AS part,
`+
			"    CASE $op::VARCHAR WHEN 'read' THEN posix_reads WHEN 'write' THEN posix_writes ELSE "+
			"posix_reads + posix_writes END AS total\n"+
			`  FROM job WHERE `+inPeriod+`),
`+
			"q AS (SELECT [p / 20 FOR p IN range(21)] AS place, quantile_cont(part / total, [p / 20 FOR p "+
			"IN range(21)]) AS ratios FROM counted WHERE total > 0)\n"+
			`SELECT unnest(place) * 100 AS percentile, unnest(ratios) AS ratio FROM q`, "@", column),
	}
}

// Named finds an analysis.
func Named(name string) (Analysis, bool) {
	i := slices.IndexFunc(Analyses, func(a Analysis) bool { return a.Name == name })
	if i < 0 {
		return Analysis{}, false
	}
	return Analyses[i], true
}

// Bind checks parameters given as text, by name, and fills in the defaults. Unknown names and values
// that do not fit are errors that say what would; they wrap ErrQuery.
func (a Analysis) Bind(given map[string]string) (map[string]any, error) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.ContainsFunc(a.Params, func(p Param) bool { return p.Name == name }) {
			return nil, fmt.Errorf("%w: %s has no parameter %q", ErrQuery, a.Name, name)
		}
	}
	out := map[string]any{}
	for _, p := range a.Params {
		value, ok := given[p.Name]
		if !ok {
			value = p.Default
		}
		v, err := p.parse(value)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: parameter %s is %q: %w", ErrQuery, a.Name, p.Name, value, err)
		}
		out[p.Name] = v
	}
	return out, nil
}

func (p Param) parse(value string) (any, error) {
	switch {
	case value == "":
		return nil, nil
	case len(p.choices) > 0 && !slices.Contains(p.choices, value):
		return nil, fmt.Errorf("want one of %s", strings.Join(p.choices, ", "))
	case p.kind == number:
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("want a number")
		}
		return v, nil
	case p.kind == moment:
		for _, layout := range []string{time.RFC3339, time.DateOnly} {
			if t, err := time.Parse(layout, value); err == nil {
				return t.UTC(), nil
			}
		}
		return nil, fmt.Errorf("want RFC 3339 or a day such as 2026-11-21")
	}
	return value, nil
}
