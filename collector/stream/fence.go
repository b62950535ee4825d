package stream

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"fairway/collector/appendlog"
)

// Fence refuses the orders of daemons that lead their cluster no more: it knows the newest term that an order came in,
// and keeps it in a file, so that an agent's restart does not open it.
type Fence struct {
	path string
	log  *slog.Logger

	mu   sync.Mutex // guards what follows
	term uint64
	at   time.Time // when its newest order came
}

// fenceHolds is how long after the newest order of a term older ones are refused. A daemon that leads no more knows it
// within seconds and waits no longer for an order's answer; and a term that no daemon has, which somebody made up, must
// not lock the agent for good.
const fenceHolds = 10 * time.Minute

// OpenFence reads the fence at path; without a file no order has had a term.
func OpenFence(path string, log *slog.Logger) (*Fence, error) {
	f := &Fence{path: path, log: log}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		f.at = time.Now()
		f.term, err = strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	}
	if err != nil {
		return nil, fmt.Errorf("newest term of orders: %s: %w; remove the file if no cluster of daemons gives orders",
			path, err)
	}
	return f, nil
}

// admits says whether an act of a term may be done, and remembers the term.
func (f *Fence) admits(term uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if term < f.term && now.Sub(f.at) < fenceHolds {
		return false
	}
	if f.at = now; term != f.term {
		f.term = term
		if err := appendlog.ReplaceFile(f.path, fmt.Appendln(nil, term), 0o600); err != nil {
			f.log.Warn("the newest term of orders was not saved; after a restart an older order may be taken", "file",
				f.path, "err", err)
		}
	}
	return true
}

// words say why an order of a term is refused.
func (f *Fence) words(term uint64) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprintf(
		"an order of term %d, and one of term %d has come: the daemon that gave it leads no more; where it does, "+
			"it is obeyed from %s on", term, f.term, f.at.Add(fenceHolds).UTC().Format(time.RFC3339))
}
