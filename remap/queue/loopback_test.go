package queue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
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
	cfg := testbed.Config{Forwarders: 1, ComputeNodes: 1, Loopback: true}
	if missing := testbed.Missing(cfg); len(missing) > 0 {
		b.Skipf("skipped: not installed: %s", strings.Join(missing, " "))
	}
	tb, err := testbed.Start(context.Background(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer tb.Close()
	r := New(Config{Dial: func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", tb.ForwarderAddr("fwd000"))
	}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { r.Serve(ctx, l) })
	table := twoJobs("")
	for i := range table.Jobs {
		table.Jobs[i].Clients = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + i)})}
		for k := range 4 {
			all.Go(func() {
				writeThrough(b, ctx, tb, l.Addr().String(), table.Jobs[i].Clients[0],
					fmt.Sprint("f", i, k))
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

// turnOf is what is measured in a turn, moved what the jobs did in it.
type (
	turnOf struct {
		policy string
		window int
	}
	moved struct{ bytes, waits [2]float64 }
)

// writeThrough keeps four writers busy on one connection from an address.
func writeThrough(b *testing.B, ctx context.Context, tb *testbed.Testbed, queue string, from netip.Addr, name string) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	conn, err := d.DialContext(ctx, "tcp", queue)
	if err != nil {
		b.Error(err)
		return
	}
	c, err := p9.NewClient(ctx, conn, queue, 65536)
	if err != nil {
		b.Error(err)
		return
	}
	defer c.Close()
	root, err := c.Attach(ctx, tb.Attach(), uint32(os.Geteuid()))
	if err != nil {
		b.Error(err)
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
				f.WriteAt(ctx, data, 0)
			}
		})
	}
	writers.Wait()
}
