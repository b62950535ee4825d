// Package recorded hands tests the records of real systems, where they lie beside the tree.
package recorded

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// Open unpacks the files of a record whose path in the archive ends so, and returns where they are by that path.
// Without the record the test is skipped.
func Open(t *testing.T, name string, suffixes ...string) map[string]string {
	t.Helper()
	archive := filepath.Join(root(t), "..", "shared", "real", name+".tar.zst")
	f, err := os.Open(archive)
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("the record %s is not here", archive)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unpacked, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer unpacked.Close()
	files, dir := map[string]string{}, t.TempDir()
	for in := tar.NewReader(unpacked); ; {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, suffix := range suffixes {
			if head.Typeflag != tar.TypeReg || !strings.HasSuffix("/"+head.Name, "/"+suffix) {
				continue
			}
			to := filepath.Join(dir, strings.ReplaceAll(suffix, "/", "+"))
			out, err := os.Create(to)
			if err == nil {
				_, err = io.Copy(out, in)
				err = errors.Join(err, out.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
			files[suffix] = to
		}
	}
	for _, suffix := range suffixes {
		if files[suffix] == "" {
			t.Fatalf("%s has no %s", archive, suffix)
		}
	}
	return files
}

// FramesOf are those of a node's log.
func FramesOf(t *testing.T, file string) []Frame {
	t.Helper()
	log, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var out []Frame
	for frame, err := range Frames(log) {
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, frame)
	}
	return out
}

// root is the folder of go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil && dir != "/" {
		if _, bad := os.Stat(filepath.Join(dir, "go.mod")); bad == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("no go.mod above the test: ", err)
	return ""
}
