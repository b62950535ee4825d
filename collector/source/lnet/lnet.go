// Package lnet reads a node's LNet, Lustre's network: how much it received, sent and routed, what it
// dropped, and how many messages wait for credits.
//
// It fills routed_bytes on a router, link_rx_bytes and link_tx_bytes (routed bytes count on both sides), errors (errors
// and drops) and, where the peers can be read (as root), queue_len, the messages that wait for a peer's
// credits. A tick reads one or two small files: about 20 microseconds.
package lnet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"

	"fairway/collector"
)

// roots are where releases put LNet's files: up to 2.10, and later.
var roots = []string{"proc/sys/lnet", "sys/kernel/debug/lnet"}

// Stats are the counters since LNet was started, in the order of the file. Counts are 32 bits wide
// and wrap; lengths are bytes.
type Stats struct {
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
	f := bytes.Fields(b)
	var n [11]uint64
	if len(f) != len(n) {
		return Stats{}, fmt.Errorf("%d numbers, not %d", len(f), len(n))
	}
	for i := range f {
		var err error
		if n[i], err = strconv.ParseUint(string(f[i]), 10, 64); err != nil {
			return Stats{}, fmt.Errorf("number %d: %w", i+1, err)
		}
	}
	return Stats{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10]}, nil
}

// Peer is one line of the peers file.
type Peer struct {
	NID     string `json:"nid"`
	State   string `json:"state"`        // NA, up or down
	Credits int    `json:"credits"`      // to send with now; below 0 that many messages wait
	Queued  uint64 `json:"queued_bytes"` // bytes
}

// ParsePeers reads the peers file: a heading, then nid refs state last max rtr min tx min queue. With a
// bad line it returns the others and an error that names it.
func ParsePeers(b []byte) ([]Peer, error) {
	var out []Peer
	var bad error
	for n := 1; len(b) > 0; n++ {
		var line []byte
		line, b, _ = bytes.Cut(b, []byte("\n"))
		f := bytes.Fields(line)
		if len(f) == 0 || n == 1 && string(f[0]) == "nid" {
			continue
		}
		p, err := parsePeer(f)
		if err != nil {
			if bad == nil {
				bad = fmt.Errorf("line %d: %w", n, err)
			}
			continue
		}
		out = append(out, p)
	}
	return out, bad
}

func parsePeer(f [][]byte) (Peer, error) {
	if len(f) != 10 {
		return Peer{}, fmt.Errorf("%d columns, not 10", len(f))
	}
	tx, err := strconv.Atoi(string(f[7]))
	if err != nil {
		return Peer{}, fmt.Errorf("tx credits: %w", err)
	}
	queued, err := strconv.ParseUint(string(f[9]), 10, 64)
	if err != nil {
		return Peer{}, fmt.Errorf("queue: %w", err)
	}
	return Peer{string(f[0]), string(f[2]), tx, queued}, nil
}

// Source reads LNet once a second.
type Source struct {
	fsys   fs.FS
	counts collector.Rates[string]
	bytes  collector.Rates[string]
}

var _ collector.Source = (*Source)(nil)

// New makes a source over the root of a file system.
func New(root fs.FS) *Source {
	s := &Source{fsys: root}
	s.counts.Wrap32 = true
	return s
}

// Name is "lnet".
func (s *Source) Name() string { return "lnet" }

// Close has nothing to release.
func (s *Source) Close() error { return nil }

// Read reads the counters and, where it may, the peers.
func (s *Source) Read(ctx context.Context, into *collector.Reading) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, root := range roots {
		name := path.Join(root, "stats")
		b, err := fs.ReadFile(s.fsys, name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return err
		}
		st, err := ParseStats(b)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.rates(st, into)
		return s.peers(path.Join(root, "peers"), into)
	}
	return fmt.Errorf("%w: no readable LNet below %v", collector.ErrNoData, roots)
}

func (s *Source) rates(st Stats, into *collector.Reading) {
	s.counts.Begin(into.Now)
	s.bytes.Begin(into.Now)
	var rx, tx, errs collector.Total
	s.bytes.AddTo(&rx, "recv", st.ReceivedBytes)
	s.bytes.AddTo(&tx, "send", st.SentBytes)
	if routed, ok := s.bytes.Rate("route", st.RoutedBytes); ok {
		rx.Add(routed)
		tx.Add(routed)
		if st.Routed > 0 { // only routers route
			into.Add(collector.RoutedBytes, routed)
		}
	}
	s.counts.AddTo(&errs, "errors", st.Errors)
	s.counts.AddTo(&errs, "drops", st.Dropped)
	into.AddTotal(collector.LinkRxBytes, &rx)
	into.AddTotal(collector.LinkTxBytes, &tx)
	into.AddTotal(collector.Errors, &errs)
	into.Resets += s.counts.Resets + s.bytes.Resets
}

func (s *Source) peers(name string, into *collector.Reading) error {
	b, err := fs.ReadFile(s.fsys, name)
	if err != nil {
		return nil // absent or for root only: then the queue is not known
	}
	peers, err := ParsePeers(b)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	waiting := 0
	for _, p := range peers {
		waiting += max(0, -p.Credits)
	}
	into.Add(collector.QueueLen, float64(waiting))
	return nil
}
