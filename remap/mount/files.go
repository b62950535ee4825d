package mount

import (
	"context"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"

	report "fairway/collector/source/mount"
)

// maxFiles bounds the files that are distinguished of a job on this node, in each direction.
const maxFiles = 1024

// fileSet is the files that a job read, or wrote.
type fileSet struct {
	mu    sync.Mutex // guards everything below
	known map[uint64]struct{}
	least uint64
}

// take adds a file by its number on the server, which is the same on every compute node.
func (s *fileSet) take(number uint64) {
	h := report.HashFile(number)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.least == 0 || h < s.least {
		s.least = h
	}
	if len(s.known) < maxFiles {
		if s.known == nil {
			s.known = map[uint64]struct{}{}
		}
		s.known[h] = struct{}{}
	}
}

func (s *fileSet) files() report.Files {
	s.mu.Lock()
	defer s.mu.Unlock()
	return report.Files{Count: uint64(len(s.known)), Least: s.least}
}

// moved adds bytes that were read or written through the handle; when they become BigFile, the file
// is one of those of the caller's job.
func (h *handle) moved(ctx context.Context, op opKind, n int) {
	if n <= 0 {
		return
	}
	if now := h.bytes[op].Add(int64(n)); now < report.BigFile || now-int64(n) >= report.BigFile {
		return
	}
	if who, ok := fuse.FromContext(ctx); ok {
		c := &h.node.m.counts
		c.jobOf(who.Pid, c.now()).files[op].take(h.node.StableAttr().Ino)
	}
}
