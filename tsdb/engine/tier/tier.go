// Package tier makes and reads down-sampled tiers, which answer for what the retention of the seconds removed. The
// comment of tsdb/engine has the bytes.
package tier

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"fairway/collector"
	"fairway/tsdb"
	"fairway/tsdb/engine/block"
	"fairway/tsdb/engine/column"
	"fairway/tsdb/engine/disk"
	"fairway/tsdb/engine/rows"
)

// buckets are those of the tiers, in seconds, finest first. Each tier is made from the one before it, and the finest
// from the seconds.
var buckets = [...]int64{10, Coarsest}

// Coarsest is the longest bucket, in seconds.
const Coarsest = 300

// Dir is the directory of the tiers in that of the store.
const Dir = "tiers"

// delay after a block's span it is made: late rows are in, and sealed.
const delay = 3600 + 2*column.Seconds

// tier is one level: the blocks of each figure, their times in buckets.
type tier struct {
	seconds int64
	keep    time.Duration
	figures [figures]*block.List
}

func (t *tier) blockSpan() int64 { return t.seconds * column.Seconds }

// Node is what a tier needs to know of a node apart from its samples.
type Node struct {
	Metrics collector.MetricSet
	Limit   float64 // bytes/s from which a second is occupied; 0 where it is not known
}

// Config is what the tiers are made of and from.
type Config struct {
	Files           disk.Files
	Dir             string // of the store
	Log             *slog.Logger
	Report          func(disk.Damage)
	Keep10s, Keep5m time.Duration // 0: the tier is not made
	Seconds         *block.List
	Readers         *block.Readers
	Nodes           func() []Node // by number
	SaveNames       func() error  // a block must not name nodes that the dictionary lacks
}

// Set is the tiers that a store keeps. One caller at a time may use it, but for Parts.
type Set struct {
	Config
	tiers []*tier
	late  lateSpans // of tiers that were made before rows that are sealed or about to be
	torn  bool      // the tiers' newest blocks were looked at for what a power cut left
}

// Open lists the files of the tiers that are kept.
func Open(c Config) (*Set, error) {
	s := &Set{Config: c}
	for i, keep := range []time.Duration{c.Keep10s, c.Keep5m} {
		if keep <= 0 {
			continue
		}
		t := &tier{seconds: buckets[i], keep: keep}
		for f := range figures {
			dir := filepath.Join(c.Dir, dirOf(t.seconds, f))
			if err := os.MkdirAll(dir, 0o750); err != nil {
				return nil, err
			}
			t.figures[f] = block.NewList(c.Files, dir, c.Report)
			if err := t.figures[f].Load(); err != nil {
				return nil, err
			}
		}
		s.tiers = append(s.tiers, t)
	}
	late, damages, err := loadLate(c.Dir)
	for _, d := range damages {
		c.Report(d)
	}
	s.late = late
	return s, err
}

func dirOf(seconds int64, f figure) string {
	return filepath.Join(Dir, strconv.FormatInt(seconds, 10)+"s", figureNames[f])
}

// Dirs lists the directories of the figures that a store has, below its own, in the order in
// which a block's figures are written.
func Dirs(root string) (out []string) {
	for _, seconds := range buckets {
		for f := range figures {
			dir := dirOf(seconds, f)
			if _, err := os.Stat(filepath.Join(root, dir)); err == nil {
				out = append(out, dir)
			}
		}
	}
	return out
}

// made says how many blocks of a span (its start in buckets) the tier has.
func (t *tier) made(start int64) (int, error) {
	spans, err := t.figures[figSum].Spans(start, start+1)
	if err != nil || len(spans) == 0 {
		return 0, err
	}
	return spans[0].Pieces(), nil
}

// Update brings the tiers up to date.
func (s *Set) Update(now time.Time) error {
	if err := s.dropTorn(); err != nil {
		return err
	}
	for level, t := range s.tiers {
		for _, start := range s.spansOf(t, level) {
			if now.Unix() < start+t.blockSpan()+delay {
				continue
			}
			if err := s.bringUp(level, start); err != nil {
				return fmt.Errorf("tier of %d s from %d: %w", t.seconds, start, err)
			}
		}
	}
	return nil
}

// bringUp makes one span of a tier where it is missing or older than late rows.
func (s *Set) bringUp(level int, start int64) error {
	t := s.tiers[level]
	n, err := t.made(start / t.seconds)
	if err != nil {
		return err
	}
	late := s.late.has(t, start)
	if n > 0 && !late {
		return nil
	}
	if err := s.makeSpan(t, level, start, uint64(n+1)); err != nil || !late {
		return err
	}
	return s.setLate(s.late.without(t, start))
}

// dropTorn looks, once, for blocks at the ends of a tier's files that a power cut kept from being whole; they are
// made again. The log has no rows of tiers to make them from. A block is synced before the next is written, so it is at
// the end of the newest file, or of one in which late rows had a span made again.
func (s *Set) dropTorn() error {
	if s.torn {
		return nil
	}
	for _, t := range s.tiers {
		for _, list := range t.figures {
			files := list.Files()
			for i, file := range files {
				again := func(l lateSpan) bool {
					return l.seconds == t.seconds &&
						tsdb.FloorDiv(l.start/t.seconds, block.FileSeconds)*block.FileSeconds == file.Start
				}
				if i < len(files)-1 && !slices.ContainsFunc(slices.Collect(maps.Keys(s.late)), again) {
					continue
				}
				if err := file.DropTornEnd(); err != nil {
					return err
				}
			}
		}
	}
	s.torn = true
	return nil
}

// spansOf lists the spans, by their start in seconds, that there is a source for.
func (s *Set) spansOf(t *tier, level int) (out []int64) {
	files, unit := s.Seconds.Files(), int64(1)
	if level > 0 {
		files, unit = s.tiers[level-1].figures[figSum].Files(), s.tiers[level-1].seconds
	}
	for _, f := range files {
		from := tsdb.FloorDiv(f.Start*unit, t.blockSpan()) * t.blockSpan()
		for at := from; at < (f.Start+block.FileSeconds)*unit; at += t.blockSpan() {
			out = append(out, at)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// makeSpan writes one block of every figure.
func (s *Set) makeSpan(t *tier, level int, start int64, id uint64) error {
	var src source
	var err error
	if level == 0 {
		src, err = s.newSecondsSource(start, t)
	} else {
		src, err = s.newCoarserSource(s.tiers[level-1], start, t)
	}
	if err != nil {
		return err
	}
	defer src.release()
	nodes := s.Nodes()
	var writers [figures]*block.Writer
	for f := range writers {
		writers[f] = block.NewWriter(start/t.seconds, id)
	}
	var node nodeBuckets
	var scratch block.Scratch
	for from := 0; from < len(nodes); from += rows.ChunkNodes {
		for slot := range min(rows.ChunkNodes, len(nodes)-from) {
			n := &nodes[from+slot]
			if !src.read(from+slot, &n.Metrics, n.Limit, &node) {
				continue
			}
			for f, w := range writers {
				w.Add(slot, figureColumns{&node, figure(f), int(t.seconds)}, &scratch, 0)
			}
		}
		for _, w := range writers {
			w.EndChunk()
		}
	}
	if err := src.failed(); err != nil {
		return err
	}
	if err := s.SaveNames(); err != nil {
		return err
	}
	for f, w := range writers {
		if err := t.figures[f].Write(start/t.seconds, w.Finish()); err != nil {
			return err
		}
	}
	return nil
}

// Retain removes the files that are older than their tier is kept.
func (s *Set) Retain(now time.Time) {
	for _, t := range s.tiers {
		for _, list := range t.figures {
			for _, file := range list.Files() {
				if now.Sub(time.Unix((file.Start+block.FileSeconds)*t.seconds, 0)) <= t.keep {
					continue
				}
				if err := list.Remove(file); err != nil {
					s.Log.Error("an old tier stays", "file", file.Path(), "error", err)
					continue
				}
				s.Readers.Forget()
			}
		}
	}
}

// Complete reports whether the tiers have all of an hour, making what is missing of it.
func (s *Set) Complete(hour int64) bool {
	if len(s.tiers) == 0 {
		return true
	}
	t := s.tiers[0]
	for at := hour; at < hour+block.FileSeconds; at += t.blockSpan() {
		if err := s.bringUp(0, at); err != nil {
			s.Log.Error("an hour stays, for its tier cannot be made", "hour", hour, "error", err)
			return false
		}
	}
	return true
}
