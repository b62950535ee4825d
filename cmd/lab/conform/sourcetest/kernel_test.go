package sourcetest

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
)

func TestKernelReadsAsTheKernelDoes(t *testing.T) {
	table := "nid refs\n" + strings.Repeat("10.0.0.1@tcp 1\n", 100)
	tree := fstest.MapFS{"sys/kernel/debug/lnet/peers": {Data: []byte(table)}, "proc/stat": {Data: []byte("cpu 1\n")}}
	k := Kernel{FS: tree}
	const peers = "sys/kernel/debug/lnet/peers"
	if b, err := fs.ReadFile(k, peers); err != nil || string(b) != table {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	f, err := k.Open(peers)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("%v, %v", info.Size(), err)
	}
	b := make([]byte, 4096)
	if n, err := f.Read(b); err != nil || string(b[:n]) != "nid refs\n" {
		t.Errorf("the first read gave %q, %v", b[:n], err)
	}
	if n, err := f.Read(b[:5]); n != 0 || !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a short buffer gave %d, %v", n, err)
	}
	f, _ = k.Open("proc/stat")
	if n, err := f.Read(b[:3]); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	k.Changes = func(string) bool { return true }
	f, _ = k.Open(peers)
	if _, err := io.ReadAll(f); !errors.Is(err, syscall.ESTALE) {
		t.Errorf("a table that changed gave %v", err)
	}
}
