package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/cmd/lab/programs"
	"fairway/cmd/lab/testbed"
	"fairway/collector/p9"
)

func TestMain(m *testing.M) { os.Exit(programs.Run(m.Run)) }

// TestWhatFsyncAcknowledgedSurvives kills the queue, and then the forwarder, amid gathered writes: what an fsync has
// acknowledged is in the file, and so is every write that was answered.
func TestWhatFsyncAcknowledgedSurvives(t *testing.T) {
	const ranks, size = 8, 4096
	cfg := testbed.Config{Forwarders: 1, ComputeNodes: 1, Loopback: true}
	if missing := testbed.Missing(cfg); len(missing) > 0 {
		t.Skipf("skipped: not installed: %s", strings.Join(missing, " "))
	}
	program, err := programs.Path("fairway-queue")
	if err != nil {
		t.Fatal(err)
	}
	tb, err := testbed.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer tb.Close()
	for _, victim := range []string{"queue", "forwarder"} {
		listen := "127.0.0.1:" + freePort(t)
		queue := exec.Command(program, "serve", "--gather", "2ms", "--read-cache", "16", listen,
			tb.ForwarderAddr("fwd000"))
		if err := queue.Start(); err != nil {
			t.Fatal(err)
		}
		var files []*p9.Fid
		for range ranks {
			c := dial(t, listen)
			defer c.Close()
			root, err := c.Attach(t.Context(), tb.Attach(), uint32(os.Geteuid()))
			if err != nil {
				t.Fatal(err)
			}
			if err := root.Create(t.Context(), victim, uint32(os.O_RDWR), 0o600, uint32(os.Getegid())); err != nil {
				t.Fatal(err)
			}
			files = append(files, root)
		}
		piece := func(rank, k int) []byte { return bytes.Repeat([]byte(fmt.Sprintf("%7d ", k*ranks+rank)), size/8) }
		var answered [ranks]int
		var all sync.WaitGroup
		for i, f := range files {
			all.Go(func() {
				for k := 0; ; k++ {
					if n, err := f.WriteAt(t.Context(), piece(i, k), int64(k*ranks+i)*size); n < size || err != nil {
						return
					}
					answered[i] = k + 1
					if k%5 == 4 && f.Fsync(t.Context(), 0) != nil {
						return
					}
				}
			})
		}
		time.Sleep(500 * time.Millisecond)
		if victim == "queue" {
			queue.Process.Kill()
		} else if err := tb.Inject(t.Context(), testbed.Fault{Kind: testbed.Kill, Node: "fwd000"}); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		queue.Process.Kill()
		queue.Wait()
		got, err := os.ReadFile(filepath.Join(tb.Dir(), victim))
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range answered {
			if n == 0 {
				t.Errorf("%s: rank %d wrote nothing", victim, i)
			}
			for k := range n {
				if at := (k*ranks + i) * size; len(got) < at+size || !bytes.Equal(got[at:at+size], piece(i, k)) {
					t.Fatalf("%s killed: piece %d of rank %d was answered and is not there", victim, k, i)
				}
			}
		}
		t.Logf("%s killed: %v pieces answered, all there", victim, answered)
	}
}
