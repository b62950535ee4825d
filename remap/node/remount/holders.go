package remount

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// errHidden says that not every process could be looked at.
var errHidden = errors.New("processes of other users cannot be looked at: the agent needs CAP_SYS_PTRACE and " +
	"CAP_DAC_READ_SEARCH")

// holders says which programs have files of a mount open or mapped, such as "open files: 2 of fio (4711)"; "" for none.
// It asks no server: fdinfo and maps are the kernel's own.
func holders(root fs.FS, m *mounted) (string, error) {
	entries, err := fs.ReadDir(root, "proc")
	if err != nil {
		return "", err
	}
	const shown = 3
	var words []string
	hidden, more := false, 0
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		dir := path.Join("proc", e.Name())
		n, err := opened(root, dir, m)
		hidden = hidden || errors.Is(err, fs.ErrPermission)
		if n == 0 {
			continue
		}
		if len(words) == shown {
			more++
			continue
		}
		name, _ := fs.ReadFile(root, path.Join(dir, "comm"))
		words = append(words, fmt.Sprintf("%d of %s (%s)", n, strings.TrimSpace(string(name)), e.Name()))
	}
	if len(words) == 0 {
		if hidden {
			return "", errHidden
		}
		return "", nil
	}
	text := "open files: " + strings.Join(words, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and of %d more", more)
	}
	return text, nil
}

// A file system that nobody uses is gone so long after it is unmounted: what was written to it is sent first.
const goneWithin, goneEvery = 2 * time.Second, 200 * time.Millisecond

// left says who goes on to use what was replaced; "" for nobody.
func (m *Mover) left(was *mounted) string {
	if inUse(m.Root, was) {
		return ""
	}
	for end := time.Now().Add(goneWithin); ; time.Sleep(goneEvery) {
		used := alive(m.Root, was)
		if !used && strings.HasPrefix(was.Type, "nfs") {
			return ""
		}
		open, err := holders(m.Root, was)
		switch {
		case open != "":
			return open
		case !used && err == nil:
			return ""
		case time.Now().Before(end):
		case err != nil:
			return "not known which programs: " + err.Error()
		default:
			return "requests under way to " + was.Source
		}
	}
}

// opened counts what one process has open or mapped of a mount. A process that ends meanwhile has nothing.
func opened(root fs.FS, dir string, m *mounted) (n int, err error) {
	list, err := fs.ReadDir(root, path.Join(dir, "fdinfo"))
	if err != nil {
		return 0, err
	}
	want := "mnt_id:\t" + strconv.Itoa(m.ID)
	for _, fd := range list {
		text, _ := fs.ReadFile(root, path.Join(dir, "fdinfo", fd.Name()))
		if slices.Contains(strings.Split(string(text), "\n"), want) {
			n++
		}
	}
	maps, err := fs.ReadFile(root, path.Join(dir, "maps"))
	var seen []string
	for line := range strings.Lines(string(maps)) {
		// range rights offset device inode name; the device is MAJOR:MINOR in hexadecimal.
		f := strings.Fields(line)
		if len(f) > 4 && device(f[3]) == m.Device && f[4] != "0" && !slices.Contains(seen, f[4]) {
			seen = append(seen, f[4])
		}
	}
	return n + len(seen), err
}

// device makes the decimal MAJOR:MINOR of mountinfo of a hexadecimal one.
func device(hex string) string {
	major, minor, _ := strings.Cut(hex, ":")
	a, err := strconv.ParseUint(major, 16, 32)
	b, err2 := strconv.ParseUint(minor, 16, 32)
	if err != nil || err2 != nil {
		return ""
	}
	return fmt.Sprintf("%d:%d", a, b)
}
