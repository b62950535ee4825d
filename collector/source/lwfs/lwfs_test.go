package lwfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"fairway/cmd/lab/conform/sourcetest"
	"fairway/collector"
)

// sample writes one sample's lines; each class has all its operations in one bucket.
func sample(sec int, reads, writes, metas, queue int) string {
	var b strings.Builder
	add := func(name string, n, bucket int) {
		c := make([]int, Buckets)
		c[bucket] = n
		fmt.Fprintf(&b, "20.0.2.35 [2018-02-25 18:00:%02d]  [Trace]: %s: %s 2018-02-25T10:00:00Z\n", sec, name,
			strings.Trim(fmt.Sprint(c), "[]"))
	}
	add("Read exe", reads, 1)
	add("Read wait", reads, 0)
	add("Write exe", writes, 2)
	add("Write wait", writes, 1)
	add("Meta exe", metas, 0)
	add("Meta wait", metas, 3)
	fmt.Fprintf(&b, "20.0.2.35 [2018-02-25 18:00:%02d]  [Trace]: queue length: %d 2018-02-25T10:00:00Z\n", sec, queue)
	return b.String()
}

// follower is a source over a real file that the test appends to.
type follower struct {
	t    *testing.T
	s    *Source
	path string
	now  time.Time
}

func follow(t *testing.T, begin string) *follower {
	dir := t.TempDir()
	f := &follower{t, New(os.DirFS(dir), "trace"), filepath.Join(dir, "trace"), time.Unix(0, 0)}
	t.Cleanup(func() { f.s.Close() })
	f.append(begin)
	return f
}

func (f *follower) append(s string) {
	w, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		f.t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.WriteString(s); err != nil {
		f.t.Fatal(err)
	}
}

func (f *follower) tick() collector.Reading {
	f.t.Helper()
	f.now = f.now.Add(time.Second)
	r := collector.Reading{Now: f.now}
	if err := f.s.Read(f.t.Context(), &r); err != nil {
		f.t.Fatal(err)
	}
	return r
}

func value(r collector.Reading, m collector.Metric) float64 {
	f := collector.Frame{Samples: r.Samples}
	if v, ok := f.Value(m); ok {
		return v
	}
	return math.NaN()
}

func TestConformance(t *testing.T) {
	first := sample(1, 1000, 400, 200, 3)
	trace := func(text string) fstest.MapFS { return fstest.MapFS{"log/trace": {Data: []byte(text)}} }
	sourcetest.Run(t, sourcetest.Suite{
		New:    func(fsys fs.FS) collector.Source { return New(fsys, "log/trace") },
		First:  trace(first),
		Second: trace(first + sample(2, 1600, 700, 500, 5)),
		Want: []collector.Metric{
			collector.ReadOps, collector.WriteOps, collector.MetaOps, collector.ReadExec, collector.WriteExec,
			collector.MetaExec,
			collector.ReadWait, collector.WriteWait, collector.MetaWait, collector.QueueLen,
		},
		Tolerated: []string{"log/trace"}, // servers log other things into it too
	})
}

func TestFollow(t *testing.T) {
	f := follow(t, "banner\n"+sample(1, 1000, 500, 10, 7))
	if r := f.tick(); len(r.Samples) != 1 || value(r, collector.QueueLen) != 7 {
		t.Errorf("the first tick, which only begins, has %v", r.Samples)
	}
	if r := f.tick(); len(r.Samples) != 0 {
		t.Errorf("a second without a sample has %v", r.Samples)
	}
	// Two samples of one second in the wrong order, as sorting text leaves them, and half a line.
	f.append(sample(3, 3000, 700, 50, 4) + sample(3, 2000, 600, 30, 2) + "20.0.2.35 [2018-02-25 18:0")
	r := f.tick()
	for m, want := range map[collector.Metric]float64{collector.ReadOps: 1000, collector.WriteOps: 100,
		collector.MetaOps: 20, collector.QueueLen: 3,
		collector.ReadExec: math.Sqrt(10e-6 * 100e-6), collector.WriteExec: math.Sqrt(100e-6 * 1e-3),
		collector.MetaWait: math.Sqrt(1e-3 * 10e-3)} {
		if got := value(r, m); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v = %v, want %v", m, got, want)
		}
	}
	f.append(strings.TrimPrefix(sample(4, 3100, 700, 50, 0), "20.0.2.35 [2018-02-25 18:0"))
	if r := f.tick(); value(r, collector.ReadOps) != 100 || value(r, collector.WriteOps) != 0 ||
		!math.IsNaN(value(r, collector.WriteExec)) {
		t.Errorf("after the completed line: %v", r.Samples)
	}
	f.append(sample(5, 10, 10, 10, 0))
	if r := f.tick(); r.Resets == 0 || !math.IsNaN(value(r, collector.ReadOps)) {
		t.Errorf("a restarted server gives %v with %d resets", r.Samples, r.Resets)
	}
}

func TestRotationAndTruncation(t *testing.T) {
	f := follow(t, sample(1, 1000, 0, 0, 0))
	f.tick()
	f.append(sample(2, 2000, 0, 0, 0))
	if err := os.Rename(f.path, f.path+".1"); err != nil {
		t.Fatal(err)
	}
	f.append(sample(3, 4000, 0, 0, 0))
	if got := value(f.tick(), collector.ReadOps); got != 1500 {
		t.Errorf("over a rotation %v reads a second, want 3000 in 2 s", got)
	}
	if err := os.Truncate(f.path, 0); err != nil {
		t.Fatal(err)
	}
	f.tick()
	f.append(sample(5, 5000, 0, 0, 0))
	if got := value(f.tick(), collector.ReadOps); got != 500 {
		t.Errorf("after a truncation %v reads a second, want 1000 in 2 s", got)
	}
}

func TestNoTraceAndBadLines(t *testing.T) {
	s := New(os.DirFS(t.TempDir()), "none")
	var r collector.Reading
	if err := s.Read(t.Context(), &r); !errors.Is(err, collector.ErrNoData) {
		t.Error(err)
	}
	for _, line := range []string{"h [2018-02-25 18:00:01]  [Trace]: Read exe: 1 2 3",
		"h [yesterday]  [Trace]: queue length: 1", "h [2018-02-25 18:00:01]  [Trace]: Odd exe: 1",
		"h [2018-02-25 18:00:01]  [Trace]: queue length: many", "[Trace]: queue length: 1"} {
		if _, ok, err := ParseLine([]byte(line), time.UTC); ok || err == nil {
			t.Errorf("%q was taken", line)
		}
	}
}

func TestClientTrace(t *testing.T) {
	for line, want := range map[string]string{
		"[2018-09-10 14:16:52] T OPEN() /User146/65/-11 => 0x1200bd3f0":             "OPEN 0x1200bd3f0 1 0 -",
		"[2018-09-10 14:16:52] T READ 0xFD size=100 offset=900 count=10":            "READ 0xFD 10 1000 0",
		"[2018-09-10 14:16:52] T WRITE size=5000 count=5":                           "WRITE  5 5000 -",
		"[2018-09-10 14:16:52] T WRITE count=4 maxsize=20 avg=10 || stamp || host7": "WRITE  4 40 -",
		"[2018-09-10 14:16:52] T RELEASE 0xFD":                                      "RELEASE 0xFD 1 0 -",
	} {
		c, ok, err := ParseClientLine([]byte(line), time.UTC)
		offset := "-"
		if c.Offset != nil {
			offset = fmt.Sprint(*c.Offset)
		}
		if got := fmt.Sprint(c.Op, " ", c.FD, " ", c.Count, " ", c.Bytes, " ", offset); !ok || err != nil ||
			got != want {
			t.Errorf("%s: %s (%v, %v), want %s", line, got, ok, err, want)
		}
	}
	if _, ok, _ := ParseClientLine([]byte("[2018-09-10 14:16:52] T OPEN() /User146/65/-11"), time.UTC); ok {
		t.Error("an open's request was counted beside its completion")
	}
}

// TestWholeTrace reads every line of a trace, and of a real one where that lies beside the repository; there the
// samples have the shape of the real lines.
func TestWholeTrace(t *testing.T) {
	ours := []byte(sample(1, 100, 2, 30, 4) + sample(2, 0, 0, 0, 0))
	if lines := readTrace(t, ours); lines != 14 {
		t.Errorf("%d lines of trace", lines)
	}
	real, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "data", "beacon",
		"LWFS_server_data_example.dev_hosts.txt"))
	if err != nil {
		return
	}
	if lines := readTrace(t, real); lines < 1820 {
		t.Errorf("%d lines of the real trace", lines)
	}
	digits := regexp.MustCompile(`[0-9.]+`)
	known := string(digits.ReplaceAll(real, []byte("0")))
	for line := range bytes.Lines(digits.ReplaceAll(ours, []byte("0"))) {
		if !strings.Contains(known, string(line)) {
			t.Errorf("the real trace has no line such as %q", line)
		}
	}
}

// readTrace reads every line of a trace of ten o'clock in UTC and returns how many are the server's.
func readTrace(t *testing.T, b []byte) (lines int) {
	t.Helper()
	zone := time.FixedZone("", 8*3600)
	for line := range bytes.Lines(b) {
		l, ok, err := ParseLine(bytes.TrimSuffix(line, []byte("\n")), zone)
		if err != nil {
			t.Error(err)
		}
		if ok {
			lines++
			if l.At.UTC().Hour() != 10 {
				t.Errorf("%s is %v in UTC", line, l.At.UTC())
			}
		}
	}
	return lines
}

func FuzzLine(f *testing.F) {
	f.Add([]byte(sample(1, 1, 1, 1, 1)))
	f.Add([]byte("[2018-09-10 14:16:52] T READ 0xFD size=100 offset=900 count=10"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		ParseLine(b, time.UTC)
		ParseClientLine(b, time.UTC)
	})
}

func BenchmarkParseLine(b *testing.B) {
	line := []byte(strings.SplitN(sample(1, 1000000, 1, 1, 1), "\n", 2)[0])
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		ParseLine(line, time.UTC)
	}
}
