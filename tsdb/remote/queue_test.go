package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
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

// fakeServer is a Batch of a server that can be away, slow or unwilling, and keeps what it took.
type fakeServer struct {
	mu    sync.Mutex
	err   error
	delay time.Duration
	taken []string
	batch []string
}

func (f *fakeServer) Reset() { f.batch = nil }

func (f *fakeServer) Add(frame *collector.Frame) error {
	if frame.Node == "unsayable" {
		return errors.New("no protocol says that")
	}
	f.batch = append(f.batch, strconv.FormatInt(frame.TimeMillis, 10))
	return nil
}

func (f *fakeServer) Send(ctx context.Context) error {
	f.mu.Lock()
	delay, err := f.delay, f.err
	if err == nil && delay == 0 {
		f.taken = append(f.taken, f.batch...)
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

// seconds returns the seconds that were taken, in order.
func (f *fakeServer) seconds() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.taken)
}

func open(t *testing.T, dir string, f *fakeServer, maxBytes int64) *remote.Queue {
	t.Helper()
	q, err := remote.Open(remote.Config{Dir: dir, MaxBytes: maxBytes, Batch: f,
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

func TestRefusedSamplesAreDroppedCountedAndHoldUpNobody(t *testing.T) {
	f := &fakeServer{}
	f.set(remote.Refused{Err: errors.New("field type conflict")}, 0)
	q := open(t, t.TempDir(), f, 0)
	defer q.Close()
	appendAll(t, q, 0, 3)
	var refused remote.Refused
	if err := q.Flush(t.Context()); !errors.As(err, &refused) || refused.Samples != 3 {
		t.Errorf("Flush says %v, want 3 samples refused", err)
	}
	f.set(nil, 0)
	appendAll(t, q, 3, 5)
	if err := q.Flush(t.Context()); err != nil {
		t.Errorf("Flush says it again: %v", err)
	}
	unsayable := second(5)
	unsayable[0].Node = "unsayable"
	if err := q.Append(t.Context(), unsayable); err != nil {
		t.Fatal(err)
	}
	if err := q.Flush(t.Context()); !errors.As(err, &refused) || refused.Samples != 1 {
		t.Errorf("Flush says %v, want one sample refused", err)
	}
	f.set(remote.Refused{Err: errors.New("one is too old"), Samples: 1}, 0)
	appendAll(t, q, 6, 7)
	if err := q.Flush(t.Context()); !errors.As(err, &refused) || refused.Samples != 1 {
		t.Errorf("Flush says %v, want one sample refused", err)
	}
	var m bytes.Buffer
	q.WriteMetrics(&m)
	if got := f.seconds(); len(got) != 2 || !strings.Contains(m.String(), "refused_samples_total 5\n") {
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
