package lustre

import (
	"bytes"
	"strconv"
	"strings"

	"fairway/collector/topology"
)

// JobStat is one entry of a job_stats file.
type JobStat struct {
	// ID is as the server printed it, without quotes; Job is the scheduler's number in it, "" where it
	// holds none (a process name, for instance).
	ID  string         `json:"id"`
	Job topology.JobID `json:"job,omitempty"`
	// start_time where the server prints it: another one means counts from 0
	Start string `json:"start,omitempty"`
	// Snapshot is the time at which the entry was last used.
	Snapshot string          `json:"snapshot,omitempty"`
	Ops      map[string]Stat `json:"ops"`
}

// ParseJobStats reads a job_stats file of an OST or MDT. With a bad line it returns the rest and an
// error that names it.
func ParseJobStats(b []byte) ([]JobStat, error) {
	var out []JobStat
	var bad error
	for n := 1; len(b) > 0; n++ {
		var line []byte
		line, b, _ = bytes.Cut(b, []byte("\n"))
		name, rest, ok := bytes.Cut(line, []byte(":"))
		name = bytes.TrimSpace(bytes.TrimLeft(name, " -"))
		rest = bytes.TrimSpace(rest)
		switch {
		case len(bytes.TrimSpace(line)) == 0 || string(name) == "job_stats":
		case !ok:
			bad = firstOf(bad, badLine(n, line, "not \"name: value\""))
		case string(name) == "job_id":
			id := strings.Trim(string(rest), `"`)
			out = append(out, JobStat{ID: id, Job: topology.JobOf(id), Ops: map[string]Stat{}})
		case len(out) == 0:
			bad = firstOf(bad, badLine(n, line, "a value before the first job_id"))
		case string(name) == "start_time":
			out[len(out)-1].Start = string(rest)
		case string(name) == "snapshot_time":
			out[len(out)-1].Snapshot = strings.TrimSpace(strings.TrimSuffix(strings.TrimSuffix(string(rest),
				"secs.nsecs"), "secs.usecs"))
		case string(name) == "elapsed_time":
		default:
			s, err := parseOp(string(name), rest)
			if err != "" {
				bad = firstOf(bad, badLine(n, line, err))
				continue
			}
			out[len(out)-1].Ops[s.Name] = s
		}
	}
	return out, bad
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// parseOp reads "{ samples: N, unit: U, min: .., max: .., sum: .. }".
func parseOp(name string, b []byte) (s Stat, bad string) {
	s.Name = name
	if len(b) < 2 || b[0] != '{' {
		return s, "not \"{ samples: ... }\""
	}
	body, _, _ := bytes.Cut(b[1:], []byte("hist:")) // the histogram's own braces and commas stay out
	known := false
	for _, part := range bytes.Split(bytes.TrimRight(body, " },"), []byte(",")) {
		k, v, _ := bytes.Cut(part, []byte(":"))
		value := string(bytes.TrimSpace(v))
		var err error
		switch string(bytes.TrimSpace(k)) {
		case "samples":
			s.Samples, err = strconv.ParseUint(value, 10, 64)
			known = err == nil
		case "unit":
			s.Unit = value
		case "sum":
			s.Sum, err = strconv.ParseUint(value, 10, 64)
			s.HasSum = err == nil
		}
		if err != nil {
			return s, strings.TrimSpace(string(k)) + " is not a number"
		}
	}
	if !known {
		return s, "no samples"
	}
	return s, ""
}

// Param is one parameter of `lctl get_param`: its dotted path and its value, of one or many lines.
type Param struct {
	Path  string `json:"path"`
	Value []byte `json:"-"`
}

// ParseParams cuts the output of `lctl get_param` into parameters: "path=value", or "path=" and the
// lines up to the next path.
func ParseParams(b []byte) []Param {
	var out []Param
	for len(b) > 0 {
		line, rest, found := bytes.Cut(b, []byte("\n"))
		size := len(line)
		if found {
			size++
		}
		if path, value, ok := bytes.Cut(line, []byte("=")); ok && isPath(path) {
			p := Param{Path: string(path)}
			if len(value) > 0 {
				p.Value = append(value[:len(value):len(value)], '\n')
			}
			out = append(out, p)
		} else if len(out) > 0 {
			p := &out[len(out)-1]
			p.Value = append(p.Value[:len(p.Value):len(p.Value)], b[:size]...)
		}
		b = rest
	}
	return out
}

// isPath distinguishes a parameter's path from a line of a value.
func isPath(b []byte) bool {
	if len(b) == 0 || b[0] == ' ' || b[0] == '-' || b[0] == '\t' {
		return false
	}
	return !bytes.ContainsAny(b, " \t{}\"")
}
