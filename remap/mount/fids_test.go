package mount

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// fidCounter stands in front of a forwarder and counts the fids that its clients hold: those they walked to but have
// not given back.
type fidCounter struct {
	Target
	held atomic.Int64
}

func countFids(t *testing.T, behind Target) *fidCounter {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c := &fidCounter{Target: Target{behind.Forwarder, l.Addr().String()}}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp4", behind.Addr)
			if err != nil {
				near.Close()
				return
			}
			go func() { io.Copy(near, far); near.Close() }()
			go func() { c.pass(far, near); far.Close() }()
		}
	}()
	return c
}

// pass passes requests on.
func (c *fidCounter) pass(to io.Writer, from io.Reader) {
	const walk, clunk = 110, 120
	for {
		var head [5]byte
		if _, err := io.ReadFull(from, head[:]); err != nil {
			return
		}
		switch head[4] {
		case walk:
			c.held.Add(1)
		case clunk:
			c.held.Add(-1)
		}
		to.Write(head[:])
		if _, err := io.CopyN(to, from, int64(binary.LittleEndian.Uint32(head[:]))-5); err != nil {
			return
		}
	}
}

// TestFidsAreBounded looks up more files than the mount may keep fids of: it gives those of others back, and each file
// is still there.
func TestFidsAreBounded(t *testing.T) {
	m, counter := mountCounted(t)
	const files, most = 300, 50
	m.link.cur.users.mu.Lock()
	m.link.cur.users.most = most
	m.link.cur.users.mu.Unlock()
	for i := range files {
		if err := os.WriteFile(filepath.Join(m.opt.Tree, fmt.Sprint(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 * files {
		if _, err := os.Stat(filepath.Join(m.opt.MountPoint, fmt.Sprint(i%files))); err != nil {
			t.Fatal(err)
		}
	}
	counter.wantFewer(t, most+20)
}

// TestRepeatedLookupsHoldNoFids looks files up again and again that the kernel knows: each time the mount walks there.
func TestRepeatedLookupsHoldNoFids(t *testing.T) {
	m, counter := mountCounted(t)
	at := func(name string) string { return filepath.Join(m.opt.MountPoint, name) }
	if err := os.WriteFile(at("x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(at("x"), at("y")); err != nil {
		t.Fatal(err)
	}
	open, err := os.Open(at("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	const rounds = 300
	for range rounds {
		for _, name := range []string{"x", "y"} {
			if _, err := os.Stat(at(name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	counter.wantFewer(t, 20)
}

// mountCounted mounts a directory whose forwarder's fids are counted.
func mountCounted(t *testing.T) (*Mount, *fidCounter) {
	_, dir, fwd := startMount(t, 1) // skips where nothing can be mounted
	counter := countFids(t, fwd[0].Target)
	m, err := Start(t.Context(), Options{MountPoint: t.TempDir(), Target: counter.Target, Tree: dir,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Unmount(true) })
	return m, counter
}

// wantFewer waits until clients hold fewer fids: what is given back goes out behind the programs' backs.
func (c *fidCounter) wantFewer(t *testing.T, than int64) {
	t.Helper()
	held := int64(0)
	for range 100 {
		if held = c.held.Load(); held < than {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("the mount holds %d fids, want fewer than %d", held, than)
}
