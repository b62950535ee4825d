package main

import (
	"log/slog"
	"syscall"
)

const (
	// wantFiles lets a whole large machine's agents connect, one file each.
	wantFiles = 1 << 17
	// ownFiles are kept for the store, the journal and people.
	ownFiles = 1000
)

// raiseOpenFiles asks for more open files, which needs a privilege beyond the hard limit, and logs how many agents what
// it got allows. It returns how many connections there may be, so that files are left for the store.
func raiseOpenFiles(log *slog.Logger) (connections int) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		log.Warn("the limit on open files is not known", "err", err)
		return wantFiles
	}
	if l.Cur < wantFiles {
		more := syscall.Rlimit{Cur: wantFiles, Max: max(l.Max, wantFiles)}
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &more) == nil {
			l = more
		}
	}
	connections = int(max(agentsFor(l.Cur), l.Cur/2))
	log.Info("open files", "limit", l.Cur, "agents_at_most", agentsFor(l.Cur), "more_by", "LimitNOFILE= of the unit")
	return connections
}

// agentsFor is how many agents a limit on open files lets connect.
func agentsFor(files uint64) uint64 { return files - min(files, ownFiles) }
