package daemontest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/cmd/lab/simmachine"
	"fairway/collector"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/webui/api"
)

// called is a daemon with receivers of one sort, and what its agents and readers see of it.
type called struct {
	name    string
	d       *realDaemon
	spool   *stream.Spool
	at      *held
	kinds   []string
	frames  int
	found   map[topology.NodeID]bool // whose silence is confirmed
	taken   []time.Duration          // from the spool until the daemon has a second
	answers []time.Duration
	detect  []time.Duration // from a forwarder's last second until the API shows it as confirmed
	// during counts seconds that were taken in, with answers, while one try of a receiver lasted; detected those in
	// which a finding was confirmed.
	during, detected int
}

// held counts the connections that a receiver keeps waiting.
type held struct {
	mu   sync.Mutex // guards what follows
	open map[net.Conn]bool
	last net.Conn
}

func (h *held) add(c net.Conn, open bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if delete(h.open, c); open {
		h.open[c], h.last = true, c
	}
}

// one is a connection that waits; nil: none does.
func (h *held) one() net.Conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open[h.last] {
		return h.last
	}
	return nil
}

// newHeld accepts connections and answers none, or as a web server after 30 s, which is longer than a daemon waits.
func newHeld(t *testing.T, answers bool) (h *held, addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h = &held{open: map[net.Conn]bool{}}
	var wait sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	hold := func(c net.Conn) {
		h.add(c, true)
		defer h.add(c, false)
		_, _ = io.Copy(io.Discard, c) // until the daemon gives up
	}
	if answers {
		type connOf struct{}
		s := &http.Server{ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connOf{}, c)
		}, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			c, _ := r.Context().Value(connOf{}).(net.Conn)
			h.add(c, true)
			defer h.add(c, false)
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-time.After(30 * time.Second):
			case <-r.Context().Done():
			case <-ctx.Done():
			}
		})}
		wait.Go(func() { _ = s.Serve(l) })
		t.Cleanup(func() { stop(); s.Close(); wait.Wait() })
		return h, l.Addr().String()
	}
	wait.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wait.Go(func() {
				end := context.AfterFunc(ctx, func() { c.Close() })
				defer end()
				defer c.Close()
				hold(c)
			})
		}
	})
	t.Cleanup(func() { stop(); l.Close(); wait.Wait() })
	return h, l.Addr().String()
}

// newCalled starts a daemon whose receivers of these kinds are all at one address, and the stream of the layer to it.
func newCalled(t *testing.T, name string, at *held, addr string, kinds ...string) *called {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "a-secret-of-a-receiver\n")
	conf := ""
	for _, kind := range kinds {
		conf += fmt.Sprintf("[[alert.receiver]]\nname = %q\nkind = %q\n", kind, kind)
		switch kind {
		case "mail":
			conf += fmt.Sprintf("server = %q\ntls = \"none\"\nfrom = \"a@example.org\"\nto = [\"b@example.org\"]\n",
				addr)
		case "webhook":
			conf += fmt.Sprintf("url = \"http://%s/\"\nsecret_file = %q\n", addr, secret)
		default:
			conf += fmt.Sprintf("url = \"http://%s/\"\n", addr)
		}
	}
	c := &called{name: name, d: newRealDaemon(t, conf), at: at, kinds: kinds, found: map[topology.NodeID]bool{}}
	quiet := slog.New(slog.DiscardHandler)
	var err error
	if c.spool, err = stream.OpenSpool(filepath.Join(t.TempDir(), "layer"), 0, quiet); err != nil {
		t.Fatal(err)
	}
	client := &stream.Client{URL: "ws://" + c.d.addr, Token: agentSecret, Node: "layer", Spool: c.spool, Log: quiet}
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := client.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		wait.Wait()
		c.spool.Close()
	})
	return c
}

// second gives the daemon one second of the layer and asks for what faces show.
func (c *called) second(t *testing.T, frames []collector.Frame, stopped map[topology.NodeID]time.Time) {
	t.Helper()
	waiting := net.Conn(nil)
	if c.at != nil {
		waiting = c.at.one()
	}
	begun, before := time.Now(), len(c.found)
	if err := c.spool.Append(frames); err != nil {
		t.Fatal(err)
	}
	c.frames += len(frames)
	for c.d.metric("fairway_ingest_frames_total") < float64(c.frames) {
		if time.Since(begun) > aWhile {
			t.Fatalf("%s: a second is not taken in", c.name)
		}
		time.Sleep(time.Millisecond)
	}
	c.taken = append(c.taken, time.Since(begun))
	var findings []anomaly.Finding
	for path, into := range map[string]any{"/api/v1/overview": nil, "/api/v1/findings": &findings,
		"/api/v1/alerts": nil} {
		asked := time.Now()
		if err := c.d.ask(path, "", nil, into); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		c.answers = append(c.answers, time.Since(asked))
	}
	for _, f := range findings {
		if at, ok := stopped[f.Node]; ok && f.Kind == anomaly.ForwarderSilent && f.State != anomaly.Suspect &&
			!c.found[f.Node] {
			c.found[f.Node] = true
			c.detect = append(c.detect, time.Since(at))
		}
	}
	if waiting != nil && c.at.one() == waiting {
		c.during++
		if len(c.found) > before {
			c.detected++
		}
	}
}

// quantile is the value below which a share of them is.
func quantile(all []time.Duration, share float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[int(share*float64(len(sorted)-1))]
}

// TestAReceiverThatTakesNothingDelaysNothing gives four daemons the same seconds of a simulated layer, in which one
// forwarder after the other falls silent: one has no receiver, those of the others refuse, accept and never answer,
// and answer when nobody waits any more. While a try of a receiver lasts, seconds are taken in, findings are confirmed
// and faces are answered. It prints lags beside each other. FAIRWAY_RECEIVERS=3m measures for so long:
//
//	FAIRWAY_RECEIVERS=3m go test -run ReceiverThatTakes -v ./cmd/fairwayd/daemontest
func TestAReceiverThatTakesNothingDelaysNothing(t *testing.T) {
	t.Parallel() // it mostly waits
	span, every := time.Duration(0), 3
	if text := os.Getenv("FAIRWAY_RECEIVERS"); text != "" {
		var err error
		if span, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		every = max(every, int(span.Seconds())/12)
	}
	cfg := simmachine.TaihuLight(1)
	cfg.Compute, cfg.Forwarders, cfg.InService, cfg.Storage = 512, 24, 16, 16
	m, err := simmachine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	never, neverAt := newHeld(t, false)
	late, lateAt := newHeld(t, true)
	all := []*called{newCalled(t, "none", nil, ""),
		newCalled(t, "refuse", nil, freePort(t), "webhook", "alertmanager", "mail"),
		newCalled(t, "never answer", never, neverAt, "webhook", "alertmanager", "mail"),
		newCalled(t, "answer after 30 s", late, lateAt, "webhook", "alertmanager")}
	stopped := map[topology.NodeID]time.Time{}
	silent := m.Machine().ByRole(topology.Forwarder)[:10]
	found := func() bool {
		return !slices.ContainsFunc(all, func(c *called) bool { return len(c.found) < len(stopped) })
	}
	seen := func() bool {
		return len(stopped) > 1 && found() && !slices.ContainsFunc(all, func(c *called) bool {
			return c.at != nil && (c.during == 0 || c.detected == 0)
		})
	}
	begun := time.Now()
	for n := 0; !seen() || time.Since(begun) < span; n++ {
		if time.Since(begun) > span+2*aWhile {
			for _, c := range all {
				t.Errorf("%s: %d of %d silent forwarders were confirmed; during a try %d seconds, %d with findings",
					c.name,
					len(c.found), len(stopped), c.during, c.detected)
			}
			t.FailNow()
		}
		now := time.Now().Truncate(time.Second).Add(time.Second)
		time.Sleep(time.Until(now))
		frames := slices.DeleteFunc(slices.Clone(m.Step(now)), func(f collector.Frame) bool {
			_, gone := stopped[f.Node]
			return gone
		})
		for i := range all { // each comes first as often
			all[(n+i)%len(all)].second(t, frames, stopped)
		}
		// A busy machine begins late to judge; who was never seen at work is not missed.
		judged := len(stopped) > 0 || !slices.ContainsFunc(all, func(c *called) bool {
			seconds, _ := c.d.reads("fairway_detector_seconds_total")
			return seconds < 3
		})
		more := judged && (span > 0 || len(stopped) < 3 || found() && !seen())
		if more && n%every == every-1 && len(stopped) < len(silent) {
			stopped[silent[len(stopped)].ID] = time.Now()
		}
	}
	compare(t, all)
	wantUndelivered(t, all)
}

// compare prints the figures of each daemon and their ratios to those of the first one.
func compare(t *testing.T, all []*called) {
	var out strings.Builder
	for _, c := range all {
		fmt.Fprintf(&out, "\n%-18s %3d seconds, %2d findings;", c.name, len(c.taken), len(c.found))
		for _, one := range []struct {
			what string
			of   func(*called) []time.Duration
		}{{"taken in", func(c *called) []time.Duration { return c.taken }},
			{"answer", func(c *called) []time.Duration { return c.answers }},
			{"confirmed", func(c *called) []time.Duration { return c.detect }}} {
			for _, share := range []float64{.5, .95} {
				v, base := quantile(one.of(c), share), quantile(one.of(all[0]), share)
				fmt.Fprintf(&out, " %s p%.0f %.1f ms (x %.2f)", one.what, 100*share, v.Seconds()*1e3,
					v.Seconds()/base.Seconds())
			}
		}
	}
	t.Log(out.String())
}

// wantUndelivered: every receiver is shown with what it has not taken, and why.
func wantUndelivered(t *testing.T, all []*called) {
	for _, c := range all {
		wait(t, c.name+": each receiver's error is shown", func() bool {
			var v api.Alerts
			if err := c.d.ask("/api/v1/alerts", "", nil, &v); err != nil {
				t.Fatal(err)
			}
			bad := 0
			for _, r := range v.Receivers {
				if r.Failed > 0 && r.Error != "" && r.Waiting > 0 && r.Sent == 0 {
					bad++
				}
			}
			return len(v.Receivers) == len(c.kinds) && bad == len(c.kinds)
		})
	}
}
