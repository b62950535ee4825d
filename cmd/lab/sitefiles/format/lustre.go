package format

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/cmd/lab/sitefiles/model"
)

// Times are those that a file of statistics is stamped with.
type Times struct{ Now, Since time.Time }

// Line is one line of a file of statistics.
type Line struct {
	model.Stat
	// Only leaves numbers out: onlyCount the measures, noSquares the sum of squares.
	Only columns
}

type columns uint8

const (
	all columns = iota
	noSquares
	onlyCount
)

// StatsFile is a file of statistics.
func (r Release) StatsFile(t Times, lines []Line) string {
	var b strings.Builder
	fmt.Fprintf(&b, "snapshot_time             %s secs.nsecs\n", stamp(t.Now))
	if r >= 15 {
		fmt.Fprintf(&b, "start_time                %s secs.nsecs\n", stamp(t.Since))
		fmt.Fprintf(&b, "elapsed_time              %s secs.nsecs\n", span(t.Now.Sub(t.Since)))
	}
	for _, l := range lines {
		fmt.Fprintf(&b, "%-25s %d samples [%s]", l.Name, l.N, r.unit(l.Unit))
		if l.Only < onlyCount {
			fmt.Fprintf(&b, " %d %d %d", l.Min, l.Max, l.Sum)
		}
		if l.Only == all {
			fmt.Fprintf(&b, " %d", l.SquareS)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (r Release) unit(unit string) string {
	switch unit {
	case "usec", "usecs":
		return r.usec()
	case "sec":
		return r.sec()
	}
	return unit
}

func full(s *model.Stats, skip ...string) []Line {
	var out []Line
	for _, st := range s.List {
		if !slices.Contains(skip, st.Name) {
			out = append(out, Line{Stat: *st})
		}
	}
	return out
}

// Llite is what a client's programs did. Until 2.12 operations are only counted, as "regs", and bytes have no sum of
// squares; the times of reads and writes have lines of their own from 2.14 on.
func (r Release) Llite(t Times, ops *model.Stats) string {
	var lines []Line
	for _, st := range ops.List {
		l := Line{Stat: *st}
		data := st.Name == "read" || st.Name == "write"
		switch {
		case r >= 14:
		case data:
			continue
		case st.Unit == "bytes":
			l.Only = noSquares
		default:
			l.Only, l.Unit = onlyCount, "regs"
		}
		lines = append(lines, l)
	}
	return r.StatsFile(t, lines)
}

// Target is obdfilter's or md_stats: until 2.12 the operations of an OST's data have no times, and those of an MDT are
// only counted.
func (r Release) Target(t Times, ops *model.Stats) string {
	var lines []Line
	for _, st := range ops.List {
		l := Line{Stat: *st}
		switch {
		case r >= 14:
		case st.Unit == "bytes":
			l.Only = noSquares
		case st.Name == "read" || st.Name == "write":
			l.Name = map[string]string{"read": "preprw", "write": "commitrw"}[st.Name]
			l.Unit, l.Only = "reqs", onlyCount
		default:
			l.Unit, l.Only = "reqs", onlyCount
		}
		lines = append(lines, l)
	}
	return r.StatsFile(t, lines)
}

// JobStats is a target's job_stats.
func (r Release) JobStats(t Times, base time.Time, jobs []*model.JobStats, names []string) string {
	var b strings.Builder
	b.WriteString("job_stats:\n")
	for _, j := range jobs {
		fmt.Fprintf(&b, "- job_id:          %s\n", j.Job)
		at := base.Add(j.Last)
		if r >= 14 {
			fmt.Fprintf(&b, "  snapshot_time:   %s secs.nsecs\n", stamp(at))
			fmt.Fprintf(&b, "  start_time:      %s secs.nsecs\n", stamp(t.Since))
			fmt.Fprintf(&b, "  elapsed_time:    %s secs.nsecs\n", span(at.Sub(t.Since)))
		} else {
			fmt.Fprintf(&b, "  snapshot_time:   %d\n", at.Unix())
		}
		for _, name := range names {
			b.WriteString(r.jobLine(name, j.Stats.Get(name)))
		}
	}
	return b.String()
}

func (r Release) jobLine(name string, st model.Stat) string {
	isBytes := strings.HasSuffix(name, "_bytes")
	head := fmt.Sprintf("  %-16s { samples: %11d, unit: ", name+":", st.N)
	switch {
	case r < 14 && (name == "read" || name == "write"):
		return ""
	case r < 14 && isBytes:
		return head + fmt.Sprintf("bytes, min: %7d, max: %7d, sum: %15d }\n", st.Min, st.Max, st.Sum)
	case r < 14:
		return head + " reqs }\n"
	}
	unit, tail := "usecs", ""
	if isBytes {
		unit, tail = "bytes", ", hist: {  }"
	}
	return head + fmt.Sprintf("%s, min: %8d, max: %8d, sum: %16d, sumsq: %18d%s }\n", unit, st.Min, st.Max, st.Sum,
		st.SquareS, tail)
}

// Names of the operations in a target's job_stats.
var (
	ostOps = []string{"read_bytes", "write_bytes", "read", "write", "getattr", "setattr", "punch", "sync", "destroy",
		"create", "statfs", "get_info", "set_info", "quotactl"}
	mdtOps = []string{"open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getattr", "setattr",
		"getxattr", "setxattr", "statfs", "sync", "samedir_rename", "crossdir_rename"}
)

// Import is a client's view of its connection to one target.
func Import(name, target, nid string, inFlight int, meanUsec uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "import:\n    name: %s\n    target: %s_UUID\n    state: FULL\n", name, target)
	fmt.Fprintf(&b, "    connection:\n       failover_nids: [ %s ]\n       current_connection: %s\n", nid, nid)
	b.WriteString("       connection_attempts: 1\n       generation: 1\n       in-progress_invalidations: 0\n")
	fmt.Fprintf(&b, "    rpcs:\n       inflight: %d\n       unregistering: 0\n       timeouts: 0\n", inFlight)
	fmt.Fprintf(&b, "       avg_waittime: %d usec\n", meanUsec)
	b.WriteString("    service_estimates:\n       services: 1 sec\n       network: 1 sec\n")
	return b.String()
}
