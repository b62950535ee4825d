package lustre

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/rootfs"
)

// BenchmarkClientSecond is what a second of a client of 64 storage targets costs.
func BenchmarkClientSecond(b *testing.B) {
	dir := b.TempDir()
	write := func(name, text string) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	const head = "snapshot_time             1800000000.000417 secs.nsecs\n"
	write("proc/fs/lustre/llite/fw01-ffff9a/stats", head+"read_bytes 9 samples [bytes] 1 2 300 400\n"+
		"write_bytes 9 samples [bytes] 1 2 300 400\nopen 9 samples [usecs] 1 2 300 400\n"+
		"getattr 9 samples [usecs] 1 2 300 400\n")
	for i := range 64 {
		write(fmt.Sprintf("proc/fs/lustre/osc/fw01-OST%04x-osc-ffff9a/stats", i), head+
			"req_waittime 90 samples [usecs] 1 2 300 400\nreq_active 90 samples [reqs] 1 2 300 400\n"+
			"read_bytes 9 samples [bytes] 1 2 300 400\nwrite_bytes 9 samples [bytes] 1 2 300 400\n"+
			"ost_read 9 samples [usecs] 1 2 300 400\nost_write 9 samples [usecs] 1 2 300 400\n"+
			"obd_ping 9 samples [usecs] 1 2 300 400\n")
	}
	s := New(rootfs.At(dir))
	now := time.Unix(50, 0)
	for b.Loop() {
		now = now.Add(time.Second)
		if err := s.Read(b.Context(), &collector.Reading{Now: now}); err != nil {
			b.Fatal(err)
		}
	}
}
