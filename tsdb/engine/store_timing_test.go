package engine_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"

	"fairway/tsdb/engine"
)

// The benchmarks run on the telemetry that ../shared/tools/machinegen makes from a seed, and count
// CPU seconds of the process, not time: the machine has other work. Each prints its figure:
//
//	go test -run '^$' -bench . -benchtime 1x ./tsdb/engine

// machineMetrics are the metrics of machinegen's columns, in its order.
var machineMetrics = [8]collector.Metric{
	collector.ReadBytes, collector.WriteBytes, collector.ReadOps, collector.WriteOps,
	collector.QueueLen, collector.MetaOps, collector.MetaWait, collector.ServerTime,
}

// machine is a generated data set, read second by second.
type machine struct {
	nodes, secs int     // of the file
	copies      int     // of the file's nodes, under other names
	floor       float64 // entropy, bytes a sample
	file        *os.File
	in          *bufio.Reader
	raw         []byte
	frames      []collector.Frame
}

const machineStart = 1_748_736_000 // a multiple of an hour

// openMachine makes a data set; fullbusy is busy, an eighth of the machine, eight times.
func openMachine(b *testing.B, set string, start, secs int) *machine {
	b.Helper()
	tool, err := filepath.Abs("../../shared/tools/machinegen")
	if err == nil {
		_, err = os.Stat(tool)
	}
	if err != nil {
		b.Skipf("the data generator ../shared/tools/machinegen is not here: %v", err)
	}
	m := &machine{copies: 1}
	if set == "fullbusy" {
		set, m.copies = "busy", 8
	}
	path := filepath.Join(b.TempDir(), set)
	cmd := exec.Command("go", "run", "./cmd/mkdata", "-set", set, "-secs", strconv.Itoa(secs), "-start",
		strconv.Itoa(start), "-o", path)
	cmd.Dir = tool
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Skipf("the data generator failed: %v\n%s", err, out)
	}
	if f := regexp.MustCompile(`all: ([0-9.]+) bytes`).FindSubmatch(out); f != nil {
		m.floor, _ = strconv.ParseFloat(string(f[1]), 64)
	}
	if m.file, err = os.Open(path); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { m.file.Close() })
	var head [16]byte
	if _, err := io.ReadFull(m.file, head[:]); err != nil {
		b.Fatal(err)
	}
	m.nodes, m.secs = int(binary.LittleEndian.Uint32(head[4:])), int(binary.LittleEndian.Uint32(head[12:]))
	m.raw = make([]byte, 8*8*m.nodes)
	m.frames = make([]collector.Frame, m.copies*m.nodes)
	for i := range m.frames {
		f := &m.frames[i]
		f.Node, f.Role = topology.NodeID(fmt.Sprintf("n%05d", i)), machineRole(i%m.nodes, m.nodes)
		for _, metric := range machineMetrics {
			f.Samples = append(f.Samples, collector.Sample{Metric: metric})
		}
	}
	m.rewind(b)
	return m
}

func machineRole(i, nodes int) topology.Role {
	switch compute := nodes * 40960 / 41488; {
	case nodes == 240 || i >= compute && i < compute+nodes*240/41488:
		return topology.Forwarder
	case i < compute:
		return topology.Compute
	}
	return topology.Storage
}

func (m *machine) rewind(b *testing.B) {
	if _, err := m.file.Seek(16, io.SeekStart); err != nil {
		b.Fatal(err)
	}
	m.in = bufio.NewReaderSize(m.file, 1<<20)
}

// next returns the frames of second s; they are valid until the next call.
func (m *machine) next(b *testing.B, s int) []collector.Frame {
	if _, err := io.ReadFull(m.in, m.raw); err != nil {
		b.Fatal(err)
	}
	for i := range m.frames {
		f := &m.frames[i]
		f.TimeMillis = (machineStart + int64(s)) * 1000
		for k := range f.Samples {
			f.Samples[k].Value = float64(int64(binary.LittleEndian.Uint64(m.raw[8*(k*m.nodes+i%m.nodes):])))
		}
	}
	return m.frames
}

func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// readingCost is the CPU time that making the frames takes, which is no part of the store's.
func (m *machine) readingCost(b *testing.B) time.Duration {
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
	set         string
	start, secs int
}{{"full", 36000, 360}, {"eighth", 36000, 1800}, {"busy", 36000, 1800}, {"fullbusy", 36000, 360}, {"fnday", 0, 14400}}

func BenchmarkAppend(b *testing.B) {
	for _, c := range machineSets {
		b.Run(c.set, func(b *testing.B) {
			m := openMachine(b, c.set, c.start, c.secs)
			reading := m.readingCost(b)
			for b.Loop() {
				dir := b.TempDir()
				db := openStore(b, dir)
				m.rewind(b)
				base := heapInUse()
				before := cpu()
				heap := m.fill(b, db, heapInUse)
				used := cpu() - before - reading
				samples := float64(m.secs * len(m.frames) * 8)
				b.ReportMetric(samples/1e6/used.Seconds(), "Msamples/cpu-s")
				size := float64(dirBytes(filepath.Join(dir, "blocks"))) / samples
				b.ReportMetric(size, "bytes/sample")
				b.ReportMetric(size/m.floor, "x-entropy-floor")
				b.ReportMetric(float64(heap-base)/(1<<20), "heap-MB")
				if err := db.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
