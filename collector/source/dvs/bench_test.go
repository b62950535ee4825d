package dvs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/collector"
)

// BenchmarkClientSecond is what a second of a busy client costs: its counts, its times, and its list of 64
// outstanding requests as often as it is sampled. What the kernel does for these files is not in it.
func BenchmarkClientSecond(b *testing.B) {
	dir := b.TempDir()
	list := strings.Repeat(entry("c0-0c0s0n1", "PARALLEL_READ", "/pfs/project/run/out.0001", "0.014"), 64)
	for name, text := range map[string]string{newStats: client, newList: list,
		newTimes + "client_message_timings": timings(9, 9, 9, 9)} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	s := New(os.DirFS(dir), false)
	now := time.Unix(50, 0)
	for b.Loop() {
		for range SampleHz {
			s.gauges.Add(s.sample)
		}
		now = now.Add(time.Second)
		if err := s.Read(b.Context(), &collector.Reading{Now: now}); err != nil {
			b.Fatal(err)
		}
	}
}
