package queue

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector/p9"
)

// tests a queue before a forwarder, as a client that means it harm, and wants nothing left behind.
func hostile(t *testing.T, dial func(context.Context) (net.Conn, error), do func(t *testing.T, r *Queue, p *pipes)) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{Dial: dial, Window: 3})
		ctx, cancel := context.WithCancel(t.Context())
		p := newPipes()
		done := make(chan error)
		go func() { done <- r.Serve(ctx, p) }()
		do(t, r, p)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if r.inFlight != 0 || len(r.conns) != 0 || r.queue.length != 0 || len(r.from) != 0 {
			t.Errorf("%d in flight, %d connections of %d addresses, %d waiting are left", r.inFlight, len(r.conns),
				len(r.from),
				r.queue.length)
		}
	})
}

// An address has so many connections and no more, whose end makes room; another address is not concerned.
func TestConnectionsOfAnAddressAreBounded(t *testing.T) {
	hostile(t, newForwarder().dial, func(t *testing.T, r *Queue, p *pipes) {
		open := func() int {
			synctest.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.conns)
		}
		var all []net.Conn
		for range 2 * maxEach {
			all = append(all, p.dial("10.0.0.1"))
		}
		if n := open(); n != maxEach {
			t.Errorf("%d connections of one address, want %d", n, maxEach)
		}
		all = append(all, p.dial("10.0.0.2"))
		if n := open(); n != maxEach+1 {
			t.Errorf("%d connections with another address's, want %d", n, maxEach+1)
		}
		for _, c := range all {
			c.Close()
		}
		if n := open(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

// Connections that wait for the forwarder, or for their names, count.
func TestAClientHasNoMoreThanItsConnectionsDialled(t *testing.T) {
	dialled := atomic.Int64{}
	dial := func(ctx context.Context) (net.Conn, error) {
		dialled.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	hostile(t, dial, func(t *testing.T, r *Queue, p *pipes) {
		for range 2 * maxEach {
			p.dial("10.0.0.1")
		}
		synctest.Wait()
		if n := dialled.Load(); n != maxEach {
			t.Errorf("%d connections are made to the forwarder, want %d", n, maxEach)
		}
	})
}

// A client may not announce more than it has agreed on with the forwarder, and much less before that.
func TestMessagesAreAsLongAsAgreed(t *testing.T) {
	const agreed = 1 << 20
	dial := func(context.Context) (net.Conn, error) { // answers every message with an Rversion
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			for {
				if _, err := readMessage(there); err != nil {
					return
				}
				if _, err := there.Write(frame(p9.TVersion+1, 1,
					binary.LittleEndian.AppendUint32(nil, agreed))); err != nil {
					return
				}
			}
		}()
		return here, nil
	}
	hostile(t, dial, func(t *testing.T, _ *Queue, p *pipes) {
		// says sends messages of some lengths and returns whether the connection still stands.
		says := func(lengths ...int) bool {
			c := p.dial("10.0.0.1")
			defer c.Close()
			for _, n := range lengths {
				if _, err := c.Write(frame(100, 1, make([]byte, n-p9.HeaderBytes))); err != nil {
					return false
				}
				if _, err := io.ReadFull(c, make([]byte, p9.HeaderBytes+4)); err != nil {
					return false
				}
			}
			return true
		}
		for _, x := range []struct {
			lengths []int
			stands  bool
		}{{[]int{19}, true}, {[]int{usualFrame}, true}, {[]int{usualFrame + 1}, false}, {[]int{19, agreed}, true},
			{[]int{19, agreed + 1}, false}} {
			if got := says(x.lengths...); got != x.stands {
				t.Errorf("messages of %v bytes: stands %v", x.lengths, got)
			}
		}
	})
}

// What waits here of a client is bounded in bytes, where the forwarder takes nothing.
func TestBytesOfAClientAreBounded(t *testing.T) {
	dial := func(context.Context) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			_, _ = readMessage(there)
			_, _ = there.Write(frame(p9.TVersion+1, 1, binary.LittleEndian.AppendUint32(nil, maxFrame)))
		}()
		return here, nil
	}
	for _, connections := range []int{1, 64} {
		hostile(t, dial, func(t *testing.T, r *Queue, p *pipes) {
			var all []net.Conn
			for range connections {
				c := p.dial("10.0.0.1")
				defer c.Close()
				if _, err := c.Write(frame(100, 1, nil)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(c, make([]byte, p9.HeaderBytes+4)); err != nil {
					t.Fatal(err)
				}
				all = append(all, c)
			}
			const size = 1 << 18
			for i, c := range all {
				sent := 0
				for ; sent < 1000; sent++ {
					c.SetWriteDeadline(time.Now().Add(time.Second))
					if _, err := c.Write(frame(p9.TWrite, uint16(sent), make([]byte, size))); err != nil {
						break
					}
				}
				if sent*size > maxBytes+1<<20 {
					t.Errorf("connection %d of %d takes %d MB", i, connections, sent*size>>20)
				}
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			held := 0
			for one := range r.conns {
				held += one.bytes
			}
			if most := min(connections*maxBytes, maxEachBytes) + connections*2*size; held > most {
				t.Errorf("%d MB are held of %d connections, want %d at most", held>>20, connections, most>>20)
			}
		})
	}
}
