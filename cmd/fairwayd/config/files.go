package config

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"fairway/collector/appendlog"
)

// Watched is what files say, read anew when one of them has changed. What cannot be read leaves the last good reading
// in place, and the log says so.
type Watched[T any] struct {
	paths []string
	read  func() (T, error)
	log   *slog.Logger

	mu     sync.Mutex // guards everything that follows
	looked time.Time
	stamp  string
	value  T
	err    error // of the first reading; later ones are logged
	good   bool
}

// Watch has read read the files of some paths when they are asked for; log may be nil.
func Watch[T any](log *slog.Logger, read func() (T, error), paths ...string) *Watched[T] {
	return &Watched[T]{paths: paths, read: read, log: log}
}

// lookEvery bounds how often files are looked at.
const lookEvery = time.Second

// Get returns the newest good reading.
func (w *Watched[T]) Get() (T, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); now.Sub(w.looked) >= lookEvery || now.Before(w.looked) {
		w.looked = now
		if stamp := stampOf(w.paths); stamp != w.stamp || !w.good {
			w.stamp = stamp
			w.load()
		}
	}
	return w.value, w.err
}

func (w *Watched[T]) load() {
	value, err := w.read()
	switch {
	case err == nil:
		if w.good && w.log != nil {
			w.log.Info("files were read anew", "files", strings.Join(w.paths, " "))
		}
		w.value, w.err, w.good = value, nil, true
	case !w.good:
		w.err = err
	case w.log != nil:
		w.log.Error("files have changed and cannot be used; their former content still holds", "err", err)
	}
}

// stampOf changes when one of the files does.
func stampOf(paths []string) string {
	var b strings.Builder
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil {
			fmt.Fprintln(&b, info.ModTime().UnixNano(), info.Size(), info.Mode())
		} else {
			fmt.Fprintln(&b, "missing")
		}
	}
	return b.String()
}

// MinSecret is the shortest token taken: 128 bits in base 32.
const MinSecret = 26

// ReadSecret reads a token of MinSecret letters or more from a file that nobody else may read.
func ReadSecret(path string) (string, error) {
	secret, err := appendlog.ReadPrivate(path)
	if err == nil && len(secret) < MinSecret {
		return "", fmt.Errorf("%s holds %d letters, a token has at least %d (fairwayd token makes one)", path,
			len(secret), MinSecret)
	}
	return secret, err
}
