// Package nfs reads what Linux counts of its NFS mounts and of its NFS server. Source procfs reports it as part of
// the node.
//
// It fills, of a client, read_bytes, write_bytes (as exchanged with the server), read_ops, write_ops, meta_ops,
// client_read, client_write, client_meta, retransmits, errors, in_flight, meta_in_flight, request_age
// and reconnects; of a server
// read_bytes, write_bytes, read_ops, write_ops, meta_ops, threads and no_thread_ratio. A server that is a client as
// well re-exports what it mounts: what it exchanges with each server behind it is that target's.
package nfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairway/collector"
	"fairway/collector/hostname"
	"fairway/collector/topology"
)

// Reader reads the counters of the node whose proc is at root. Its errors wrap fs.ErrNotExist where the node has no
// NFS mount, or no NFS server.
type Reader struct {
	files fs.FS
	names *hostname.Names
	rates collector.Rates[key]
	// rates32 has the counters that some kernels keep in 32 bits.
	rates32 collector.Rates[key]
	waiting waiting
	made    map[string]made // by server and number
	// ReportWaiting says that the node's requests are its programs' own: those under way are reported.
	ReportWaiting bool
}

// key names one counter, of a file system's operation or of the server.
type key struct {
	superblock, op string
	field          field
}

type field uint8

const (
	bytesRead field = iota
	bytesWritten
	requests
	millis
	sentAgain
	failed
	servedReads
	servedWrites
	servedMeta
	arrived
	withoutThread
)

// New returns a reader of a proc.
func New(files fs.FS) *Reader {
	r := &Reader{files: files, names: hostname.New(hostname.Lookup)}
	r.rates32.Wrap32 = true
	return r
}

// Close ends what runs beside the ticks.
func (r *Reader) Close() { r.names.Close() }

// Begin starts a reading.
func (r *Reader) Begin(at time.Time) {
	r.rates.Begin(at)
	r.rates32.Begin(at)
}

// Resets counts the counters of this reading that went backwards.
func (r *Reader) Resets() int { return r.rates.Resets + r.rates32.Resets }

// exchange is what was exchanged with one server, or with all.
type exchange struct {
	bytes         [2]collector.Total
	again, errors collector.Total
	class         [3]struct { // reads, writes, metadata
		count, millis collector.Total
		counted       bool // there is such an operation
	}
}

// Client reports the node's mounts: the bytes exchanged with the servers, and of each class of operations its count and
// the time from their queueing to their end.
func (r *Reader) Client(into *collector.Reading) error {
	seen, err := superblocks(r.files)
	if len(seen) == 0 {
		return err
	}
	var all exchange
	for i := range seen {
		r.add(&all, &seen[i])
	}
	all.report(into)
	r.addReconnects(into, seen)
	if !r.ReportWaiting {
		return err
	}
	under, known := 0.0, true
	for c := range all.class {
		ms, ok := all.class[c].millis.Value()
		under, known = under+ms/1e3, known && (ok || !all.class[c].counted)
	}
	meta, _ := all.class[2].millis.Value()
	r.addWaiting(into, seen, under, meta/1e3, known)
	return err
}

// BackEnds reports the mounts that a node serves itself, as what is behind it.
func (r *Reader) BackEnds(into *collector.Reading) error {
	seen, err := superblocks(r.files)
	if len(seen) == 0 {
		return err
	}
	served := exports(r.files)
	seen = slices.DeleteFunc(seen, func(s superblock) bool { return !served.include(s.points) })
	r.addReconnects(into, seen)
	var order []string
	of := map[string]*exchange{}
	for i := range seen {
		server, known := r.nameOf(seen[i].server)
		if !known {
			continue // its look-up is under way
		}
		if of[server] == nil {
			of[server] = &exchange{}
			order = append(order, server)
		}
		r.add(of[server], &seen[i])
	}
	for _, server := range order {
		t := collector.Reading{Now: into.Now}
		of[server].report(&t)
		into.Targets = append(into.Targets,
			collector.TargetSamples{Target: topology.TargetID(server), Samples: t.Samples})
	}
	return err
}

// nameOf is the server's name as its node has it: without its domain, of an address what the system calls it.
func (r *Reader) nameOf(server string) (name string, known bool) {
	if a, err := netip.ParseAddr(server); err == nil {
		return r.names.Of(context.Background(), a.Unmap())
	}
	name, _, _ = strings.Cut(server, ".")
	return name, true
}

// answersNo are operations whose failures are answers to what programs ask all the time: a name that is not there, or
// is there already, a lock that another has. The kernel counts them with all others.
var answersNo = map[string]bool{"LOOKUP": true, "LOOKUPP": true, "ACCESS": true, "OPEN": true, "OPEN_NOATTR": true,
	"CREATE": true, "MKDIR": true, "MKNOD": true, "SYMLINK": true, "LINK": true, "REMOVE": true, "RMDIR": true,
	"RENAME": true, "READLINK": true, "LOCK": true, "LOCKT": true, "GETACL": true, "GETXATTR": true,
	"LISTXATTRS": true, "REMOVEXATTR": true, "SEEK": true, "LAYOUTGET": true}

// add counts a file system's exchange.
func (r *Reader) add(to *exchange, s *superblock) {
	if s.counted {
		r.rates.AddTo(&to.bytes[0], key{superblock: s.id, field: bytesRead}, s.read)
		r.rates.AddTo(&to.bytes[1], key{superblock: s.id, field: bytesWritten}, s.written)
	} else {
		to.bytes[0].Lose()
		to.bytes[1].Lose()
	}
	for i := range s.operations {
		op := &s.operations[i]
		class := &to.class[2]
		switch op.name {
		case "READ", "READ_PLUS":
			class = &to.class[0]
		case "WRITE":
			class = &to.class[1]
		case "NULL":
			continue
		}
		class.counted = true
		if op.requests == unreadable {
			class.count.Lose()
			class.millis.Lose()
			continue
		}
		k := key{superblock: s.id, op: op.name, field: requests}
		r.rates.AddTo(&class.count, k, op.requests)
		if op.timed {
			k.field = millis
			r.rates.AddTo(&class.millis, k, op.millis)
		}
		if op.sent >= op.requests {
			k.field = sentAgain
			r.rates.AddTo(&to.again, k, op.sent-op.requests)
		}
		if !answersNo[op.name] {
			k.field = failed
			r.rates.AddTo(&to.errors, k, op.failed)
		}
	}
}

// report adds the samples of an exchange.
func (e *exchange) report(into *collector.Reading) {
	into.AddTotal(collector.ReadBytes, &e.bytes[0])
	into.AddTotal(collector.WriteBytes, &e.bytes[1])
	into.AddTotal(collector.Retransmits, &e.again)
	into.AddTotal(collector.Errors, &e.errors)
	for c, m := range [3][2]collector.Metric{{collector.ReadOps, collector.ClientRead},
		{collector.WriteOps, collector.ClientWrite}, {collector.MetaOps, collector.ClientMeta}} {
		into.AddTotal(m[0], &e.class[c].count)
		n, ok1 := e.class[c].count.Value()
		ms, ok2 := e.class[c].millis.Value()
		if ok1 && ok2 && n > 0 {
			into.Add(m[1], ms/n/1000)
		}
	}
}

// Serves says whether the node has an NFS server that runs.
func (r *Reader) Serves() bool {
	s, err := r.served()
	return (err == nil || len(s) > 0) && len(s["th"]) > 0 && s["th"][0] > 0
}

// served reads net/rpc/nfsd: the numbers of each line by its name. A line that is not of numbers is left out, and is in
// the error.
func (r *Reader) served() (lines map[string][]uint64, bad error) {
	text, err := fs.ReadFile(r.files, "net/rpc/nfsd")
	if err != nil {
		return nil, err
	}
	lines = map[string][]uint64{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		if f[0] == "th" {
			f = f[:2] // what follows is a histogram that no kernel has filled since 2.6.30
		}
		n, err := numbers(f[1:])
		if err != nil {
			bad = errors.Join(bad, fmt.Errorf("line %.60q: %w", strings.TrimSpace(line), err))
			continue
		}
		lines[f[0]] = n
	}
	return lines, bad
}

// Server reads net/rpc/nfsd and pool_stats. The bytes of the first are 32 bits wide on old kernels.
func (r *Reader) Server(into *collector.Reading) error {
	lines, err := r.served()
	if lines == nil {
		return err
	}
	var bytesIn, bytesOut, reads, writes, meta collector.Total
	resets := r.rates.Resets
	v3, v4 := lines["proc3"], lines["proc4ops"]
	if len(v3)+len(v4) > 0 {
		r.rates.AddTo(&reads, key{field: servedReads}, sum(v3, 6)+sum(v4, 25, 68))
		r.rates.AddTo(&writes, key{field: servedWrites}, sum(v3, 7)+sum(v4, 38))
		// What asks something of the file system besides data; version 4's bookkeeping of file handles and clients
		// does not.
		r.rates.AddTo(&meta, key{field: servedMeta},
			sum(v3, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 21)+
				sum(v4, 3, 4, 5, 6, 9, 11, 12, 14, 15, 18, 26, 27, 28, 29, 34, 59, 60, 62, 69, 71, 72, 73, 74, 75))
	}
	if r.rates.Resets > resets {
		r.rates32.RestartOf(key{field: bytesRead}, key{field: bytesWritten})
	}
	if io := lines["io"]; len(io) >= 2 {
		r.rates32.AddTo(&bytesIn, key{field: bytesRead}, io[0])
		r.rates32.AddTo(&bytesOut, key{field: bytesWritten}, io[1])
	}
	into.AddTotal(collector.ReadBytes, &bytesIn)
	into.AddTotal(collector.WriteBytes, &bytesOut)
	into.AddTotal(collector.ReadOps, &reads)
	into.AddTotal(collector.WriteOps, &writes)
	into.AddTotal(collector.MetaOps, &meta)
	if th := lines["th"]; len(th) > 0 && th[0] > 0 {
		into.Add(collector.Threads, float64(th[0]))
	}
	return errors.Join(err, r.pools(into))
}

// sum adds the counts of operations by their numbers; the line begins with how many there are.
func sum(line []uint64, operations ...int) (n uint64) {
	for _, op := range operations {
		if op+1 < len(line) {
			n += line[op+1]
		}
	}
	return n
}

// pools reads which share of the requests found no idle thread. Old kernels count those as enqueued, later ones all
// that arrive, and those that woke a thread apart.
func (r *Reader) pools(into *collector.Reading) error {
	text, err := fs.ReadFile(r.files, "fs/nfsd/pool_stats")
	if err != nil {
		return nil // not mounted, or another PID namespace's
	}
	var packets, enqueued, woken uint64
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 4 || f[0] == "#" {
			continue
		}
		n, err := numbers(f)
		if err != nil {
			return fmt.Errorf("pool_stats: line %.60q: %w", strings.TrimSpace(line), err)
		}
		packets, enqueued, woken = packets+n[1], enqueued+n[2], woken+n[3]
	}
	if enqueued >= packets-packets/100 && enqueued >= woken {
		enqueued -= woken
	}
	came, ok1 := r.rates.Rate(key{field: arrived}, packets)
	late, ok2 := r.rates.Rate(key{field: withoutThread}, enqueued)
	if ok1 && ok2 && came > 0 {
		into.Add(collector.NoThreadRatio, min(1, late/came))
	}
	return nil
}

// exported are the paths that the node's NFS server serves just now, and whether what is mounted below goes with them.
// None are known where it has no clients, or its list cannot be read.
type exported map[string]bool

// exports reads the kernel's list: PATH CLIENT(FLAGS) # ADDRESSES, blanks in octal. The roots that the kernel makes of
// version 4's tree (v4root) serve nothing themselves.
func exports(files fs.FS) exported {
	text, err := fs.ReadFile(files, "fs/nfsd/exports")
	if err != nil {
		return nil
	}
	out := exported{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 || !strings.HasPrefix(f[0], "/") {
			continue
		}
		_, flags, _ := strings.Cut(f[1], "(")
		flags = "," + strings.TrimSuffix(flags, ")") + ","
		if strings.Contains(flags, ",v4root,") {
			continue
		}
		path := octal.Replace(f[0])
		out[path] = out[path] || strings.Contains(flags, ",crossmnt,")
	}
	return out
}

// octal are the characters that the kernel writes as numbers in lists of paths.
var octal = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\043`, "#", `\134`, `\`)

// include reports whether a file system that is mounted at some points is served: one of them is exported, or lies
// below an export that goes on there, or has one below it. Where nothing is known of exports all are.
func (e exported) include(points []string) bool {
	if len(e) == 0 {
		return true
	}
	for _, point := range points {
		point = octal.Replace(point)
		for path, crosses := range e {
			if path == point || below(path, point) || crosses && below(point, path) {
				return true
			}
		}
	}
	return false
}

func below(path, top string) bool { return strings.HasPrefix(path, strings.TrimSuffix(top, "/")+"/") }
