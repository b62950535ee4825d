package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// trouble is what is wrong with this daemon's part.
type trouble struct {
	log *slog.Logger

	mu      sync.Mutex // guards everything that follows
	fatal   error
	refused map[string]string // by daemon: why it and this one do not speak
	alone   time.Time         // since when no leader is known; zero: one is
}

// set keeps the first error that ends this daemon's part; false where one did already.
func (t *trouble) set(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fatal != nil {
		return false
	}
	t.fatal = err
	t.log.Error("this daemon takes no further part in the cluster until it is started again", "err", err)
	return true
}

// dead is why this daemon takes no part any more; nil while it does.
func (t *trouble) dead() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fatal
}

// noted keeps why another daemon is not spoken with; nil: it is.
func (t *trouble) noted(name string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		delete(t.refused, name)
		return
	}
	if t.refused[name] != err.Error() {
		t.log.Error("a daemon of the cluster is refused", "daemon", name, "err", err)
	}
	t.refused[name] = err.Error()
}

// noteLeader keeps since when no leader is known.
func (t *trouble) noteLeader(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case name != "":
		t.alone = time.Time{}
	case t.alone.IsZero():
		t.alone = time.Now()
	}
}

// show writes it into a status.
func (t *trouble) show(s *Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Since, s.Fatal = t.alone, t.fatal
	for _, name := range slices.Sorted(maps.Keys(t.refused)) {
		s.Refused = append(s.Refused, t.refused[name])
	}
}

// Status is what the screens say of this daemon's part.
type Status struct {
	Name, Leader string
	Term         uint64
	Since        time.Time // since when no leader is known
	Daemons      int
	Refused      []string // by daemon, why it is not spoken with
	Fatal        error
}

// Notice is Status in a sentence for every screen; empty while all is well on the leader.
func (s *Status) Notice(now time.Time) string {
	var words []string
	switch {
	case s.Fatal != nil:
		words = append(words, fmt.Sprintf("daemon %s takes no part in its cluster: %v; start it again", s.Name,
			s.Fatal))
	case s.Leader == "":
		words = append(words, fmt.Sprintf("daemon %s knows no leader for %s: fewer than %d of %d daemons reach each "+
			"other; what is shown is this daemon's own, and nothing can be changed here", s.Name,
			now.Sub(s.Since).Round(time.Second), s.Daemons/2+1, s.Daemons))
	case s.Leader != s.Name:
		words = append(words, fmt.Sprintf("daemon %s follows %s, which decides and acts", s.Name, s.Leader))
	}
	return strings.Join(append(words, s.Refused...), "; ")
}

// Other is what another daemon answers.
type Other struct {
	Name    string
	Records uint64 // of its journal
	// Ahead is by how much its clock is before this daemon's, below 0 behind it; 0 where it does not say.
	Ahead time.Duration
	Err   error // why it is not spoken with
}

// Others asks every other daemon where its journal ends.
func (n *Node) Others(ctx context.Context) (out []Other) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var wait sync.WaitGroup
	all := make([]Other, len(n.cfg.Daemons))
	for i, d := range n.cfg.Daemons {
		if d.Name == n.cfg.Name {
			continue
		}
		wait.Go(func() {
			begun := n.cfg.now()
			c, h, err := n.peers.dial(ctx, d.Addr, forHTTP)
			if err == nil {
				c.Close()
			}
			all[i] = Other{Name: d.Name, Records: h.Head.Records, Err: err}
			if took := n.cfg.now().Sub(begun); !h.At.IsZero() {
				all[i].Ahead = h.At.Sub(begun.Add(took / 2))
			}
		})
	}
	wait.Wait()
	for _, o := range all {
		if o.Name != "" {
			out = append(out, o)
		}
	}
	return out
}
