package procfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"fairway/cmd/lab/conform/sourcetest"
	"fairway/collector"
)

// onDisk writes the suite's tree to a folder before every read: the NFS readers want a real one.
type onDisk struct {
	*Source
	t    *testing.T
	fsys fs.FS
	root string
}

func (o *onDisk) Read(ctx context.Context, into *collector.Reading) error {
	o.t.Helper()
	write(o.t, o.root, o.fsys)
	return o.Source.Read(ctx, into)
}

func write(t *testing.T, root string, fsys fs.FS) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(root), os.MkdirAll(root, 0o755),
		os.Symlink("1", filepath.Join(root, "self"))); err != nil {
		t.Fatal(err)
	}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		to := filepath.Join(root, name)
		text, unreadable := fs.ReadFile(fsys, name)
		if unreadable != nil { // nor can a folder be
			return os.MkdirAll(to, 0o755)
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// tree is a node's proc after n seconds of the same load.
func tree(n int) fstest.MapFS {
	f := func(format string, args ...any) *fstest.MapFile {
		return &fstest.MapFile{Data: fmt.Appendf(nil, format, args...), Mode: 0o644}
	}
	return fstest.MapFS{
		// Three generations of the format: 11, 15 and 17 counters.
		"diskstats": f(` 259 0 nvme0n1 10 0 %d 5 20 0 %d 6 0 %d 11 0 0 0 0 3 1
 259 1 nvme0n1p1 10 0 %d 5 20 0 %d 6 0 %d 11 0 0 0 0 3 1
   8 0 sda 1 1 %d 1 1 1 %d 1 0 %d 7
   7 0 loop0 1 1 99999 1 1 1 99999 1 0 900 7 0 0 0 0
`, 8*n, 16*n, 100*n, 8*n, 16*n, 100*n, 2*n, 4*n, 250*n),
		"net/dev": f(`Inter-|   Receive                                                |  Transmit
`+
			" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo "+
			"colls carrier compressed\n"+
			`    lo: %d 7 0 0 0 0 0 0 %d 7 0 0 0 0 0 0
enp1s0f0np0:%d 7 0 0 0 0 0 0 %d 7 0 0 0 0 0 0
  eth1: %d 7 0 0 0 0 0 0 %d 7 0 0 0 0 0 0
`, 9000*n, 9000*n, 1000*n, 200*n, 50*n, 70*n),
		"pressure/io": f(
			"some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n",
			300000*n, 100000*n),
		"1/mountstats": f(`device proc mounted on /proc with fstype proc
device srv:/home mounted on /home with fstype nfs4 statvers=1.1
	opts:	rw,vers=4.2,proto=tcp
	age:	%d
	sec:	flavor=1,pseudoflavor=1
	events:	1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27
	bytes:	1 2 3 4 %d %d 7 8
	RPC iostats version: 1.1  p/v: 100003/4 (nfs)
	xprt:	tcp 0 0 1 0 0 10 10 0 10 0 2 0 0
	per-op statistics
	        NULL: 1 1 0 44 24 0 0 0
	        READ: %d %d 0 10 10 5 6 %d
	       WRITE: %d %d 0 10 10 5 6 %d 0
	     GETATTR: %d %d 0 10 10 18446743919241604546 6 %d %d
`, n, 4096*n, 8192*n, 10*n, 11*n, 50*n, 20*n, 20*n, 400*n, 5*n, 5*n, 10*n, n),
		"net/rpc/nfsd": f(`rc 0 1 2
fh 0 0 0 0 0
io %d %d
th 8 0 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000
net 1 0 1 1
rpc 1 0 0 0 0
proc3 22 1 %d 1 1 1 1 %d %d 1 1 1 1 1 1 1 1 1 1 1 1 1 1
proc4 2 1 1
proc4ops 40 0 0 0 1 1 1 1 1 1 %d 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 %d 1 1 1 1 1 1 1 1 1 1 1 1 %d 1
`, 1<<20*n, 2<<20*n, 6*n, 3*n, 4*n, 5*n, 7*n, 8*n),
	}
}

func options(root string) Options {
	return Options{Root: root, SkipLinks: []string{"lo"}}
}

func TestConformance(t *testing.T) {
	n := 0
	base := t.TempDir()
	client := func(fsys fs.FS) collector.Source {
		n++
		root := filepath.Join(base, fmt.Sprint(n))
		return &onDisk{Source: New(options(root)), t: t, fsys: fsys, root: root}
	}
	first, second := tree(1), tree(2)
	delete(first, "net/rpc/nfsd") // a node is rarely both; the server has its own test
	delete(second, "net/rpc/nfsd")
	sourcetest.Run(t, sourcetest.Suite{
		New: client, First: first, Second: second,
		Want: []collector.Metric{
			collector.DiskReadBytes, collector.DiskWriteBytes, collector.DiskBusyRatio, collector.LinkRxBytes,
			collector.LinkTxBytes, collector.PSIIOSome, collector.PSIIOFull, collector.ReadBytes, collector.WriteBytes,
			collector.ReadOps, collector.WriteOps, collector.MetaOps, collector.ClientRead, collector.ClientWrite,
			collector.ClientMeta, collector.Retransmits, collector.Errors,
		},
	})
}

// rates reads two trees one second apart and returns the second's samples by metric.
func rates(t *testing.T, opt Options, first, second fstest.MapFS) map[collector.Metric]float64 {
	t.Helper()
	s := New(opt)
	defer s.Close()
	out := map[collector.Metric]float64{}
	for _, m := range []fstest.MapFS{first, second} {
		write(t, opt.Root, m)
		var r collector.Reading
		if err := s.Read(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
		clear(out)
		sec := s.rates.Seconds()
		for _, x := range r.Samples {
			out[x.Metric] = x.Value
			switch x.Metric { // undo the real interval, so that values are exact
			case collector.ClientRead, collector.ClientWrite, collector.ClientMeta, collector.Threads:
			default:
				out[x.Metric] = x.Value * sec
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return out
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Abs(b) }

func TestValues(t *testing.T) {
	first, second := tree(1), tree(2)
	delete(first, "net/rpc/nfsd")
	delete(second, "net/rpc/nfsd")
	got := rates(t, options(filepath.Join(t.TempDir(), "client", "proc")), first, second)
	for m, want := range map[collector.Metric]float64{
		collector.DiskReadBytes: (8 + 2) * 512, collector.DiskWriteBytes: (16 + 4) * 512,
		collector.LinkRxBytes: 1050, collector.LinkTxBytes: 270,
		collector.ReadBytes: 4096, collector.WriteBytes: 8192, collector.ReadOps: 10, collector.WriteOps: 20,
		collector.MetaOps:    5,
		collector.ClientRead: 0.005, collector.ClientWrite: 0.020, collector.ClientMeta: 0.002,
		collector.Retransmits: 1, collector.Errors: 1,
	} {
		if !near(got[m], want) {
			t.Errorf("%v = %v, want %v", m, got[m], want)
		}
	}
	// 250 ms of work in 20 ms of time is more than there was: held at 1 a second.
	if v := got[collector.DiskBusyRatio]; v <= 0 || v > 1 {
		t.Errorf("busy ratio %v", v)
	}
	first, second = tree(1), tree(2)
	delete(first, "1/mountstats")
	delete(second, "1/mountstats")
	got = rates(t, options(filepath.Join(t.TempDir(), "server", "proc")), first, second)
	for m, want := range map[collector.Metric]float64{
		collector.ReadBytes: 1 << 20, collector.WriteBytes: 2 << 20, collector.ReadOps: 3 + 7,
		collector.WriteOps: 4 + 8,
		collector.MetaOps:  6 + 5, collector.Threads: 8,
	} {
		if !near(got[m], want) {
			t.Errorf("server: %v = %v, want %v", m, got[m], want)
		}
	}
}

func TestThirtyTwoBitCountersWrap(t *testing.T) {
	opt := options(filepath.Join(t.TempDir(), "proc"))
	before, after := tree(1), tree(1)
	before["net/dev"] = &fstest.MapFile{Data: []byte("eth1: 4294967000 7 0 0 0 0 0 0 5 7 0 0 0 0 0 0\n")}
	after["net/dev"] = &fstest.MapFile{Data: []byte("eth1: 704 7 0 0 0 0 0 0 5 7 0 0 0 0 0 0\n")}
	if got := rates(t, opt, before, after); !near(got[collector.LinkRxBytes], 1000) {
		t.Errorf("got %v, want 1000", got[collector.LinkRxBytes])
	}
}

func TestPartitions(t *testing.T) {
	for name, want := range map[string]bool{
		"sda": false, "sda1": true, "sdaa12": true, "nvme0n1": false, "nvme0n1p2": true, "vda": false, "vda3": true,
		"mmcblk0": false, "mmcblk0p1": true, "dm-0": false, "md127": false, "xvda1": true, "xvdb1": false,
	} {
		disks := " 8 0 sda 1\n 8 1 sdaa 1\n 9 0 nvme0n1 1\n 9 1 vda 1\n 9 2 mmcblk0 1\n 202 0 xvda 1\n"
		if isPartition(name, []byte(disks)) != want {
			t.Errorf("isPartition(%q) = %v", name, !want)
		}
	}
}

func TestBadLineIsNamed(t *testing.T) {
	root := filepath.Join(t.TempDir(), "proc")
	m := tree(1)
	m["net/dev"].Data = append(m["net/dev"].Data, "eth9: 1 2 3\n"...)
	write(t, root, m)
	s := New(options(root))
	var r collector.Reading
	err := s.Read(t.Context(), &r)
	if want := root + `/net/dev: line 6 ("eth9: 1 2 3"): 3 counters`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// TestThisMachine reads the real proc.
func TestThisMachine(t *testing.T) {
	if _, err := os.Stat("/proc/net/dev"); err != nil {
		t.Skip("no /proc here")
	}
	s := New(options("/proc"))
	for range 2 {
		var r collector.Reading
		if err := s.Read(t.Context(), &r); err != nil {
			t.Error(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func FuzzLines(f *testing.F) {
	for _, file := range tree(3) {
		f.Add(file.Data)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, name := range []string{"diskstats", "net/dev", "pressure/io", "stat", "meminfo"} {
			s := New(Options{Root: "fuzz"})
			s.files = fstest.MapFS{name: {Data: b}}
			var r collector.Reading
			if err := s.Read(t.Context(), &r); errors.Is(err, collector.ErrNoData) {
				t.Errorf("%s is there and was not read", name)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	s := New(options("/proc"))
	var r collector.Reading
	b.ReportAllocs()
	for b.Loop() {
		r.Samples = r.Samples[:0]
		if err := s.Read(b.Context(), &r); err != nil {
			b.Fatal(err)
		}
	}
}
