// Package lustre reads the Lustre counters of clients, object servers and metadata servers. They are in the proc, sys
// and debugfs trees; a forwarding node is a client.
//
// On a client it fills read_bytes, write_bytes, read_ops, write_ops, meta_ops (llite stats) and cache_hit_ratio
// (read-ahead), from Lustre 2.14 on client_read, client_write and client_meta (llite times; a write returns from the
// cache), and for each storage target bytes, requests, the time from a request's sending to its reply, and the mean
// number of requests in flight (osc and mdc stats: exact, without pings), reconnects (imports, 16 a second) and
// lock_callbacks (ldlm_cbd, by root). Of a node whose programs' requests these are, in_flight, meta_in_flight and
// request_age, too: the imports of targets that answer nothing say what waits. On an object server: the same bytes and
// operations (obdfilter), read_exec, write_exec, read_wait, write_wait, queue_len, threads_busy, threads (the ost_io
// service; it has one queue, so both waits are that queue's) and connections. On a metadata server: meta_ops, meta_exec
// (md_stats times its operations from 2.14 on, before that the services those that are no locks), meta_wait, queue_len,
// meta_queue_len, threads_busy, threads. Both servers add what each job, each other id and nobody did at each target
// (job_stats, less often than once a second where they are large), a metadata server with files_created and
// files_opened, and how full each target is, read once a minute (space_used_ratio, inodes_used_ratio), with the users
// who have most of one that fills (quota_slave), and recovering (recovery_status). A tick reads a file for each target
// and service: about 20 microseconds each.
package lustre

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"fairway/collector"
)

// roots are where releases put their files, below the root of the file system.
var roots = []string{"proc/fs/lustre", "sys/fs/lustre", "sys/kernel/debug/lustre"}

// metaOps are the llite and md_stats names that are metadata operations. An open that creates is counted as mknod, too,
// and a rename as samedir_rename or crossdir_rename: each is one operation.
var isMetaOp = map[string]bool{"open": true, "close": true, "readdir": true, "truncate": true, "setattr": true,
	"getattr": true, "create": true, "link": true, "unlink": true, "symlink": true, "mkdir": true, "rmdir": true,
	"rename": true, "statfs": true, "getxattr": true, "setxattr": true, "listxattr": true, "removexattr": true,
	"fsync": true, "sync": true, "migrate": true, "fallocate": true, "punch": true}

// key names one counter: the file, the line, and what of it where that is read for several.
type key struct {
	file string
	name string
	of   string
	sum  bool
}

// Source reads the node's Lustre files once a second.
type Source struct {
	fsys  fs.FS
	rates collector.Rates[key]

	// The files that were read whole, by this Read and by the one before.
	whole, wasWhole map[string]bool

	// ReportWaiting says that the node's requests are its programs' own: those under way are reported, and for how long
	// the oldest waits. A forwarder's are what it forwards.
	ReportWaiting bool
	waiting       map[string]*outstanding // by the folder of a client's target
	look          int                     // which quiet target's import is looked at next
	full          fill
	connections   map[string]connection // by the folder of a client's target
	imports       int                   // which is looked at next

	// Of one Read.
	into *collector.Reading
	err  error
	seen bool

	jobs jobReader
}

var _ collector.Source = (*Source)(nil)

// New makes a source over the root of a file system.
func New(root fs.FS) *Source {
	s := &Source{fsys: root, whole: map[string]bool{}, wasWhole: map[string]bool{}, waiting: map[string]*outstanding{},
		connections: map[string]connection{},
		jobs:        jobReader{fsys: root, most: mostEntries, tables: map[string]*table{}}}
	s.rates.FromZero = func(k key) bool { return s.wasWhole[k.file] } // no line before an operation's first time
	return s
}

// Name is "lustre".
func (s *Source) Name() string { return "lustre" }

// Close ends readings of tables that are under way.
func (s *Source) Close() error {
	s.jobs.under.close()
	s.full.accounts.under.close()
	return nil
}

// Read reads every file that is there. A bad line costs itself and is named in the error.
func (s *Source) Read(ctx context.Context, into *collector.Reading) error {
	s.into, s.err, s.seen = into, nil, false
	s.whole, s.wasWhole = s.wasWhole, s.whole
	clear(s.whole)
	s.rates.Begin(into.Now)
	for _, part := range []func(context.Context){s.client, s.objectServer, s.metadataServer,
		func(ctx context.Context) { reportCapacity(s); reportAccounts(ctx, s); reportRecovery(s) }} {
		if err := ctx.Err(); err != nil {
			return err
		}
		part(ctx)
	}
	s.readJobs(ctx)
	into.Resets += s.rates.Resets
	if !s.seen && s.err == nil {
		return fmt.Errorf("%w: no Lustre below %s", collector.ErrNoData, strings.Join(roots, ", "))
	}
	return s.err
}

func (s *Source) addSamples(t *collector.Total, file string, st Stat) {
	s.rates.AddTo(t, key{file, st.Name, "", false}, st.Samples)
}

func (s *Source) addSum(t *collector.Total, file string, st Stat) {
	s.rates.AddTo(t, key{file, st.Name, "", true}, st.Sum)
}

// traffic adds up bytes and operations of data, and metadata operations.
type traffic struct{ readBytes, writeBytes, readOps, writeOps, metaOps, timedOps, metaTook collector.Total }

func (s *Source) countTraffic(t *traffic) func(file string, st Stat) {
	return func(file string, st Stat) {
		switch {
		case st.Name == "read_bytes":
			s.addSum(&t.readBytes, file, st)
			s.addSamples(&t.readOps, file, st)
		case st.Name == "write_bytes":
			s.addSum(&t.writeBytes, file, st)
			s.addSamples(&t.writeOps, file, st)
		case isMetaOp[st.Name]:
			s.addSamples(&t.metaOps, file, st)
			if st.HasSum && strings.HasPrefix(st.Unit, "usec") {
				s.rates.AddTo(&t.timedOps, key{file, st.Name, "times", false}, st.Samples)
				s.rates.AddTo(&t.metaTook, key{file, st.Name, "times", true}, st.Sum)
			}
		}
	}
}

func (s *Source) emitData(t *traffic) {
	s.into.AddTotal(collector.ReadBytes, &t.readBytes)
	s.into.AddTotal(collector.WriteBytes, &t.writeBytes)
	s.into.AddTotal(collector.ReadOps, &t.readOps)
	s.into.AddTotal(collector.WriteOps, &t.writeOps)
}

// as notes what was found of the files that the sums are of: where all was, an operation that never happened has no
// line and is 0; where a file could not be read, what the others have is not the sum.
func (t *traffic) as(f found, rates bool) {
	for _, total := range []*collector.Total{&t.readBytes, &t.writeBytes, &t.readOps, &t.writeOps, &t.metaOps} {
		if f.lost > 0 {
			total.Lose()
		} else if f.all() && rates {
			total.Add(0)
		}
	}
}

// clientTimes are how often, and how long in microseconds, programs waited for reads, writes and metadata operations.
// llite times them from Lustre 2.14 on.
type clientTimes struct{ ops, took [3]collector.Total }

// countTimes takes a timed line of llite. Opening and closing that the cache answers is left out by the list of names.
func (s *Source) countTimes(t *clientTimes, file string, st Stat) {
	if !strings.HasPrefix(st.Unit, "usec") || !st.HasSum {
		return
	}
	i := 2
	switch {
	case st.Name == "read":
		i = 0
	case st.Name == "write":
		i = 1
	case !isMetaOp[st.Name]:
		return
	}
	s.rates.AddTo(&t.ops[i], key{file, st.Name, "times", false}, st.Samples)
	s.rates.AddTo(&t.took[i], key{file, st.Name, "times", true}, st.Sum)
}

func (s *Source) emitTimes(t *clientTimes) {
	for i, m := range []collector.Metric{collector.ClientRead, collector.ClientWrite, collector.ClientMeta} {
		n, ok := t.ops[i].Value()
		if took, known := t.took[i].Value(); ok && known && n > 0 {
			s.into.Add(m, took/n*microsecond)
		}
	}
}

// client reads what a client (a forwarding node) did.
func (s *Source) client(context.Context) {
	if has(s, "obdfilter/*/stats") {
		return // an object server that mounts its own file system: its clients' bytes count, not its own
	}
	var t traffic
	var seen clientTimes
	count := s.countTraffic(&t)
	t.as(s.each("llite/*/stats", func(file string, st Stat) {
		count(file, st)
		s.countTimes(&seen, file, st)
	}), s.rates.Seconds() > 0)
	s.emitData(&t)
	s.into.AddTotal(collector.MetaOps, &t.metaOps)
	s.emitTimes(&seen)
	s.targets()
	var callbacks collector.Total
	s.each("ldlm/services/*_cbd/stats", func(file string, st Stat) {
		if st.Name == "ldlm_bl_callback" {
			s.addSamples(&callbacks, file, st)
		}
	})
	s.into.AddTotal(collector.LockCallbacks, &callbacks)
	var hits, misses collector.Total
	s.each("llite/*/read_ahead_stats", func(file string, st Stat) {
		switch st.Name {
		case "hits":
			s.addSamples(&hits, file, st)
		case "misses":
			s.addSamples(&misses, file, st)
		}
	})
	if h, ok := hits.Value(); ok {
		if m, ok := misses.Value(); ok && h+m > 0 {
			s.into.Add(collector.CacheHitRatio, h/(h+m))
		}
	}
}

// objectServer reads what an object server's targets did and how its I/O service kept up.
func (s *Source) objectServer(context.Context) {
	var t traffic
	t.as(s.each("obdfilter/*/stats", s.countTraffic(&t)), false)
	s.emitData(&t)
	v := s.service("ost/OSS/ost_io", "ost_read", "ost_write")
	if v.any {
		for i, op := range []struct{ wait, exec collector.Metric }{{collector.ReadWait, collector.ReadExec},
			{collector.WriteWait, collector.WriteExec}} {
			if v.exec[i] > 0 {
				s.into.Add(op.exec, v.exec[i])
				s.addKnown(op.wait, v.wait)
			}
		}
		s.addKnown(collector.QueueLen, v.queue)
		s.addKnown(collector.ThreadsBusy, v.active)
		s.addKnown(collector.Threads, v.threads)
	}
	exports := float64(notKnown)
	for _, name := range s.files("obdfilter/*/num_exports") {
		if n, ok := s.number(name); ok {
			exports = max(exports, float64(n)) // a client has an export at every target
		}
	}
	s.addKnown(collector.Connections, exports)
}

// metadataServer reads what a metadata server did.
func (s *Source) metadataServer(context.Context) {
	var t traffic
	f := s.each("mdt/*/md_stats", s.countTraffic(&t))
	f.add(s.each("mds/*-MDT*/stats", s.countTraffic(&t))) // 1.8
	t.as(f, false)
	s.into.AddTotal(collector.MetaOps, &t.metaOps)
	v := metadataServices(s)
	n, ok := t.timedOps.Value()
	if took, known := t.metaTook.Value(); ok && known && n > 0 {
		v.exec[0] = took / n * microsecond
	}
	if v.any {
		if v.exec[0] > 0 {
			s.into.Add(collector.MetaExec, v.exec[0])
		}
		s.addKnown(collector.MetaWait, v.wait)
		s.addKnown(collector.QueueLen, v.queue)
		s.addKnown(collector.MetaQueueLen, v.queue)
		s.addKnown(collector.ThreadsBusy, v.active)
		s.addKnown(collector.Threads, v.threads)
	}
}

// metadataServices are a metadata server's together: closes and listings have one of their own, and so have batches.
func metadataServices(s *Source) service {
	all := service{wait: notKnown, queue: notKnown, active: notKnown, threads: notKnown}
	var waited, asked, took float64
	for _, dir := range []string{"mds/MDS/mdt", "mds/MDS/mdt_readpage", "mds/MDS/mdt_out"} {
		v := s.service(dir, "mds_")
		all.any = all.any || v.any
		for _, sum := range [][2]*float64{{&all.queue, &v.queue}, {&all.active, &v.active},
			{&all.threads, &v.threads}} {
			if *sum[1] != notKnown {
				*sum[0] = max(0, *sum[0]) + *sum[1]
			}
		}
		if v.wait != notKnown {
			waited, asked = waited+v.wait*v.arrived, asked+v.arrived
		}
		took, all.timed = took+v.exec[0]*v.timed, all.timed+v.timed
	}
	if asked > 0 {
		all.wait = waited / asked
	}
	if all.timed > 0 {
		all.exec[0] = took / all.timed
	}
	return all
}

// notKnown stands for a mean of nothing.
const notKnown = -1

func (s *Source) addKnown(m collector.Metric, v float64) {
	if v != notKnown {
		s.into.Add(m, v)
	}
}

// service is one request service in the second: means over the requests that arrived.
type service struct {
	any     bool
	wait    float64 // s in the queue
	queue   float64 // requests found waiting
	active  float64 // requests found in service
	threads float64
	exec    [2]float64 // s, of the operations asked for; 0 where there were none
	arrived float64    // requests a second
	timed   float64    // of the first of those operations a second
}

const microsecond = 1e-6

// service reads a service's stats; ops are names, or prefixes ending in "_", of its timed operations.
func (s *Source) service(dir string, ops ...string) service {
	v := service{wait: notKnown, queue: notKnown, active: notKnown, threads: notKnown}
	var count, total [2]collector.Total
	s.each(dir+"/stats", func(file string, st Stat) {
		v.any = true
		switch st.Name {
		case "req_waittime":
			v.wait = s.mean(file, st, microsecond)
			v.arrived, _ = s.rates.Rate(key{file, st.Name, "arrived", false}, st.Samples)
		case "req_qdepth":
			v.queue = s.mean(file, st, 1)
		case "req_active":
			v.active = s.mean(file, st, 1)
		}
		i := slices.IndexFunc(ops, func(op string) bool {
			return st.Name == op || strings.HasSuffix(op, "_") && strings.HasPrefix(st.Name, op)
		})
		if i >= 0 && strings.HasPrefix(st.Unit, "usec") {
			s.addSamples(&count[i], file, st)
			s.addSum(&total[i], file, st)
		}
	})
	for i := range ops {
		n, ok := count[i].Value()
		if t, known := total[i].Value(); ok && known && n > 0 {
			v.exec[i] = t / n * microsecond
			if i == 0 {
				v.timed = n
			}
		}
	}
	for _, name := range s.files(dir + "/threads_started") {
		if n, ok := s.number(name); ok {
			v.threads = float64(n)
		}
	}
	return v
}

// mean is the mean of a counter over the requests since the tick before.
func (s *Source) mean(file string, st Stat, unit float64) float64 {
	n, ok := s.rates.Rate(key{file, st.Name, "", false}, st.Samples)
	sum, known := s.rates.Rate(key{file, st.Name, "", true}, st.Sum)
	if !ok || !known || n == 0 {
		return notKnown
	}
	return sum / n * unit
}
