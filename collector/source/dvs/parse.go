package dvs

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"fairway/collector"
)

// Count is one kind of request: what a client asked and what a server answered, well and with an error.
type Count struct {
	Kind   string `json:"kind"` // without RQ_
	Client [2]uint64
	Server [2]uint64
}

// Stats is a file of counts.
type Stats struct {
	Counts []Count
	Bytes  *[2]uint64 // that programs read and wrote; nil: the file's format has none
}

// byClass sums the requests of each class, well and with an error. A kind that a file leaves out as long as it is 0
// makes no difference to them.
func (s *Stats) byClass(server bool) (sum [classes][2]uint64) {
	for i := range s.Counts {
		c, ok := classOf(s.Counts[i].Kind)
		if !ok {
			continue
		}
		n := &s.Counts[i].Client
		if server {
			n = &s.Counts[i].Server
		}
		sum[c][0], sum[c][1] = sum[c][0]+n[0], sum[c][1]+n[1]
	}
	return sum
}

// ParseStats reads a file of counts in one of two formats: "legacy" with "RQ_KIND: client ok, client errors, server ok,
// server errors, last, longest", whose lines of other names count calls of the node's own kernel and are passed over,
// and "flat" with a name and a value a line. With a bad line it returns the others and an error that names the first.
func ParseStats(b []byte) (st Stats, bad error) {
	text := bytes.TrimSpace(b)
	switch {
	case len(text) == 0:
		return st, errors.New("it is empty: its statistics are switched off; write enable to it")
	case text[0] == '{':
		return st, errors.New("its format is json: write flat to it, or load dvs with " +
			"dvsdebug_stat_defaults=enable,flat")
	case bytes.HasPrefix(text, []byte("STATS.")):
		return parseFlat(text)
	}
	return parseLegacy(b)
}

func parseLegacy(b []byte) (st Stats, bad error) {
	bad = collector.Lines(b, func(line []byte, _ [][]byte) error {
		kind, rest, ok := bytes.Cut(line, []byte(":"))
		name, ours := strings.CutPrefix(string(bytes.TrimSpace(kind)), "RQ_")
		if !ours {
			return nil
		}
		c := Count{Kind: name}
		f := bytes.Fields(rest)
		if !ok || len(f) < 4 {
			return fmt.Errorf("%d numbers, not 4 and two times", len(f))
		}
		for i, to := range []*uint64{&c.Client[0], &c.Client[1], &c.Server[0], &c.Server[1]} {
			var err error
			if *to, err = strconv.ParseUint(string(f[i]), 10, 64); err != nil {
				return fmt.Errorf("%.40q is not a count", f[i])
			}
		}
		st.Counts = append(st.Counts, c)
		return nil
	})
	if len(st.Counts) == 0 && bad == nil {
		bad = errors.New("no line of it counts requests (RQ_...)")
	}
	return st, bad
}

// parseFlat reads lines such as "RQ.RQ_OPEN.req.ok 12". What is 0 may be left out.
func parseFlat(b []byte) (st Stats, bad error) {
	st.Bytes = &[2]uint64{}
	at := map[string]int{} // in Counts, by kind
	off := false
	bad = collector.Lines(b, func(line []byte, _ [][]byte) error {
		name, value, _ := strings.Cut(string(line), " ")
		value = strings.TrimSpace(value)
		off = off || name == "STATS.flags" && strings.Contains(","+value+",", ",disable,")
		to := st.flat(name, at)
		if to == nil {
			return nil
		}
		v, err := strconv.ParseUint(value, 10, 64)
		if *to = v; err != nil {
			err = fmt.Errorf("%.40q is not a count", value)
		}
		return err
	})
	if off {
		return st, errors.New("its statistics are switched off; write enable to it")
	}
	if len(st.Counts) == 0 { // nothing was asked yet
		st.Counts = append(st.Counts, Count{Kind: "LOOKUP"})
	}
	return st, bad
}

// flat is where the value of a name belongs; nil: nowhere.
func (s *Stats) flat(name string, at map[string]int) *uint64 {
	switch name {
	case "PERF.user.read.total.bytes":
		return &s.Bytes[read]
	case "PERF.user.write.total.bytes":
		return &s.Bytes[write]
	}
	f := strings.Split(name, ".")
	if len(f) != 4 || f[0] != "RQ" || f[3] != "ok" && f[3] != "err" {
		return nil
	}
	kind := strings.TrimPrefix(f[1], "RQ_")
	i, known := at[kind]
	if !known {
		i = len(s.Counts)
		at[kind] = i
		s.Counts = append(s.Counts, Count{Kind: kind})
	}
	of := &s.Counts[i].Client
	switch f[2] {
	case "reqp":
		of = &s.Counts[i].Server
	case "req":
	default:
		return nil
	}
	if f[3] == "err" {
		return &of[1]
	}
	return &of[0]
}

// Timing is what DVS measured of one kind of message since the file was reset: sums, microseconds.
type Timing struct {
	Kind    string
	Number  uint64
	Queue   uint64 // in the server's queue
	Service uint64 // in the server's file system and in DVS itself
	Total   uint64 // of a server both; of a client from sending to the answer, with the network
}

// ParseTimings reads "KIND, what was measured, number, sum, mean, longest, shortest, share" a line. With a bad line it
// returns the others and an error that names the first one.
func ParseTimings(b []byte) (out []Timing, bad error) {
	at := map[string]int{}
	bad = collector.Lines(b, func(_ []byte, f [][]byte) error {
		if f[0][0] == '#' {
			return nil
		}
		if len(f) < 4 {
			return fmt.Errorf("%d words, not a name, a measurement and numbers", len(f))
		}
		var v [2]uint64
		for i := range v {
			var err error
			if v[i], err = strconv.ParseUint(string(f[2+i]), 10, 64); err != nil {
				return fmt.Errorf("%.40q is not a count", f[2+i])
			}
		}
		kind := string(f[0])
		i, known := at[kind]
		if !known {
			i = len(out)
			at[kind] = i
			out = append(out, Timing{Kind: kind})
		}
		t := &out[i]
		switch string(f[1]) {
		case "Queue":
			t.Queue = v[1]
		case "File_System", "Server_Overhead":
			t.Service += v[1]
		case "Total":
			t.Number, t.Total = v[0], v[1]
		}
		return nil
	})
	if len(out) == 0 && bad == nil {
		bad = errors.New("no line of it has times of messages")
	}
	return out, bad
}

// Transport is what the transport of a server does at the moment, over all of its instances.
type Transport struct{ Threads, Busy, Queued uint64 }

// ParseTransport reads the lines of the threads and of the queue. Other lines are passed over.
func ParseTransport(b []byte) (t Transport, err error) {
	found := false
	for line := range bytes.Lines(b) {
		line = bytes.TrimSpace(line)
		i := bytes.LastIndexByte(line, ' ')
		if i < 0 {
			continue
		}
		var to *uint64
		switch string(bytes.TrimSpace(line[:i])) {
		case "Total Threads":
			to = &t.Threads
		case "Active Threads", "Blocked Threads":
			to = &t.Busy
		case "Queued Messages":
			to = &t.Queued
		default:
			continue
		}
		v, e := strconv.ParseUint(string(line[i+1:]), 10, 32)
		if e != nil {
			return t, fmt.Errorf("%.80q: %.40q is not a count", line, line[i+1:])
		}
		*to += v
		found = true
	}
	if !found {
		err = errors.New("no line of it counts threads or messages that are queued")
	}
	return t, err
}

// Request is a request of a client that waits for its answer. Its path and its user stay where they are.
type Request struct {
	Server string
	Kind   string // without RQ_
	Age    time.Duration
}

// ParseRequests reads "server: S request: RQ_KIND path: P user: N time: SECONDS sec apid: N" a line, of which the end
// may be missing. Paths are users' own and may hold anything, a line's end included: what follows is then read from the
// line's end, or passed over. A file without any outstanding request is empty.
func ParseRequests(b []byte) (out []Request, bad error) {
	some := false
	for line := range bytes.Lines(b) {
		some = some || len(bytes.TrimSpace(line)) > 0
		head := line
		if i := bytes.Index(line, []byte("path:")); i >= 0 {
			head = line[:i]
		}
		f := bytes.Fields(head)
		if len(f) < 4 || string(f[0]) != "server:" || string(f[2]) != "request:" {
			continue
		}
		r := Request{Server: string(f[1]), Kind: strings.TrimPrefix(string(f[3]), "RQ_")}
		if i := bytes.LastIndex(line, []byte("time: ")); i >= 0 {
			text, _, _ := bytes.Cut(bytes.TrimSpace(line[i+len("time:"):]), []byte(" "))
			if v, err := strconv.ParseFloat(string(text), 64); err == nil && v >= 0 && v < maxAge.Seconds() {
				r.Age = time.Duration(v * float64(time.Second))
			}
		}
		out = append(out, r)
	}
	if some && len(out) == 0 {
		bad = errors.New(`no line of it is an outstanding request ("server: ... request: RQ_...")`)
	}
	return out, bad
}

// maxAge is longer than a node is up.
const maxAge = 100 * 365 * 24 * time.Hour
