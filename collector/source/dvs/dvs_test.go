package dvs

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/conform/sourcetest"
	"fairway/collector"
)

const client = "RQ_LOOKUP: 100 0 0 0 0.000 0.000\nRQ_GETATTR: 10 2 0 0 0.000 0.000\n" +
	"RQ_PARALLEL_READ: 50 0 0 0 0.000 0.004\nRQ_READPAGES_RP: 50 0 0 0 0.000 0.000\n" +
	"RQ_PARALLEL_WRITE: 20 1 0 0 0.000 0.000\nread: 7 0 0.000 0.000\n"

const (
	mountStats = "proc/fs/dvs/mounts/0/stats"
	listFile   = "proc/fs/dvs/ipc/requests"
	newStats   = "sys/kernel/debug/dvs/mounts/0/stats"
	newList    = "sys/kernel/debug/dvsipc/requests"
	newTimes   = "sys/kernel/debug/dvs/statistics/"
)

func tree(text string) fstest.MapFS {
	return fstest.MapFS{mountStats: {Data: []byte(text)},
		listFile: {Data: []byte(entry("s1", "LOOKUP", "/a", "0.004"))}}
}

var later = strings.NewReplacer("LOOKUP: 100", "LOOKUP: 130", "10 2 0", "15 4 0", "READ: 50", "READ: 90", "20 1 0",
	"30 1 0").Replace(client)

func TestConformance(t *testing.T) {
	sourcetest.Run(t, sourcetest.Suite{
		New:   func(fsys fs.FS) collector.Source { return New(fsys, false) },
		First: tree(client), Second: tree(later),
		Want: []collector.Metric{collector.ReadOps, collector.WriteOps, collector.MetaOps, collector.Errors},
	})
}

// expect compares what a source reported; a metric that is wanted as NaN must be missing.
func expect(t *testing.T, r *collector.Reading, want map[collector.Metric]float64) {
	t.Helper()
	for m, w := range want {
		v, ok := collector.SampleOf(r.Samples, m)
		if ok == math.IsNaN(w) || ok && math.Abs(v-w) > 1e-9*math.Abs(w) {
			t.Errorf("%v = %v (%v), want %v", m, v, ok, w)
		}
	}
}

// twice reads a tree, changes it and reads it again a second later.
func twice(t *testing.T, fsys fstest.MapFS, server bool, change map[string]string) *collector.Reading {
	t.Helper()
	s := New(fsys, server)
	defer s.Close()
	r := collector.Reading{Now: time.Unix(50, 0)}
	if err := s.Read(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	for name, text := range change {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	r = collector.Reading{Now: time.Unix(51, 0)}
	if err := s.Read(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

// A client counts what it asked, failed requests too; answers are not counted again, and bytes are not known.
func TestRates(t *testing.T) {
	r := twice(t, tree(client), false, map[string]string{mountStats: later})
	expect(t, r, map[collector.Metric]float64{collector.ReadOps: 40, collector.WriteOps: 10, collector.MetaOps: 30 + 7,
		collector.Errors: 2, collector.ReadBytes: math.NaN(), collector.ClientRead: math.NaN()})
}

// The newer format has bytes; what is 0 is not in it until it happens.
func TestFlatFormatHasBytes(t *testing.T) {
	const head = "STATS.version 2\nSTATS.flags enable,flat,brief,plain,notest\n"
	r := twice(t, fstest.MapFS{newStats: {Data: []byte(head)}, newList: {}}, false, map[string]string{newStats: head +
		"RQ.RQ_OPEN.req.ok                       3\nRQ.RQ_OPEN.req.err   1\nRQ.RQ_OPEN.reqp.ok 9\n" +
		"RQ.RQ_PARALLEL_WRITE.req.ok 5\nOP.open.ok 4\nPERF.user.write.min_len 1\nPERF.user.write.total.iops 5\n" +
		"PERF.user.write.total.bytes 5000\nPERF.user.write.rate.bytes 7\nPERF.cache.write.total.bytes 9\n"})
	expect(t, r, map[collector.Metric]float64{collector.MetaOps: 4, collector.WriteOps: 5, collector.ReadOps: 0,
		collector.Errors: 1, collector.WriteBytes: 5000, collector.ReadBytes: 0})
}

// timings is a file of times of two kinds of messages; a lock's are another program's.
func timings(n, queue, fsTime, network int) string {
	var b strings.Builder
	b.WriteString("# Version 1.0\n# Operation        Measurement                Number           Sum_us\n")
	for _, kind := range []string{"GETATTR", "LOCK", "PARALLEL_READ"} {
		for _, m := range []struct {
			name string
			us   int
		}{{"Server_Overhead", fsTime / 10}, {"File_System", fsTime}, {"Queue", queue}, {"Network", network},
			{"Total", fsTime/10 + fsTime + queue + network}} {
			if m.name != "Network" || network > 0 {
				fmt.Fprintf(&b, "%-18s %-16s %16d %16d %16d %16d %16d %8d\n", kind, m.name, n, m.us, 9, 9, 9, 9)
			}
		}
	}
	return b.String()
}

// What DVS measures is exact: waits and times in service of a server, and how many waited; on a client all of it.
func TestTimesOfMessages(t *testing.T) {
	const server = "sys/kernel/debug/dvs/stats"
	name := newTimes + "server_message_timings"
	fsys := fstest.MapFS{server: {Data: []byte(client)}, name: {Data: []byte(timings(10, 1000, 1000, 0))}}
	expect(t, twice(t, fsys, true, map[string]string{name: timings(30, 41000, 21000, 0)}),
		map[collector.Metric]float64{collector.ReadWait: 2e-3, collector.ReadExec: 1.1e-3, collector.MetaWait: 2e-3,
			collector.MetaExec: 1.1e-3, collector.MetaQueueLen: 0.04, collector.QueueLen: 0.08,
			collector.WriteWait: math.NaN()})

	name = newTimes + "client_message_timings"
	fsys = fstest.MapFS{newStats: {Data: []byte(client)}, newList: {},
		name: {Data: []byte(timings(10, 1000, 1000, 500))}}
	expect(t, twice(t, fsys, false, map[string]string{name: timings(30, 41000, 21000, 1500)}),
		map[collector.Metric]float64{collector.ClientRead: 3.15e-3, collector.ClientMeta: 3.15e-3,
			collector.QueueLen: math.NaN(), collector.MetaInFlight: math.NaN()})
}

// An older server's threads and queue are those of the moment, over all instances of its transport.
func TestTransport(t *testing.T) {
	one := "Instance 0:\n        Total Threads              16\n      Created Threads              16\n" +
		"       Active Threads               3\n      Blocked Threads               1\n" +
		"      Queued Messages               5\n"
	fsys := fstest.MapFS{"proc/fs/dvs/stats": {Data: []byte(client)},
		"proc/fs/dvs/ipc/stats": {Data: []byte("              RMA Puts                7\n" + one + one)}}
	expect(t, twice(t, fsys, true, nil), map[collector.Metric]float64{collector.Threads: 32, collector.ThreadsBusy: 8,
		collector.QueueLen: 10})
}

// swapped is a tree that is replaced while it is read.
type swapped struct{ now atomic.Pointer[fstest.MapFS] }

func (s *swapped) Open(name string) (fs.File, error) { return s.now.Load().Open(name) }

func (s *swapped) set(stats, list string) {
	s.now.Store(&fstest.MapFS{mountStats: {Data: []byte(stats)}, listFile: {Data: []byte(list)}})
}

// entry is a line of the list.
func entry(server, kind, path, age string) string {
	return "server: " + server + "  request: RQ_" + kind + "  path: " + path + "  user: 1000  time: " + age +
		" sec  apid: 77\n"
}

// A path may hold what looks like the rest of a line, and a line's end; the list's own words count.
func TestRequests(t *testing.T) {
	all, err := ParseRequests([]byte(entry("c0-0c0s0n1", "LOOKUP", "/dsl/ufs/home", "0.004") +
		entry("c0-0c0s0n2", "OPEN", "/a  user: 0  time: 99.000 sec  apid: 1", "4.500") +
		entry("c0-0c0s0n2", "CLOSE", "/b\nc", "1.000") +
		"server: c0-0c0s0n3 request: RQ_STATFS path: UNKNOWN user: 0 time: 12.000 sec\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Request{{"c0-0c0s0n1", "LOOKUP", 4 * time.Millisecond}, {"c0-0c0s0n2", "OPEN", 4500 * time.Millisecond},
		{"c0-0c0s0n2", "CLOSE", 0}, {"c0-0c0s0n3", "STATFS", 12 * time.Second}}
	if fmt.Sprint(all) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", all, want)
	}
	if all, err := ParseRequests([]byte("3 requests: 1 2 3\n")); err == nil || len(all) > 0 {
		t.Errorf("another format: %v, %v", all, err)
	}
	if all, err := ParseRequests(nil); err != nil || len(all) > 0 {
		t.Errorf("nothing outstanding: %v, %v", all, err)
	}
}

// The list is sampled: what is under way in the mean, the oldest request, and times of a class that has enough of them.
// A program that waits for a lock does not count.
func TestListOfOutstandingRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := entry("s1", "PARALLEL_READ", "/a", "0.010") + entry("s1", "PARALLEL_READ", "/a", "0.010") +
			entry("s1", "LOCK", "/a", "900.000")
		fsys := &swapped{}
		s := New(fsys, false)
		defer s.Close()
		var r collector.Reading
		reads, stats := 50, client
		for second := range 30 {
			for tenth := range SampleHz {
				text := busy
				if tenth == 0 {
					text += entry("s1", "GETATTR", "/a", "4.200")
				}
				fsys.set(stats, text)
				time.Sleep(time.Second / SampleHz)
				synctest.Wait()
			}
			reads += 100
			stats = fmt.Sprintf("RQ_PARALLEL_READ: %d 0 0 0 0 0\nRQ_GETATTR: %d 0 0 0 0 0\n", reads, reads)
			fsys.set(stats, busy) // a tick looks once more
			r = collector.Reading{Now: time.Now()}
			if err := s.Read(t.Context(), &r); err != nil {
				t.Fatal(err)
			}
			if _, timed := collector.SampleOf(r.Samples, collector.ClientRead); timed != (second >= 4) {
				t.Errorf("second %d: reads timed: %v", second, timed)
			}
		}
		expect(t, &r, map[collector.Metric]float64{collector.InFlight: 23. / 11, collector.MetaInFlight: 1. / 11,
			collector.RequestAge: 4.2, collector.ClientRead: 0.02, collector.ClientMeta: math.NaN()})

		fsys.set(stats, "another format\n")
		time.Sleep(time.Second)
		synctest.Wait()
		r = collector.Reading{Now: time.Now()}
		if err := s.Read(t.Context(), &r); err == nil || !strings.Contains(err.Error(), "what hangs is not seen") {
			t.Errorf("another format of the list: %v", err)
		}
		expect(t, &r, map[collector.Metric]float64{collector.ReadOps: 0, collector.InFlight: math.NaN()})
		fsys.now.Store(&fstest.MapFS{})
		if err := s.Read(t.Context(), &r); !errors.Is(err, collector.ErrNoData) {
			t.Errorf("without a mount: %v", err)
		}
	})
}

// Files of a real system hold the kinds that are known, and a bad line costs itself. What stands in the way of the
// counts is named.
func TestFiles(t *testing.T) {
	name := filepath.Join("..", "..", "..", "shared", "data", "dvs_gpfs", "proc", "fs", "dvs", "mounts", "0", "stats")
	b, err := os.ReadFile(name)
	if err != nil {
		b = []byte(client)
	}
	st, err := ParseStats(b)
	if err != nil || len(st.Counts) < 5 {
		t.Errorf("%d kinds, %v", len(st.Counts), err)
	}
	got, err := ParseStats([]byte(client + "RQ_OPEN: 1 x 0 0\nRQ_CLOSE: 3 0 0 0 0 0\n"))
	if err == nil || !strings.Contains(err.Error(), "line 7") || len(got.Counts) != 6 || got.Counts[5].Client[0] != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{"": "switched off", `{"STATS":{"version":2}}`: "flat",
		"STATS.version 2\nSTATS.flags disable,flat,brief,plain,notest\n": "switched off",
		"SECTIONS\n": "no line of it"} {
		if _, err := ParseStats([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzStats(f *testing.F) {
	f.Add([]byte(client))
	f.Add([]byte("STATS.version 2\nRQ.RQ_OPEN.req.ok 3\nPERF.user.read.total.bytes 9\n"))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = ParseStats(b) })
}

func FuzzTimings(f *testing.F) {
	f.Add([]byte(timings(1, 2, 3, 4)))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = ParseTimings(b) })
}

func FuzzTransport(f *testing.F) {
	f.Add([]byte("Total Threads 16\nQueued Messages 2\n"))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = ParseTransport(b) })
}

func FuzzRequests(f *testing.F) {
	f.Add([]byte(entry("s1", "OPEN", "/a", "0.010")))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, _ := ParseRequests(b)
		for _, r := range all {
			if r.Age < 0 || r.Server == "" || r.Kind == "" && strings.Contains(r.Server, "\n") {
				t.Errorf("%+v", r)
			}
		}
	})
}

// endless is a tree whose list of outstanding requests does not end.
type endless struct {
	fs.FS
	lines atomic.Int64 // that were read
}

type endlessFile struct {
	fs.File
	of *endless
}

func (e *endless) Open(name string) (fs.File, error) {
	f, err := e.FS.Open(name)
	if err != nil || name != listFile {
		return f, err
	}
	return &endlessFile{f, e}, nil
}

func (f *endlessFile) Read(b []byte) (int, error) {
	line := entry("s1", "LOOKUP", "/a", "0.004")
	if f.of.lines.Add(1)*int64(len(line)) > 2*maxFile {
		return 0, errors.New("it is read on and on")
	}
	return copy(b, line), nil
}

// TestAListWithoutEnd: of a list that is too long no more is read than shows that it is.
func TestAListWithoutEnd(t *testing.T) {
	s := New(&endless{FS: tree(client)}, false)
	defer s.Close()
	err := s.Read(t.Context(), &collector.Reading{Now: time.Unix(1_800_000_000, 0)})
	if err == nil || !strings.Contains(err.Error(), "more than 4194304 bytes") {
		t.Error(err)
	}
}
