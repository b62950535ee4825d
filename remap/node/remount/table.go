package remount

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"

	"fairway/collector/rootfs"
)

// mounted is a mount as the kernel shows it; the zero value stands for nothing mounted.
type mounted struct {
	ID     int    `json:"id"`
	Device string `json:"device"` // MAJOR:MINOR, as maps of processes name it
	Source string `json:"source"`
	Type   string `json:"type"`
	// Options are the mount's own and then those of its file system, as the kernel writes them.
	Options string `json:"options"`

	parent int    // the mount that it is mounted on
	point  string // where
	shared bool   // what is mounted on it is mounted on others, its peers, too
	slave  bool   // or comes to it from others
}

// table lists the mounts of this node.
func table(root fs.FS) ([]mounted, error) {
	text, err := rootfs.ReadOfSelf(root, "proc", "mountinfo")
	if err != nil {
		return nil, err
	}
	var out []mounted
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		// ID parent device root point options tagged... - type source options
		dash := slices.Index(f, "-")
		if dash < 6 || len(f) < dash+4 {
			continue
		}
		id, err := strconv.Atoi(f[0])
		parent, e := strconv.Atoi(f[1])
		if err = errors.Join(err, e); err != nil {
			return nil, fmt.Errorf("proc/self/mountinfo: %q: %w", f[:2], err)
		}
		m := mounted{ID: id, Device: f[2], Source: unescape.Replace(f[dash+2]), Type: f[dash+1],
			Options: f[5] + "," + f[dash+3], parent: parent, point: unescape.Replace(f[4])}
		for _, tag := range f[6:dash] {
			m.shared = m.shared || strings.HasPrefix(tag, "shared:")
			m.slave = m.slave || strings.HasPrefix(tag, "master:") || tag == "unbindable"
		}
		out = append(out, m)
	}
	return out, nil
}

// inUse says whether what was mounted is so somewhere still, or its number is another's by now.
func inUse(root fs.FS, was *mounted) bool {
	text, err := fs.ReadFile(root, "proc/self/mountinfo")
	return err == nil && slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
		f := strings.Fields(line)
		return len(f) > 3 && (f[0] == strconv.Itoa(was.ID) || f[2] == was.Device)
	})
}

// alive says whether the kernel's NFS client still has a file system that is mounted nowhere any more: then somebody
// has files of it open, or waits for its server.
func alive(root fs.FS, was *mounted) bool {
	text, err := fs.ReadFile(root, "proc/fs/nfsfs/volumes")
	return err == nil && slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
		f := strings.Fields(line) // version, server, port, device, ...
		return len(f) > 3 && f[3] == was.Device
	})
}

// topmost returns what is mounted at a point: of several the one on which no other is.
func topmost(root fs.FS, point string) (mounted, error) {
	all, err := table(root)
	all = slices.DeleteFunc(all, func(m mounted) bool { return m.point != point })
	for i := range all {
		if !slices.ContainsFunc(all, func(m mounted) bool { return m.parent == all[i].ID }) {
			return all[i], err
		}
	}
	return mounted{}, err
}

// holds finds the mount on which alone a point's is mounted, and whether it is shared.
func holds(root fs.FS, point string) (parent string, shared bool, err error) {
	at, err := topmost(root, point)
	if err != nil {
		return "", false, err
	}
	all, err := table(root)
	for _, m := range all {
		if m.ID == at.parent && m.point != point && !m.slave {
			return m.point, m.shared, err
		}
	}
	return "", false, errors.Join(err, fmt.Errorf("%s is mounted on what can have no peer", point))
}

// unescape reads the kernel's way of writing blanks in names.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// ofServer are the options that name a server or this node's way to it: a mount from another has others.
var ofServer = []string{"addr", "clientaddr", "mountaddr", "mountport"}

// kept returns the options that a mount from another server must have alike, each once.
func (m *mounted) kept() []string {
	var out []string
	for word := range strings.SplitSeq(m.Options, ",") {
		key, _, _ := strings.Cut(word, "=")
		if word != "" && !slices.Contains(ofServer, key) && !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}

// addr is the server's address of a mount by NFS, "" where it shows none.
func (m *mounted) addr() string {
	for word := range strings.SplitSeq(m.Options, ",") {
		if addr, ok := strings.CutPrefix(word, "addr="); ok {
			return addr
		}
	}
	return ""
}

// difference says which options two mounts do not share; "" for none.
func difference(was, now *mounted) string {
	a, b := was.kept(), now.kept()
	var words []string
	for _, o := range a {
		if !slices.Contains(b, o) {
			words = append(words, o+" is missing")
		}
	}
	for _, o := range b {
		if !slices.Contains(a, o) {
			words = append(words, o+" is new")
		}
	}
	return strings.Join(words, ", ")
}

// split cuts a source into server and path; a source without a path has the server alone.
func split(source string) (server, path string) {
	if rest, ok := strings.CutPrefix(source, "["); ok { // an address of IPv6
		server, path, _ = strings.Cut(rest, "]")
		return server, strings.TrimPrefix(path, ":")
	}
	if net.ParseIP(source) != nil {
		return source, ""
	}
	server, path, _ = strings.Cut(source, ":")
	return server, path
}

// join makes a source of a server and a path.
func join(server, path string) string {
	if path == "" {
		return server
	}
	if strings.Contains(server, ":") {
		server = "[" + server + "]"
	}
	return server + ":" + path
}
