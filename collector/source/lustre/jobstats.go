package lustre

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"fairway/collector/topology"
)

// JobStat is one entry of a job_stats file.
type JobStat struct {
	// ID is as the client gave it; Job is the scheduler's number in it, "" where it holds none.
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
	bad := strayLine(b)
	err := scanJobs(context.Background(), bytes.NewReader(b), make([]byte, 0, scanBuffer),
		func([]byte) int { return 0 }, func(text []byte, _ bool) {
			h := headOf(text)
			id := givenAs(h.id)
			j := JobStat{ID: id, Job: topology.JobOf(id), Snapshot: stampText(h.snapshot), Ops: map[string]Stat{}}
			for line := range bytes.Lines(h.rest) {
				name, value := nameAndValue(line)
				switch string(name) {
				case "", "job_stats", "elapsed_time":
				case "start_time":
					j.Start = stampText(value)
				default:
					o, why := parseOp(value)
					if why != "" {
						bad = firstOf(bad, badEntry(h.id, line, why))
						continue
					}
					j.Ops[string(name)] = Stat{Name: string(name), Unit: string(o.unit), Samples: o.samples, Sum: o.sum,
						HasSum: o.hasSum}
				}
			}
			out = append(out, j)
		})
	return out, firstOf(bad, err)
}

// strayLine names a line in front of the first entry that does not belong there.
func strayLine(b []byte) error {
	for line := range bytes.Lines(b) {
		if bytes.HasPrefix(line, entryMark) {
			break
		}
		if name, _ := nameAndValue(line); string(name) != "job_stats" && len(bytes.TrimSpace(line)) > 0 {
			return badEntry(nil, line, "a value before the first job_id")
		}
	}
	return nil
}

func badEntry(id, line []byte, why string) error {
	return fmt.Errorf("entry %.40q: %q: %s", id, line[:min(len(line), maxQuote)], why)
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

const (
	// scanBuffer is how much of a table is read at once, maxEntry how long an entry of some twenty lines may be; bytes.
	scanBuffer, maxEntry = 512 << 10, 32 << 10
	// maxID bounds an id: Lustre's have 31 characters, four times as many where they are escaped.
	maxID = 255
	// mostEmpty reads in a row may bring nothing.
	mostEmpty = 100
)

// entryMark is what an entry begins with, and nextEntry finds the next one.
var entryMark, nextEntry = []byte("- job_id:"), []byte("\n- job_id:")

// scanJobs cuts a table into its entries without holding it: those of a busy server have 200 MB. It asks lengthOf,
// whose bytes begin with an entry, how long that is, 0 where that is not known, and hands each entry's text to take. Of
// a text that is longer than an entry can be it hands on the beginning.
func scanJobs(ctx context.Context, r io.Reader, b []byte, lengthOf func(b []byte) int,
	take func(text []byte, known bool)) error {
	b = b[:0]
	for at, ended := 0, false; ; {
		if !ended && len(b)-at < maxEntry+len(nextEntry) {
			b, at = b[:copy(b, b[at:])], 0
			var err error
			if b, ended, err = fillUp(ctx, r, b); err != nil {
				return err
			}
		}
		rest := b[at:]
		switch {
		case len(rest) == 0:
			return nil
		case !bytes.HasPrefix(rest, entryMark): // a heading, or what is left of a text that is too long
			next := bytes.Index(rest, nextEntry)
			switch {
			case next >= 0:
				at += next + 1
			case ended:
				return nil
			default:
				at = len(b) - len(nextEntry)
			}
			continue
		}
		n := lengthOf(rest)
		known := n > 0 && (n == len(rest) && ended || n < len(rest) && bytes.HasPrefix(rest[n:], entryMark))
		if !known {
			n = bytes.Index(rest, nextEntry) + 1
			if n == 0 && ended {
				n = len(rest)
			} else if n == 0 {
				n = len(rest) - len(nextEntry)
			}
		}
		take(rest[:min(n, maxEntry)], known)
		at += n
	}
}

// fillUp reads until the buffer is full or nothing is left.
func fillUp(ctx context.Context, r io.Reader, b []byte) (_ []byte, ended bool, err error) {
	for empty := 0; len(b) < cap(b); {
		if err := ctx.Err(); err != nil {
			return b, false, err
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if empty++; n > 0 {
			empty = 0
		}
		switch {
		case errors.Is(err, io.EOF):
			return b, true, nil
		case err != nil:
			return b, false, err
		case empty == mostEmpty:
			return b, false, io.ErrNoProgress
		}
	}
	return b, false, nil
}

// head is the beginning of an entry: its id and the time of its last use as printed, and the lines behind them.
type head struct{ id, snapshot, rest []byte }

// headOf reads an entry's head. A program may have named itself with line breaks, which older releases print as they
// are: the id goes on to the line that is indented.
func headOf(text []byte) (h head) {
	text = text[len(entryMark):]
	end := 0
	for {
		n := bytes.IndexByte(text[end:min(len(text), maxID+len(entryMark))], '\n')
		if n < 0 {
			end = min(len(text), maxID)
			break
		}
		end += n
		if after := text[end:]; len(after) < 3 || after[1] == ' ' && after[2] == ' ' ||
			bytes.HasPrefix(after, nextEntry) {
			break
		}
		end++
	}
	// What begins with a blank is a mark of ours, which no client may write.
	h.id, h.rest = bytes.TrimSpace(bytes.Trim(bytes.TrimSpace(text[:end]), `"`)), text[end:]
	h.id = h.id[:min(len(h.id), maxID)]
	line, rest, _ := bytes.Cut(h.rest[min(1, len(h.rest)):], []byte("\n"))
	if value, is := bytes.CutPrefix(line, []byte("  snapshot_time:")); is {
		h.snapshot, h.rest = value, rest
	}
	return h
}

// givenAs is an id as the client gave it: since 2.15 servers print most characters besides letters and digits by their
// numbers, such as the brackets of an array's task. One that a terminal would obey stays as it is printed.
func givenAs(printed []byte) string {
	if given, err := strconv.Unquote(`"` + string(printed) + `"`); err == nil && topology.CleanName(given) {
		return given
	}
	return string(printed)
}

func nameAndValue(line []byte) (name, value []byte) {
	name, value, _ = bytes.Cut(line, []byte(":"))
	return bytes.TrimSpace(name), bytes.TrimSpace(value)
}

// stampText leaves a time's unit out.
func stampText(b []byte) string {
	s, _, _ := strings.Cut(string(bytes.TrimSpace(b)), " ")
	return s
}

// stampOf reads a time such as "1795768113.402319769 secs.nsecs", ns; 0 where it is not a time.
func stampOf(b []byte) (ns uint64) {
	whole, part, _ := bytes.Cut(bytes.TrimLeft(b, " "), []byte("."))
	digits := func(b []byte, most int) (n uint64, many int) {
		for many < min(len(b), most) && b[many] >= '0' && b[many] <= '9' {
			n = 10*n + uint64(b[many]-'0')
			many++
		}
		return n, many
	}
	seconds, _ := digits(whole, 10)
	fraction, many := digits(part, 9)
	for ; many < 9; many++ {
		fraction *= 10
	}
	return seconds*1e9 + fraction
}

// op is an operation's line of an entry.
type op struct {
	samples, sum uint64
	hasSum       bool
	unit         []byte
}

// parseOp reads "{ samples: N, unit: U, min: .., max: .., sum: .. }"; what follows is squares and a histogram.
func parseOp(b []byte) (o op, bad string) {
	if len(b) < 2 || b[0] != '{' {
		return o, "not \"{ samples: ... }\""
	}
	known := false
	for rest := b[1:]; len(rest) > 0 && !o.hasSum; {
		var part []byte
		part, rest, _ = bytes.Cut(rest, []byte(","))
		k, v := nameAndValue(part)
		if len(rest) == 0 {
			v = bytes.TrimRight(v, " }")
		}
		var err error
		switch string(k) {
		case "samples":
			o.samples, err = strconv.ParseUint(string(v), 10, 64)
			known = err == nil
		case "unit":
			o.unit = v
		case "sum":
			o.sum, err = strconv.ParseUint(string(v), 10, 64)
			o.hasSum = err == nil
		}
		if err != nil {
			return o, string(k) + " is not a number"
		}
	}
	if !known {
		return o, "no samples"
	}
	return o, ""
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
