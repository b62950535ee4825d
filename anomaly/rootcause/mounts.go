package rootcause

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"fairway/collector/topology"
)

// Mount says which file system is mounted where, and through which forwarders: what joins the paths of a
// log with the storage servers' names and with the forwarders.
type Mount struct {
	Point      string   `toml:"point" help:"The mount point as the logs have it, absolute."`
	FileSystem string   `toml:"file_system" help:"Its name in the servers' record (LMT): what precedes -OST."`
	Forwarders []string `toml:"forwarders" help:"Patterns of the forwarders that serve it; empty: all."`
}

// Mounts are a site's. The one with the longest point that holds a path counts. Where none does, a mount is
// taken for the file system that has its last name, or for the only one recorded, behind every forwarder.
type Mounts []Mount

// Check refuses what cannot be meant; its errors name the mount.
func (m Mounts) Check() error {
	seen := map[string]bool{}
	for i := range m {
		point := m[i].Point
		switch {
		case !path.IsAbs(point) || path.Clean(point) != point:
			return fmt.Errorf("number %d: point = %q: want an absolute path without a slash at its end", i+1, point)
		case seen[point]:
			return fmt.Errorf("%s is listed twice", point)
		case m[i].FileSystem == "" || strings.ContainsAny(m[i].FileSystem, "/ "):
			return fmt.Errorf(
				"%s: file_system = %q: want the name before -OST in the servers' record, such as snx11025", point,
				m[i].FileSystem)
		}
		seen[point] = true
		for _, f := range m[i].Forwarders {
			if _, err := path.Match(f, ""); err != nil {
				return fmt.Errorf("%s: forwarders: %q is not a pattern", point, f)
			}
		}
	}
	return nil
}

// of returns the mount that holds a path; nil for none.
func (m Mounts) of(name string) (best *Mount) {
	for i := range m {
		if under(name, m[i].Point) && (best == nil || len(m[i].Point) > len(best.Point)) {
			best = &m[i]
		}
	}
	return best
}

// under says whether a path is a mount point or below it.
func under(name, point string) bool {
	rest, found := strings.CutPrefix(name, strings.TrimSuffix(point, "/"))
	return found && (rest == "" || rest[0] == '/')
}

// through says whether a file's I/O may have gone through a forwarder.
func (m Mounts) through(name, forwarder string) bool {
	mount := m.of(name)
	return mount == nil || len(mount.Forwarders) == 0 || slices.ContainsFunc(mount.Forwarders, func(p string) bool {
		ok, err := path.Match(p, forwarder)
		return ok && err == nil
	})
}

// fileSystem is what is mounted at a point; recorded are the file systems of the servers' record. Empty where
// neither the settings nor a name shows it.
func (m Mounts) fileSystem(point string, recorded []string) string {
	if mount := m.of(point); mount != nil {
		return mount.FileSystem
	}
	switch {
	case slices.Contains(recorded, path.Base(point)):
		return path.Base(point)
	case len(recorded) == 1:
		return recorded[0]
	}
	return ""
}

// onForwarder keeps the pieces of files that a forwarder may have served.
func onForwarder(j *Job, critical []Critical, f topology.NodeID) []Critical {
	if len(j.Mounts) == 0 {
		return critical
	}
	return slices.DeleteFunc(slices.Clone(critical),
		func(c Critical) bool { return !j.Mounts.through(j.Files[c.File].Name, string(f)) })
}
