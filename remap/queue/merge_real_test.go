package queue

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fairway/cmd/lab/testbed"
	"fairway/collector/p9"
	"fairway/collector/topology"
)

// counted counts the reads and writes that go to a forwarder: each message is one Write of the queue.
type counted struct {
	net.Conn
	requests *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	if len(b) > 4 && (b[4] == p9.TWrite || b[4] == p9.TRead) {
		c.requests.Add(1)
	}
	return c.Conn.Write(b)
}

// delegates are two queues before one real diod, one of which gathers and keeps what was read, and sixteen clients of
// each.
type delegates struct {
	dir      string
	ranks    [2][]*p9.Fid // roots
	requests [2]atomic.Int64
}

func newDelegates(t testing.TB, tb *testbed.Testbed) *delegates {
	d := &delegates{dir: tb.Dir()}
	for i, wait := range []time.Duration{0, 2 * time.Millisecond} {
		r := New(Config{Gather: wait, Cache: i * 64 << 20, Dial: func(ctx context.Context) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", tb.ForwarderAddr("fwd000"))
			return counted{c, &d.requests[i]}, err
		}})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- r.Serve(ctx, l) }()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		for range 16 {
			c, err := p9.Dial(ctx, l.Addr().String(), 65536)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			root, err := c.Attach(ctx, tb.Attach(), uint32(os.Geteuid()))
			if err != nil {
				t.Fatal(err)
			}
			d.ranks[i] = append(d.ranks[i], root)
		}
	}
	return d
}

// pattern is how the ranks write: each so many pieces of a size, into one file by turns or each into its own.
type pattern struct {
	name         string
	size, pieces int
	own          bool
}

// write has all ranks of a queue write a pattern and fsync, checks the files, and returns how long it took and how many
// writes arrived.
func (d *delegates) write(t testing.TB, which int, p pattern) (took time.Duration, arrived int) {
	ctx := t.Context()
	ranks := d.ranks[which]
	name := func(i int) string {
		if p.own {
			return fmt.Sprint("own", i)
		}
		return "shared"
	}
	for i := range ranks {
		os.Remove(filepath.Join(d.dir, name(i)))
	}
	place := func(i, k int) int {
		if p.own {
			return k
		}
		return k*len(ranks) + i
	}
	files := make([]*p9.Fid, len(ranks))
	for i, root := range ranks {
		f, err := root.Walk(ctx)
		if err == nil {
			err = f.Create(ctx, name(i), syscall.O_RDWR, 0o600, uint32(os.Getegid()))
		}
		if err != nil {
			t.Fatal(err)
		}
		files[i] = f
	}
	data := block(7, p.size+16)
	before, start := d.requests[which].Load(), time.Now()
	var all sync.WaitGroup
	for i, f := range files {
		all.Go(func() {
			for k := range p.pieces {
				n, err := f.WriteAt(ctx, data[i:i+p.size], int64(place(i, k))*int64(p.size))
				if n != p.size || err != nil {
					t.Errorf("rank %d: %d bytes, %v", i, n, err)
				}
			}
			if err := f.Fsync(ctx, 0); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	took, arrived = time.Since(start), int(d.requests[which].Load()-before)
	for i, f := range files {
		got, err := os.ReadFile(filepath.Join(d.dir, name(i)))
		if err != nil {
			t.Fatal(err)
		}
		for k := range p.pieces {
			if at := place(i, k) * p.size; len(got) < at+p.size || !bytes.Equal(got[at:at+p.size], data[i:i+p.size]) {
				t.Fatalf("%s: piece %d of rank %d is not what it wrote", p.name, k, i)
			}
		}
		f.Clunk(ctx)
	}
	return took, arrived
}

// startDiod is a real diod on this machine.
func startDiod(t testing.TB) *testbed.Testbed {
	cfg := testbed.Config{Forwarders: 1, ComputeNodes: 1, Loopback: true}
	if missing := testbed.Missing(cfg); len(missing) > 0 {
		t.Skipf("skipped: not installed: %s", strings.Join(missing, " "))
	}
	tb, err := testbed.Start(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tb.Close() })
	return tb
}

// Small writes of sixteen ranks by turns arrive at a real diod as far fewer requests, byte for byte. How few depends on
// the machine, whose ranks may come late: a tenth where they do not (BenchmarkGather).
func TestStridedWritesOnTheRealLayer(t *testing.T) {
	d := newDelegates(t, startDiod(t))
	for _, p := range []pattern{{"strided", 4096, 40, false}, {"own files", 4096, 10, true},
		{"large", 1 << 20, 2, false}} {
		_, plain := d.write(t, 0, p)
		_, merged := d.write(t, 1, p)
		t.Logf("%s: %d writes arrive, %d without gathering", p.name, merged, plain)
		if merged > plain || p.name == "strided" && merged*2 > plain {
			t.Errorf("%s: %d writes arrive, %d without gathering", p.name, merged, plain)
		}
	}
}

// TestMPIRanksAreGathered: real MPI ranks on four nodes write one file by turns, each with MPI-IO through its node's
// mount; their writes of 4,000 bytes arrive as fewer, byte for byte. How few depends on whether they get along side
// by side.
func TestMPIRanksAreGathered(t *testing.T) {
	for _, p := range []string{"mpicc.mpich", "mpiexec.hydra"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("skipped: %s is not installed (Debian: mpich libmpich-dev)", p)
		}
	}
	l := newLayer(t, 0, 2*time.Millisecond)
	dir, err := os.MkdirTemp("", "ranks") // where nodes see it, too
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	writer := filepath.Join(dir, "writer")
	if out, err := exec.Command("mpicc.mpich", "-O1", "-o", writer,
		"../../cmd/lab/papers/mpi/collective.c").CombinedOutput(); err != nil {
		t.Fatalf("build the writer: %v\n%s", err, out)
	}
	const pieces, size = 60, 4000
	met := int64(0)
	for i, ranks := range []int{4, 4, 4, 4, 4, 16} { // on a busy machine ranks are seldom side by side
		if ranks == 4 && met > 0 {
			continue
		}
		var on []topology.NodeID
		for i := range ranks {
			on = append(on, topology.NodeID(fmt.Sprintf("cn%03d", i*4/ranks)))
		}
		name := fmt.Sprint("ranks", i)
		before := *l.queue.Report().Merged
		if out, err := l.tb.MPIRun(t.Context(), on, writer, filepath.Join(testbed.MountPoint, name), fmt.Sprint(pieces),
			fmt.Sprint(size), "romio_cb_write=disable", "romio_ds_write=disable"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		after := *l.queue.Report().Merged
		in, out := after.WritesIn-before.WritesIn, after.WritesOut-before.WritesOut
		t.Logf("%d ranks: of %d writes %d went with others, in %d messages", ranks, ranks*pieces, in, out)
		met += out
		got, err := os.ReadFile(filepath.Join(l.tb.Dir(), name))
		if err != nil || len(got) != ranks*pieces*size {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		for i, b := range got {
			if b != byte('a'+i/size%26) {
				t.Fatalf("%d ranks: byte %d is %q", ranks, i, b)
			}
		}
	}
	if met == 0 {
		t.Error("no write met its neighbours")
	}
}

// BenchmarkGather is what gathering does to requests and times on a real diod, the two queues in turns in random order.
// time is that of the queue that gathers by that of the other, requests likewise, messages the requests by the least
// that could carry the bytes; slower counts the turns of b.N in which gathering was slower.
func BenchmarkGather(b *testing.B) {
	d := newDelegates(b, startDiod(b))
	for _, p := range []pattern{{"strided4KiB", 4096, 100, false}, {"strided16KiB", 16384, 50, false},
		{"own4KiB", 4096, 100, true}, {"large1MiB", 1 << 20, 8, false}, {"largeOwn1MiB", 1 << 20, 8, true}} {
		b.Run(p.name, func(b *testing.B) {
			arrived := compare(b, func(which int) (time.Duration, int) { return d.write(b, which, p) })
			least := float64(16*p.pieces*p.size) / (65536 - p9.IOHeader) * float64(b.N)
			b.ReportMetric(float64(arrived)/least, "messages")
		})
	}
}

// compare has two queues do the same by turns, in random order, and reports the times and requests of the second by
// those of the first.
func compare(b *testing.B, do func(which int) (took time.Duration, arrived int)) (arrivedSecond int) {
	do(0)
	do(1)
	var ratios []float64
	var arrived [2]int
	slower := 0
	for range b.N {
		var took [2]time.Duration
		first := rand.IntN(2)
		for _, which := range []int{first, 1 - first} {
			var n int
			took[which], n = do(which)
			arrived[which] += n
		}
		ratios = append(ratios, took[1].Seconds()/took[0].Seconds())
		if took[1] > took[0] {
			slower++
		}
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "time")
	b.ReportMetric(ratios[len(ratios)-1], "time-most")
	b.ReportMetric(float64(slower), "slower")
	b.ReportMetric(float64(arrived[1])/float64(arrived[0]), "requests")
	b.ReportMetric(0, "ns/op")
	return arrived[1]
}

// read has some clients of a queue read a file each in pieces of a size, checks what they have, and returns how long it
// took and how many reads arrived.
func (d *delegates) read(t testing.TB, which, clients, size int, name string, want []byte) (took time.Duration,
	arrived int) {
	ctx := t.Context()
	var files []*p9.Fid
	for _, root := range d.ranks[which][:clients] {
		f, err := root.Walk(ctx, name)
		if err == nil {
			err = f.Open(ctx, syscall.O_RDONLY)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer f.Clunk(ctx)
		files = append(files, f)
	}
	before, start := d.requests[which].Load(), time.Now()
	var all sync.WaitGroup
	for i, f := range files {
		all.Go(func() {
			b := make([]byte, size)
			for at := 0; at < len(want); at += size {
				n, err := f.ReadAt(ctx, b, int64(at))
				if err != nil && err != io.EOF || !bytes.Equal(b[:n], want[at:min(at+size, len(want))]) {
					t.Errorf("client %d: %d bytes at %d, %v; want the file's", i, n, at, err)
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(start), int(d.requests[which].Load() - before)
}

// readers are clients that read one file in pieces of a size.
type readers struct {
	name          string
	clients, size int
	bytes         int
}

var reading16 = []readers{{"one4KiB", 1, 4096, 4 << 20}, {"sixteen4KiB", 16, 4096, 4 << 20},
	{"sixteen60KiB", 16, 60 << 10, 16 << 20}, {"sixteen1MiB", 16, 1 << 20, 32 << 20}, {"one1MiB", 1, 1 << 20, 64 << 20}}

// writeFile writes a file at the forwarder itself.
func (d *delegates) writeFile(t testing.TB, name string, version, size int) []byte {
	data := bytes.Repeat(block(version, 4099), size/4099+1)[:size]
	if err := os.WriteFile(filepath.Join(d.dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return data
}

// Clients of a real diod that read one file, which changes at the forwarder between their opens, have its bytes, by far
// fewer requests.
func TestReadersOnTheRealLayer(t *testing.T) {
	d := newDelegates(t, startDiod(t))
	for _, c := range reading16[:3] {
		for version := range 5 {
			data := d.writeFile(t, c.name, version, c.bytes/8)
			_, plain := d.read(t, 0, c.clients, c.size, c.name, data)
			_, kept := d.read(t, 1, c.clients, c.size, c.name, data)
			// Clients that a busy machine lets get a second apart share no large reads.
			if kept >= plain || c.size <= 4096 && kept*4 > plain {
				t.Errorf("%s: %d reads arrive, %d without a cache", c.name, kept, plain)
			}
		}
	}
}

// BenchmarkReadCache is what the cache does to requests and times on a real diod, the two queues in turns in random
// order; the figures are those of BenchmarkGather.
func BenchmarkReadCache(b *testing.B) {
	d := newDelegates(b, startDiod(b))
	for _, c := range reading16 {
		b.Run(c.name, func(b *testing.B) {
			data := d.writeFile(b, c.name, 1, c.bytes)
			compare(b, func(which int) (time.Duration, int) {
				return d.read(b, which, c.clients, c.size, c.name, data)
			})
		})
	}
}
