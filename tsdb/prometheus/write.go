package prometheus

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/remote"
)

const (
	// maxAhead is how far ahead of this machine's clock samples may be. One that is further ahead moves Prometheus's
	// window for late samples, so that those of all other nodes become too old.
	maxAhead = 10 * time.Minute
	// samplesPerRequest is some 2 MB before compression.
	samplesPerRequest = 20_000
	// mostRefusals bounds the requests that look for what a server refuses of one batch.
	mostRefusals = 1000
	// forgetTooOld is how long a server's word that a time is too old holds.
	forgetTooOld = time.Minute
)

// series is what a sample is of.
type series struct {
	node   topology.NodeID
	role   topology.Role
	metric collector.Metric
}

type row struct {
	series
	millis int64
	value  float64
}

func bySeries(a, b row) int {
	return cmp.Or(strings.Compare(string(a.node), string(b.node)), cmp.Compare(a.role, b.role),
		cmp.Compare(a.metric, b.metric), cmp.Compare(a.millis, b.millis))
}

func newestFirst(a, b row) int {
	return cmp.Or(strings.Compare(string(a.node), string(b.node)), cmp.Compare(b.millis, a.millis))
}

// batch is a remote.Batch that goes out by remote write.
type batch struct {
	url  string
	http *http.Client
	now  func() time.Time
	rows []row

	took     bool      // the server took a request once
	tooOld   int64     // samples of this time and before are too old for the server,
	tooOldAt time.Time // as it answered then,
	why      error     // in these words

	// Of one Send: what was lost, how many requests were refused, and the time up to which a series takes nothing.
	lost     remote.Refused
	refusals int
	ordered  map[series]int64
}

// Reset implements remote.Batch.
func (b *batch) Reset() { b.rows = b.rows[:0] }

// Add implements remote.Batch.
func (b *batch) Add(f *collector.Frame) error {
	at := time.UnixMilli(f.TimeMillis)
	switch ahead := at.Sub(b.now()); {
	case ahead > maxAhead:
		return fmt.Errorf("a frame of node %q is %s ahead of this machine's clock, the most is %s: set the clock that "+
			"is wrong", f.Node, ahead.Round(time.Second), maxAhead)
	case !utf8.ValidString(string(f.Node)):
		return fmt.Errorf("the node's name %q is not UTF-8, which a label must be", f.Node)
	}
	for _, s := range f.Samples {
		b.rows = append(b.rows, row{series{f.Node, f.Role, s.Metric}, f.TimeMillis, s.Value})
	}
	return nil
}

// Send implements remote.Batch.
func (b *batch) Send(ctx context.Context) error {
	b.lost, b.refusals, b.ordered = remote.Refused{}, 0, map[series]int64{}
	for rows := range slices.Chunk(b.rows, samplesPerRequest) {
		if err := b.send(ctx, slices.Clone(rows)); err != nil {
			return err
		}
	}
	if b.lost.Samples > 0 {
		return b.lost
	}
	return nil
}

// send delivers rows. Prometheus 2 takes nothing of a request of which it refuses one sample, so a refused one is cut
// in halves until that sample is alone: by node, so that it costs no other, and the newest first, as what is older than
// one that is too old needs no asking.
func (b *batch) send(ctx context.Context, rows []row) error {
	if b.now().Sub(b.tooOldAt) > forgetTooOld {
		b.tooOld = -1
	}
	rows = slices.DeleteFunc(rows, func(r row) bool {
		last, ordered := b.ordered[r.series]
		late := r.millis <= b.tooOld || ordered && r.millis <= last
		if late {
			b.lost.Samples++
			b.lost.Err = cmp.Or(b.lost.Err, b.why)
		}
		return late
	})
	if len(rows) == 0 {
		return nil
	}
	err := b.post(ctx, rows)
	var refused remote.Refused
	if !errors.As(err, &refused) {
		return err
	}
	b.refusals++
	if len(rows) == 1 || b.refusals > mostRefusals {
		b.lose(rows, refused.Err)
		return nil
	}
	slices.SortFunc(rows, newestFirst)
	if err := b.send(ctx, rows[:len(rows)/2]); err != nil {
		return err
	}
	return b.send(ctx, rows[len(rows)/2:])
}

// lose counts rows that the server refuses, and learns from what it says.
func (b *batch) lose(rows []row, why error) {
	r, text := rows[0], why.Error()
	old, unordered := strings.Contains(text, "too old") || strings.Contains(text, "out of bounds"),
		strings.Contains(text, "out of order")
	b.lost.Samples += len(rows)
	b.lost.Err = fmt.Errorf("%s of node %q at %s: %w", r.metric.SeriesName(), r.node,
		time.UnixMilli(r.millis).UTC().Format(time.RFC3339), why)
	if old || unordered {
		b.lost.Err = fmt.Errorf("%w; Prometheus takes what is late within storage.tsdb.out_of_order_time_window",
			b.lost.Err)
	}
	if old {
		b.tooOld, b.tooOldAt, b.why = r.millis, b.now(), b.lost.Err
	} else if unordered {
		b.ordered[r.series] = r.millis
	}
}

// post makes one request.
func (b *batch) post(ctx context.Context, rows []row) error {
	body, err := encode(rows)
	if err != nil {
		return remote.Refused{Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", "fairway")
	req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	res, err := b.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode/100 == 2 {
		b.took = true
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(res.Body, 500)) // the status is the error
	err = fmt.Errorf("%s answers %s: %s", req.URL.Redacted(), res.Status, strings.TrimSpace(string(text)))
	switch res.StatusCode {
	case http.StatusInternalServerError: // Prometheus 2 takes this refusal for a fault of its own
		if bytes.HasPrefix(text, []byte("too old sample")) {
			return remote.Refused{Err: err}
		}
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		// VictoriaMetrics answers so to addresses that it does not have.
		if !b.took && !bytes.Contains(text, []byte("sample")) && !bytes.Contains(text, []byte("out of")) {
			return fmt.Errorf("%w; it has taken nothing yet: is that its address of remote write?", err)
		}
		return remote.Refused{Err: err}
	}
	if seconds, bad := strconv.Atoi(res.Header.Get("Retry-After")); bad == nil {
		return remote.RetryAfter{Err: err, Wait: time.Duration(seconds) * time.Second}
	}
	return err
}

// encode writes rows as a request of remote write 1.0.
func encode(rows []row) ([]byte, error) {
	slices.SortFunc(rows, bySeries)
	labels := make([]prompb.Label, 0, 3*len(rows))
	samples := make([]prompb.Sample, 0, len(rows))
	var req prompb.WriteRequest
	for i, r := range rows {
		samples = append(samples, prompb.Sample{Timestamp: r.millis, Value: r.value})
		if i+1 < len(rows) && rows[i+1].series == r.series {
			continue
		}
		labels = append(labels, prompb.Label{Name: "__name__", Value: r.metric.SeriesName()},
			prompb.Label{Name: "node", Value: string(r.node)}, prompb.Label{Name: "role", Value: r.role.String()})
		req.Timeseries = append(req.Timeseries, prompb.TimeSeries{Labels: labels[len(labels)-3:], Samples: samples})
		samples = samples[len(samples):]
	}
	body, err := req.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode %d samples: %w", len(rows), err)
	}
	return snappy.Encode(nil, body), nil
}
