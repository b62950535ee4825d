package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"fairway/tsdb/engine"
)

// The benchmarks run on the telemetry of machine_test.go, and count CPU seconds of the process, not time: the machine
// has other work. Each prints its figure:
//
//	go test -run '^$' -bench . -benchtime 1x ./tsdb/engine

func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// drawingCost is the CPU time that drawing the frames takes, which the store's does not include.
func (m *machine) drawingCost(b *testing.B) time.Duration {
	before := cpu()
	for s := range m.secs {
		m.next(b, s)
	}
	m.rewind(b)
	return cpu() - before
}

func openStore(b *testing.B, dir string) *engine.DB {
	db, err := engine.Open(dir, engine.Options{SyncInterval: time.Nanosecond})
	if err != nil {
		b.Fatal(err)
	}
	return db
}

// fill appends the whole data set, one fsync a second of data, and seals it.
func (m *machine) fill(b *testing.B, db *engine.DB, peak func() uint64) (heap uint64) {
	ctx := context.Background()
	for s := range m.secs {
		if err := db.Append(ctx, m.next(b, s)); err != nil {
			b.Fatal(err)
		}
		if s%60 == 59 {
			heap = max(heap, peak())
		}
	}
	if err := db.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	return heap
}

func heapInUse() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapInuse + s.StackInuse
}

func dirBytes(dir string) (n int64) {
	filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			n += info.Size()
		}
		return nil
	})
	return n
}

var machineSets = []struct {
	set  string
	secs int
}{{"full", 360}, {"eighth", 1800}, {"busy", 1800}, {"fullbusy", 360}, {"fnday", 14400}}

func BenchmarkAppend(b *testing.B) {
	for _, c := range machineSets {
		b.Run(c.set, func(b *testing.B) {
			m := openMachine(b, c.set, c.secs)
			drawing := m.drawingCost(b)
			for b.Loop() {
				dir := b.TempDir()
				db := openStore(b, dir)
				m.rewind(b)
				base := heapInUse()
				before := cpu()
				heap := m.fill(b, db, heapInUse)
				used := cpu() - before - drawing
				samples := float64(m.secs * len(m.frames) * 8)
				b.ReportMetric(samples/1e6/used.Seconds(), "Msamples/cpu-s")
				size := float64(dirBytes(filepath.Join(dir, "blocks"))) / samples
				b.ReportMetric(size, "bytes/sample")
				b.ReportMetric(float64(heap-base)/(1<<20), "heap-MB")
				if err := db.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
