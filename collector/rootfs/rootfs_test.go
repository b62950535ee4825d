package rootfs

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
)

func TestReadsAsTheSystemDoes(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("0123456789abcde\n", 1<<12)
	for name, text := range map[string]string{"a/stats": "one\n", "a/empty": "", "long": long} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := fstest.TestFS(At(dir), "a/stats", "a/empty", "long"); err != nil {
		t.Error(err)
	}
	if b, err := At(dir).ReadFile("long"); err != nil || string(b) != long {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	for name, want := range map[string]error{"a/none": fs.ErrNotExist, "a": syscall.EISDIR, "../x": fs.ErrInvalid} {
		if b, err := At(dir).ReadFile(name); !errors.Is(err, want) || b != nil {
			t.Errorf("%s: %q, %v; want %v", name, b, err, want)
		}
	}
}

// Files of the kernel have size 0 and some give one line a read.
func TestReadsProc(t *testing.T) {
	for _, name := range []string{"proc/self/maps", "proc/self/mountstats", "proc/net/dev"} {
		want, err := os.ReadFile("/" + name)
		if err != nil {
			t.Skipf("skipped: %v", err)
		}
		got, err := At("/").ReadFile(name)
		head := want[:min(len(want), 20)]
		if err != nil || !bytes.HasPrefix(got, head) {
			t.Errorf("%s: %.60q, %v; want %.60q", name, got, err, head)
		}
	}
}

// What is not a file ends a read at once: the source's other files are read in the same second.
func TestWhatIsNoFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skipf("skipped: %v", err)
	}
	refused := func(name, why string) {
		t.Helper()
		if b, err := At(dir).ReadFile(name); err == nil || !strings.Contains(err.Error(), why) || b != nil {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	refused("fifo", "neither a file")
	w, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	refused("fifo", "neither a file") // a writer that writes nothing
	for link, to := range map[string]string{"zero": "/dev/zero", "null": "/dev/null", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	refused("zero", "more than 67108864 bytes")
	refused("null", "neither a file")
	refused("loop", "symbolic links")
}

func TestCPUTime(t *testing.T) {
	const well = "12 (a) b (c)) S 1 1 1 0 -1 4 5 6 7 8 250 50 0 0 20 0 9 0 1 1 1"
	for text, want := range map[string]float64{well: 3, "": -1, "12 (diod) S 1 2": -1,
		"12 (d) S 1 1 1 0 -1 4 5 6 7 8 x y 0": -1} {
		v, err := CPUTime(fstest.MapFS{"12/stat": {Data: []byte(text)}}, 12)
		if (err == nil) != (want >= 0) || err == nil && v != want {
			t.Errorf("%q: %v, %v", text, v, err)
		}
	}
}
