// Package remote is what the stores over a server share: a bounded spool on disk between the
// collection and the server, and the contract's buckets and occupancy counted from raw seconds.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"fairway/collector"
	"fairway/collector/stream"
	"fairway/collector/wire"
	"fairway/tsdb"
)

// DefaultSpoolBytes keeps about an hour of 41,000 nodes.
const DefaultSpoolBytes = 4 << 30

// Bounds of what is sent at once and of the waits between tries.
const (
	framesPerRecord = 8192    // of one append in one record of the spool
	batchSamples    = 100_000 // after which what is sent at once takes no further record
	firstRetry      = 250 * time.Millisecond
	longestRetry    = 30 * time.Second
	maxName         = 255
	latestSecond    = 9_223_372_036 // 2262, where nanoseconds end
)

// Batch is what is sent at once. One goroutine uses it.
type Batch interface {
	// Reset empties it.
	Reset()
	// Add puts a frame of the spool in, whose samples are valid until it returns. A frame that the server's
	// protocol cannot say is an error.
	Add(f *collector.Frame) error
	// Send delivers it. It is called again with the same content until it succeeds or returns Refused.
	Send(ctx context.Context) error
}

// Refused marks an error of Send that no repetition would mend: the server has read the batch and will not have all
// of it. What it refused is dropped, counted and logged.
type Refused struct {
	Err     error
	Samples int // 0 is the whole batch
}

func (r Refused) Error() string { return "refused for good: " + r.Err.Error() }
func (r Refused) Unwrap() error { return r.Err }

// RetryAfter marks an error of Send after which the server asks for a pause.
type RetryAfter struct {
	Err  error
	Wait time.Duration
}

func (r RetryAfter) Error() string { return r.Err.Error() }
func (r RetryAfter) Unwrap() error { return r.Err }

// Config says how a queue keeps and sends.
type Config struct {
	Dir      string // of the spool
	MaxBytes int64  // of the spool; 0 is DefaultSpoolBytes
	Batch    Batch
	// Millis gives the time that a frame's samples are written at; nil is the start of its second.
	Millis func(*collector.Frame) int64
	Log    *slog.Logger // nil is slog.Default()
}

// Queue takes frames as fast as the disk does and sends them in order. It never waits for the
// server: what the server does not take stays on disk, and past the spool's size the oldest seconds
// are dropped and counted. All methods may be called concurrently.
type Queue struct {
	cfg   Config
	spool *stream.Spool
	stop  context.CancelFunc
	done  sync.WaitGroup
	kick  chan struct{}

	sent, refused, failures atomic.Uint64 // samples, samples, tries
	failing                 atomic.Bool

	mu     sync.Mutex // guards everything that follows
	round  *round     // the sync that what is appended now will be part of
	closed bool
	idle   chan struct{} // closed when everything was sent; nil while nobody waits
	lost   *Refused      // since the last Flush
	copies []collector.Frame
}

// round is one group sync; err is set before done is closed.
type round struct {
	done chan struct{}
	err  error
}

// Open opens the spool in cfg.Dir and begins to send what it holds.
func Open(cfg Config) (*Queue, error) {
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = DefaultSpoolBytes
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Millis == nil {
		cfg.Millis = func(f *collector.Frame) int64 { return floorSecond(f.TimeMillis) }
	}
	spool, err := stream.OpenSpool(cfg.Dir, cfg.MaxBytes, cfg.Log)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	q := &Queue{cfg: cfg, spool: spool, stop: stop, kick: make(chan struct{}, 1), round: newRound()}
	q.done.Go(func() { q.syncs(ctx) })
	q.done.Go(func() { q.sends(ctx) })
	return q, nil
}

func newRound() *round { return &round{done: make(chan struct{})} }

func floorSecond(millis int64) int64 {
	rest := millis % 1000
	if rest < 0 {
		rest += 1000
	}
	return millis - rest
}

// Append puts frames into the spool and returns when they are on the device. Frames without a
// usable name or time are refused by an error that names them; the others are kept.
func (q *Queue) Append(ctx context.Context, frames []collector.Frame) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return tsdb.ErrClosed
	}
	refused, err := q.write(frames)
	r := q.round
	q.mu.Unlock()
	if err != nil {
		return errors.Join(refused, err)
	}
	select {
	case q.kick <- struct{}{}:
	default: // a sync is already on its way
	}
	select {
	case <-r.done:
		return errors.Join(refused, r.err)
	case <-ctx.Done():
		return fmt.Errorf("append: not known to be durable: %w", ctx.Err())
	}
}

// write puts what a store keeps of the frames into the spool; the caller holds mu.
func (q *Queue) write(frames []collector.Frame) (refused, err error) {
	var bad []error
	list := q.copies[:0]
	for i := range frames {
		f := &frames[i]
		if err := check(f); err != nil {
			bad = append(bad, err)
			continue
		}
		list = append(list, collector.Frame{Node: f.Node, Role: f.Role, TimeMillis: q.cfg.Millis(f),
			Samples: f.Samples})
		if len(list) == framesPerRecord {
			err = errors.Join(err, q.spool.Append(list))
			list = list[:0]
		}
	}
	if len(list) > 0 {
		err = errors.Join(err, q.spool.Append(list))
	}
	clear(list)
	q.copies = list[:0]
	return errors.Join(bad...), err
}

func check(f *collector.Frame) error {
	switch {
	case f.Node == "" || len(f.Node) > maxName:
		return fmt.Errorf("append: a node name of %d bytes (1 to %d are allowed); its frame is left out", len(f.Node),
			maxName)
	case f.TimeMillis < 0 || f.TimeMillis/1000 >= latestSecond:
		return fmt.Errorf("append: frame of node %q has time %d ms, outside 1970 to 2262; it is left out", f.Node,
			f.TimeMillis)
	case len(f.Samples) > wire.MaxSamplesPerFrame:
		return fmt.Errorf("append: frame of node %q has %d samples, the most is %d; it is left out", f.Node,
			len(f.Samples), wire.MaxSamplesPerFrame)
	}
	return nil
}

// syncs makes what was appended durable, many appends at a time.
func (q *Queue) syncs(ctx context.Context) {
	for {
		select {
		case <-q.kick:
		case <-ctx.Done():
			q.sync() // whoever still waits is answered
			return
		}
		q.sync()
	}
}

func (q *Queue) sync() {
	q.mu.Lock()
	r := q.round
	q.round = newRound()
	q.mu.Unlock()
	r.err = q.spool.Sync()
	close(r.done)
}

// sends delivers the spool's records in order until ctx ends.
func (q *Queue) sends(ctx context.Context) {
	var dec wire.Decoder
	var msg []byte
	at := q.spool.Acked()
	for {
		q.cfg.Batch.Reset()
		last, samples := at, 0
		for samples < batchSamples {
			seq, next, ok := q.spool.Next(last, msg)
			msg = next
			if !ok {
				break
			}
			samples += q.fill(&dec, msg)
			last = seq
		}
		if last == at {
			q.nothingLeft()
			select {
			case <-q.spool.More():
				continue
			case <-ctx.Done():
				return
			}
		}
		if samples > 0 && !q.deliver(ctx, samples) {
			return
		}
		q.spool.Ack(last)
		at = last
	}
}

// fill adds the frames of one record to the batch and counts their samples. The spool checked the record's CRC, so one
// that does not decode was written by another version.
func (q *Queue) fill(dec *wire.Decoder, msg []byte) (samples int) {
	m, err := dec.Decode(msg)
	frames, ok := m.(*wire.Frames)
	if err != nil || !ok {
		q.cfg.Log.Error("a record of the store's spool cannot be read; it is dropped", "err", err)
		return 0
	}
	for i := range frames.Frames {
		f := &frames.Frames[i]
		f.Samples = lastOfEach(f.Samples)
		if len(f.Samples) == 0 {
			continue
		}
		if err := q.cfg.Batch.Add(f); err != nil {
			q.lose(Refused{err, len(f.Samples)})
			continue
		}
		samples += len(f.Samples)
	}
	return samples
}

// lastOfEach keeps of several values of one metric the last, in place.
func lastOfEach(samples []collector.Sample) []collector.Sample {
	var seen collector.MetricSet
	kept := len(samples)
	for i := len(samples) - 1; i >= 0; i-- {
		if s := samples[i]; !seen.Has(s.Metric) {
			seen.Add(s.Metric)
			kept--
			samples[kept] = s
		}
	}
	return samples[kept:]
}

// deliver sends the batch until the server has it or refuses it; false says that ctx ended.
func (q *Queue) deliver(ctx context.Context, samples int) bool {
	for wait := firstRetry; ; wait = min(2*wait, longestRetry) {
		err := q.cfg.Batch.Send(ctx)
		var refused Refused
		var pause RetryAfter
		switch {
		case err == nil || errors.As(err, &refused):
			if err != nil {
				if refused.Samples == 0 {
					refused.Samples = samples
				}
				q.lose(refused)
			}
			q.sent.Add(uint64(max(samples-refused.Samples, 0)))
			if q.failing.Swap(false) {
				q.cfg.Log.Info("the store's server takes samples again", "messages_waiting", q.spool.Pending())
			}
			return true
		case ctx.Err() != nil:
			return false
		case errors.As(err, &pause):
			wait = min(max(wait, pause.Wait), longestRetry)
		}
		q.failures.Add(1)
		if !q.failing.Swap(true) {
			q.cfg.Log.Error("the store's server does not take samples; they wait on disk and are sent in order",
				"spool", q.cfg.Dir, "err", err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return false
		}
	}
}

// lose counts what the server will not have, and says so.
func (q *Queue) lose(r Refused) {
	n := q.refused.Add(uint64(r.Samples))
	q.cfg.Log.Error("the store's server refuses samples for good; they are dropped", "samples", r.Samples,
		"since_start", n, "err", r.Err)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lost != nil {
		r.Samples += q.lost.Samples
	}
	q.lost = &r
}

func (q *Queue) nothingLeft() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.idle != nil && q.spool.Pending() == 0 {
		close(q.idle)
		q.idle = nil
	}
}

// Flush returns when the server has taken everything appended before it, or Refused with what it refused since the
// last Flush.
func (q *Queue) Flush(ctx context.Context) error {
	idle, err := q.whenIdle()
	if err != nil {
		return err
	}
	select {
	case <-idle:
	case <-ctx.Done():
		return fmt.Errorf("%d messages wait for the store's server: %w", q.spool.Pending(), ctx.Err())
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	lost := q.lost
	q.lost = nil
	if lost != nil {
		return fmt.Errorf("%d samples: %w", lost.Samples, *lost)
	}
	return nil
}

// whenIdle returns a channel that is closed once nothing waits.
func (q *Queue) whenIdle() (chan struct{}, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, tsdb.ErrClosed
	}
	if q.idle == nil {
		q.idle = make(chan struct{})
	}
	idle := q.idle
	if q.spool.Pending() == 0 {
		close(idle)
		q.idle = nil
	}
	return idle, nil
}

// Close ends the sending; what was not sent stays on disk for the next Open.
func (q *Queue) Close() error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return tsdb.ErrClosed
	}
	q.closed = true
	q.mu.Unlock()
	q.stop()
	q.done.Wait()
	return q.spool.Close()
}

// Closed says whether Close was called.
func (q *Queue) Closed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// WriteMetrics writes the queue's state in Prometheus text format.
func (q *Queue) WriteMetrics(w io.Writer) {
	metrics.WriteGaugeUint64(w, "fairway_store_spool_messages", q.spool.Pending())
	metrics.WriteGaugeUint64(w, "fairway_store_spool_bytes", uint64(q.spool.Bytes()))
	metrics.WriteCounterUint64(w, "fairway_store_spool_dropped_messages_total", q.spool.Dropped())
	metrics.WriteCounterUint64(w, "fairway_store_sent_samples_total", q.sent.Load())
	metrics.WriteCounterUint64(w, "fairway_store_refused_samples_total", q.refused.Load())
	metrics.WriteCounterUint64(w, "fairway_store_failed_sends_total", q.failures.Load())
}
