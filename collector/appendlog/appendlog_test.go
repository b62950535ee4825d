package appendlog

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// record is a sealed record.
func record(number uint64, payload string) []byte {
	b := append(make([]byte, HeadBytes), payload...)
	Seal(b, number)
	return b
}

// A record is read as it was written; one that is cut anywhere or has any bit changed is not.
func TestRecords(t *testing.T) {
	log := append(record(7, "a payload"), record(8, "")...)
	in, buf := bytes.NewReader(log), []byte(nil)
	for i, want := range []string{"a payload", ""} {
		number, payload, err := ReadRecord(in, 100, buf)
		if err != nil || number != uint64(7+i) || string(payload) != want {
			t.Errorf("record %d is number %d, %q: %v", i, number, payload, err)
		}
		buf = payload
	}
	if _, _, err := ReadRecord(in, 100, nil); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	one := record(7, "a payload")
	for cut := 1; cut < len(one); cut++ {
		if _, _, err := ReadRecord(bytes.NewReader(one[:cut]), 100, nil); !errors.Is(err, ErrTorn) {
			t.Errorf("cut at byte %d: %v", cut, err)
		}
	}
	for bit := range 8 * len(one) {
		bad := bytes.Clone(one)
		bad[bit/8] ^= 1 << (bit % 8)
		if _, _, err := ReadRecord(bytes.NewReader(bad), 100, nil); !errors.Is(err, ErrTorn) {
			t.Errorf("bit %d changed: %v", bit, err)
		}
	}
	if _, _, err := ReadRecord(bytes.NewReader(one), len("a payload")-1, nil); !errors.Is(err, ErrTorn) {
		t.Errorf("a record that is too long: %v", err)
	}
	if _, _, err := ReadRecord(bytes.NewReader(make([]byte, 4096)), 100, nil); err != io.EOF {
		t.Errorf("room for more: %v", err)
	}
	failed := errors.New("the disk failed")
	if _, _, err := ReadRecord(io.MultiReader(bytes.NewReader(one[:20]), broken{failed}), 100, nil); err != failed {
		t.Errorf("a disk that fails: %v", err)
	}
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

func TestOneProcessHasALog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, _, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := OpenFile(path); !errors.Is(err, ErrLocked) {
		t.Errorf("opened twice: %v", err)
	}
	if _, err := Lock(path, 0o600); !errors.Is(err, ErrLocked) {
		t.Errorf("locked twice: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := Lock(path, 0o600)
	if err != nil {
		t.Fatalf("after it was closed: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// disk is a file whose next write, sync or truncation fails.
type disk struct {
	*os.File
	write, sync, truncate error
}

func (d *disk) Write(b []byte) (int, error) {
	if d.write != nil {
		n, _ := d.File.Write(b[:len(b)/2])
		return n, d.write
	}
	return d.File.Write(b)
}

func (d *disk) Sync() error { return errors.Join(d.sync, d.File.Sync()) }

func (d *disk) Truncate(size int64) error {
	if d.truncate != nil {
		return d.truncate
	}
	return d.File.Truncate(size)
}

// A failed write is undone and may be repeated; after a failed fsync, or a write that cannot be undone, nothing more
// is taken.
func TestFailedWrites(t *testing.T) {
	full := errors.New("no space left")
	for name, c := range map[string]struct {
		disk disk
		goes bool
		left string
	}{
		"write":         {disk{write: full}, true, "first"},
		"write, no cut": {disk{write: full, truncate: full}, false, "firstsec"},
		"fsync":         {disk{sync: full}, false, "firstsecond"},
	} {
		path := filepath.Join(t.TempDir(), "log")
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		d := &disk{File: file}
		f := On(d, 0)
		if err := f.Append([]byte("first")); err != nil || f.Size() != 5 {
			t.Fatalf("%s: %v, %d bytes", name, err, f.Size())
		}
		d.write, d.sync, d.truncate = c.disk.write, c.disk.sync, c.disk.truncate
		if err := f.Append([]byte("second")); !errors.Is(err, full) || (f.Broken() == nil) != c.goes || f.Size() != 5 {
			t.Errorf("%s: %v, broken: %v, %d bytes", name, err, f.Broken(), f.Size())
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != c.left {
			t.Errorf("%s: the file has %q, want %q", name, b, c.left)
		}
		*d = disk{File: file}
		if err := f.Append([]byte("third")); (err == nil) != c.goes {
			t.Errorf("%s: the next append: %v", name, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if err := f.Append(nil); err == nil {
			t.Errorf("%s: appended after it was closed", name)
		}
	}
}

func TestSettleCutsATornEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("whole\nunfin"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, _, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Settle(path, 6, true), f.Append([]byte("next\n")), f.Close()); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "whole\nnext\n" {
		t.Errorf("the file has %q, %v", b, err)
	}
}
