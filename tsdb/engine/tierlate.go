package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"fairway/tsdb"
)

// The file of spans whose tiers must be made again: a line with magic and version, then a line per span with
// the tier's bucket in seconds and the span's start (format.go).
const (
	lateFile    = "late"
	lateMagic   = "FWLT"
	lateVersion = 1
)

// lateSpan is a span of a tier, by its bucket and its start in seconds.
type lateSpan struct{ seconds, start int64 }

// lateSpans are spans whose tiers were made before late rows. Values are replaced, not changed.
type lateSpans map[lateSpan]bool

func (l lateSpans) has(t *tier, start int64) bool { return l[lateSpan{t.seconds, start}] }

func (l lateSpans) without(t *tier, start int64) lateSpans {
	next := maps.Clone(l)
	delete(next, lateSpan{t.seconds, start})
	return next
}

// noteLate remembers durably that existing tiers of a second will lack rows: some of it are about to be
// sealed, and then the log lets go of them.
func (ts *tierSet) noteLate(second int64) error {
	next := lateSpans{}
	for _, t := range ts.levels {
		start := tsdb.FloorDiv(second, t.blockSpan()) * t.blockSpan()
		if n, err := t.made(start / t.seconds); (n > 0 || err != nil) && !ts.late.has(t, start) {
			next[lateSpan{t.seconds, start}] = true
		}
	}
	if len(next) == 0 {
		return nil
	}
	maps.Copy(next, ts.late)
	return ts.setLate(next)
}

// removed says that retention has removed the seconds of a span and left its tier. Rows that come after that can
// not be added to the tier's buckets: what a bucket has of their seconds is not known any more.
func (ts *tierSet) removed(second int64) (bool, error) {
	hour := tsdb.FloorDiv(second, fileSeconds) * fileSeconds
	if len(ts.levels) == 0 || slices.ContainsFunc(ts.head.blocks.view.Load().files,
		func(f *blockFile) bool { return f.hour == hour }) {
		return false, nil
	}
	t := ts.levels[0]
	n, err := t.made(tsdb.FloorDiv(second, t.blockSpan()) * BlockSeconds)
	return n > 0, err
}

// setLate writes the list and then takes it over.
func (ts *tierSet) setLate(next lateSpans) error {
	var buf bytes.Buffer
	fmt.Fprintf(&buf, "%s %d\n", lateMagic, lateVersion)
	for _, s := range slices.SortedFunc(maps.Keys(next), func(a, b lateSpan) int { return int(a.start - b.start) }) {
		fmt.Fprintf(&buf, "%d %d\n", s.seconds, s.start)
	}
	if err := replaceFile(ts.fs, filepath.Join(ts.dir, tiersDir, lateFile), buf.Bytes()); err != nil {
		return err
	}
	ts.late = next
	return nil
}

// loadLate reads the list; a store without the file has none.
func loadLate(dir string) (lateSpans, []Damage, error) {
	path, out := filepath.Join(dir, tiersDir, lateFile), lateSpans{}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the tiers to make again: %w", err)
	}
	damaged := func(at int, what string) []Damage {
		return []Damage{{path, int64(at), what, "rows over an hour late may be missing in the tiers"}}
	}
	version := uint16(0)
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	if _, err := fmt.Sscanf(string(first), lateMagic+" %d", &version); err != nil {
		return out, damaged(0, "it does not begin as such a list"), nil
	}
	if err := checkVersion(path, version, lateVersion); err != nil {
		return nil, nil, err
	}
	for line := range bytes.Lines(rest) {
		var s lateSpan
		if _, err := fmt.Sscanf(string(line), "%d %d\n", &s.seconds, &s.start); err != nil {
			return out, damaged(len(data)-len(rest), fmt.Sprintf("not a span: line %.40q", line)), nil
		}
		out[s] = true
	}
	return out, nil, nil
}
