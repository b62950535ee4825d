package knfs

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// StartLoad starts I/O on every client, with gap between two operations of a process; its log, which is the
// truth, is LoadLog's.
func (s *Site) StartLoad(ctx context.Context, gap time.Duration) error {
	for _, g := range s.guests {
		if g.role != compute {
			continue
		}
		if _, err := g.post(ctx, "/run", fmt.Sprintf("setsid %s load %s %s %s >>%s/load.log 2>&1 </dev/null &",
			strings.Join(s.cfg.Guest, " "), mountPoint, g.name, gap, ownDir)); err != nil {
			return err
		}
	}
	return nil
}

// LoadLog is the file with what a client's load saw.
func (s *Site) LoadLog(node string) string { return filepath.Join(s.inst.Dir, node, "load.log") }
