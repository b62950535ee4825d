package engine_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	promtsdb "github.com/prometheus/prometheus/tsdb"

	"fairway/collector"

	"fairway/tsdb/engine"
)

// prometheus is Prometheus's own store, for comparison on the same data in the same run.
type prometheus struct {
	db   *promtsdb.DB
	refs []storage.SeriesRef
	sets []labels.Labels
}

func openPrometheus(b *testing.B, dir string, m *machine) *prometheus {
	opts := promtsdb.DefaultOptions()
	opts.RetentionDuration = int64(100 * 365 * 24 * time.Hour / time.Millisecond)
	db, err := promtsdb.Open(dir, slog.New(slog.DiscardHandler), nil, opts, nil)
	if err != nil {
		b.Fatal(err)
	}
	p := &prometheus{db: db, refs: make([]storage.SeriesRef, len(m.frames)*8)}
	for i := range m.frames {
		for _, metric := range machineMetrics {
			p.sets = append(p.sets, labels.FromStrings("__name__", promName(metric), "node", string(m.frames[i].Node),
				"role", m.frames[i].Role.String()))
		}
	}
	return p
}

func promName(m collector.Metric) string { return "fairway_" + m.String() }

func (p *prometheus) append(b *testing.B, frames []collector.Frame) {
	app := p.db.Appender(context.Background())
	for i := range frames {
		f := &frames[i]
		for k, s := range f.Samples {
			at := i*8 + k
			ref, err := app.Append(p.refs[at], p.sets[at], f.TimeMillis, s.Value)
			if err != nil {
				b.Fatal(err)
			}
			p.refs[at] = ref
		}
	}
	if err := app.Commit(); err != nil {
		b.Fatal(err)
	}
}

// sync gives Prometheus's log the durability of ours: the newest segment is on the device.
func (p *prometheus) sync(b *testing.B) {
	segments, err := filepath.Glob(filepath.Join(p.db.Dir(), "wal", "0*"))
	if err != nil || len(segments) == 0 {
		b.Fatalf("no log segment of Prometheus: %v", err)
	}
	f, err := os.Open(segments[len(segments)-1])
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Fdatasync(int(f.Fd())); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkAppendAgainstPrometheus appends the same seconds to both stores, with an fsync of the
// log a second, until the data is in each store's own blocks, and prints the ratio; also without the fsyncs, which
// dominate where few nodes send.
func BenchmarkAppendAgainstPrometheus(b *testing.B) {
	for _, c := range []struct {
		set       string
		secs, few int // few: how many of the seconds Prometheus gets, for it takes long
	}{{"full", 240, 60}, {"fnday", 7200, 3600}} {
		b.Run(c.set, func(b *testing.B) {
			m := openMachine(b, c.set, c.secs)
			drawing := m.drawingCost(b)
			samples := float64(m.secs * len(m.frames) * 8)
			for b.Loop() {
				ours := func(opts engine.Options) (perSecond float64) {
					opts.SyncInterval = time.Nanosecond
					db, err := engine.Open(filepath.Join(b.TempDir(), "ours"), opts)
					if err != nil {
						b.Fatal(err)
					}
					defer db.Close()
					before := cpu()
					m.rewind(b)
					m.fill(b, db, func() uint64 { return 0 })
					return samples / (cpu() - before - drawing).Seconds()
				}
				synced, unsynced := ours(engine.Options{}), ours(engine.Options{}.WithoutSync())

				p := openPrometheus(b, filepath.Join(b.TempDir(), "theirs"), m)
				m.rewind(b)
				before := cpu()
				var syncing time.Duration
				for s := range c.few {
					p.append(b, m.next(b, s))
					begun := cpu()
					p.sync(b)
					syncing += cpu() - begun
				}
				head := p.db.Head()
				if err := p.db.CompactHead(promtsdb.NewRangeHead(head, head.MinTime(), head.MaxTime())); err != nil {
					b.Fatal(err)
				}
				share := float64(c.few) / float64(c.secs)
				used := (cpu() - before).Seconds() - drawing.Seconds()*share
				p.db.Close()
				theirs, theirsUnsynced := samples*share/used, samples*share/(used-syncing.Seconds())
				b.ReportMetric(synced/1e6, "Msamples/cpu-s")
				b.ReportMetric(theirs/1e6, "prometheus-Msamples/cpu-s")
				b.ReportMetric(synced/theirs, "x-prometheus")
				b.ReportMetric(unsynced/theirsUnsynced, "x-prometheus-without-fsync")
			}
		})
	}
}
