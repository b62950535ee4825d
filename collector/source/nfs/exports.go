package nfs

import (
	"io/fs"
	"strings"
)

// exported are the paths that the node's NFS server serves just now, and whether what is mounted below goes with them.
// None are known where it has no clients, or its list cannot be read.
type exported map[string]bool

// exports reads the kernel's list: PATH CLIENT(FLAGS) # ADDRESSES, blanks in octal. The roots that the kernel makes of
// version 4's tree (v4root) serve nothing themselves.
func exports(files fs.FS) exported {
	text, err := fs.ReadFile(files, "fs/nfsd/exports")
	if err != nil {
		return nil
	}
	out := exported{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 || !strings.HasPrefix(f[0], "/") {
			continue
		}
		_, flags, _ := strings.Cut(f[1], "(")
		flags = "," + strings.TrimSuffix(flags, ")") + ","
		if strings.Contains(flags, ",v4root,") {
			continue
		}
		path := octal.Replace(f[0])
		out[path] = out[path] || strings.Contains(flags, ",crossmnt,")
	}
	return out
}

// octal are the characters that the kernel writes as numbers in lists of paths.
var octal = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\043`, "#", `\134`, `\`)

// include reports whether a file system that is mounted at some points is served: one of them is exported, or lies
// below an export that goes on there, or has one below it. Where nothing is known of exports all are.
func (e exported) include(points []string) bool {
	if len(e) == 0 {
		return true
	}
	for _, point := range points {
		point = octal.Replace(point)
		for path, crosses := range e {
			if path == point || below(path, point) || crosses && below(point, path) {
				return true
			}
		}
	}
	return false
}

func below(path, top string) bool { return strings.HasPrefix(path, strings.TrimSuffix(top, "/")+"/") }
