package lwfs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Class is what a line of the server trace counts.
type Class uint8

// The six histograms and the queue gauge of one sample.
const (
	ReadExec Class = iota
	ReadWait
	WriteExec
	WriteWait
	MetaExec
	MetaWait
	Queue
	classes
)

var classNames = [classes]string{"Read exe", "Read wait", "Write exe", "Write wait", "Meta exe", "Meta wait",
	"queue length"}

// String is the class's name in the trace.
func (c Class) String() string { return classNames[c] }

// MarshalText writes the name.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Buckets is the number of buckets of a histogram.
const Buckets = 8

// Counts is a cumulative latency histogram.
type Counts [Buckets]uint64

// Sum is how many operations the histogram holds.
func (c Counts) Sum() (n uint64) {
	for _, v := range c {
		n += v
	}
	return n
}

// Line is one line of the server trace.
type Line struct {
	Host  string    `json:"host"`
	At    time.Time `json:"at"` // with the trace's resolution of one second
	Class Class     `json:"class"`
	// Counts is set for the histograms, Queue for the gauge.
	Counts Counts `json:"counts"`
	Queue  uint64 `json:"queue"`
}

// MarshalJSON writes the histogram or the gauge, whichever the line has.
func (l Line) MarshalJSON() ([]byte, error) {
	type plain Line // without this method
	out := struct {
		plain
		Counts *Counts `json:"counts,omitempty"`
		Queue  *uint64 `json:"queue,omitempty"`
	}{plain: plain(l)}
	if l.Class == Queue {
		out.Queue = &l.Queue
	} else {
		out.Counts = &l.Counts
	}
	return json.Marshal(out)
}

const (
	timeLayout = "2006-01-02 15:04:05"
	maxQuote   = 100
)

// ParseLine reads "HOST [YYYY-MM-DD HH:MM:SS]  [Trace]: MESSAGE [STAMP]" with local times of zone. ok is
// false for lines that are no trace (banners, blank ones); an error quotes what is wrong in one that is.
func ParseLine(b []byte, zone *time.Location) (l Line, ok bool, err error) {
	head, msg, found := bytes.Cut(b, []byte("[Trace]:"))
	if !found {
		return Line{}, false, nil
	}
	host, stamp, found := bytes.Cut(head, []byte("["))
	stamp, _, closed := bytes.Cut(stamp, []byte("]"))
	bad := func(why string) (Line, bool, error) {
		return Line{}, false, fmt.Errorf("%q: %s", b[:min(len(b), maxQuote)], why)
	}
	if !found || !closed {
		return bad("no [time] before [Trace]")
	}
	if l.At, err = time.ParseInLocation(timeLayout, string(stamp), zone); err != nil {
		return bad("the time is not " + timeLayout)
	}
	l.Host = string(bytes.TrimSpace(host))
	name, values, found := bytes.Cut(msg, []byte(":"))
	if !found {
		return bad("no counts")
	}
	l.Class = classes
	for c := range classes {
		if string(bytes.TrimSpace(name)) == classNames[c] {
			l.Class = c
		}
	}
	if l.Class == classes {
		return bad("what it counts is not known")
	}
	want := Buckets
	if l.Class == Queue {
		want = 1
	}
	f := bytes.Fields(values)
	if len(f) < want { // behind the counts stands the receiver's stamp, or nothing
		return bad(fmt.Sprintf("%d numbers, not %d", len(f), want))
	}
	for i := range want {
		n, err := strconv.ParseUint(string(f[i]), 10, 64)
		if err != nil {
			return bad("a count is not a number")
		}
		if l.Class == Queue {
			l.Queue = n
		} else {
			l.Counts[i] = n
		}
	}
	return l, true, nil
}

// ClientOp is one line of a compute node's client trace.
type ClientOp struct {
	At     time.Time `json:"at"`
	Op     string    `json:"op"` // OPEN, READ, WRITE, RELEASE, READDIR, ...
	FD     string    `json:"fd,omitempty"`
	Path   string    `json:"path,omitempty"`
	Count  uint64    `json:"count,omitempty"`  // calls that the line stands for
	Bytes  uint64    `json:"bytes,omitempty"`  // of all calls
	Offset *int64    `json:"offset,omitempty"` // of the first call, where the line has one
}

// ParseClientLine reads "[time] T OP ...". ok is false for lines that are no trace and for the requests
// of opens, whose completion (with "=> fd") counts.
func ParseClientLine(b []byte, zone *time.Location) (c ClientOp, ok bool, err error) {
	b, _, _ = bytes.Cut(b, []byte("||")) // released data add a stamp and the host
	stamp, rest, found := bytes.Cut(bytes.TrimPrefix(bytes.TrimSpace(b), []byte("[")), []byte("]"))
	f := bytes.Fields(rest)
	if !found || len(f) < 2 || string(f[0]) != "T" {
		return ClientOp{}, false, nil
	}
	if c.At, err = time.ParseInLocation(timeLayout, string(stamp), zone); err != nil {
		return ClientOp{}, false, fmt.Errorf("%q: the time is not %s", b[:min(len(b), maxQuote)], timeLayout)
	}
	c.Op = string(bytes.TrimSuffix(f[1], []byte("()")))
	if c.Op == "OPEN" {
		if len(f) < 5 || string(f[len(f)-2]) != "=>" {
			return ClientOp{}, false, nil
		}
		c.Path, c.FD, c.Count = string(f[2]), string(f[len(f)-1]), 1
		return c, true, nil
	}
	if err := c.transfer(f[2:]); err != nil {
		return ClientOp{}, false, fmt.Errorf("%q: %w", b[:min(len(b), maxQuote)], err)
	}
	return c, true, nil
}

// transfer reads the fields of a merged read or write. With an offset, size is of one call and the
// offset that of the last one; without, size is the sum; "=avg" lines give a mean size.
func (c *ClientOp) transfer(f [][]byte) error {
	v := map[string]uint64{}
	for _, w := range f {
		if bytes.HasPrefix(w, []byte("0x")) {
			c.FD = string(w)
			continue
		}
		k, n, ok := bytes.Cut(w, []byte("="))
		if !ok {
			continue
		}
		x, err := strconv.ParseUint(string(n), 10, 63)
		if err != nil {
			return fmt.Errorf("%s is not a number", k)
		}
		v[string(k)] = x
	}
	c.Count = max(v["count"], 1)
	size, merged := v["size"], c.Count
	switch offset, hasOffset := v["offset"]; {
	case hasOffset:
		first := int64(offset) - int64(size)*int64(c.Count-1)
		c.Offset = &first
	case v["maxsize"] > 0:
		size = v["avg"]
	default:
		merged = 1
	}
	c.Bytes = size * merged
	return nil
}
