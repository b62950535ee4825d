package lnet

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fairway/collector"
)

// BenchmarkRouterSecond is what a second of a router with 1,000 peers costs: its gauges as often as they are sampled,
// its counters and its peers. A kernel gives peers line by line: that is 1,000 calls more.
func BenchmarkRouterSecond(b *testing.B) {
	table := "nid                      refs state  last   max   rtr   min    tx   min queue\n"
	for i := range 1000 {
		nid := fmt.Sprintf("10.0.%d.%d@o2ib", i/250, i%250)
		table += fmt.Sprintf("%-24s %4d %5s %5d %5d %5d %5d %5d %5d %d\n", nid, 4, "up", -1, 8, 8, 6, 5-i%9, -20, 4096)
	}
	files := router("40 99 0 1 1 900 2 100 200 1000 0", table)
	dir := b.TempDir()
	for name, f := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file, f.Data, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	s := New(os.DirFS(dir))
	const root = "sys/kernel/debug/lnet"
	s.sampled = root // its samples are taken here
	now := time.Unix(50, 0)
	for b.Loop() {
		for range SampleHz {
			s.gauges.Add(func() (func(*gauges), error) { return s.sample(root) })
		}
		now = now.Add(time.Second)
		if err := s.Read(b.Context(), &collector.Reading{Now: now}); err != nil {
			b.Fatal(err)
		}
	}
}
