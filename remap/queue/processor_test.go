package queue

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"fairway/collector/p9"
)

// BenchmarkProcessor is what choosing costs when there is nothing but the processor: a forwarder that answers at once,
// clients that always have more to ask, all of them and the queue in this process. What is compared is this queue under
// a policy with this queue in the order of arrival, and with the clients at the forwarder without a queue. They take
// turns of a tenth of a second in random order, so that a change of the machine meets all of them.
//
// of-fifo is the requests per second of processor time as a share of those in the order of arrival: what the total
// would be on processors that are busy with this and nothing else. Seconds of the clock would measure the machine's
// other work.
func BenchmarkProcessor(b *testing.B) {
	for _, size := range []int{0, 4 << 10, 64<<10 - writeData} {
		b.Run(fmt.Sprintf("%dKiB", (size+writeData)>>10), func(b *testing.B) { benchmarkProcessor(b, size) })
	}
}

func benchmarkProcessor(b *testing.B, size int) {
	sink := listen(b)
	go answerAll(sink)
	r := New(Config{Dial: func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", sink.Addr().String())
	}})
	front := listen(b)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { r.Serve(ctx, front) })
	table := twoJobs("")
	through, direct := &gate{}, &gate{}
	for i := range table.Jobs {
		from := netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + i)})
		table.Jobs[i].Clients = []netip.Addr{from}
		for range 4 {
			for g, to := range map[*gate]net.Addr{through: front.Addr(), direct: sink.Addr()} {
				d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
				c, err := d.Dial("tcp", to.String())
				if err != nil {
					b.Fatal(err)
				}
				all.Go(func() { ask(ctx, c, g, size) })
			}
		}
	}
	turns := []string{"fifo", "size-fair", "job-fair", "no-queue"}
	sum := map[string]spent{}
	b.ResetTimer()
	for range b.N {
		for _, k := range rand.Perm(len(turns)) {
			g := through
			if turns[k] == "no-queue" {
				g = direct
			} else if table.Policy = turns[k]; table.Policy == "fifo" {
				table.Policy = ""
			}
			if err := r.Share(table); err != nil {
				b.Fatal(err)
			}
			sum[turns[k]] = sum[turns[k]].plus(turn(r, g))
		}
	}
	b.StopTimer()
	through.open(false)
	cancel()
	sink.Close()
	all.Wait()
	fifo := sum["fifo"]
	for _, t := range turns {
		s := sum[t]
		b.ReportMetric(s.requests/s.processor*fifo.processor/fifo.requests, "of-fifo-"+t)
		if t != "no-queue" {
			b.ReportMetric(s.big/(s.requests-s.big), "ratio-"+t)
		}
	}
	b.ReportMetric(fifo.processor/fifo.requests*1e6, "us/request-fifo")
	b.ReportMetric(0, "ns/op")
}

// spent is what turns came to.
type spent struct{ requests, big, processor float64 }

func (s spent) plus(t spent) spent {
	return spent{s.requests + t.requests, s.big + t.big, s.processor + t.processor}
}

// turn lets the clients behind a gate work for a tenth of a second.
func turn(r *Queue, g *gate) spent {
	g.open(true)
	time.Sleep(20 * time.Millisecond)
	asked, served, before := g.asked(), r.Stats()["big"].Requests, processorTime()
	time.Sleep(100 * time.Millisecond)
	s := spent{float64(g.asked() - asked), float64(r.Stats()["big"].Requests - served), processorTime() - before}
	g.open(false)
	time.Sleep(5 * time.Millisecond)
	return s
}

func processorTime() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// gate lets clients ask or holds them, and counts what they were answered.
type gate struct {
	mu    sync.Mutex
	ready chan struct{} // closed while it is open
	count int64
}

func (g *gate) open(yes bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ready == nil {
		g.ready = make(chan struct{})
	}
	select {
	case <-g.ready:
		if !yes {
			g.ready = make(chan struct{})
		}
	default:
		if yes {
			close(g.ready)
		}
	}
}

func (g *gate) pass() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ready == nil {
		g.ready = make(chan struct{})
	}
	g.count++
	return g.ready
}

func (g *gate) asked() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count
}

func listen(b *testing.B) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// ask keeps eight requests of a client on their way while the gate is open: writes of size bytes, or where that is 0
// requests without data.
func ask(ctx context.Context, c net.Conn, g *gate, size int) {
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	m := frame(24, 0, make([]byte, 12)) // Tgetattr
	if size > 0 {
		m = frame(p9.TWrite, 0, make([]byte, writeData-p9.HeaderBytes+size))
	}
	tags := make(chan uint16, 8)
	for i := range cap(tags) {
		tags <- uint16(i)
	}
	go func() {
		in := bufio.NewReader(c)
		var reply [p9.HeaderBytes]byte
		for {
			if _, err := io.ReadFull(in, reply[:]); err != nil {
				close(tags)
				return
			}
			tags <- binary.LittleEndian.Uint16(reply[5:])
		}
	}()
	for tag := range tags {
		select {
		case <-g.pass():
		case <-ctx.Done():
			return
		}
		binary.LittleEndian.PutUint16(m[5:], tag)
		if _, err := c.Write(m); err != nil {
			return
		}
	}
}

// answerAll answers every message with an empty one until l ends.
func answerAll(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			in := bufio.NewReaderSize(c, 128<<10)
			for {
				head, err := in.Peek(p9.HeaderBytes)
				if err != nil {
					return
				}
				reply := frame(head[4]+1, binary.LittleEndian.Uint16(head[5:]), nil)
				if _, err := in.Discard(int(binary.LittleEndian.Uint32(head))); err != nil {
					return
				}
				if _, err := c.Write(reply); err != nil {
					return
				}
			}
		}()
	}
}
