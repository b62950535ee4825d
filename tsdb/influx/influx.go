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
	"log/slog"
	"net/http"
	"time"

	influxdb2 "github.com/influxdata/influxdb-client-go/v2"
	"github.com/influxdata/influxdb-client-go/v2/api"
	influxhttp "github.com/influxdata/influxdb-client-go/v2/api/http"
	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"fairway/collector"
	"fairway/tsdb/remote"
)

// requestSeconds bounds one request to the server.
const requestSeconds = 30

// Config says where the server is and how frames wait for it.
type Config struct {
	URL      string // such as http://127.0.0.1:8086
	Org      string
	Bucket   string
	Token    string       // never logged
	SpoolDir string       // holds what the server has not taken yet, at most remote.DefaultSpoolBytes of it
	Log      *slog.Logger // nil is slog.Default()
}

// Store is a tsdb.Store over InfluxDB.
type Store struct {
	*remote.Store
	client influxdb2.Client
	org    string
	bucket string
}

// Open opens the spool and begins to send. It does not wait for the server: one that is away is
// logged and counted, and gets everything when it is back.
func Open(cfg Config) (*Store, error) {
	opts := influxdb2.DefaultOptions().SetPrecision(time.Millisecond).SetHTTPRequestTimeout(requestSeconds).
		SetUseGZip(true).SetMaxRetries(0).SetApplicationName("fairway")
	s := &Store{client: influxdb2.NewClientWithOptions(cfg.URL, cfg.Token, opts), org: cfg.Org, bucket: cfg.Bucket}
	write := s.client.WriteAPIBlocking(cfg.Org, cfg.Bucket)
	var err error
	s.Store, err = remote.OpenStore(
		remote.Config{Dir: cfg.SpoolDir, Log: cfg.Log, Batch: &batch{write: write}},
		remote.Server{Reader: remote.Reader{Raw: s.raw, Span: s.span}, Known: s.known, Release: s.client.Close})
	if err != nil {
		return nil, fmt.Errorf("influx store: %w", err)
	}
	return s, nil
}

// measurement is the name under which every sample is written.
const measurement = "fairway"

// batch is a remote.Batch of Influx lines.
type batch struct {
	write api.WriteAPIBlocking
	enc   lineprotocol.Encoder
}

// Reset implements remote.Batch.
func (b *batch) Reset() {
	b.enc.SetPrecision(lineprotocol.Millisecond)
	b.enc.Reset()
}

// Add implements remote.Batch.
func (b *batch) Add(f *collector.Frame) error {
	b.enc.StartLine(measurement)
	b.enc.AddTag("node", string(f.Node))
	b.enc.AddTag("role", f.Role.String())
	for _, s := range f.Samples {
		if v, ok := lineprotocol.FloatValue(s.Value); ok {
			b.enc.AddField(s.Metric.String(), v)
		}
	}
	b.enc.EndLine(time.UnixMilli(f.TimeMillis))
	if err := b.enc.Err(); err != nil {
		b.enc.ClearErr()
		return fmt.Errorf("a frame of node %q cannot be written as a line: %w", f.Node, err)
	}
	return nil
}

// Send implements remote.Batch. It sorts the client's errors: those that no repetition would mend, those after which
// the server wants a pause, and the others.
func (b *batch) Send(ctx context.Context) error {
	err := b.write.WriteRecord(ctx, string(b.enc.Bytes()))
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
