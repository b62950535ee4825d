package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/testbed"
	"fairway/cmd/program"
	"fairway/collector/p9"
)

// TestQueuesARealForwarder passes a file through a queue to a real diod, changes the policy under way
// and looks at the counts, all through the program's own commands.
func TestQueuesARealForwarder(t *testing.T) {
	cfg := testbed.Config{Forwarders: 1, ComputeNodes: 1, Loopback: true}
	if missing := testbed.Missing(cfg); len(missing) > 0 {
		t.Skipf("skipped: not installed: %s", strings.Join(missing, " "))
	}
	tb, err := testbed.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer tb.Close()
	dir := t.TempDir()
	control, table := filepath.Join(dir, "control"), filepath.Join(dir, "table.json")
	listen := "127.0.0.1:" + freePort(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- execute(ctx, []string{"serve", "--control", control, listen, tb.ForwarderAddr("fwd000")})
	}()

	client := dial(t, listen)
	defer client.Close()
	root, err := client.Attach(t.Context(), tb.Attach(), uint32(os.Geteuid()))
	if err != nil {
		t.Fatal(err)
	}
	file, err := root.Walk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Create(t.Context(), "through-the-queue", uint32(os.O_RDWR), 0o600,
		uint32(os.Getegid())); err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("fairway "), 32<<10)
	for i, policy := range []string{"", "size-fair", "user-then-job-fair"} {
		text := `{"policy":"` + policy + `","jobs":[{"job":"1000","user":"u","size":1,"clients":["127.0.0.1"]}]}`
		if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code := execute(t.Context(), []string{"share", control, table}); code != 0 {
			t.Fatalf("share %q exits with %d", policy, code)
		}
		off := int64(i * len(want))
		if n, err := file.WriteAt(t.Context(), want, off); n != len(want) || err != nil {
			t.Fatalf("policy %q: wrote %d bytes, %v", policy, n, err)
		}
		got := make([]byte, len(want))
		if n, err := file.ReadAt(t.Context(), got, off); n != len(want) || !bytes.Equal(got, want) {
			t.Fatalf("policy %q: read %d bytes, %v; they differ: %v", policy, n, err, !bytes.Equal(got, want))
		}
	}
	var out bytes.Buffer
	if err := ask(t.Context(), control, "GET", "/report", nil, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"1000":{"requests":`) {
		t.Errorf("the counts are %s", out.String())
	}

	if err := os.WriteFile(table, []byte(`{"policy":"node-fair"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := execute(t.Context(), []string{"share", control, table}); code != program.Usage {
		t.Errorf("a policy that does not exist exits with %d", code)
	}
	if code := execute(t.Context(), []string{"status", filepath.Join(dir, "nobody")}); code != program.Unreachable {
		t.Errorf("a queue that does not run exits with %d", code)
	}
	if code := execute(t.Context(), []string{"serve", "--control", control, "127.0.0.1:0",
		"127.0.0.1:1"}); code != program.Failed {
		t.Errorf("a second queue on the same socket exits with %d", code)
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("the queue exits with %d", code)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// dial connects once the queue listens.
func dial(t *testing.T, addr string) *p9.Client {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := p9.Dial(t.Context(), addr, 65536)
		if err == nil {
			return c
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
