// Package host fits the daemon to its host.
package host

import (
	"log/slog"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const minMemory = 128 << 20

// gcPercent is below Go's 100: most of the memory is what connections hold, of which a collection frees little, so that
// a sixth more collections cost less than what they save.
const gcPercent = 85

// AimAtMemory makes the collector of garbage work harder as the daemon's memory comes near a limit: GOMEMLIMIT's, else
// nine tenths of what the control group or the machine has.
func AimAtMemory(log *slog.Logger) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	have, from := availableMemory("/")
	if have == 0 || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := max(have/10*9, minMemory)
	debug.SetMemoryLimit(limit)
	log.Info("memory aimed at", "megabytes", limit>>20, "of", from)
}

// availableMemory is the least limit of this process's control groups, or the machine's memory; 0 where neither is
// known. root is where the host's file systems are.
func availableMemory(root string) (bytes int64, from string) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err == nil {
		bytes, from = int64(info.Totalram)*int64(info.Unit), "machine"
	}
	groups, err := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	if err != nil {
		return bytes, from
	}
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		at, name := path.Join(root, "sys/fs/cgroup"), "memory.max"
		switch {
		case parts[1] == "": // version 2
		case strings.Contains(","+parts[1]+",", ",memory,"):
			at, name = path.Join(at, "memory"), "memory.limit_in_bytes"
		default:
			continue
		}
		// Every group above bounds, too. Inside a container the path may be the host's, and only the top is seen.
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			text, err := os.ReadFile(path.Join(at, dir, name))
			n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			if err == nil && bad == nil && n > 0 && (bytes == 0 || n < bytes) {
				bytes, from = n, "control group"
			}
			if dir == "/" {
				break
			}
		}
	}
	return bytes, from
}

const (
	// wantFiles lets a whole large machine's agents connect, one file each.
	wantFiles = 1 << 17
	// ownFiles are kept for the store, the journal and people.
	ownFiles = 1000
)

// RaiseOpenFiles asks for more open files, which needs a privilege beyond the hard limit, and logs how many agents what
// it got allows. It returns how many connections there may be, so that files are left for the store.
func RaiseOpenFiles(log *slog.Logger) (connections int) {
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
