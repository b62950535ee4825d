package diod

import (
	"bytes"
	"fmt"
	"io/fs"
	"strconv"
)

// ticksPerSecond is the unit of CPU times in /proc on every Linux that runs diod (USER_HZ).
const ticksPerSecond = 100

// cpuReader reads a process's CPU time and remembers its file's name.
type cpuReader struct {
	pid  int
	path string
}

func (c *cpuReader) read(proc fs.FS, pid int) (ticks uint64, err error) {
	if c.pid != pid {
		c.pid, c.path = pid, strconv.Itoa(pid)+"/stat"
	}
	text, err := fs.ReadFile(proc, c.path)
	if err != nil {
		return 0, err
	}
	if ticks, err = parseCPU(text); err != nil {
		return 0, fmt.Errorf("/proc/%s: %w", c.path, err)
	}
	return ticks, nil
}

// parseCPU sums user and system time of a stat file (fields 14 and 15). The command's name, which
// may hold spaces and brackets, ends at the last bracket.
func parseCPU(text []byte) (ticks uint64, err error) {
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const user, system = 11, 12 // behind the name
	if len(fields) <= system {
		return 0, fmt.Errorf("%d fields behind the name, want more than %d", len(fields), system)
	}
	u, ok1 := decimal(fields[user])
	s, ok2 := decimal(fields[system])
	if !ok1 || !ok2 {
		return 0, fmt.Errorf("CPU times %q and %q are not numbers", fields[user], fields[system])
	}
	return u + s, nil
}
