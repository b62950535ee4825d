package lnet

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"fairway/collector"
)

// Stats are the counters since LNet was started, in the order of the file. Counts are 32 bits wide
// and wrap; lengths are bytes.
type Stats struct {
	// MsgsAlloc is a gauge: the messages that are in the node now. A routed one counts from its arrival, waiting for
	// a buffer included, to its send's completion. MsgsMax is its high-water mark.
	MsgsAlloc     uint64 `json:"msgs_alloc"`
	MsgsMax       uint64 `json:"msgs_max"`
	Errors        uint64 `json:"errors"`
	Sent          uint64 `json:"sent"`
	Received      uint64 `json:"received"`
	Routed        uint64 `json:"routed"`
	Dropped       uint64 `json:"dropped"`
	SentBytes     uint64 `json:"sent_bytes"`
	ReceivedBytes uint64 `json:"received_bytes"`
	RoutedBytes   uint64 `json:"routed_bytes"`
	DropsBytes    uint64 `json:"dropped_bytes"`
}

// wentBack says that the counters began anew: those of bytes have 64 bits and never wrap.
func (s *Stats) wentBack(was *Stats) bool {
	return s.SentBytes < was.SentBytes || s.ReceivedBytes < was.ReceivedBytes || s.RoutedBytes < was.RoutedBytes ||
		s.DropsBytes < was.DropsBytes
}

// ParseStats reads the stats file: one line of eleven numbers.
func ParseStats(b []byte) (Stats, error) {
	var row [16][]byte
	f := collector.Fields(row[:0], b)
	var n [11]uint64
	if len(f) < len(n) {
		return Stats{}, fmt.Errorf("%d numbers, not %d", len(f), len(n))
	}
	for i := range n { // a newer release may append further ones
		var err error
		if n[i], err = strconv.ParseUint(string(f[i]), 10, 64); err != nil {
			return Stats{}, fmt.Errorf("number %d: %w", i+1, err)
		}
	}
	return Stats{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10]}, nil
}

// Peer is one line of the peers file.
type Peer struct {
	NID        string `json:"nid"`
	State      string `json:"state"`          // NA, up or down
	Max        int    `json:"max"`            // credits in all
	RtrCredits int    `json:"router_credits"` // below 0 that many of its messages wait to be received
	Credits    int    `json:"credits"`        // to send with now; below 0 that many messages wait
	Queued     uint64 `json:"queued_bytes"`   // waiting and in flight
}

// InFlight is how many messages are on their way to the peer, those that wait for a credit included.
func (p *Peer) InFlight() int { return max(0, p.Max-p.Credits) }

// Waiting is how many messages wait for a credit to be sent to the peer with.
func (p *Peer) Waiting() int { return max(0, -p.Credits) }

// rows is how many rows a table has at most.
func rows(b []byte) int { return bytes.Count(b, []byte("\n")) }

// heading names the columns of a table that are read, in the order in which a row is handed on. Those of the file are
// found by their names, so that a release may add some; one with a question mark may be missing.
type heading []string

// mostColumns is more than any table has.
const mostColumns = 12

// place is where a heading's columns are in a file's rows; -1: it has none such.
type place struct {
	of      [mostColumns]int
	columns int  // of the file
	sorted  bool // they are where they are wanted
}

// table visits the rows of a table below its heading, whose columns are known; a file without one has the columns of
// the one of these that is as long. With a bad line it goes on and returns an error that names the first one.
func table(b []byte, known []heading, visit func(f [][]byte) error) error {
	var bad error
	var row, sorted [16][]byte
	var at place
	for n := 1; len(b) > 0; n++ {
		var line []byte
		line, b, _ = bytes.Cut(b, []byte("\n"))
		f := collector.Fields(row[:0], line)
		if len(f) == 0 {
			continue
		}
		var err error
		headed := string(f[0]) == known[0][0]
		for i := 0; at.columns == 0 && i < len(known); i++ {
			at = known[i].find(f, headed)
		}
		switch {
		case headed && at.columns == 0:
			return fmt.Errorf("line %d: %.80q: not the heading of this table", n, line)
		case headed:
			continue
		case len(f) < at.columns || at.columns == 0:
			err = fmt.Errorf("%d columns", len(f))
		case at.sorted:
			err = visit(f)
		default:
			for i := range known[0] {
				sorted[i] = nil
				if at.of[i] >= 0 {
					sorted[i] = f[at.of[i]]
				}
			}
			err = visit(sorted[:len(known[0])])
		}
		if err != nil && bad == nil {
			bad = fmt.Errorf("line %d: %w", n, err)
		}
	}
	return bad
}

// find places the columns in a row of a file, its heading or, where it has none, any; no columns: it is another one's.
func (h heading) find(f [][]byte, headed bool) (at place) {
	if !headed && len(f) != h.columns() {
		return place{}
	}
	var used [16]bool
	at.sorted = true
	for i, name := range h {
		name, may := strings.CutSuffix(name, "?")
		if at.of[i] = -1; name == "" {
			at.sorted = false
			continue // of the releases that this heading is of
		}
		for k := range f {
			if !used[k] && (!headed || string(f[k]) == name) {
				used[k], at.of[i] = true, k
				break
			}
		}
		if at.of[i] < 0 && !may {
			return place{}
		}
		at.sorted = at.sorted && at.of[i] == i
	}
	at.columns = len(f)
	return at
}

// column is a number of a row, and where it goes.
type column struct {
	at int
	to *int
}

// numbers reads columns into ints.
func numbers(f [][]byte, into ...column) error {
	for _, c := range into {
		n, err := parseSigned(string(f[c.at]))
		if err != nil {
			return fmt.Errorf("column %d: %w", c.at+1, err)
		}
		*c.to = n
	}
	return nil
}

// parseSigned reads a number of 32 bits that may be printed with or without its sign.
func parseSigned(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err == nil && n > 1<<31-1 && n < 1<<32 {
		n -= 1 << 32
	}
	return n, err
}

// ParsePeers reads the peers file. With a bad line it returns the others and an error that names it.
func ParsePeers(b []byte) (out []Peer, err error) {
	out = make([]Peer, 0, rows(b))
	columns := heading{"nid", "refs?", "state", "last?", "max", "rtr", "min?", "tx", "min?", "queue"}
	err = table(b, []heading{columns}, func(f [][]byte) error {
		p := Peer{NID: string(f[0]), State: string(f[2])}
		if err := numbers(f, column{4, &p.Max}, column{5, &p.RtrCredits}, column{7, &p.Credits}); err != nil {
			return err
		}
		queued, err := strconv.ParseUint(string(f[9]), 10, 64)
		if err != nil {
			return fmt.Errorf("queue: %w", err)
		}
		p.Queued = queued
		out = append(out, p)
		return nil
	})
	return out, err
}

// NI is one line of the nis file: the credits of one network interface in one CPU partition.
type NI struct {
	NID     string `json:"nid"`
	Status  string `json:"status"`  // up or down
	Max     int    `json:"max"`     // credits in all
	Credits int    `json:"credits"` // to send with now; below 0 that many messages wait
}

// ParseNIs reads the nis file; old releases have no status, alive and rtr.
func ParseNIs(b []byte) (out []NI, err error) {
	out = make([]NI, 0, rows(b))
	columns := heading{"nid", "status?", "alive?", "refs?", "peer?", "rtr?", "max", "tx", "min?"}
	old := heading{"nid", "", "", "refs", "peer", "", "max", "tx", "min"}
	err = table(b, []heading{columns, old}, func(f [][]byte) error {
		ni := NI{NID: string(f[0]), Status: string(f[1])}
		if err := numbers(f, column{6, &ni.Max}, column{7, &ni.Credits}); err != nil {
			return err
		}
		out = append(out, ni)
		return nil
	})
	return out, err
}

// Pool is one line of the buffers file: a router's buffers of one size in one CPU partition.
type Pool struct {
	Pages   int `json:"pages"` // of a buffer: 0, 1 or 256
	Count   int `json:"count"`
	Credits int `json:"credits"` // free now; below 0 that many messages wait for a buffer
}

// ParseBuffers reads the buffers file. A node that routes nothing has the heading alone.
func ParseBuffers(b []byte) (out []Pool, err error) {
	out = make([]Pool, 0, rows(b))
	err = table(b, []heading{{"pages", "count", "credits", "min?"}}, func(f [][]byte) error {
		var p Pool
		if err := numbers(f, column{0, &p.Pages}, column{1, &p.Count}, column{2, &p.Credits}); err != nil {
			return err
		}
		out = append(out, p)
		return nil
	})
	return out, err
}

// Route is one route of a node, as the routes file and lnetctl say it.
type Route struct {
	Net      string `json:"net"`
	Hops     int    `json:"hops"` // -1 where it is not set
	Priority int    `json:"priority"`
	State    string `json:"state"` // up or down; empty: lnetctl did not say
	Router   string `json:"router"`
}

// ParseRoutes reads the routes file: whether the node routes now, then its routes; 1.8 has no priority. A node whose
// routing is starting or stopping does not route.
func ParseRoutes(b []byte) (routing bool, out []Route, err error) {
	first, rest, _ := bytes.Cut(b, []byte("\n"))
	word, found := strings.CutPrefix(strings.TrimSpace(string(first)), "Routing ")
	if !found {
		return false, nil, fmt.Errorf("line 1: %.80q: not \"Routing\" and how it stands", first)
	}
	known := []heading{{"net", "hops", "priority", "state", "router"}, {"net", "hops", "prio", "state", "router"},
		{"net", "hops", "", "state", "router"}}
	err = table(rest, known, func(f [][]byte) error {
		r := Route{Net: string(f[0]), State: string(f[3]), Router: string(f[4])}
		if err := numbers(f, column{1, &r.Hops}); err != nil {
			return err
		}
		if f[2] != nil {
			if err := numbers(f, column{2, &r.Priority}); err != nil {
				return err
			}
		}
		out = append(out, r)
		return nil
	})
	return word == "enabled", out, err
}

// columns is how many a file with this heading has.
func (h heading) columns() (n int) {
	for _, name := range h {
		if name != "" {
			n++
		}
	}
	return n
}
