package dvs

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"strings"
)

// Mount is what a client has mounted.
type Mount struct {
	Point   string
	Servers []string // that it uses now
}

// Mounts lists a client's mounts.
func Mounts(root fs.FS) (out []Mount, err error) {
	for _, r := range roots {
		dir := path.Join(r.files, "mounts")
		entries, err := fs.ReadDir(root, dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, asRoot(err)
		}
		for _, e := range entries {
			b, err := fs.ReadFile(root, path.Join(dir, e.Name(), "mount"))
			if errors.Is(err, fs.ErrNotExist) {
				continue // unmounted meanwhile
			}
			if err != nil {
				return nil, asRoot(err)
			}
			out = append(out, parseMount(b))
		}
	}
	return out, nil
}

// parseMount reads lines of a name and values; servers are separated by blanks or commas.
func parseMount(b []byte) (m Mount) {
	for line := range bytes.Lines(b) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(string(line)), " "); key {
		case "local-mount":
			m.Point = value
		case "active_nodes":
			m.Servers = strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ',' })
		}
	}
	return m
}
