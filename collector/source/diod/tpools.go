package diod

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"fairway/collector"
	"fairway/collector/topology"
)

// The fields of a line of tpools behind the tree's name: two gauges, two byte counters, the
// operation counters in this order, and the read and write size bins, which are not used here.
const (
	atReqs = iota
	atFids
	atReadBytes
	atWriteBytes
	atOps
)

var opNames = [...]string{
	"statfs", "lopen", "lcreate", "symlink", "mknod", "rename", "readlink", "getattr", "setattr",
	"xattrwalk", "xattrcreate", "readdir", "fsync", "lock", "getlock", "link", "mkdir", "version",
	"auth", "attach", "flush", "walk", "read", "write", "clunk", "remove",
}

const (
	sizeBins   = 2 * 12
	numbers    = atOps + len(opNames) + sizeBins // of a line, behind its name
	lineFields = 1 + numbers
)

// class says what an operation counts as.
type class uint8

const (
	protocol class = iota // the protocol's own business, no work on the file system
	readOp
	writeOp
	metaOp
)

var opClass = func() (c [len(opNames)]class) {
	for i, name := range opNames {
		switch name {
		case "read":
			c[i] = readOp
		case "write":
			c[i] = writeOp
		case "version", "auth", "attach", "flush", "clunk":
			c[i] = protocol
		default:
			c[i] = metaOp
		}
	}
	return c
}()

// counter numbers the cumulative counts that are kept of a tree.
type counter uint8

const (
	readBytes counter = iota
	writeBytes
	readOps
	writeOps
	metaOps
	allOps
	counters
)

// pool is one line of tpools: the worker pool of one attached tree.
type pool struct {
	tree   string
	queued uint64 // requests queued and in service, now
	fids   uint64
	counts [counters]uint64
}

// ownPool is the pool that serves diod's control tree itself.
const ownPool = "default"

// names gives each tree's name as one string, however often it is read.
type names map[string]string

func (n names) of(b []byte) string {
	if s, ok := n[string(b)]; ok {
		return s
	}
	const most = 1 << 14
	if len(n) >= most {
		clear(n)
	}
	s := string(b)
	n[s] = s
	return s
}

// parseTpools appends the pools of a tpools file to dst. Lines that are not right are left out and
// named in the error, the others are still answered.
func parseTpools(dst []pool, text []byte, known names) ([]pool, error) {
	var errs []error
	for n := 1; len(text) > 0; n++ {
		line, rest, _ := bytes.Cut(text, []byte{'\n'})
		text = rest
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		p, err := parsePool(line, known)
		if err != nil {
			const mostErrors = 3
			if len(errs) < mostErrors {
				errs = append(errs, fmt.Errorf("tpools line %d (%s): %w", n, excerpt(line), err))
			}
			continue
		}
		dst = append(dst, p)
	}
	return dst, errors.Join(errs...)
}

func excerpt(line []byte) string {
	const most = 40
	if len(line) > most {
		return strconv.Quote(string(line[:most])) + "..."
	}
	return strconv.Quote(string(line))
}

// parsePool reads the numbers from the end, because a tree's name may hold spaces.
func parsePool(line []byte, known names) (p pool, err error) {
	rest := bytes.TrimRight(line, " \t\r")
	for i := numbers - 1; i >= 0; i-- {
		cut := bytes.LastIndexByte(rest, ' ')
		if cut <= 0 {
			return p, fmt.Errorf("%d fields, want %d; is this another diod version?", len(bytes.Fields(line)),
				lineFields)
		}
		v, ok := collector.Decimal(rest[cut+1:])
		if !ok {
			return p, fmt.Errorf("field %d is %s, want a number", i+2, excerpt(rest[cut+1:]))
		}
		rest = bytes.TrimRight(rest[:cut], " ")
		p.set(i, v)
	}
	p.tree = known.of(rest)
	return p, nil
}

func (p *pool) set(field int, v uint64) {
	switch {
	case field == atReqs:
		p.queued = v
	case field == atFids:
		p.fids = v
	case field == atReadBytes:
		p.counts[readBytes] = v
	case field == atWriteBytes:
		p.counts[writeBytes] = v
	case field < atOps+len(opNames):
		p.counts[allOps] += v
		switch opClass[field-atOps] {
		case readOp:
			p.counts[readOps] += v
		case writeOp:
			p.counts[writeOps] += v
		case metaOp:
			p.counts[metaOps] += v
		}
	}
}

// queueOf sums the requests queued and in service over the trees of a tpools file; lines that are
// not right are not of its concern.
func queueOf(text []byte, perTree func(tree []byte, queued uint64)) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		rest := bytes.TrimRight(line, " \t\r")
		cut := 0
		for i := 0; i < numbers-1 && cut >= 0; i++ {
			if cut = bytes.LastIndexByte(rest, ' '); cut > 0 {
				rest = bytes.TrimRight(rest[:cut], " ")
			}
		}
		if cut = bytes.LastIndexByte(rest, ' '); cut <= 0 {
			continue
		}
		if v, ok := collector.Decimal(rest[cut+1:]); ok && string(bytes.TrimRight(rest[:cut], " ")) != ownPool {
			perTree(bytes.TrimRight(rest[:cut], " "), v)
		}
	}
}

// jobOf returns the job whose tree it is: one that ends in /jobs/ID.
func jobOf(tree string) (topology.JobID, bool) {
	dir, id := path.Split(tree)
	if id == "" || path.Base(dir) != "jobs" {
		return "", false
	}
	return topology.JobID(id), true
}

// parseConnections calls client for every host of a connections file, without its domain, and names
// the first line that is not right.
func parseConnections(text []byte, client func(host []byte)) error {
	err := collector.Lines(text, func(_ []byte, f [][]byte) error {
		if _, ok := collector.Decimal(f[len(f)-1]); len(f) != 2 || !ok {
			return errors.New("want a host and its number of fids")
		}
		client(shortHost(f[0]))
		return nil
	})
	if err != nil {
		err = fmt.Errorf("connections %w", err)
	}
	return err
}

// shortHost cuts a domain off; an address stays whole.
func shortHost(h []byte) []byte {
	if i := bytes.IndexByte(h, '.'); i > 0 && (h[0] < '0' || h[0] > '9') {
		return h[:i]
	}
	return h
}

// parseExports lists the trees of an exports file, without diod's own.
func parseExports(text []byte) []string {
	var out []string
	for line := range strings.Lines(string(text)) {
		// The path, then options, users and hosts, "-" for none.
		f := strings.Fields(line)
		if len(f) >= 4 && f[0] != "ctl" {
			out = append(out, strings.Join(f[:len(f)-3], " "))
		}
	}
	return out
}
