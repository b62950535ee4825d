package mount

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// spares lists the spare names that a directory holds.
func spares(t *testing.T, dir string) (names []string) {
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if strings.HasPrefix(e.Name(), removedPrefix) {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestRemovedWhileOpen removes a file, and renames another over one, while a program has it open: it
// stays whole for the program, through a remap too, and goes when it is closed.
func TestRemovedWhileOpen(t *testing.T) {
	for name, remove := range map[string]func(path string) error{
		"unlink": os.Remove,
		"rename over": func(path string) error {
			if err := os.WriteFile(path+".new", []byte("another file"), 0o644); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, dir, fwd := startMount(t, 2)
			path := filepath.Join(m.opt.MountPoint, "f")
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteString("hello"); err != nil {
				t.Fatal(err)
			}
			if err := remove(path); err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				st, err := f.Stat()
				if err != nil || st.Size() != 5-int64(i) || st.Sys().(*syscall.Stat_t).Nlink != 0 {
					t.Errorf("fstat: %+v, %v", st, err)
				}
				if err := f.Truncate(4 - int64(i)); err != nil {
					t.Error(err)
				}
				if r, err := m.Remap(t.Context(), fwd[(i+1)%2].Target, false); err != nil || r.LostFiles != 0 {
					t.Errorf("remap: %+v, %v", r, err)
				}
			}
			buf := make([]byte, 3)
			if _, err := f.ReadAt(buf, 0); err != nil || string(buf) != "hel" {
				t.Errorf("read %q: %v", buf, err)
			}
			left := spares(t, dir)
			if len(left) != 1 {
				t.Fatalf("spare names while open: %q", left)
			}
			if err := os.Remove(filepath.Join(m.opt.MountPoint, left[0])); !errors.Is(err, syscall.EBUSY) {
				t.Errorf("removing the open file's spare name: %v", err)
			}
			f.Close()
			within(t, "the spare name's end", func() {
				for len(spares(t, dir)) > 0 {
					time.Sleep(time.Millisecond)
				}
			})
			b, err := os.ReadFile(path)
			if name == "unlink" && !errors.Is(err, os.ErrNotExist) || name != "unlink" && string(b) != "another file" {
				t.Errorf("under the name: %q, %v", b, err)
			}
		})
	}
}

// TestAFileThatAnotherNodeReplaced has a file open under whose name another node puts its own: that is neither looked
// at nor cut nor written to by who has the old one open, and who opens the name has the new one.
func TestAFileThatAnotherNodeReplaced(t *testing.T) {
	m, dir, fwd := startMount(t, 2)
	at, theirs := filepath.Join(m.opt.MountPoint, "f"), []byte("another node's file")
	if err := os.WriteFile(at, []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(at, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.WriteFile(filepath.Join(dir, "new"), theirs, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "f")); err != nil {
		t.Fatal(err)
	}
	wantStale := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, syscall.ESTALE) {
			t.Errorf("%s: %v, want %v", what, err, syscall.ESTALE)
		}
	}
	_, err = f.Stat()
	wantStale("fstat", err)
	wantStale("ftruncate", f.Truncate(2))
	if _, err := f.WriteAt([]byte("J"), 0); err != nil {
		t.Errorf("the old file is written: %v", err)
	}
	if got, err := os.ReadFile(at); err != nil || string(got) != string(theirs) {
		t.Errorf("under the name: %q, %v", got, err)
	}
	if r, err := m.Remap(t.Context(), fwd[1].Target, false); err != nil || r.LostFiles != 1 {
		t.Errorf("remap: %+v, %v; want one lost file", r, err)
	}
	_, err = f.WriteAt([]byte("K"), 0)
	wantStale("a write behind the remap", err)
	if got, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || string(got) != string(theirs) {
		t.Errorf("the other node's file has %q, %v", got, err)
	}
}

// TestRefusedRemovalLeavesNoSpare takes back the preparation of a removal that the server refuses.
func TestRefusedRemovalLeavesNoSpare(t *testing.T) {
	m, dir, _ := startMount(t, 1)
	f, err := os.Create(filepath.Join(m.opt.MountPoint, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := m.link.enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer m.link.leave()
	back, err := m.root.keepOpen(t.Context(), s, s.root, "f", nil)
	if err != nil || len(spares(t, dir)) != 1 {
		t.Errorf("spare names %q, %v", spares(t, dir), err)
	}
	back()
	if left := spares(t, dir); len(left) != 0 {
		t.Errorf("after the undo: %q", left)
	}
	if st, err := f.Stat(); err != nil || st.Sys().(*syscall.Stat_t).Nlink != 1 {
		t.Errorf("fstat: %+v, %v", st, err)
	}
}

// TestRewindDirectory reads a directory twice by one descriptor.
func TestRewindDirectory(t *testing.T) {
	m, _, _ := startMount(t, 1)
	for _, n := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(m.opt.MountPoint, n), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d, err := os.Open(m.opt.MountPoint)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for range 2 {
		names, err := d.Readdirnames(-1)
		if err != nil || len(names) != 3 {
			t.Errorf("%q, %v", names, err)
		}
		if _, err := d.Seek(0, 0); err != nil {
			t.Error(err)
		}
	}
}
