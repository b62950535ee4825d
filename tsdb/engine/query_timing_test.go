package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	promtsdb "github.com/prometheus/prometheus/tsdb"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/promapi"
)

// perOp runs f so often that its CPU time can be measured, and reports the mean.
func perOp(b *testing.B, unit string, in time.Duration, f func()) time.Duration {
	b.Helper()
	f() // files are opened once
	n := 0
	begun, before := time.Now(), cpu()
	for time.Since(begun) < time.Second/2 || n < 3 {
		f()
		n++
	}
	each := (cpu() - before) / time.Duration(n)
	b.ReportMetric(float64(each)/float64(in), unit)
	return each
}

func (m *machine) names(role topology.Role) (out []topology.NodeID) {
	for i := range m.frames {
		if role == topology.RoleUnknown || m.frames[i].Role == role {
			out = append(out, m.frames[i].Node)
		}
	}
	return out
}

// BenchmarkReads measures what the pages read of the past: one node's hour, a day's occupancy.
func BenchmarkReads(b *testing.B) {
	b.Run("day", func(b *testing.B) {
		const day = 86400
		m := openMachine(b, "fnday", day)
		db := openStore(b, b.TempDir())
		defer db.Close()
		nodes, peaks := m.names(topology.Forwarder), map[topology.NodeID]float64{}
		for _, n := range nodes {
			peaks[n] = 1.2e9
		}
		db.SetPeaks(peaks)
		m.fill(b, db, func() uint64 { return 0 })
		ctx := context.Background()
		check := func(n int, err error) {
			if err != nil || n == 0 {
				b.Fatal(n, err)
			}
		}
		for b.Loop() {
			perOp(b, "ms/day-occupancy-240", time.Millisecond, func() {
				out, err := db.Occupancy(ctx, tsdb.OccupancyQuery{Nodes: nodes, FromMillis: machineStart * 1000,
					ToMillis: (machineStart + day) * 1000, PeakBytesPerSec: peaks})
				check(len(out), err)
			})
			hour := tsdb.Query{Nodes: nodes[7:8], Metric: collector.ReadBytes,
				FromMillis: (machineStart + 36000) * 1000, ToMillis: (machineStart + 39600) * 1000}
			perOp(b, "ms/node-hour", time.Millisecond, func() {
				out, err := db.Select(ctx, hour)
				check(len(out), err)
			})
			asked := 0 // another node and hour every time, whose columns nobody has asked for before
			perOp(b, "ms/node-hour-first", time.Millisecond, func() {
				other := hour
				from := machineStart + asked*7%24*3600
				other.Nodes, other.FromMillis, other.ToMillis = nodes[asked%len(nodes):][:1], int64(from)*1000,
					int64(from+3600)*1000
				asked++
				out, err := db.Select(ctx, other)
				check(len(out), err)
			})
		}
	})
}

// BenchmarkRecovery opens the store that a kill left: every second of two minutes in the log, none
// in a block, behind an hour of sealed ones.
func BenchmarkRecovery(b *testing.B) {
	for _, set := range []string{"full", "fullbusy"} {
		b.Run(set, func(b *testing.B) {
			m := openMachine(b, set, 130)
			dir := b.TempDir()
			db := openStore(b, dir)
			ctx := context.Background()
			for s := range m.secs {
				if err := db.Append(ctx, m.next(b, s)); err != nil {
					b.Fatal(err)
				}
			}
			killed := filepath.Join(b.TempDir(), "killed")
			if err := copyDir(killed, dir); err != nil {
				b.Fatal(err)
			}
			db.Close()
			for b.Loop() {
				again := filepath.Join(b.TempDir(), "again")
				if err := copyDir(again, killed); err != nil {
					b.Fatal(err)
				}
				before := cpu()
				db := openStore(b, again)
				b.ReportMetric((cpu() - before).Seconds(), "cpu-s/recovery")
				db.Close()
			}
		})
	}
}

func copyDir(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := filepath.Join(to, path[len(from):])
		if d.IsDir() {
			return os.MkdirAll(at, 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(at, data, 0o600)
	})
}

// ask runs a query of our HTTP API and throws the answer away.
func ask(b *testing.B, api *promapi.API, path string, form url.Values) {
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/"+path+"?"+form.Encode(), nil))
	if w.Code != 200 || w.Body.Len() < 100 {
		b.Fatalf("%s %v: %d %.200s", path, form, w.Code, w.Body)
	}
}

// BenchmarkPromQLAgainstPrometheus asks the same of both stores through Prometheus's engine, with
// the answer as JSON, and prints the ratio of CPU times.
func BenchmarkPromQLAgainstPrometheus(b *testing.B) {
	const secs = 7200
	m := openMachine(b, "fnday", secs)
	db := openStore(b, filepath.Join(b.TempDir(), "ours"))
	defer db.Close()
	m.fill(b, db, func() uint64 { return 0 })
	m.rewind(b)
	p := openPrometheus(b, filepath.Join(b.TempDir(), "theirs"), m)
	defer p.db.Close()
	for s := range secs {
		p.append(b, m.next(b, s))
	}
	head := p.db.Head()
	if err := p.db.CompactHead(promtsdb.NewRangeHead(head, head.MinTime(), head.MaxTime())); err != nil {
		b.Fatal(err)
	}
	api := promapi.New(promapi.Config{Store: db, Log: slog.New(slog.DiscardHandler)})
	parse := parser.NewParser(parser.Options{})
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: 5 * time.Minute,
		LookbackDelta:            10 * time.Second,
		NoStepSubqueryIntervalFn: func(int64) int64 { return 1000 }, Parser: parse})
	const end = machineStart + secs - 1
	for b.Loop() {
		for _, q := range []struct {
			name, query string // %s is the series' suffix
			rng         time.Duration
			step        int
		}{
			{"latest-240x8", `{__name__=~"fairway_.+",role="forwarder"}`, 0, 0},
			{"node-hour", `fairway_read_bytes%s{node="fwd007"}`, time.Hour, 1},
			{"sum-hour-step15", `sum(fairway_read_bytes%s)`, time.Hour, 15},
			{"max-over-hour", `max_over_time(fairway_read_bytes%s[1h])`, 0, 0},
			{"occupancy-hour",
				`avg_over_time((fairway_read_bytes%[1]s + fairway_write_bytes%[1]s >= bool 9.6e8)[1h:1s])`, 0, 0},
		} {
			query := func(suffix string) string {
				if q.step == 0 && q.name == "latest-240x8" {
					return q.query
				}
				return fmt.Sprintf(q.query, suffix)
			}
			ours := perOp(b, "ms/"+q.name, time.Millisecond, func() {
				form := url.Values{"query": {query("_per_second")}, "time": {strconv.Itoa(end)}}
				path := "query"
				if q.rng > 0 {
					path, form = "query_range", url.Values{"query": form["query"], "step": {strconv.Itoa(q.step)},
						"start": {strconv.Itoa(end - int(q.rng.Seconds()))}, "end": {strconv.Itoa(end)}}
				}
				ask(b, api, path, form)
			})
			theirs := perOp(b, "ms/prometheus-"+q.name, time.Millisecond, func() {
				p.evaluate(b, engine, query(""), time.Unix(end, 0), q.rng, time.Duration(q.step)*time.Second)
			})
			b.ReportMetric(float64(ours)/float64(theirs), "x-prometheus-"+q.name)
		}
	}
}

// evaluate runs a query over Prometheus's store and writes the answer as JSON.
func (p *prometheus) evaluate(b *testing.B, engine *promql.Engine, text string, end time.Time, rng,
	step time.Duration) {
	ctx := context.Background()
	var q promql.Query
	var err error
	if rng > 0 {
		q, err = engine.NewRangeQuery(ctx, p.db, nil, text, end.Add(-rng), end, step)
	} else {
		q, err = engine.NewInstantQuery(ctx, p.db, nil, text, end)
	}
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	res := q.Exec(ctx)
	if res.Err != nil {
		b.Fatal(res.Err)
	}
	if err := json.NewEncoder(io.Discard).Encode(res.Value); err != nil {
		b.Fatal(err)
	}
}
