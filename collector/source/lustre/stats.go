package lustre

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"fairway/collector"
)

// Stat is one line of a stats file: how often, and the sum of what was counted. Min, Max and SumSq
// are left out: they cover the time since the last reset, and SumSq wraps.
type Stat struct {
	Name    string `json:"name"`
	Unit    string `json:"unit"` // as printed: usec, usecs, bytes, reqs, regs (a typo of reqs), pages, bufs, sec, secs
	Samples uint64 `json:"samples"`
	Sum     uint64 `json:"sum"`
	// HasSum is false for operations that are only counted.
	HasSum bool `json:"has_sum"`
}

// maxQuote bounds what is quoted of a bad line, and maxNames the names of a file, which has some dozen.
const maxQuote, maxNames = 80, 512

// ParseStats reads a "stats" file of llite, osc, mdc, obdfilter, mdt or a service. Lines of time and
// empty ones are passed over; a name that is listed twice is added up. With a bad line it returns
// the others and an error that names it.
func ParseStats(b []byte) ([]Stat, error) {
	out := make([]Stat, 0, min(bytes.Count(b, []byte("\n")), maxNames))
	full := false
	bad := collector.Lines(b, func(_ []byte, f [][]byte) error {
		if full {
			return nil
		}
		s, ok, err := parseStat(f)
		i := slices.IndexFunc(out, func(o Stat) bool { return ok && o.Name == s.Name })
		switch {
		case !ok:
		case i >= 0:
			out[i].Samples += s.Samples
			out[i].Sum += s.Sum
		case len(out) == maxNames:
			full = true
		default:
			out = append(out, s)
		}
		return err
	})
	if full { // says more than a line that cannot be read
		bad = errors.Join(fmt.Errorf("more than %d names; the rest is not read", maxNames), bad)
	}
	return out, bad
}

// parseStat reads "name N samples [unit] min max sum sumsq", the numbers behind the unit optional.
func parseStat(f [][]byte) (s Stat, ok bool, err error) {
	switch string(bytes.TrimSuffix(f[0], []byte(":"))) {
	case "snapshot_time", "start_time", "elapsed_time":
		return s, false, nil
	}
	if len(f) < 4 || string(f[2]) != "samples" || len(f[3]) < 2 || f[3][0] != '[' {
		return s, false, errors.New(`not "name N samples [unit] ..."`)
	}
	s.Name, s.Unit = string(f[0]), string(bytes.Trim(f[3], "[]"))
	if s.Samples, err = strconv.ParseUint(string(f[1]), 10, 64); err != nil {
		return s, false, errors.New("the count is not a number")
	}
	if len(f) >= 7 { // min max sum [sumsq]
		if s.Sum, err = strconv.ParseUint(string(f[6]), 10, 64); err != nil {
			return s, false, errors.New("the sum is not a number")
		}
		s.HasSum = true
	}
	return s, true, nil
}

// Row is one bucket of a histogram: its key in plain numbers, and what reads and writes it holds.
type Row struct {
	Key   uint64 `json:"key"`
	Read  uint64 `json:"read"`
	Write uint64 `json:"write"`
}

// Table is one histogram of an rpc_stats or brw_stats file, such as "pages per rpc".
type Table struct {
	Title string `json:"title"`
	// Modify says that the table is of a metadata client: it counts requests that modify, as writes.
	Modify bool  `json:"modify,omitempty"`
	Rows   []Row `json:"rows"`
}

// RPCStats is an rpc_stats or brw_stats file. Gauges are the "name: number" lines above the tables.
type RPCStats struct {
	Gauges map[string]uint64 `json:"gauges,omitempty"`
	Tables []Table           `json:"tables"`
}

// ParseRPCStats reads an rpc_stats or brw_stats file; tables may be absent or empty. With a bad line
// it returns the others and an error that names it.
func ParseRPCStats(b []byte) (RPCStats, error) {
	r := RPCStats{Gauges: map[string]uint64{}}
	bad := collector.Lines(b, r.line)
	return r, bad
}

func (r *RPCStats) line(line []byte, f [][]byte) error {
	// headings over the columns
	if string(f[0]) == "read" && len(f) <= 3 || string(f[0]) == "modify" && len(f) == 1 {
		return nil
	}
	if title, halves := tableTitle(line); halves > 0 {
		r.Tables = append(r.Tables, Table{Title: title, Modify: halves == 1, Rows: []Row{}})
		return nil
	}
	key, isRow := bytes.CutSuffix(f[0], []byte(":"))
	name, value, hasColon := bytes.Cut(line, []byte(":"))
	switch {
	case string(key) == "snapshot_time" || string(key) == "start_time" || string(key) == "elapsed_time":
		return nil
	case isRow && len(f) >= 8 && len(r.Tables) > 0:
		return r.row(key, f)
	case isRow && len(f) == 4 && len(r.Tables) > 0 && r.Tables[len(r.Tables)-1].Modify:
		return r.modifyRow(key, f)
	case hasColon:
		v, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 64)
		if err != nil {
			return errors.New("not a histogram row and not \"name: number\"")
		}
		r.Gauges[string(bytes.TrimSpace(name))] = v
		return nil
	}
	return errors.New("not a line of rpc_stats or brw_stats")
}

// tableTitle knows a table by its column heading, which has "% cum %" for each half, one or two; the last
// word before the first of them is the unit (rpcs, ios, maps).
func tableTitle(line []byte) (title string, halves int) {
	halves = bytes.Count(line, []byte("% cum %"))
	head, _, _ := bytes.Cut(line, []byte("%"))
	words := bytes.Fields(head)
	if halves > 2 || len(words) < 2 {
		return "", 0
	}
	return string(bytes.Join(words[:len(words)-1], []byte(" "))), halves
}

// modifyRow reads "key: n % cum%" of a metadata client.
func (r *RPCStats) modifyRow(key []byte, f [][]byte) error {
	k, ok := scaled(key)
	n, err := strconv.ParseUint(string(f[1]), 10, 64)
	if !ok || err != nil {
		return errors.New("not \"key: requests % %\"")
	}
	t := &r.Tables[len(r.Tables)-1]
	t.Rows = append(t.Rows, Row{Key: k, Write: n})
	return nil
}

// row reads "key: r r% rcum% | w w% wcum%".
func (r *RPCStats) row(key []byte, f [][]byte) error {
	k, ok := scaled(key)
	if !ok {
		return errors.New("the bucket is not a number")
	}
	read, err := strconv.ParseUint(string(f[1]), 10, 64)
	if err != nil || string(f[4]) != "|" {
		return errors.New("not \"key: reads % % | writes % %\"")
	}
	write, err := strconv.ParseUint(string(f[5]), 10, 64)
	if err != nil {
		return errors.New("the number of writes is not a number")
	}
	t := &r.Tables[len(r.Tables)-1]
	t.Rows = append(t.Rows, Row{k, read, write})
	return nil
}

// scaled reads a number with an optional K, M or G behind it.
func scaled(b []byte) (uint64, bool) {
	shift := 0
	if n := len(b); n > 1 {
		switch b[n-1] {
		case 'K':
			shift = 10
		case 'M':
			shift = 20
		case 'G':
			shift = 30
		}
		if shift > 0 {
			b = b[:n-1]
		}
	}
	v, err := strconv.ParseUint(string(b), 10, 32)
	return v << shift, err == nil
}
