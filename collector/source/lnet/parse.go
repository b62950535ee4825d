package lnet

import (
	"bytes"
	"fmt"
	"strconv"

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

// table visits the lines of a table below its heading, which begins with a word. With a bad line it goes on
// and returns an error that names the first one.
func table(b []byte, heading string, columns func(n int) bool, visit func(f [][]byte) error) error {
	var bad error
	var row [16][]byte
	for n := 1; len(b) > 0; n++ {
		var line []byte
		line, b, _ = bytes.Cut(b, []byte("\n"))
		f := collector.Fields(row[:0], line)
		if len(f) == 0 || string(f[0]) == heading {
			continue
		}
		var err error
		if columns(len(f)) {
			err = visit(f)
		} else {
			err = fmt.Errorf("%d columns", len(f))
		}
		if err != nil && bad == nil {
			bad = fmt.Errorf("line %d: %w", n, err)
		}
	}
	return bad
}

// exactly says that a table has that many columns.
func exactly(want int) func(int) bool { return func(n int) bool { return n == want } }

// column is a number of a row, and where it goes.
type column struct {
	at int
	to *int
}

// numbers reads columns into ints.
func numbers(f [][]byte, into ...column) error {
	for _, c := range into {
		n, err := strconv.Atoi(string(f[c.at]))
		if err != nil {
			return fmt.Errorf("column %d: %w", c.at+1, err)
		}
		*c.to = n
	}
	return nil
}

// ParsePeers reads the peers file: a heading, then nid refs state last max rtr min tx min queue. With a
// bad line it returns the others and an error that names it.
func ParsePeers(b []byte) (out []Peer, err error) {
	out = make([]Peer, 0, rows(b))
	err = table(b, "nid", exactly(10), func(f [][]byte) error {
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

// ParseNIs reads the nis file: a heading, then nid status alive refs peer rtr max tx min; old releases have no
// status, alive and rtr.
func ParseNIs(b []byte) (out []NI, err error) {
	out = make([]NI, 0, rows(b))
	err = table(b, "nid", func(n int) bool { return n == 9 || n == 6 }, func(f [][]byte) error {
		ni := NI{NID: string(f[0])}
		at := 3
		if len(f) == 9 {
			ni.Status, at = string(f[1]), 6
		}
		if err := numbers(f, column{at, &ni.Max}, column{at + 1, &ni.Credits}); err != nil {
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

// ParseBuffers reads the buffers file: a heading, then pages count credits min. A node that routes nothing has the
// heading alone.
func ParseBuffers(b []byte) (out []Pool, err error) {
	out = make([]Pool, 0, rows(b))
	err = table(b, "pages", exactly(4), func(f [][]byte) error {
		var p Pool
		if err := numbers(f, column{0, &p.Pages}, column{1, &p.Count}, column{2, &p.Credits}); err != nil {
			return err
		}
		out = append(out, p)
		return nil
	})
	return out, err
}

// Route is one line of the routes file.
type Route struct {
	Net      string `json:"net"`
	Hops     uint32 `json:"hops"` // 2^32-1 where it is not set
	Priority uint32 `json:"priority"`
	State    string `json:"state"` // up or down
	Router   string `json:"router"`
}

// ParseRoutes reads the routes file: whether the node routes, a heading, then net hops priority state router; 1.8
// has no priority.
func ParseRoutes(b []byte) (routing bool, out []Route, err error) {
	first, rest, _ := bytes.Cut(b, []byte("\n"))
	switch f := bytes.Fields(first); {
	case len(f) == 2 && string(f[0]) == "Routing" && string(f[1]) == "enabled":
		routing = true
	case len(f) == 2 && string(f[0]) == "Routing":
	default:
		return false, nil, fmt.Errorf("line 1: %.80q: not \"Routing enabled\" or \"Routing disabled\"", first)
	}
	err = table(rest, "net", func(n int) bool { return n == 5 || n == 4 }, func(f [][]byte) error {
		r := Route{Net: string(f[0]), State: string(f[len(f)-2]), Router: string(f[len(f)-1])}
		hops, err := strconv.ParseInt(string(f[1]), 10, 64)
		if err != nil {
			return fmt.Errorf("hops: %w", err)
		}
		r.Hops = uint32(hops) // -1 and 4294967295 are the same
		if len(f) == 5 {
			priority, err := strconv.ParseUint(string(f[2]), 10, 32)
			if err != nil {
				return fmt.Errorf("priority: %w", err)
			}
			r.Priority = uint32(priority)
		}
		out = append(out, r)
		return nil
	})
	return routing, out, err
}
