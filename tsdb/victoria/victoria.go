// Package victoria is a tsdb.Store over VictoriaMetrics, single node or cluster: Influx lines in
// by /api/v2/write, PromQL for reads. The series have the names of fairway's own PromQL API,
// such as fairway_read_bytes_per_second{node="fwd1",role="forwarder"}.
//
// VictoriaMetrics keeps every sample that it is sent, and of two with the same time it does not say
// which one it will show. A sample of a second is therefore written at the second's first
// millisecond, and one that may replace an earlier one some milliseconds later; the last one in a
// second counts. It keeps about 12 significant digits of a fraction, and integers to 10^15 exactly.
package victoria

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	influxdb2 "github.com/influxdata/influxdb-client-go/v2"

	"fairway/collector"
	"fairway/tsdb/influx"
	"fairway/tsdb/remote"
)

// requestTimeout bounds one request to the server.
const requestTimeout = 30 * time.Second

// Config says where the server is and how frames wait for it.
type Config struct {
	// WriteURL and ReadURL are what comes before /api/v2/write and /api/v1/query: the same address
	// for a single node; http://vminsert:8480/insert/0/influx and
	// http://vmselect:8481/select/0/prometheus for tenant 0 of a cluster.
	WriteURL, ReadURL string
	// Token is sent as a bearer token (vmauth); empty: none. Never logged.
	Token string
	// SpoolDir holds what the server has not taken yet, at most SpoolBytes of it (0 is remote.DefaultSpoolBytes).
	SpoolDir   string
	SpoolBytes int64
	Log        *slog.Logger // nil is slog.Default()
}

// Store is a tsdb.Store over VictoriaMetrics. By its default it shows a sample some 30 s late.
type Store struct {
	*remote.Store
	http *http.Client
	url  string
}

// Open opens the spool and begins to send. It does not wait for the server: one that is away is
// logged and counted, and gets everything when it is back.
func Open(cfg Config) (*Store, error) {
	h := &http.Client{Timeout: requestTimeout, Transport: bearer{cfg.Token, http.DefaultTransport}}
	opts := influxdb2.DefaultOptions().SetPrecision(time.Millisecond).SetUseGZip(true).SetMaxRetries(0).
		SetHTTPClient(h).SetApplicationName("fairway")
	client := influxdb2.NewClientWithOptions(cfg.WriteURL, "", opts)
	write := client.WriteAPIBlocking("", "")
	s := &Store{http: h, url: strings.TrimRight(cfg.ReadURL, "/")}
	release := func() {
		client.Close()
		h.CloseIdleConnections()
	}
	places := newPlaces(time.Now)
	var err error
	s.Store, err = remote.OpenStore(remote.Config{
		Dir: cfg.SpoolDir, MaxBytes: cfg.SpoolBytes, Log: cfg.Log, Millis: places.millis,
		Field: func(m collector.Metric) string {
			return strings.TrimPrefix(m.SeriesName(), remote.Measurement+"_")
		},
		Send: func(ctx context.Context, lines []byte) error {
			return influx.Sent(write.WriteRecord(ctx, string(lines)))
		},
	}, remote.Server{Reader: remote.Reader{Raw: s.raw, Span: s.span}, Known: s.known, Release: release})
	if err != nil {
		return nil, fmt.Errorf("victoria store: %w", err)
	}
	return s, nil
}

// bearer adds a token to every request.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(r)
}
