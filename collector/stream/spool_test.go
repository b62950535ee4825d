package stream

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

func openTest(t *testing.T, dir string, size int64) *Spool {
	t.Helper()
	s, err := OpenSpool(dir, size, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fill(t *testing.T, s *Spool, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		f := collector.Frame{Node: "n", TimeMillis: int64(i),
			Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: 1}},
			Sources: []collector.SourceStatus{{Name: "pad", Err: strings.Repeat("x", 900)}}}
		if err := s.Append([]collector.Frame{f}); err != nil {
			t.Fatal(err)
		}
	}
}

// list reads everything after a number and checks each message.
func list(t *testing.T, s *Spool, after uint64) (seqs []uint64) {
	t.Helper()
	var d wire.Decoder
	var buf []byte
	for {
		seq, b, ok := s.Next(after, buf)
		if !ok {
			return seqs
		}
		m, err := d.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if f := m.(*wire.Frames); f.Seq != seq || f.Frames[0].TimeMillis != int64(seq) {
			t.Fatalf("message %d holds number %d of second %d", seq, f.Seq, f.Frames[0].TimeMillis)
		}
		seqs = append(seqs, seq)
		after, buf = seq, b[:0]
	}
}

func isRun(seqs []uint64, from, to uint64) bool {
	if uint64(len(seqs)) != to-from+1 {
		return false
	}
	for i, s := range seqs {
		if s != from+uint64(i) {
			return false
		}
	}
	return true
}

func TestSpoolKeepsOrderAcrossSegmentsAndRestarts(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, MinSpoolBytes)
	instance := s.Instance()
	fill(t, s, 1, 300) // about five segments
	if got := list(t, s, 0); !isRun(got, 1, 300) {
		t.Fatalf("got %v", got)
	}
	s.Ack(120)
	s.Close()
	s = openTest(t, dir, MinSpoolBytes)
	fill(t, s, 301, 310)
	if s.Acked() != 120 || s.Pending() != 190 || s.Instance() != instance {
		t.Errorf("acked %d, pending %d, instance %s", s.Acked(), s.Pending(), s.Instance())
	}
	if got := list(t, s, 120); !isRun(got, 121, 310) {
		t.Errorf("got %v", got)
	}
	if got := list(t, s, 250); !isRun(got, 251, 310) {
		t.Errorf("from the middle of a segment: %v", got)
	}
	s.Ack(310)
	s.Close()
	s = openTest(t, dir, MinSpoolBytes)
	defer s.Close()
	if s.Pending() != 0 {
		t.Errorf("%d pending", s.Pending())
	}
	fill(t, s, 311, 311) // the numbering goes on
	if got := list(t, s, 310); !isRun(got, 311, 311) {
		t.Errorf("got %v", got)
	}
}

func TestFullSpoolDropsTheOldestAndCounts(t *testing.T) {
	s := openTest(t, t.TempDir(), MinSpoolBytes)
	defer s.Close()
	fill(t, s, 1, 3000) // three times what fits
	got := list(t, s, 0)
	if len(got) == 0 || !isRun(got, got[0], 3000) {
		t.Fatal("what is left is not the newest run")
	}
	if d := s.Dropped(); d != got[0]-1 || s.Pending() != uint64(len(got)) {
		t.Errorf("dropped %d, pending %d; want %d and %d", d, s.Pending(), got[0]-1, len(got))
	}
	if len(got) < 900 {
		t.Errorf("only %d kept", len(got))
	}
	var size int64
	files, _ := filepath.Glob(filepath.Join(s.dir, "*"+segmentSuffix))
	for _, f := range files {
		st, _ := os.Stat(f)
		size += st.Size()
	}
	if size > MinSpoolBytes {
		t.Errorf("%d bytes on disk, more than %d", size, MinSpoolBytes)
	}
}

// TestTornEnd cuts or flips the last segment anywhere: what was whole before is kept.
func TestTornEnd(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 40 {
		dir := t.TempDir()
		s := openTest(t, dir, MinSpoolBytes)
		fill(t, s, 1, 20)
		s.Close()
		files, _ := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
		b, _ := os.ReadFile(files[0])
		at := rng.IntN(len(b))
		if i%2 == 0 {
			b = b[:at]
		} else {
			b[at] ^= 0x40
		}
		if err := os.WriteFile(files[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		whole := uint64(at / (len(b) / 20))
		if i%2 == 0 {
			whole = 0 // unknown; at least a run from 1
		}
		s = openTest(t, dir, MinSpoolBytes)
		got := list(t, s, 0)
		if len(got) > 0 && !isRun(got, 1, uint64(len(got))) || uint64(len(got)) < min(whole, 19)-min(whole, 1) {
			t.Fatalf("damage at byte %d: kept %v", at, got)
		}
		next := len(got) + 1
		fill(t, s, next, next)
		if got := list(t, s, 0); !isRun(got, 1, uint64(next)) {
			t.Fatalf("after the damage: %v", got)
		}
		s.Close()
	}
}

func TestDamageInTheMiddleIsCounted(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, MinSpoolBytes)
	fill(t, s, 1, 200)
	files, _ := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	b, _ := os.ReadFile(files[1])
	b[len(b)/2] ^= 1
	if err := os.WriteFile(files[1], b, 0o600); err != nil {
		t.Fatal(err)
	}
	live := list(t, s, 0)
	if n := uint64(len(live)); s.Dropped() == 0 || n+s.Dropped() != 200 || live[n-1] != 200 {
		t.Errorf("read %d, dropped %d of 200", n, s.Dropped())
	}
	s.Close()
	s = openTest(t, dir, MinSpoolBytes)
	defer s.Close()
	if got := list(t, s, 0); len(got) != len(live) || uint64(len(got))+s.Dropped() != 200 {
		t.Errorf("after a restart: read %d, dropped %d of 200", len(got), s.Dropped())
	}
}

func TestTwoAgentsCannotShareASpool(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, 0)
	defer s.Close()
	if _, err := OpenSpool(dir, 0, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "another agent") {
		t.Errorf("%v", err)
	}
}

// FuzzRecord reads arbitrary bytes as a segment.
func FuzzRecord(f *testing.F) {
	b, err := appendRecord(nil, &wire.Frames{Seq: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)-1])
	f.Add([]byte{255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var off int64
		for {
			_, _, n, err := readRecord(bytes.NewReader(b), off, int64(len(b)), nil)
			if err != nil {
				return
			}
			off += n
		}
	})
}

func BenchmarkAppendAndAck(b *testing.B) {
	s, err := OpenSpool(b.TempDir(), 0, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	frames := []collector.Frame{{Node: "cn1", Samples: make([]collector.Sample, 20)}}
	for i := range frames[0].Samples {
		frames[0].Samples[i] = collector.Sample{Metric: collector.Metric(i + 1), Value: float64(i) + 0.5}
	}
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		if err := s.Append(frames); err != nil {
			b.Fatal(err)
		}
		seq, msg, _ := s.Next(s.Acked(), buf)
		buf = msg[:0]
		s.Ack(seq)
	}
}

// TestSpoolOfEarlierAgent sends what an agent of before in_flight left behind: no second is lost, and diod's queue
// has today's names.
func TestSpoolOfEarlierAgent(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/spool-before-in-flight")); err != nil {
		t.Fatal(err)
	}
	s, err := OpenSpool(dir, MinSpoolBytes, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Pending() != 5 {
		t.Fatalf("%d messages, want 5", s.Pending())
	}
	var d wire.Decoder
	for want, after := int64(1_699_992_000), uint64(0); after < 5; want++ {
		seq, b, ok := s.Next(after, nil)
		if !ok {
			t.Fatalf("no message after %d", after)
		}
		m, err := d.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		frames := m.(*wire.Frames).Frames
		inFlight, _ := frames[0].Value(collector.InFlight)
		waiting, _ := frames[0].Value(collector.QueueLen)
		ofServer, _ := frames[1].Value(collector.QueueLen)
		if frames[0].TimeMillis != want*1000 || inFlight != float64(20+want%7)+.25 || waiting != float64(want%5) ||
			ofServer != float64(want%11) {
			t.Errorf("second %d: %+v", want, frames)
		}
		if j := frames[0].Jobs[0].Samples; j[0].Metric != collector.InFlight {
			t.Errorf("second %d: the job has %v", want, j)
		}
		after = seq
	}
}

// FuzzEnrolled: whatever answers the request for a token, what is kept is one line, and an error is fit for a terminal.
func FuzzEnrolled(f *testing.F) {
	f.Add(200, []byte(`{"token":"fwn1.cn1.1.x"}`))
	f.Add(200, []byte(`{"token":"a\nb"}`))
	f.Add(403, []byte(`{"detail":"\u001b[2J"}`))
	f.Fuzz(func(t *testing.T, code int, body []byte) {
		token, err := enrolled("wss://fairway.site", "403 \x1b[2J", code, body)
		if err == nil && (token == "" || strings.ContainsAny(token, "\r\n") || code != 200) {
			t.Errorf("token %q of an answer %d", token, code)
		}
		if err != nil && !topology.CleanName(err.Error()) {
			t.Errorf("the error %q", err)
		}
	})
}
