// Package dvs reads Cray's Data Virtualization Service, on compute nodes (clients) and forwarders (servers). Its files
// are below /proc/fs/dvs up to 2018, later in debugfs, for root.
//
// It fills read_ops, write_ops, meta_ops and errors by the counts of requests, and a client's read_bytes and
// write_bytes where these are in the format "flat": the older one has none. Where DVS times its messages (2019), it
// fills client_read, client_write and client_meta on a client and the waits, times in service and both queues on a
// server, exactly. On other clients the list of outstanding requests, sampled ten times a second, gives meta_in_flight,
// and by Little's law client_read, client_write and client_meta of classes with enough requests; everywhere it gives
// in_flight and request_age, which shows what hangs. Threads and threads_busy of a server, and where nothing is timed
// its queue_len, are those of the moment.
//
// Nothing is written: a 2 in one of these files resets it. The list's paths and users are dropped as it is parsed. A
// tick reads a file of 2 kB a mount, one of 20 kB of times and ten times the list; meanwhile DVS sends nothing.
package dvs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"fairway/collector"
)

// roots are where releases put their files and those of their transport.
var roots = []struct{ files, transport string }{
	{"proc/fs/dvs", "proc/fs/dvs/ipc"},
	{"sys/kernel/debug/dvs", "sys/kernel/debug/dvsipc"},
}

// maxFile bounds one file, bytes: a list of some thousand outstanding requests.
const maxFile = 4 << 20

// class is what requests are for.
type class int

const (
	read class = iota
	write
	meta
	classes
)

// dataOf are the requests that carry data; READPAGE_DATA and those that end in RP are answers.
var dataOf = map[string]class{"PARALLEL_READ": read, "READPAGE_ASYNC": read, "READPAGES_RQ": read,
	"PARALLEL_WRITE": write, "WRITEPAGES_RQ": write}

// noOps are requests that are no operation of a program.
var noOps = map[string]bool{"READPAGE_DATA": true, "READPAGES_RP": true, "WRITEPAGES_RP": true, "VERIFYFS": true,
	"RO_CACHE_DISABLE": true, "SYNC_UPDATE": true}

// classOf is the class of a kind of request; ok is false for those that are no operation.
func classOf(kind string) (c class, ok bool) {
	if c, data := dataOf[kind]; data {
		return c, true
	}
	return meta, !noOps[kind]
}

// lock waits for another program that has the lock, so that how long it takes says nothing of a server.
const lock = "LOCK"

// metricsOf are what a class fills.
var metricsOf = [classes]struct{ ops, client, wait, exec collector.Metric }{
	read:  {collector.ReadOps, collector.ClientRead, collector.ReadWait, collector.ReadExec},
	write: {collector.WriteOps, collector.ClientWrite, collector.WriteWait, collector.WriteExec},
	meta:  {collector.MetaOps, collector.ClientMeta, collector.MetaWait, collector.MetaExec},
}

// Source reads the node's files once a second, and a client's list of outstanding requests more often.
type Source struct {
	fsys   fs.FS
	server bool
	rates  collector.Rates[key]
	list   listTimes

	gauges collector.Sampler[gauges] // of a client
}

// key is a counter: of one file's requests of a class, of the node's bytes, or of its times.
type key struct {
	file  string
	class class
	what  counted
}

type counted uint8

const (
	requests counted = iota
	failed
	moved
	timed // messages
	queued
	served
	whole
)

var _ collector.Source = (*Source)(nil)

// New makes a source over the root of a file system, of a server or of a client.
func New(root fs.FS, server bool) *Source { return &Source{fsys: root, server: server} }

// Name is "dvs".
func (*Source) Name() string { return "dvs" }

// Close ends the sampling.
func (s *Source) Close() error { return s.gauges.Close() }

// read reads one file, and of one that is too long no more than that shows.
func (s *Source) read(name string) ([]byte, error) {
	f, err := s.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		return nil, fmt.Errorf("%s: it has more than %d bytes and is not read", name, maxFile)
	}
	return b, err
}

// Read reports the rates since the tick before. A bad line costs itself and is named in the error.
func (s *Source) Read(ctx context.Context, into *collector.Reading) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.rates.Begin(into.Now)
	perSecond, found, bad := s.counts(into)
	if !found {
		if s.gauges.Stop(); bad == nil {
			bad = fmt.Errorf("%w: no DVS below %s or %s", collector.ErrNoData, roots[0].files, roots[1].files)
		}
		return bad
	}
	exact, err := s.times(into)
	bad = errors.Join(bad, err)
	if s.server {
		bad = errors.Join(bad, s.moment(into, exact))
	} else {
		bad = errors.Join(bad, s.outstanding(into, perSecond, exact))
	}
	into.Resets += s.rates.Resets
	return bad
}

// statsFiles are the files of counts: a server has one of all, a client one a mount.
func (s *Source) statsFiles() (names []string) {
	for _, root := range roots {
		if s.server {
			names = append(names, path.Join(root.files, "stats"))
			continue
		}
		some, _ := fs.Glob(s.fsys, path.Join(root.files, "mounts/*/stats")) // the pattern is a constant
		names = append(names, some...)
	}
	return names
}

// counts reports operations, errors and bytes; perSecond are the operations of each class, not known where negative.
func (s *Source) counts(into *collector.Reading) (perSecond [classes]float64, found bool, bad error) {
	var ops [classes]collector.Total
	var errs, bytesRead, bytesWritten collector.Total
	for _, name := range s.statsFiles() {
		b, err := s.read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // unmounted meanwhile, or another release's
		}
		var st Stats
		if err == nil {
			found = true
			st, err = ParseStats(b)
		}
		if err != nil { // what of them is known is not all
			bad = errors.Join(bad, fmt.Errorf("%s: %w", name, err))
			for c := range ops {
				ops[c].Lose()
			}
			errs.Lose()
			bytesRead.Lose()
			bytesWritten.Lose()
			continue
		}
		for c, n := range st.byClass(s.server) {
			s.rates.AddTo(&ops[c], key{name, class(c), requests}, n[0]+n[1])
			s.rates.AddTo(&errs, key{name, class(c), failed}, n[1])
		}
		if st.Bytes != nil && !s.server {
			s.rates.AddTo(&bytesRead, key{name, read, moved}, st.Bytes[read])
			s.rates.AddTo(&bytesWritten, key{name, write, moved}, st.Bytes[write])
		}
	}
	for c := range ops {
		perSecond[c] = -1
		if v, ok := ops[c].Value(); ok {
			perSecond[c] = v
		}
		into.AddTotal(metricsOf[c].ops, &ops[c])
	}
	into.AddTotal(collector.Errors, &errs)
	into.AddTotal(collector.ReadBytes, &bytesRead)
	into.AddTotal(collector.WriteBytes, &bytesWritten)
	return perSecond, found, bad
}

// times reports what DVS measured of its messages; exact is false where it measures none.
func (s *Source) times(into *collector.Reading) (exact bool, err error) {
	name := "statistics/client_message_timings"
	if s.server {
		name = "statistics/server_message_timings"
	}
	var all []Timing
	for _, root := range roots {
		b, e := s.read(path.Join(root.files, name))
		switch {
		case errors.Is(e, fs.ErrNotExist):
			continue
		case e != nil:
			return false, asRoot(e)
		}
		exact = true
		if all, err = ParseTimings(b); err != nil {
			err = fmt.Errorf("%s: %w", path.Join(root.files, name), err)
		}
	}
	var sum [classes][whole + 1]uint64
	for i := range all {
		t := &all[i]
		c, ok := classOf(t.Kind)
		if !ok || t.Kind == lock {
			continue
		}
		of := &sum[c]
		of[timed], of[queued] = of[timed]+t.Number, of[queued]+t.Queue
		of[served], of[whole] = of[served]+t.Service, of[whole]+t.Total
	}
	if !exact || len(all) == 0 {
		return false, err
	}
	s.addTimes(into, &sum)
	return true, err
}

const microsecond = 1e-6

// addTimes reports means over the second's messages, and how many waited in its mean.
func (s *Source) addTimes(into *collector.Reading, sum *[classes][whole + 1]uint64) {
	var perSecond [classes][whole + 1]float64
	known := true
	for c := range sum {
		for what := timed; what <= whole; what++ {
			v, ok := s.rates.Rate(key{"times", class(c), what}, sum[c][what])
			perSecond[c][what], known = v, known && ok
		}
	}
	if !known {
		return
	}
	waiting := 0.0
	for c := range perSecond {
		m, of := &metricsOf[c], &perSecond[c]
		waiting += of[queued] * microsecond
		switch n := of[timed]; {
		case n > 0 && s.server:
			into.Add(m.wait, of[queued]/n*microsecond)
			into.Add(m.exec, of[served]/n*microsecond)
		case n > 0:
			into.Add(m.client, of[whole]/n*microsecond)
		}
	}
	if s.server {
		into.Add(collector.QueueLen, waiting)
		into.Add(collector.MetaQueueLen, perSecond[meta][queued]*microsecond)
	}
}

// moment reports a server's threads, and its queue where no times say how long it was.
func (s *Source) moment(into *collector.Reading, exact bool) error {
	for _, root := range roots {
		b, err := s.read(path.Join(root.transport, "stats"))
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				return asRoot(err)
			}
			continue
		}
		t, err := ParseTransport(b)
		if err != nil {
			return fmt.Errorf("%s: %w", path.Join(root.transport, "stats"), err)
		}
		into.Add(collector.Threads, float64(t.Threads))
		into.Add(collector.ThreadsBusy, float64(t.Busy))
		if !exact {
			into.Add(collector.QueueLen, float64(t.Queued))
		}
		return nil
	}
	return nil
}

// asRoot says what to do about a file that may not be read.
func asRoot(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w; run the agent as root", err)
	}
	return err
}
