package nfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"fairway/collector/rootfs"
)

// superblock is what the kernel counts of one NFS file system, at however many places it is mounted.
type superblock struct {
	id         string // the same from reading to reading
	points     []string
	server     string // as it was mounted: a name or an address
	read       uint64 // bytes from the server
	written    uint64 // bytes to the server
	counted    bool   // the bytes are known
	operations []operation
	transports []transport
}

// unreadable stands for the requests of an operation whose line cannot be read.
const unreadable = math.MaxUint64

// operation is what is counted of one kind of request.
type operation struct {
	name           string
	requests, sent uint64
	failed         uint64
	millis         uint64 // from their queueing to their end
	timed          bool   // some kernels let times wrap below 0
}

// transport is a connection to the server; superblocks of one server share theirs.
type transport struct {
	line           string
	sent, answered uint64
	connects       uint64 // how often it was made; 0: not known
}

// superblocks reads mountstats, where the kernel prints a file system's counters once for each place that it is mounted
// at. What it cannot read is in the error, and costs what it belongs to.
func superblocks(files fs.FS) (out []superblock, err error) {
	text, err := rootfs.ReadOfSelf(files, "", "mountstats")
	if err != nil {
		return nil, err
	}
	var bad []error
	var device func(point string) string
	named, seen := false, map[string]int{} // index of each file system in out
	for len(text) > 0 {
		var head, body []byte
		head, text, _ = bytes.Cut(text, []byte("\n"))
		f := bytes.Fields(head)
		named = named || len(f) > 4 && string(f[0]) == "device"
		if len(f) < 8 || string(f[0]) != "device" || !strings.HasPrefix(string(f[7]), "nfs") {
			continue
		}
		if end := bytes.Index(text, []byte("\ndevice ")); end >= 0 {
			body, text = text[:end+1], text[end+1:]
		} else {
			body, text = text, nil
		}
		if device == nil {
			device = devices(files)
		}
		point := string(f[4])
		server, _, _ := strings.Cut(string(f[1]), ":/")
		id := device(point)
		if id == "" {
			id = server + string(body) // at one moment its counters are the same wherever it is mounted
		}
		if i, again := seen[id]; again {
			out[i].points = append(out[i].points, point)
			continue
		}
		if string(f[7]) == "nfsd" {
			continue
		}
		seen[id] = len(out)
		s := superblock{id: fmt.Sprintf("%s %d", point, len(out)), points: []string{point},
			server: strings.Trim(server, "[]")}
		if device(point) != "" {
			s.id = device(point)
		}
		if err := s.parse(body); err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", point, err))
		}
		out = append(out, s)
	}
	if !named {
		return nil, errors.New("it names no mount; every node has one")
	}
	if len(out) == 0 {
		return nil, fs.ErrNotExist
	}
	return out, errors.Join(bad...)
}

// EachExchange visits the file systems of the node whose proc it is: where each is mounted, and how many bytes it has
// exchanged with its server.
func EachExchange(files fs.FS, visit func(points []string, bytes uint64)) error {
	seen, err := superblocks(files)
	if len(seen) == 0 {
		return err
	}
	for i := range seen {
		if s := &seen[i]; s.counted {
			visit(s.points, s.read+s.written)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// devices says by its mount point which device number a file system has: one number is one superblock. It is "" where
// mountinfo does not say.
func devices(files fs.FS) func(point string) string {
	text, _ := rootfs.ReadOfSelf(files, "", "mountinfo")
	of := map[string]string{}
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		_, kind, _ := bytes.Cut(line, []byte(" - "))
		if len(f) > 4 && bytes.HasPrefix(kind, []byte("nfs")) { // an automounter's own is at the same place
			if was, again := of[string(f[4])]; again && was != string(f[2]) {
				f[2] = nil // several at one place, where the newest hides the others: which is which is not known
			}
			of[string(f[4])] = string(f[2])
		}
	}
	return func(point string) string { return of[point] }
}

// parse reads the counters of one file system; lines that it does not know are passed over.
func (s *superblock) parse(body []byte) (bad error) {
	inOperations := false
	for line := range strings.Lines(string(body)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		n, err := numbers(f[1:])
		switch {
		case f[0] == "bytes:":
			if s.counted = len(n) >= 6 && err == nil; s.counted {
				s.read, s.written = n[4], n[5]
			}
		case f[0] == "xprt:":
			if n, err = numbers(f[2:]); err == nil {
				s.addTransport(line, f[1], n)
			}
		case f[0] == "per-op":
			inOperations, err = true, nil
		case inOperations && strings.HasSuffix(f[0], ":"):
			if err == nil && len(n) < 8 {
				err = fmt.Errorf("%d counters, want at least 8", len(n))
			}
			if err == nil && max(n[0], n[1]) > 1<<62 {
				err = fmt.Errorf("%d requests in %d messages are not counts", n[0], n[1])
			}
			name := strings.TrimSuffix(f[0], ":")
			if err == nil {
				s.addOperation(name, n)
			} else {
				s.operations = append(s.operations, operation{name: name, requests: unreadable})
			}
		default:
			err = nil
		}
		if err != nil && bad == nil {
			bad = fmt.Errorf("line %.60q: %w", strings.TrimSpace(line), err)
		}
	}
	return bad
}

// addOperation takes requests, transmissions, timeouts, bytes sent and received, and the milliseconds queued, until the
// answer and in all; since Linux 5.3 errors.
func (s *superblock) addOperation(name string, n []uint64) {
	o := operation{name: name, requests: n[0], sent: n[1], millis: n[7], timed: n[7] <= math.MaxInt64}
	if len(n) > 8 {
		o.failed = n[8]
	}
	s.operations = append(s.operations, o)
}

// addTransport takes what a connection has sent and received.
func (s *superblock) addTransport(line, protocol string, n []uint64) {
	at := 5 // srcport bind connects connect_time idle sent received
	if protocol == "udp" {
		at = 2 // srcport bind sent received
	}
	if len(n) > at+1 {
		t := transport{line: line, sent: n[at], answered: n[at+1]}
		if protocol != "udp" {
			t.connects = n[2]
		}
		s.transports = append(s.transports, t)
	}
}

// numbers reads counters.
func numbers(f []string) (out []uint64, err error) {
	out = make([]uint64, 0, 16)
	for _, text := range f {
		n, bad := strconv.ParseUint(text, 10, 64)
		if bad != nil && err == nil {
			err = fmt.Errorf("%.40q is not a count", text)
		}
		out = append(out, n)
	}
	return out, err
}
