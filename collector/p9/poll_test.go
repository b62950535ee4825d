package p9

import (
	"bytes"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"
)

// looks polls until done is content; nothing here may take longer than a real diod's answers.
func looks(t *testing.T, p *Poller, done func(text []byte, ok bool, err error) bool) {
	t.Helper()
	for range 400 {
		if done(p.Look()) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("400 looks were not enough")
}

func TestPollerSeesEverySnapshot(t *testing.T) {
	addr, dir, _ := startDiod(t)
	root := attach(t, addr, dir)
	p, err := DialPoller(t.Context(), addr, "ctl", "tpools", uint32(os.Getuid()))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var before []byte
	looks(t, p, func(text []byte, ok bool, err error) bool {
		if err != nil {
			t.Fatal(err)
		}
		before = bytes.Clone(text)
		return ok && len(text) > 0
	})
	if _, err := root.GetAttr(t.Context()); err != nil {
		t.Fatal(err)
	}
	looks(t, p, func(text []byte, ok bool, err error) bool {
		if err != nil {
			t.Fatal(err)
		}
		return ok && !bytes.Equal(text, before) // the getattr is counted in a later snapshot
	})
	want, err := controlFile(t, addr)
	if err != nil {
		t.Fatal(err)
	}
	looks(t, p, func(text []byte, ok bool, _ error) bool {
		return ok && bytes.Count(text, []byte("\n")) == bytes.Count(want, []byte("\n"))
	})
}

func controlFile(t *testing.T, addr string) ([]byte, error) {
	t.Helper()
	return attach(t, addr, "ctl").ReadFile(t.Context(), nil, 1<<20, "tpools")
}

// A refusal is the server's word on one file: it is returned each time, and the connection stays.
func TestPollerIsRefused(t *testing.T) {
	addr, _, _ := startDiod(t)
	p, err := DialPoller(t.Context(), addr, "ctl", "nosuchfile", uint32(os.Getuid()))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 3 {
		looks(t, p, func(_ []byte, ok bool, err error) bool {
			if ok {
				t.Fatal("text of a file that does not exist")
			}
			return errors.Is(err, syscall.ENOENT)
		})
	}
}

func TestPollerLosesItsServer(t *testing.T) {
	addr, _, cmd := startDiod(t)
	p, err := DialPoller(t.Context(), addr, "ctl", "tpools", uint32(os.Getuid()))
	if err != nil {
		t.Fatal(err)
	}
	looks(t, p, func(_ []byte, ok bool, _ error) bool { return ok })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var lost *TransportError
	looks(t, p, func(_ []byte, _ bool, err error) bool { return errors.As(err, &lost) })
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, ok, err := p.Look(); ok || !errors.As(err, &lost) {
		t.Errorf("a closed poller looks: %v, %v", ok, err)
	}
	if _, err := DialPoller(t.Context(), addr, "ctl", "tpools", uint32(os.Getuid())); !errors.As(err, &lost) {
		t.Errorf("nobody listens: %v", err)
	}
}
