package mount

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"fairway/cmd/lab/conform/sourcetest"
	"fairway/collector"
	"fairway/collector/topology"
)

func value(r collector.Reading, m collector.Metric) float64 {
	f := collector.Frame{Samples: r.Samples}
	v, ok := f.Value(m)
	if !ok {
		return -1
	}
	return v
}

func TestRates(t *testing.T) {
	s := New("cn01", "unused")
	started := time.Unix(1000, 0)
	tick := func(sec int, rep Report) collector.Reading {
		r := collector.Reading{Now: started.Add(time.Duration(sec) * time.Second)}
		s.report(&rep, &r)
		return r
	}
	base := Report{Started: started, Forwarder: "fwd1", Generation: 3, Connected: true,
		Ops:  map[string]Op{"write": {Count: 10, Bytes: 1000, Nanos: 1e9}, "getattr": {Count: 5, Nanos: 5e6}},
		Jobs: map[topology.JobID]Share{"7": {Write: Op{Count: 10, Bytes: 1000, Nanos: 1e9}}}}
	if r := tick(1, base); len(r.Samples) != 0 || len(r.Jobs) != 0 {
		t.Errorf("the first report makes samples %v", r.Samples)
	}
	next := base
	next.Ops = map[string]Op{"write": {Count: 14, Bytes: 5000, Nanos: 1e9 + 8e6, Errors: 2},
		"getattr": {Count: 6, Nanos: 7e6}, "open": {Count: 1, Nanos: 4e6}}
	next.Jobs = map[topology.JobID]Share{"7": {Write: Op{Count: 14, Bytes: 5000, Nanos: 1e9 + 8e6},
		WrittenFiles: Files{Count: 2, Least: 99}}}
	r := tick(2, next)
	for m, want := range map[collector.Metric]float64{collector.WriteBytes: 4000, collector.WriteOps: 4,
		collector.ClientWrite: 0.002, collector.MetaOps: 2,
		collector.ClientMeta: 0.003, collector.Errors: 2, collector.ReadOps: 0, collector.ClientRead: -1} {
		if got := value(r, m); got != want {
			t.Errorf("%v = %v, want %v", m, got, want)
		}
	}
	if len(r.Jobs) != 1 || r.Jobs[0].Job != "7" || len(r.Routes) != 1 ||
		r.Routes[0] != (collector.Route{Client: "cn01", Forwarder: "fwd1", Generation: 3}) || !r.RoutesComplete {
		t.Errorf("jobs %v, routes %v", r.Jobs, r.Routes)
	}
	files := map[collector.Metric]float64{}
	for _, s := range r.Jobs[0].Samples {
		if s.Metric.OfJobs() {
			files[s.Metric] = s.Value
		}
	}
	if len(files) != 2 || files[collector.FilesWritten] != 2 || files[collector.LeastFileWritten] != 99 {
		t.Errorf("files %v", files)
	}
	again := base
	again.Started = started.Add(time.Minute)
	if r := tick(3, again); len(r.Samples) != 0 || r.Resets != 0 {
		t.Errorf("a new mount's first report makes samples %v and %d resets", r.Samples, r.Resets)
	}
	lost := again
	lost.Connected = false
	if r := tick(4, lost); len(r.Routes) != 1 || !r.Routes[0].Lost || r.Routes[0].Forwarder != "fwd1" {
		t.Errorf("a mount without its forwarder reports routes %v", r.Routes)
	}
}

// TestPathLoss: the share of what did not get through at once, of connections with traffic; a new connection
// begins anew.
func TestPathLoss(t *testing.T) {
	s := New("cn01", "unused")
	for i, c := range []struct {
		path Path
		want float64 // -1: not reported
	}{
		{Path{Connection: 1, Sent: 100, Received: 100}, -1},
		{Path{Connection: 1, Sent: 1000, Received: 1200, Resent: 30, Disordered: 10}, 40.0 / 2000},
		{Path{Connection: 1, Sent: 1005, Received: 1200, Resent: 35, Disordered: 10}, -1}, // hardly anything
		{Path{Connection: 1, Sent: 2005, Received: 1200, Resent: 35, Disordered: 10}, 0},
		{Path{Connection: 2, Sent: 100, Received: 100, Resent: 50}, -1},
		{Path{Connection: 2, Sent: 200, Received: 200, Resent: 51}, 1.0 / 200},
		{Path{}, -1},
	} {
		r := collector.Reading{Now: time.Unix(1000+int64(i), 0)}
		s.report(&Report{Started: time.Unix(900, 0), Connected: true, Path: c.path}, &r)
		if got := value(r, collector.PathLossRatio); got != c.want || r.Resets != 0 {
			t.Errorf("report %d: %v, want %v; %d resets", i, got, c.want, r.Resets)
		}
	}
}

// TestForwarderGone: the mount goes on answering, and the error names what is without what.
func TestForwarderGone(t *testing.T) {
	s := New("cn01", serveMount(t, func(Request) string {
		return "{\"report\":{\"mount_point\":\"/pfs\",\"forwarder\":\"fwd3\",\"addr\":\"10.0.0.7:564\"," +
			"\"generation\":2,\"connected\":false}}"
	}))
	var r collector.Reading
	err := s.Read(t.Context(), &r)
	if err == nil || errors.Is(err, collector.ErrNoData) || !strings.Contains(err.Error(), "/pfs") ||
		!strings.Contains(err.Error(), "fwd3 at 10.0.0.7:564") {
		t.Errorf("the error is %v", err)
	}
	if len(r.Routes) != 1 || r.Routes[0] != (collector.Route{Client: "cn01", Forwarder: "fwd3", Generation: 2,
		Lost: true}) {
		t.Errorf("routes %v", r.Routes)
	}
}

// serveMount answers control requests in the mount's place.
func serveMount(t *testing.T, answer func(Request) string) string {
	socket := filepath.Join(t.TempDir(), "control")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(conn).ReadBytes('\n')
			var q Request
			json.Unmarshal(line, &q)
			conn.Write([]byte(answer(q) + "\n"))
			conn.Close()
		}
	}()
	return socket
}

func TestNoMount(t *testing.T) {
	s := New("cn01", filepath.Join(t.TempDir(), "none"))
	var r collector.Reading
	if err := s.Read(t.Context(), &r); !errors.Is(err, collector.ErrNoData) {
		t.Errorf("without a mount: %v", err)
	}
	bad := New("cn01", serveMount(t, func(Request) string { return "{" }))
	if err := bad.Read(t.Context(), &r); err == nil || !strings.Contains(err.Error(), "control socket") {
		t.Errorf("half an answer: %v", err)
	}
}

func TestAskHonoursItsContext(t *testing.T) {
	socket := serveMount(t, func(Request) string { select {} })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Ask(ctx, socket, Request{Op: "stats"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a mount that does not answer: %v", err)
	}
}

// overTree reads reports from files, for the conformance suite.
type overTree struct {
	*Source
	fsys fs.FS
}

func (o overTree) Read(ctx context.Context, into *collector.Reading) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, err := fs.ReadFile(o.fsys, "report.json")
	if errors.Is(err, fs.ErrNotExist) {
		return collector.ErrNoData
	}
	var r Report
	if err := json.Unmarshal(b, &r); err != nil {
		return errors.Join(errors.New("report.json"), err)
	}
	o.report(&r, into)
	return nil
}

func TestConformance(t *testing.T) {
	sourcetest.Run(t, sourcetest.Suite{
		New: func(fsys fs.FS) collector.Source { return overTree{New("cn01", ""), fsys} },
		First: fstest.MapFS{
			"report.json": {
				Data: []byte(
					"{\"started\":\"2026-01-01T00:00:00Z\",\"connected\":true,\"forwarder\":\"f\"," +
						"\"ops\":{\"read\":{\"count\":1,\"bytes\":10,\"nanos\":1000},\"write\":{\"count\":1," +
						"\"bytes\":10,\"nanos\":1000},\"open\":{\"count\":1,\"nanos\":10}}}")}},
		Second: fstest.MapFS{
			"report.json": {
				Data: []byte(
					"{\"started\":\"2026-01-01T00:00:00Z\",\"connected\":true,\"forwarder\":\"f\"," +
						"\"ops\":{\"read\":{\"count\":9,\"bytes\":90,\"nanos\":9000},\"write\":{\"count\":9," +
						"\"bytes\":90,\"nanos\":9000},\"open\":{\"count\":9,\"nanos\":90}}}")}},
		Want: []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.ReadOps, collector.WriteOps,
			collector.MetaOps, collector.ClientRead, collector.ClientWrite, collector.ClientMeta},
	})
}

// TestUnderWay: an operation that hangs for a minute counts in each of its seconds, not in the one in which it ends,
// and a mount that cannot know what is under way says nothing of it.
func TestUnderWay(t *testing.T) {
	s := New("cn01", "unused")
	started := time.Unix(1000, 0)
	const second = uint64(time.Second)
	for sec := range uint64(70) {
		// one write begins at 2 s and ends at 62 s, a stat takes the first half of each second
		w := Op{UnderWay: UnderWay{Count: 1, Nanos: (max(sec, 2) - 2) * second, Oldest: (max(sec, 2) - 2) * second}}
		if sec < 2 {
			w = Op{}
		} else if sec >= 62 {
			w = Op{Count: 1, Nanos: 60 * second}
		}
		stat := Op{Count: sec, Nanos: sec * second / 2}
		r := collector.Reading{Now: started.Add(time.Duration(sec) * time.Second)}
		s.report(&Report{Started: started, Connected: true, CountsUnderWay: true,
			Ops:  map[string]Op{"write": w, "getattr": stat},
			Jobs: map[topology.JobID]Share{"7": {Write: w, Meta: stat}}}, &r)
		if sec == 0 {
			continue
		}
		all, age := 0.5, 0.0
		if sec > 2 && sec <= 62 {
			all = 1.5
		}
		if sec >= 2 && sec < 62 {
			age = float64(sec - 2)
		}
		if len(r.Jobs) != 1 {
			t.Fatalf("second %d: jobs %v", sec, r.Jobs)
		}
		for _, samples := range [][]collector.Sample{r.Samples, r.Jobs[0].Samples} {
			r.Samples = samples
			if value(r, collector.InFlight) != all || value(r, collector.MetaInFlight) != 0.5 ||
				value(r, collector.RequestAge) != age || r.Resets != 0 {
				t.Fatalf("second %d: in flight %v (metadata %v), oldest %v, %d resets; want %v, 0.5, %v", sec,
					value(r, collector.InFlight), value(r, collector.MetaInFlight), value(r, collector.RequestAge),
					r.Resets, all, age)
			}
		}
	}
	r := collector.Reading{Now: started.Add(70 * time.Second)}
	s.report(&Report{Started: started, Connected: true,
		Ops: map[string]Op{"write": {Count: 1, Nanos: 60 * second}}}, &r)
	if value(r, collector.InFlight) != -1 || value(r, collector.RequestAge) != -1 {
		t.Errorf("a mount of before reports %v", r.Samples)
	}
}
