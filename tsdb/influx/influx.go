// Package influx is a tsdb.Store over InfluxDB's v2 API: lines in by its write API, Flux for reads.
//
// A frame is one point: measurement "fairway", tags node and role, a float field per metric, the
// start of its second as time. InfluxDB 1.8 answers the same API when flux-enabled is set; its
// bucket is then "database/retention" and its token "user:password".
package influx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	influxdb2 "github.com/influxdata/influxdb-client-go/v2"
	influxhttp "github.com/influxdata/influxdb-client-go/v2/api/http"

	"fairway/collector"
	"fairway/tsdb"
	"fairway/tsdb/remote"
)

// requestSeconds bounds one request to the server.
const requestSeconds = 30

// Config says where the server is and how frames wait for it.
type Config struct {
	URL    string // such as http://127.0.0.1:8086
	Org    string
	Bucket string
	Token  string // never logged
	// SpoolDir holds what the server has not taken yet, at most SpoolBytes of it (0 is
	// remote.DefaultSpoolBytes).
	SpoolDir   string
	SpoolBytes int64
	Log        *slog.Logger // nil is slog.Default()
}

// Store is a tsdb.Store over InfluxDB. Append answers when the frames are on this machine's disk;
// reads see what the server has.
type Store struct {
	queue  *remote.Queue
	client influxdb2.Client
	org    string
	bucket string
	reader remote.Reader
	nodes  *remote.Directory
}

var _ tsdb.Store = (*Store)(nil)

// Open opens the spool and begins to send. It does not wait for the server: one that is away is
// logged and counted, and gets everything when it is back.
func Open(cfg Config) (*Store, error) {
	opts := influxdb2.DefaultOptions().SetPrecision(time.Millisecond).SetHTTPRequestTimeout(requestSeconds).
		SetUseGZip(true).SetMaxRetries(0).SetApplicationName("fairway")
	s := &Store{client: influxdb2.NewClientWithOptions(cfg.URL, cfg.Token, opts), org: cfg.Org, bucket: cfg.Bucket}
	s.reader = remote.Reader{Raw: s.raw, Span: s.span}
	s.nodes = remote.NewDirectory(s.known)
	write := s.client.WriteAPIBlocking(cfg.Org, cfg.Bucket)
	var err error
	s.queue, err = remote.Open(remote.Config{
		Dir: cfg.SpoolDir, MaxBytes: cfg.SpoolBytes, Log: cfg.Log, Field: collector.Metric.String,
		Send: func(ctx context.Context, lines []byte) error { return Sent(write.WriteRecord(ctx, string(lines))) },
	})
	if err != nil {
		s.client.Close()
		return nil, fmt.Errorf("influx store: %w", err)
	}
	return s, nil
}

// Sent tells the client's errors apart: those that no repetition would mend, those after which the
// server wants a pause, and the others.
func Sent(err error) error {
	var e *influxhttp.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return remote.Refused{Err: err}
	}
	if e.RetryAfter > 0 {
		return remote.RetryAfter{Err: err, Wait: time.Duration(e.RetryAfter) * time.Second}
	}
	return err
}

// Append implements tsdb.Store.
func (s *Store) Append(ctx context.Context, frames []collector.Frame) error {
	err := s.queue.Append(ctx, frames)
	s.nodes.Note(frames)
	return err
}

// Select implements tsdb.Store.
func (s *Store) Select(ctx context.Context, q tsdb.Query) ([]tsdb.Series, error) {
	if s.queue.Closed() {
		return nil, tsdb.ErrClosed
	}
	return s.reader.Select(ctx, q)
}

// Occupancy implements tsdb.Store.
func (s *Store) Occupancy(ctx context.Context, q tsdb.OccupancyQuery) ([]tsdb.NodeOccupancy, error) {
	if s.queue.Closed() {
		return nil, tsdb.ErrClosed
	}
	return s.reader.Occupancy(ctx, q)
}

// Nodes implements tsdb.Store.
func (s *Store) Nodes(ctx context.Context) ([]tsdb.NodeInfo, error) {
	if s.queue.Closed() {
		return nil, tsdb.ErrClosed
	}
	return s.nodes.List(ctx)
}

// Hours lists the hours, as their Unix seconds, between the first and the last sample.
func (s *Store) Hours(ctx context.Context) ([]int64, error) {
	nodes, err := s.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	return s.reader.Hours(ctx, nodes)
}

// Flush returns when the server has taken everything appended before it.
func (s *Store) Flush(ctx context.Context) error { return s.queue.Flush(ctx) }

// WriteMetrics writes the spool's state in Prometheus text format.
func (s *Store) WriteMetrics(w io.Writer) { s.queue.WriteMetrics(w) }

// Close ends the sending; what the server has not taken waits on disk for the next Open.
func (s *Store) Close() error {
	err := s.queue.Close()
	if !errors.Is(err, tsdb.ErrClosed) {
		s.client.Close()
	}
	return err
}
