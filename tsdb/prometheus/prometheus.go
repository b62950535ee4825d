// Package prometheus is a tsdb.Store over a server that takes Prometheus's remote write and answers its query API:
// Prometheus itself, VictoriaMetrics, Thanos and others. The series have the names of fairway's own PromQL API, such as
// fairway_read_bytes_per_second{node="fwd1",role="forwarder"}.
//
// Of two samples of a series with the same time a server keeps either. A sample of a second is therefore written at the
// second's first millisecond, and one that may replace an earlier one some milliseconds later; the last one in a second
// counts. What comes late needs a server that takes it: Prometheus by storage.tsdb.out_of_order_time_window.
package prometheus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"fairway/tsdb/remote"
)

const (
	// requestTimeout bounds one request to the server.
	requestTimeout = 30 * time.Second
	// mostAnswer bounds one answer in bytes: an hour of 200 nodes is some 20 MB.
	mostAnswer = 512 << 20
)

// Config says where the server is and how frames wait for it.
type Config struct {
	// WriteURL takes remote write; without a path it is Prometheus's own, /api/v1/write.
	WriteURL string
	// ReadURL is what comes before /api/v1/query.
	ReadURL string
	// Token is sent as a bearer token; empty: none. Never logged.
	Token    string
	SpoolDir string       // holds what the server has not taken yet, at most remote.DefaultSpoolBytes of it
	Log      *slog.Logger // nil is slog.Default()
}

// Store is a tsdb.Store over a server. By its default VictoriaMetrics shows a sample some 30 s late.
type Store struct {
	*remote.Store
	api v1.API
	log *slog.Logger
}

// Open opens the spool and begins to send. It does not wait for the server: one that is away is
// logged and counted, and gets everything when it is back.
func Open(cfg Config) (*Store, error) {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	write, err := writeURL(cfg.WriteURL)
	if err != nil {
		return nil, fmt.Errorf("prometheus store: %w", err)
	}
	h := &http.Client{Timeout: requestTimeout, Transport: bearer{cfg.Token, http.DefaultTransport}}
	// VictoriaMetrics must look for late samples; the others do not know the parameter.
	client, err := api.NewClient(api.Config{Address: strings.TrimRight(cfg.ReadURL, "/") + "?nocache=1", Client: h})
	if err != nil {
		return nil, fmt.Errorf("prometheus store: %w", err)
	}
	s := &Store{api: v1.NewAPI(reads{client}), log: cfg.Log}
	places := newPlaces(time.Now)
	s.Store, err = remote.OpenStore(remote.Config{
		Dir: cfg.SpoolDir, Log: cfg.Log, Millis: places.millis,
		Batch: &batch{url: write, http: h, now: time.Now},
	}, remote.Server{Reader: remote.Reader{Raw: s.raw, Span: s.span}, Known: s.known, Release: h.CloseIdleConnections})
	if err != nil {
		return nil, fmt.Errorf("prometheus store: %w", err)
	}
	return s, nil
}

// reads asks once more where an answer was cut off: reading changes nothing, and a proxy before the server may have
// closed the connection.
type reads struct{ api.Client }

func (r reads) Do(ctx context.Context, ask *http.Request) (*http.Response, []byte, error) {
	res, body, err := r.Client.Do(ctx, ask)
	if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) || ctx.Err() != nil {
		return res, body, err
	}
	if ask.GetBody != nil {
		if ask.Body, err = ask.GetBody(); err != nil {
			return nil, nil, err
		}
	}
	return r.Client.Do(ctx, ask)
}

// writeURL completes the address of remote write. VictoriaMetrics's cluster had another one for the lines that were
// once written there.
func writeURL(address string) (string, error) {
	u, err := url.Parse(strings.TrimRight(address, "/"))
	if err != nil {
		return "", err
	}
	if before, lines := strings.CutSuffix(u.Path, "/influx"); lines {
		u.Path = before + "/prometheus/api/v1/write"
	}
	if u.Path == "" {
		u.Path = "/api/v1/write"
	}
	return u.String(), nil
}

// bearer adds a token to every request and bounds every answer.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	res, err := b.next.RoundTrip(r)
	if err == nil {
		res.Body = http.MaxBytesReader(nil, res.Body, mostAnswer)
	}
	return res, err
}
