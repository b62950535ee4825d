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
	b := make(text, 0, 100*(3+len(lines)))
	b.add("snapshot_time             ", stamp(t.Now), " secs.nsecs\n")
	if r >= 15 {
		b.add("start_time                ", stamp(t.Since), " secs.nsecs\n")
		b.add("elapsed_time              ", span(t.Now.Sub(t.Since)), " secs.nsecs\n")
	}
	for _, l := range lines {
		b.left(25, l.Name)
		b.add(" ")
		b.unsigned(0, l.N)
		b.add(" samples [", r.unit(l.Unit), "]")
		if l.Only < onlyCount {
			for _, n := range [...]uint64{l.Min, l.Max, l.Sum} {
				b.add(" ")
				b.unsigned(0, n)
			}
		}
		if l.Only == all {
			b.add(" ")
			b.unsigned(0, l.SquareS)
		}
		b.add("\n")
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
	b := make(text, 0, 20+130*(4+len(names))*len(jobs))
	b.add("job_stats:\n")
	for _, j := range jobs {
		b.add("- job_id:          ", j.Job, "\n")
		at := base.Add(j.Last)
		if r >= 14 {
			b.add("  snapshot_time:   ", stamp(at), " secs.nsecs\n")
			b.add("  start_time:      ", stamp(t.Since), " secs.nsecs\n")
			b.add("  elapsed_time:    ", span(at.Sub(t.Since)), " secs.nsecs\n")
		} else {
			b.add("  snapshot_time:   ")
			b.num(0, at.Unix())
			b.add("\n")
		}
		for _, name := range names {
			b.add(r.jobLine(name, j.Stats.Get(name)))
		}
	}
	return b.String()
}

func (r Release) jobLine(name string, st model.Stat) string {
	isBytes := strings.HasSuffix(name, "_bytes")
	if r < 14 && (name == "read" || name == "write") {
		return ""
	}
	b := make(text, 0, 200)
	b.add("  ", name, ":")
	b.pad(16 - len(name) - len(":"))
	b.add(" { samples: ")
	b.unsigned(11, st.N)
	unit, widths, tail := "usecs", [...]int{8, 8, 16}, ""
	switch {
	case isBytes && r < 14:
		unit, widths = "bytes", [...]int{7, 7, 15}
	case isBytes:
		unit, tail = "bytes", ", hist: {  }"
	case r < 14:
		b.add(", unit:  reqs }\n")
		return b.String()
	}
	b.add(", unit: ", unit)
	for i, n := range [...]uint64{st.Min, st.Max, st.Sum} {
		b.add([...]string{", min: ", ", max: ", ", sum: "}[i])
		b.unsigned(widths[i], n)
	}
	if r >= 14 {
		b.add(", sumsq: ")
		b.unsigned(18, st.SquareS)
	}
	b.add(tail, " }\n")
	return b.String()
}

// Names of the operations in a target's job_stats.
var (
	ostOps = []string{"read_bytes", "write_bytes", "read", "write", "getattr", "setattr", "punch", "sync", "destroy",
		"create", "statfs", "get_info", "set_info", "quotactl"}
	mdtOps = []string{"open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getattr", "setattr",
		"getxattr", "setxattr", "statfs", "sync", "samedir_rename", "crossdir_rename"}
)

// RPCStats is a client's rpc_stats of one OST: what is under way, and its calls by pages.
func RPCStats(now time.Time, readsNow, writesNow int, pages [2][11]uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "snapshot_time:         %s (secs.nsecs)\n", stamp(now))
	fmt.Fprintf(&b, "read RPCs in flight:  %d\nwrite RPCs in flight: %d\n", readsNow, writesNow)
	fmt.Fprintf(&b, "pending write pages:  %d\npending read pages:   %d\n", 0, 0)
	b.WriteString("\n\t\t\tread\t\t\twrite\n")
	b.WriteString("pages per rpc         rpcs   % cum % |       rpcs   % cum %\n")
	var total, sum [2]uint64
	last := 0
	for i := range pages[0] {
		total[0] += pages[0][i]
		total[1] += pages[1][i]
		if pages[0][i]+pages[1][i] > 0 {
			last = i
		}
	}
	for i := 0; i <= last; i++ {
		sum[0] += pages[0][i]
		sum[1] += pages[1][i]
		fmt.Fprintf(&b, "%d:\t\t%10d %3d %3d   | %10d %3d %3d\n", 1<<i, pages[0][i], percent(pages[0][i], total[0]),
			percent(sum[0], total[0]), pages[1][i], percent(pages[1][i], total[1]), percent(sum[1], total[1]))
	}
	return b.String()
}

func percent(n, of uint64) uint64 {
	if of == 0 {
		return 0
	}
	return 100 * n / of
}

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

// Policies is a service's nrs_policies.
func Policies(queued, active int) string {
	var b strings.Builder
	b.WriteByte('\n')
	for _, queue := range []string{"regular_requests", "high_priority_requests"} {
		fmt.Fprintf(&b, "%s:\n", queue)
		for _, name := range []string{"fifo", "crrn", "orr", "trr", "tbf", "delay"} {
			state, fallback, q, a := "stopped", "no", 0, 0
			if name == "fifo" {
				state, fallback = "started", "yes"
				if queue == "regular_requests" {
					q, a = queued, active
				}
			}
			fmt.Fprintf(&b, "  - name: %s\n    state: %s\n    fallback: %s\n    queued: %-20d\n    active: %-20d\n\n",
				name, state, fallback, q, a)
		}
	}
	return b.String()
}
