package replay

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"fairway/cmd/lab/conform/recorded"
)

// Moment is one reading of a node: the texts that its files had then, by path without the leading slash, and the
// outputs of its commands by their words with underscores between them.
type Moment struct {
	At    time.Time
	Node  string
	Texts map[string][]byte
}

// Load reads a record, a tar compressed by zstd with a log of each node, and returns its moments in order.
func Load(file string) ([]Moment, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	unpacked, err := zstd.NewReader(f)
	if err != nil {
		return nil, err
	}
	defer unpacked.Close()
	var out []Moment
	for t := tar.NewReader(unpacked); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", file, err)
		}
		if node, _, isLog := strings.Cut(path.Base(h.Name), ".log"); isLog {
			out = append(out, parse(node, t)...)
		}
	}
	slices.SortStableFunc(out, func(a, b Moment) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Node, b.Node))
	})
	return out, nil
}

// parse makes moments of a log's frames: a file that a moment has already begins the next. A log ends with a frame that
// is cut off.
func parse(node string, log io.Reader) (out []Moment) {
	for f, err := range recorded.Frames(log) {
		if err != nil {
			break
		}
		again := len(out) == 0
		if !again {
			_, again = out[len(out)-1].Texts[f.Name]
		}
		if again {
			out = append(out, Moment{At: f.At, Node: node, Texts: map[string][]byte{}})
		}
		if f.Err == "" {
			out[len(out)-1].Texts[f.Name] = f.Text
		}
	}
	return out
}
