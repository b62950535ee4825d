package queue

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairway/cmd/lab/testbed"
	"fairway/collector/p9"
)

// BenchmarkLoopback is a diod on this machine with nothing slow in front of it, which clients of two
// addresses write through the queue: what a policy comes to, and the total against the same queue in the order of
// arrival, when the processor is all there is. Each job has 16 requests on their way: with a window of as many they
// are all at the forwarder and nothing is left to choose from, so smaller windows are measured too. waits is the part
// of the time in which a job had requests waiting here. Turns of a fifth of a second are taken in random order, so
// that a change of the machine meets all of them.
func BenchmarkLoopback(b *testing.B) {
	tb, r, at := newLoopback(b)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	table := twoJobs("")
	for i := range table.Jobs {
		table.Jobs[i].Clients = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + i)})}
		for k := range 4 {
			all.Go(func() {
				writeThrough(b, ctx, tb, at, table.Jobs[i].Clients[0], fmt.Sprint("f", i, k), nil)
			})
		}
	}
	time.Sleep(time.Second)
	turns := []turnOf{{"", 16}, {"size-fair", 16}, {"job-fair", 16}, {"", 8}, {"size-fair", 8}, {"", 4},
		{"size-fair", 4}, {"job-fair", 4}}
	sum := make([]moved, len(turns))
	b.ResetTimer()
	for range b.N {
		for _, k := range rand.Perm(len(turns)) {
			table.Policy = turns[k].policy
			r.mu.Lock()
			r.cfg.Window = turns[k].window
			r.mu.Unlock()
			if err := r.Share(table); err != nil {
				b.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond)
			before, from := r.Stats(), time.Now()
			time.Sleep(200 * time.Millisecond)
			after, took := r.Stats(), time.Since(from).Seconds()
			for i, j := range []string{"big", "small"} {
				sum[k].bytes[i] += float64(after[j].Bytes-before[j].Bytes) / took
				sum[k].waits[i] += (after[j].WaitedSeconds - before[j].WaitedSeconds) / took
			}
		}
	}
	cancel()
	all.Wait()
	fifo := sum[0].bytes[0] + sum[0].bytes[1]
	for k, t := range turns {
		name := fmt.Sprint(t.policy, t.window)
		b.ReportMetric(sum[k].bytes[0]/sum[k].bytes[1], "ratio-"+name)
		b.ReportMetric((sum[k].bytes[0]+sum[k].bytes[1])/fifo, "of-fifo-"+name)
		if t.policy != "" {
			b.ReportMetric(sum[k].waits[0]/float64(b.N), "waits-big-"+name)
		}
	}
	b.ReportMetric(fifo/1e6/float64(b.N), "MB/s-")
}

// newLoopback is a real diod and a queue before it, at an address.
func newLoopback(b *testing.B) (tb *testbed.Testbed, r *Queue, at string) {
	tb = startDiod(b)
	r = New(Config{Dial: func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", tb.ForwarderAddr("fwd000"))
	}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx, l) }()
	b.Cleanup(func() { cancel(); <-done })
	return tb, r, l.Addr().String()
}

// BenchmarkLimit is a diod on this machine, whose clients share its processors, with nothing slow behind it and with
// a file system that takes 10 ms for each request: how long a write of 60 KiB takes that is alone, beside a job of 16
// writers, beside it with a limit that lets one of its requests through at a time, and with the limit as it is, which
// lets as many through as were found to keep the forwarder busy; and what all move, by what they move without a
// limit. Turns of a second are taken in random order, so that a change of the machine meets all of them.
func BenchmarkLimit(b *testing.B) {
	for _, fault := range []testbed.FaultKind{"", testbed.SlowData} {
		b.Run(cmp.Or(string(fault), "processors"), func(b *testing.B) { benchmarkLimit(b, fault) })
	}
}

func benchmarkLimit(b *testing.B, fault testbed.FaultKind) {
	tb, r, at := newLoopback(b)
	if fault != "" {
		if err := tb.Inject(b.Context(), testbed.Fault{Kind: fault, Node: "fwd000", Amount: .01}); err != nil {
			b.Skipf("skipped: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	table := twoJobs("job-fair")
	for i := range table.Jobs {
		table.Jobs[i].Clients = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + i)})}
	}
	var took atomic.Pointer[[]float64]
	took.Store(new([]float64))
	busy := &gate{}
	for k := range 4 {
		all.Go(func() {
			writeThrough(b, ctx, tb, at, table.Jobs[0].Clients[0], fmt.Sprint("f", k), func() { <-busy.pass() })
		})
	}
	all.Go(func() {
		f, err := attachThrough(b, ctx, tb, at, table.Jobs[1].Clients[0]).Walk(ctx)
		if err == nil {
			err = f.Create(ctx, "victim", uint32(os.O_RDWR), 0o600, uint32(os.Getegid()))
		}
		if err != nil {
			b.Error(err)
			return
		}
		for data := make([]byte, 60<<10); ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
			from := time.Now()
			f.WriteAt(ctx, data, 0)
			next := append(slices.Clone(*took.Load()), time.Since(from).Seconds())
			took.Store(&next)
		}
	})
	table.Jobs[0].Limit = .05
	if err := r.Share(table); err != nil {
		b.Fatal(err)
	}
	busy.open(true)
	for r.Report().Depth == 0 {
		time.Sleep(100 * time.Millisecond)
	}
	found := r.Report().Depth
	turns := []string{"alone", "unlimited", "one", "limited"}
	var times, moved [4][]float64
	b.ResetTimer()
	for range b.N {
		for _, k := range rand.Perm(len(turns)) {
			r.mu.Lock()
			r.queue.depth.until = time.Now().Add(time.Hour)
			r.queue.depth.now = []int{found, DefaultWindow, 1, found}[k]
			r.mu.Unlock()
			busy.open(k > 0)
			time.Sleep(50 * time.Millisecond)
			took.Store(new([]float64))
			before, from := r.Stats(), time.Now()
			time.Sleep(time.Second)
			after, seconds := r.Stats(), time.Since(from).Seconds()
			times[k] = append(times[k], *took.Load()...)
			moved[k] = append(moved[k], float64(after["big"].Bytes+after["small"].Bytes-before["big"].Bytes-
				before["small"].Bytes)/seconds)
		}
	}
	busy.open(true)
	cancel()
	all.Wait()
	median := func(x []float64) float64 { slices.Sort(x); return append(x, math.NaN())[len(x)/2] }
	for k, t := range turns {
		b.ReportMetric(1e3*median(times[k]), "ms-"+t)
		b.ReportMetric(1e3*mean(times[k]), "mean-ms-"+t)
		b.ReportMetric(median(moved[k])/1e6, "MB/s-"+t)
	}
	b.ReportMetric(float64(found), "depth")
	b.ReportMetric(0, "ns/op")
}

// turnOf is what is measured in a turn, moved what the jobs did in it.
type (
	turnOf struct {
		policy string
		window int
	}
	moved struct{ bytes, waits [2]float64 }
)

// writeThrough keeps four writers busy on one connection from an address; each calls before, if there is one, before
// each write.
func writeThrough(b *testing.B, ctx context.Context, tb *testbed.Testbed, queue string, from netip.Addr, name string,
	before func()) {
	root := attachThrough(b, ctx, tb, queue, from)
	if root == nil {
		return
	}
	var writers sync.WaitGroup
	for i := range 4 {
		f, err := root.Walk(ctx)
		if err == nil {
			err = f.Create(ctx, fmt.Sprint(name, i), uint32(os.O_RDWR), 0o600, uint32(os.Getegid()))
		}
		if err != nil {
			b.Error(err)
			return
		}
		writers.Go(func() {
			data := make([]byte, 60<<10)
			for ctx.Err() == nil {
				if before != nil {
					before()
				}
				f.WriteAt(ctx, data, 0)
			}
		})
	}
	writers.Wait()
}

// attachThrough is the root of the forwarder's tree, from an address; nil: the benchmark has failed.
func attachThrough(b *testing.B, ctx context.Context, tb *testbed.Testbed, queue string, from netip.Addr) *p9.Fid {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	conn, err := d.DialContext(ctx, "tcp", queue)
	if err != nil {
		b.Error(err)
		return nil
	}
	c, err := p9.NewClient(ctx, conn, queue, 65536)
	if err != nil {
		b.Error(err)
		return nil
	}
	b.Cleanup(func() { c.Close() })
	root, err := c.Attach(ctx, tb.Attach(), uint32(os.Geteuid()))
	if err != nil {
		b.Error(err)
		return nil
	}
	return root
}
