package unixsocket

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

func TestListen(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // short: a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	if err := os.WriteFile(path, []byte("a letter"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path, 0o600); err == nil {
		t.Error("a regular file was replaced")
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "a letter" {
		t.Fatalf("the file holds %q, %v", b, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path, 0o600); !errors.Is(err, ErrAnswers) {
		t.Errorf("a second one: %v", err)
	}
	l.Close()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0) // a dead process's
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Close(fd)); err != nil {
		t.Fatal(err)
	}
	if l, err = Listen(path, 0o666); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestNoMomentOpen looks at the mode as early as anybody can: with a umask that lets everybody in.
func TestNoMomentOpen(t *testing.T) {
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	defer syscall.Umask(syscall.Umask(0))
	path := filepath.Join(dir, "s")
	done, open := make(chan struct{}), 0
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if info, err := os.Lstat(path); err == nil && info.Mode().Perm() != 0o600 {
					open++
				}
			}
		}
	})
	for range 300 {
		l, err := Listen(path, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
	close(done)
	wait.Wait()
	if open > 0 {
		t.Errorf("the socket had another mode %d times", open)
	}
}
