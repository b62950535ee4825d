package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/remote"
)

// fakeServer is a Sender that can be away, slow or unwilling, and keeps what it took.
type fakeServer struct {
	mu    sync.Mutex
	err   error
	delay time.Duration
	taken bytes.Buffer
	tries int
}

func (f *fakeServer) send(ctx context.Context, lines []byte) error {
	f.mu.Lock()
	delay, err := f.delay, f.err
	f.tries++
	if err == nil && delay == 0 {
		f.taken.Write(lines)
	}
	f.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

func (f *fakeServer) set(err error, delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.delay = err, delay
}

// seconds returns the seconds of the lines that were taken, in order.
func (f *fakeServer) seconds() (out []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range regexp.MustCompile(`(?m) (\d+)$`).FindAllStringSubmatch(f.taken.String(), -1) {
		out = append(out, m[1])
	}
	return out
}

func open(t *testing.T, dir string, f *fakeServer, maxBytes int64) *remote.Queue {
	t.Helper()
	q, err := remote.Open(remote.Config{Dir: dir, MaxBytes: maxBytes, Send: f.send, Field: collector.Metric.String,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func second(i int) []collector.Frame {
	return []collector.Frame{{Node: "f1", Role: topology.Forwarder, TimeMillis: int64(1_700_000_000+i)*1000 + 137,
		Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: float64(i)}}}}
}

func appendAll(t *testing.T, q *remote.Queue, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := q.Append(t.Context(), second(i)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAwayServerStallsNobody appends while the server is away and while it hangs, over a restart,
// and finds every second in order when it is back.
func TestAwayServerStallsNobody(t *testing.T) {
	for name, state := range map[string]struct {
		err   error
		delay time.Duration
	}{"away": {err: errors.New("connection refused")}, "hangs": {delay: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			f, dir := &fakeServer{}, t.TempDir()
			f.set(state.err, state.delay)
			q := open(t, dir, f, 0)
			appendAll(t, q, 0, 50)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if err := q.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Flush of a server that is away: %v", err)
			}
			var m bytes.Buffer
			q.WriteMetrics(&m)
			if !strings.Contains(m.String(), "fairway_store_spool_messages 50\n") {
				t.Errorf("what waits is not counted:\n%s", m.String())
			}
			if err := q.Close(); err != nil {
				t.Fatal(err)
			}
			f.set(nil, 0)
			q = open(t, dir, f, 0)
			defer q.Close()
			appendAll(t, q, 50, 60)
			if err := q.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := f.seconds()
			if len(got) != 60 {
				t.Fatalf("%d lines, want 60", len(got))
			}
			for i, s := range got {
				if want := fmt.Sprintf("%d000", 1_700_000_000+i); s != want {
					t.Fatalf("line %d has time %s, want %s", i, s, want)
				}
			}
		})
	}
}

func TestFullSpoolDropsTheOldestAndCounts(t *testing.T) {
	f := &fakeServer{}
	f.set(errors.New("away"), 0)
	q := open(t, t.TempDir(), f, stream.MinSpoolBytes)
	defer q.Close()
	frame := collector.Frame{TimeMillis: 1_700_000_000_000,
		Samples: []collector.Sample{{Metric: collector.MetaWait, Value: 0.1}}}
	big := make([]collector.Frame, 2000)
	for i := range big {
		big[i] = frame
		big[i].Node = topology.NodeID(fmt.Sprintf("node-with-a-longer-name-%05d", i))
	}
	for range 30 {
		if err := q.Append(t.Context(), big); err != nil {
			t.Fatal(err)
		}
	}
	var m bytes.Buffer
	q.WriteMetrics(&m)
	if !regexp.MustCompile(`dropped_messages_total [1-9]`).Match(m.Bytes()) ||
		!regexp.MustCompile(`spool_bytes \d{5,7}\n`).Match(m.Bytes()) {
		t.Errorf("a full spool did not drop and count:\n%s", m.String())
	}
}

func TestRefusedLinesAreDroppedCountedAndHoldUpNobody(t *testing.T) {
	f := &fakeServer{}
	f.set(remote.Refused{Err: errors.New("field type conflict")}, 0)
	q := open(t, t.TempDir(), f, 0)
	defer q.Close()
	appendAll(t, q, 0, 3)
	if err := q.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.set(nil, 0)
	appendAll(t, q, 3, 5)
	if err := q.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var m bytes.Buffer
	q.WriteMetrics(&m)
	if got := f.seconds(); len(got) != 2 || !strings.Contains(m.String(), "refused_lines_total 3\n") {
		t.Errorf("taken %v, metrics:\n%s", got, m.String())
	}
}

func TestAppendAfterClose(t *testing.T) {
	q := open(t, t.TempDir(), &fakeServer{}, 0)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if err := q.Append(t.Context(), second(1)); !errors.Is(err, tsdb.ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}
