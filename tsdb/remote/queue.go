// Package remote is what the stores over a server share: a bounded spool on disk between the
// collection and the server, the frames as Influx lines, and the contract's buckets and occupancy
// counted from raw seconds.
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
	"github.com/influxdata/line-protocol/v2/lineprotocol"

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
	batchBytes      = 4 << 20 // of lines in one request
	firstRetry      = 250 * time.Millisecond
	longestRetry    = 30 * time.Second
	maxName         = 255
	latestSecond    = 9_223_372_036 // 2262, where nanoseconds end
)

// Sender delivers lines of Influx line protocol, times in milliseconds. It is called from one
// goroutine and again with the same lines until it succeeds.
type Sender func(ctx context.Context, lines []byte) error

// Refused marks a Sender's error that no repetition would mend: the server read the lines and will
// not have them. They are dropped, counted and logged.
type Refused struct{ Err error }

func (r Refused) Error() string { return "refused for good: " + r.Err.Error() }
func (r Refused) Unwrap() error { return r.Err }

// RetryAfter marks a Sender's error after which the server asks for a pause.
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
	Send     Sender
	// Field names a metric's field in the line.
	Field func(collector.Metric) string
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

	sent, refused, failures atomic.Uint64 // lines, lines, tries
	failing                 atomic.Bool

	mu     sync.Mutex // guards everything that follows
	round  *round     // the sync that what is appended now will be part of
	closed bool
	idle   chan struct{} // closed when everything was sent; nil while nobody waits
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
	b := batch{names: q.cfg.Field}
	at := q.spool.Acked()
	for {
		b.reset()
		last := at
		for len(b.bytes()) < batchBytes {
			seq, msg, ok := q.spool.Next(last, b.msg)
			b.msg = msg
			if !ok {
				break
			}
			b.add(msg, q.cfg.Log)
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
		if !q.deliver(ctx, &b) {
			return
		}
		q.spool.Ack(last)
		at = last
	}
}

// deliver sends a batch until the server has it or refuses it; false says that ctx ended.
func (q *Queue) deliver(ctx context.Context, b *batch) bool {
	if b.lines == 0 {
		return true
	}
	for wait := firstRetry; ; wait = min(2*wait, longestRetry) {
		err := q.cfg.Send(ctx, b.bytes())
		var refused Refused
		var pause RetryAfter
		switch {
		case err == nil:
			q.sent.Add(uint64(b.lines))
			if q.failing.Swap(false) {
				q.cfg.Log.Info("the store's server takes samples again", "messages_waiting", q.spool.Pending())
			}
			return true
		case ctx.Err() != nil:
			return false
		case errors.As(err, &refused):
			q.refused.Add(uint64(b.lines))
			q.cfg.Log.Error("the store's server refused samples for good; they are dropped", "lines", b.lines, "err",
				err)
			return true
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

func (q *Queue) nothingLeft() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.idle != nil && q.spool.Pending() == 0 {
		close(q.idle)
		q.idle = nil
	}
}

// Flush returns when the server has taken (or refused) everything appended before it.
func (q *Queue) Flush(ctx context.Context) error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return tsdb.ErrClosed
	}
	if q.spool.Pending() == 0 {
		q.mu.Unlock()
		return nil
	}
	if q.idle == nil {
		q.idle = make(chan struct{})
	}
	idle := q.idle
	q.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d messages wait for the store's server: %w", q.spool.Pending(), ctx.Err())
	}
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
	metrics.WriteCounterUint64(w, "fairway_store_sent_lines_total", q.sent.Load())
	metrics.WriteCounterUint64(w, "fairway_store_refused_lines_total", q.refused.Load())
	metrics.WriteCounterUint64(w, "fairway_store_failed_sends_total", q.failures.Load())
}

// batch collects lines for one request.
type batch struct {
	names func(collector.Metric) string
	dec   wire.Decoder
	enc   lineprotocol.Encoder
	msg   []byte
	lines int
}

func (b *batch) reset() {
	b.enc.SetPrecision(lineprotocol.Millisecond)
	b.enc.Reset()
	b.lines = 0
}

func (b *batch) bytes() []byte { return b.enc.Bytes() }

// add appends the frames of one record. The spool checked its CRC, so one that does not decode was
// written by another version.
func (b *batch) add(msg []byte, log *slog.Logger) {
	m, err := b.dec.Decode(msg)
	frames, ok := m.(*wire.Frames)
	if err != nil || !ok {
		log.Error("a record of the store's spool cannot be read; it is dropped", "err", err)
		return
	}
	for i := range frames.Frames {
		b.frame(&frames.Frames[i], log)
	}
}

// Measurement is the name under which every sample is written.
const Measurement = "fairway"

func (b *batch) frame(f *collector.Frame, log *slog.Logger) {
	if len(f.Samples) == 0 {
		return
	}
	b.enc.StartLine(Measurement)
	b.enc.AddTag("node", string(f.Node))
	b.enc.AddTag("role", f.Role.String())
	var seen [collector.MetricCount]bool
	for i := len(f.Samples) - 1; i >= 0; i-- { // of two values of one metric the later one counts
		s := f.Samples[i]
		v, ok := lineprotocol.FloatValue(s.Value)
		if !ok || seen[s.Metric] {
			continue
		}
		seen[s.Metric] = true
		b.enc.AddField(b.names(s.Metric), v)
	}
	b.enc.EndLine(time.UnixMilli(f.TimeMillis))
	if err := b.enc.Err(); err != nil {
		log.Error("a frame cannot be written as a line; it is left out", "node", f.Node, "err", err)
		b.enc.ClearErr()
		return
	}
	b.lines++
}
