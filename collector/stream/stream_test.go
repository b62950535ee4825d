package stream

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

// text is a log that a test may read while it is written.
type text struct {
	mu sync.Mutex
	b  strings.Builder
}

func (w *text) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *text) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

type agent struct {
	client *Client
	spool  *Spool
	stop   func()
	log    *text
}

func startAgent(t *testing.T, d *testDaemon, dir string, change func(*Client)) *agent {
	t.Helper()
	log := &text{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	sp, err := OpenSpool(dir, 0, logger)
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{URL: "ws://daemon", Token: "secret", Node: "cn1", Role: topology.Compute, Spool: sp, Log: logger,
		Dial: d.net.dial}
	if change != nil {
		change(c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	return &agent{client: c, spool: sp, log: log, stop: func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := sp.Close(); err != nil {
			t.Error(err)
		}
	}}
}

func (a *agent) append(t *testing.T, i int) {
	t.Helper()
	f := collector.Frame{Node: "cn1", Role: topology.Compute, TimeMillis: int64(i) * 1000,
		Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: float64(i) + 0.25}}}
	if err := a.spool.Append([]collector.Frame{f}); err != nil {
		t.Error(err)
	}
}

func (a *agent) drain(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := a.client.Drain(ctx); err != nil {
		t.Error(err)
	}
}

// TestNoSecondIsLostOrDouble runs ten minutes with a daemon that drops connections at random points
// (before storing, after storing but before acknowledging), is killed for 60 s and restarted, and
// an agent that is restarted too; over several seeds.
func TestNoSecondIsLostOrDouble(t *testing.T) {
	for seed := range uint64(8) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			d := newTestDaemon(seed, 0.03)
			d.start()
			a := startAgent(t, d, dir, nil)
			const seconds = 600
			for i := 1; i <= seconds; i++ {
				a.append(t, i)
				switch i {
				case 100:
					d.kill()
				case 160:
					d.start()
				case 250, 130:
					a.stop()
					a = startAgent(t, d, dir, nil)
				}
				time.Sleep(time.Second)
			}
			a.drain(t, 5*time.Minute)
			d.check(t, seconds)
			if n := a.spool.Dropped(); n != 0 {
				t.Errorf("%d messages dropped", n)
			}
			synctest.Wait()
			if h := d.hellos; h[0].Instance == "" || h[len(h)-1].Instance != h[0].Instance {
				t.Errorf("the numbering's name changed: %+v", h)
			}
			a.stop()
			d.kill()
		})
	}
}

func TestSixtySecondsWithoutDaemon(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := newTestDaemon(1, 0)
		d.start()
		a := startAgent(t, d, dir, nil)
		for i := 1; i <= 180; i++ {
			a.append(t, i)
			if i == 60 {
				time.Sleep(100 * time.Millisecond) // the last acknowledgement has arrived
				d.kill()
			}
			if i == 120 {
				if n := a.spool.Pending(); n < 55 || n > 61 {
					t.Errorf("%d seconds wait in the spool, want about 60", n)
				}
				d.start()
			}
			time.Sleep(time.Second)
		}
		a.drain(t, time.Minute)
		d.check(t, 180)
		synctest.Wait()
		if d.twice > 0 {
			t.Errorf("%d seconds were sent again although they had been acknowledged", d.twice)
		}
		if n := strings.Count(a.log.String(), "the daemon is away"); n > 2 {
			t.Errorf("the outage was logged %d times:\n%s", n, a.log)
		}
		a.stop()
		d.kill()
	})
}

func TestWrongTokenIsNamedAndSecondsAreKept(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := newTestDaemon(1, 0)
		d.start()
		a := startAgent(t, d, dir, func(c *Client) { c.Token = "wr0ng" })
		for i := 1; i <= 60; i++ {
			a.append(t, i)
			time.Sleep(time.Second)
		}
		st := a.client.State()
		if st.Connected || !strings.Contains(st.Err, "refused the token") || !strings.Contains(st.Err, "401") ||
			!strings.Contains(st.Err, "unknown token") {
			t.Errorf("%+v", st)
		}
		if strings.Contains(a.log.String(), "wr0ng") {
			t.Error("the token is in the log")
		}
		a.stop()
		a = startAgent(t, d, dir, nil)
		a.drain(t, time.Minute)
		d.check(t, 60)
		a.stop()
		d.kill()
	})
}

func TestRefusedMessageDoesNotBlockTheStream(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := newTestDaemon(1, 0)
		d.reject = func(m *wire.Frames) bool { return m.Seq%5 == 0 }
		d.start()
		a := startAgent(t, d, dir, nil)
		for i := 1; i <= 20; i++ {
			a.append(t, i)
		}
		a.drain(t, time.Minute) // the last one is refused: it must be forgotten too
		d.check(t, 16)
		if st := a.client.State(); st.Refused != 4 || !strings.Contains(st.Err, "refused message 20") {
			t.Errorf("%+v", st)
		}
		a.stop()
		d.kill()
	})
}

// TestRefusedMessageBehindAGapDoesNotBlockTheStream has the first message refused that a full spool has
// kept: what was dropped before it is never acknowledged.
func TestRefusedMessageBehindAGapDoesNotBlockTheStream(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			sp := openTest(t, dir, MinSpoolBytes)
			fill(t, sp, 1, 3000)
			if restarted {
				sp.Close()
				sp = openTest(t, dir, MinSpoolBytes)
			}
			kept := list(t, sp, 0)
			if kept[0] < maxInFlight {
				t.Fatalf("the gap is only %d long", kept[0])
			}
			d := newTestDaemon(1, 0)
			d.reject = func(m *wire.Frames) bool { return m.Seq == kept[0] }
			d.start()
			a := startAgent(t, d, t.TempDir(), func(c *Client) { _ = c.Spool.(*Spool).Close(); c.Spool = sp })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := a.client.Drain(ctx); err != nil {
				t.Errorf("restarted %t: %v", restarted, err)
			}
			a.stop()
			d.kill()
			if err := sp.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOrders(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := newTestDaemon(1, 0)
		soon := time.Now().Add(time.Minute).UTC()
		d.orders = []wire.Order{
			{ID: "1", Kind: wire.OrderRemap, Deadline: soon, Body: json.RawMessage(`{"forwarder":"fwd2"}`)},
			{ID: "1", Kind: wire.OrderRemap, Deadline: soon},
			{ID: "2", Kind: "reboot", Deadline: soon},
			{ID: "3", Kind: wire.OrderRemap, Deadline: time.Now().Add(-time.Second).UTC()},
			{ID: "4", Kind: "fail"}, {ID: "5", Kind: "panic"},
		}
		var mu sync.Mutex
		done := map[string]int{}
		d.start()
		a := startAgent(t, d, dir, func(c *Client) {
			c.Orders = map[string]OrderHandler{
				wire.OrderRemap: func(_ context.Context, o wire.Order) (json.RawMessage, error) {
					mu.Lock()
					defer mu.Unlock()
					done[o.ID]++
					time.Sleep(20 * time.Millisecond)
					return o.Body, nil
				},
				"fail": func(context.Context, wire.Order) (json.RawMessage, error) {
					return nil,
						errors.New("mount is gone")
				},
				"panic": func(context.Context, wire.Order) (json.RawMessage, error) { panic("nil map") },
			}
		})
		time.Sleep(time.Second)
		d.kill()
		time.Sleep(time.Second)
		d.start() // the daemon repeats its orders; nothing is done twice
		time.Sleep(time.Minute / 2)
		a.stop()
		d.kill()
		synctest.Wait()
		if done["1"] != 1 || done["3"] != 0 {
			t.Errorf("carried out: %v", done)
		}
		want := map[string]string{"1": "", "2": `"reboot"`, "3": "deadline", "4": "mount is gone",
			"5": "BUG: order panic"}
		got := map[string]int{}
		for _, r := range d.results {
			got[r.ID]++
			if w := want[r.ID]; r.OK != (w == "") || !strings.Contains(r.Err, w) {
				t.Errorf("result %+v, want %q", r, w)
			}
			if r.ID == "1" && (string(r.Body) != `{"forwarder":"fwd2"}` || r.Took < 20*time.Millisecond) {
				t.Errorf("result %+v", r)
			}
		}
		for id := range want {
			if got[id] < 2 {
				t.Errorf("order %s was answered %d times, want at every repetition", id, got[id])
			}
		}
	})
}

func TestAddressesThatCannotBeDialled(t *testing.T) {
	for _, u := range []string{"http://h", "unix://h/p", "ws://", "::", ""} {
		if err := (&Client{URL: u}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "daemon address") {
			t.Errorf("%q: %v", u, err)
		}
	}
	for u, want := range map[string]target{
		"ws://h:1":    {url: "ws://h:1/api/v1/ingest"},
		"wss://h/x":   {url: "wss://h/x"},
		"unix:///r/s": {url: "ws://localhost/api/v1/ingest", network: "unix", addr: "/r/s"},
	} {
		if got, err := parseURL(u); err != nil || got != want {
			t.Errorf("%q: %+v, %v", u, got, err)
		}
	}
}
