package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairway/collector/p9"
)

// speeds is what a client gets from one forwarder.
type speeds struct{ writeBytes, readBytes, metaOps float64 } // per second

// measure loads a forwarder with four requests in flight of one kind after the other. Requests
// that do not come back within the time count as not done.
func measure(t *testing.T, addr, attach string) (s speeds) {
	t.Helper()
	block := make([]byte, 56<<10)
	s.writeBytes = perSecond(t, addr, attach, func(ctx context.Context, f *p9.Fid, i int) (int, error) {
		return f.WriteAt(ctx, block, int64(i%64)*int64(len(block)))
	})
	s.readBytes = perSecond(t, addr, attach, func(ctx context.Context, f *p9.Fid, i int) (int, error) {
		return f.ReadAt(ctx, make([]byte, len(block)), int64(i%64)*int64(len(block)))
	})
	s.metaOps = perSecond(t, addr, attach, func(ctx context.Context, f *p9.Fid, i int) (int, error) {
		_, err := f.GetAttr(ctx)
		return 1, err
	})
	return s
}

// perSecond repeats op for a moment and returns what it did, a second.
func perSecond(t *testing.T, addr, attach string, op func(context.Context, *p9.Fid, int) (int, error)) float64 {
	t.Helper()
	const inFlight, moment = 4, 100 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), moment)
	defer cancel()
	began := time.Now()
	var sum atomic.Int64
	var wg sync.WaitGroup
	for i := range inFlight {
		wg.Go(func() {
			c, err := p9.Dial(ctx, addr, msize)
			if err != nil {
				return
			}
			defer c.Close()
			root, err := c.Attach(ctx, attach, uint32(os.Geteuid()))
			if err != nil {
				return
			}
			name := fmt.Sprintf("load%d", i)
			f, err := root.Walk(ctx, name)
			if err == nil {
				err = f.Open(ctx, uint32(os.O_RDWR))
			} else {
				f = root
				err = f.Create(ctx, name, uint32(os.O_RDWR), 0o644, uint32(os.Getegid()))
			}
			for i := 0; err == nil; i++ {
				var n int
				if n, err = op(ctx, f, i); err == nil {
					sum.Add(int64(n))
				}
			}
			if ctx.Err() == nil {
				t.Log(err)
			}
		})
	}
	wg.Wait()
	return float64(sum.Load()) / time.Since(began).Seconds()
}

// ratio is the least part of its base speed that a fault left.
func (s speeds) ratio(base speeds) float64 {
	return min(s.writeBytes/base.writeBytes, s.readBytes/base.readBytes, s.metaOps/base.metaOps)
}

func (s speeds) String() string {
	return fmt.Sprintf("write %.1f MB/s, read %.1f MB/s, metadata %.0f/s", s.writeBytes/1e6, s.readBytes/1e6, s.metaOps)
}

func TestFaultsSlowTheForwarderAndAreUndone(t *testing.T) {
	tb := start(t, Config{Forwarders: 2, ComputeNodes: 1})
	testFaults(t, tb, Fault{Kind: SlowLink, Amount: 5e6}, Fault{Kind: PacketLoss, Amount: 0.1}, Fault{Kind: StarvedCPU},
		Fault{Kind: StopGo}, Fault{Kind: SlowData}, Fault{Kind: SlowMeta, Amount: 0.01}, Fault{Kind: Kill},
		Fault{Kind: Hang})
}

func TestLoopbackFaults(t *testing.T) {
	tb := start(t, Config{Forwarders: 2, ComputeNodes: 2, Loopback: true})
	testFaults(t, tb, Fault{Kind: StopGo}, Fault{Kind: SlowData}, Fault{Kind: Kill})
}

// testFaults compares fwd000 with its healthy neighbour in the same moment, before, during and after
// each fault: the machine has other work, which slows both.
func testFaults(t *testing.T, tb *Testbed, faults ...Fault) {
	compare := func() (least float64, what string) {
		healthy, it := measure(t, tb.ForwarderAddr("fwd001"), tb.Attach()),
			measure(t, tb.ForwarderAddr("fwd000"), tb.Attach())
		return it.ratio(healthy), fmt.Sprintf("fwd000 %v; fwd001 %v; least ratio %.2f", it, healthy, it.ratio(healthy))
	}
	// healthy retries, because one moment is short, and on a busy machine nothing may run in it.
	healthy := func(t *testing.T, when string) {
		var what string
		for range 100 {
			var least float64
			if least, what = compare(); least > 0.5 {
				t.Logf("%s: %s", when, what)
				return
			}
		}
		t.Errorf("%s: fwd000 is not as fast as its neighbour: %s", when, what)
	}
	healthy(t, "at first")
	for _, f := range faults {
		f.Node = "fwd000"
		t.Run(string(f.Kind), func(t *testing.T) {
			if err := tb.Inject(t.Context(), f); errors.Is(err, errors.ErrUnsupported) {
				t.Skipf("skipped: %v", err)
			} else if err != nil {
				t.Fatal(err)
			}
			least, what := compare()
			t.Logf("during: %s", what)
			if least > 0.4 {
				t.Error("the fault has no effect")
			}
			if err := tb.Inject(t.Context(), f); err == nil {
				t.Error("the same fault could be injected twice")
			}
			if err := tb.Clear(t.Context(), f); err != nil {
				t.Fatal(err)
			}
			healthy(t, "after")
		})
	}
	if left := tb.Faults(); len(left) != 0 {
		t.Errorf("faults still on: %v", left)
	}
}

func TestFaultOfOneForwarderSparesTheOther(t *testing.T) {
	tb := start(t, Config{Forwarders: 2, ComputeNodes: 1})
	if err := tb.Inject(t.Context(), Fault{Kind: SlowLink, Node: "fwd000", Amount: 2e6}); err != nil {
		t.Fatal(err)
	}
	slow, healthy := measure(t, tb.ForwarderAddr("fwd000"), tb.Attach()),
		measure(t, tb.ForwarderAddr("fwd001"), tb.Attach())
	if r := slow.ratio(healthy); r > 0.3 {
		t.Errorf("fwd000 %v, fwd001 %v: ratio %.2f", slow, healthy, r)
	}
}

func TestBaseLinkSpeedIsKeptAndRestored(t *testing.T) {
	const base = 30e6
	tb := start(t, Config{Forwarders: 1, ComputeNodes: 1, LinkBytesPerSec: base})
	addr := tb.ForwarderAddr("fwd000")
	f := Fault{Kind: SlowLink, Node: "fwd000", Amount: 3e6}
	if err := tb.Inject(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	slow := measure(t, addr, tb.Attach())
	if err := tb.Clear(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	again := measure(t, addr, tb.Attach())
	t.Logf("slow %v, again %v", slow, again)
	// A full bucket lets a little more than the rate through in a short moment.
	if again.writeBytes > 2*base || again.readBytes > 2*base {
		t.Errorf("the base speed of %.0f bytes/s was not put back: %v", base, again)
	}
	if r := slow.ratio(again); r > 0.5 {
		t.Errorf("slow link %v, cleared %v: ratio %.2f", slow, again, r)
	}
}

func TestWrongFaultsAreRefused(t *testing.T) {
	tb := start(t, Config{Forwarders: 1, ComputeNodes: 1, Loopback: true})
	for _, c := range []struct {
		f    Fault
		want string
	}{
		{Fault{Kind: "rust", Node: "fwd000"}, `"rust"`},
		{Fault{Kind: Hang, Node: "fwd999"}, `"fwd999"`},
		{Fault{Kind: Hang, Node: "cn000"}, "not a forwarder or back end"},
		{Fault{Kind: StopGo, Node: "fwd000", Amount: 3}, "3 is not within"},
		{Fault{Kind: SlowLink, Node: "fwd000"}, "no links"},
	} {
		if err := tb.Inject(t.Context(), c.f); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one that says %s", c.f, err, c.want)
		}
	}
	if err := tb.Clear(t.Context(), Fault{Kind: Hang, Node: "fwd000"}); err != nil {
		t.Errorf("clearing what is not on: %v", err)
	}
}
