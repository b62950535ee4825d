package desk

import (
	"sync"
)

// FeedChanged and FindingsChanged are what Watch sends when the list of exclusions or a finding has changed.
const (
	FeedChanged     = "exclusions"
	FindingsChanged = "findings"
)

// notices are sent to those who watch for changes.
type notices struct {
	mu      sync.Mutex // guards everything that follows
	chans   map[chan string]struct{}
	dropped uint64
	closed  bool
}

// Watch returns a channel of the ids of plans that changed, FeedChanged or FindingsChanged. It holds up to buffer
// ids; what does not fit is dropped and counted, so a slow watcher reads Plans again now and then. stop ends it; the
// channel is closed then or when the desk closes.
func (w *notices) Watch(buffer int) (changed <-chan string, stop func()) {
	c := make(chan string, max(buffer, 1))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		close(c)
		return c, func() {}
	}
	if w.chans == nil {
		w.chans = map[chan string]struct{}{}
	}
	w.chans[c] = struct{}{}
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if _, ok := w.chans[c]; ok {
			delete(w.chans, c)
			close(c)
		}
	}
}

// DroppedChanges counts the notices that slow watchers missed.
func (w *notices) DroppedChanges() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

func (w *notices) notify(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.chans {
		select {
		case c <- id:
		default:
			w.dropped++
		}
	}
}

func (w *notices) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for c := range w.chans {
		close(c)
	}
	w.chans = nil
}
