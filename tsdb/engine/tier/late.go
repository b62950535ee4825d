package tier

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
	"fairway/tsdb/engine/block"
	"fairway/tsdb/engine/column"
	"fairway/tsdb/engine/disk"
)

// The file of spans whose tiers must be made again: a line with magic and version, then a line per span with
// the tier's bucket in seconds and the span's start (tsdb/engine/format.go).
const (
	LateFile    = "late"
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

// NoteLate remembers durably that existing tiers of a second will lack rows: some of it are about to be
// sealed, and then the log lets go of them.
func (s *Set) NoteLate(second int64) error {
	next := lateSpans{}
	for _, t := range s.tiers {
		start := tsdb.FloorDiv(second, t.blockSpan()) * t.blockSpan()
		if n, err := t.made(start / t.seconds); (n > 0 || err != nil) && !s.late.has(t, start) {
			next[lateSpan{t.seconds, start}] = true
		}
	}
	if len(next) == 0 {
		return nil
	}
	maps.Copy(next, s.late)
	return s.setLate(next)
}

// Removed says that retention has removed the seconds of a span and left its tier. Rows that come after that can
// not be added to the tier's buckets: what a bucket has of their seconds is not known any more.
func (s *Set) Removed(second int64) (bool, error) {
	hour := tsdb.FloorDiv(second, block.FileSeconds) * block.FileSeconds
	if len(s.tiers) == 0 || slices.ContainsFunc(s.Seconds.Files(),
		func(f *block.File) bool { return f.Start == hour }) {
		return false, nil
	}
	t := s.tiers[0]
	n, err := t.made(tsdb.FloorDiv(second, t.blockSpan()) * column.Seconds)
	return n > 0, err
}

// setLate writes the list and then takes it over.
func (s *Set) setLate(next lateSpans) error {
	var buf bytes.Buffer
	fmt.Fprintf(&buf, "%s %d\n", lateMagic, lateVersion)
	for _, l := range slices.SortedFunc(maps.Keys(next), func(a, b lateSpan) int { return int(a.start - b.start) }) {
		fmt.Fprintf(&buf, "%d %d\n", l.seconds, l.start)
	}
	if err := disk.Replace(s.Files, filepath.Join(s.Dir, Dir, LateFile), buf.Bytes()); err != nil {
		return err
	}
	s.late = next
	return nil
}

// CheckLate reads the list of a store's directory.
func CheckLate(dir string) ([]disk.Damage, error) {
	_, damages, err := loadLate(dir)
	return damages, err
}

// loadLate reads the list; a store without the file has none.
func loadLate(dir string) (lateSpans, []disk.Damage, error) {
	path, out := filepath.Join(dir, Dir, LateFile), lateSpans{}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the tiers to make again: %w", err)
	}
	damaged := func(at int, what string) []disk.Damage {
		return []disk.Damage{{File: path, Offset: int64(at), What: what,
			Lost: "rows over an hour late may be missing in the tiers"}}
	}
	version := uint16(0)
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	if _, err := fmt.Sscanf(string(first), lateMagic+" %d", &version); err != nil {
		return out, damaged(0, "it does not begin as such a list"), nil
	}
	if err := disk.CheckVersion(path, version, lateVersion); err != nil {
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
