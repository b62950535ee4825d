package engine

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"fairway/collector"
	"fairway/tsdb"
	"fairway/tsdb/engine/column"
)

// tierLevels are the buckets of the down-sampled tiers, in seconds, finest first. Each is made from
// the one before; the finest from the seconds.
var tierLevels = [...]int64{10, 300}

// figure is what a tier keeps of a bucket. A figure has block files of its own, in the format of
// the seconds' blocks, with the number of the bucket in place of the second.
type figure int

const (
	figMin figure = iota
	figMax
	figLast       // the newest second's value; what v0.2 made has none
	figAbsent     // seconds of the bucket without a value; 0 is the usual case and costs nothing
	figOccupied   // under read_bytes: seconds in which read_bytes + write_bytes reached the limit
	figUnreported // under read_bytes: seconds with neither
	figLimit      // under read_bytes: bytes/s from which a second counted as occupied
	figSum        // written last: a block of it says that the others are there
	figures
)

var figureNames = [figures]string{"min", "max", "last", "absent", "occupied", "unreported", "limit", "sum"}

const (
	tiersDir = "tiers"
	// tierDelay after a block's span it is made: late rows are in, and sealed.
	tierDelay = 3600 + 2*BlockSeconds
)

// tier is one level: the files of each figure.
type tier struct {
	seconds int64
	keep    time.Duration
	views   [figures]atomic.Pointer[view] // files only, their times in buckets
}

func (t *tier) blockSpan() int64 { return t.seconds * BlockSeconds }

// tierSet is the levels that a store keeps. The sealer's lock guards it, but for what readers take of the levels.
type tierSet struct {
	*base
	head    *head
	commits *committer
	levels  []*tier   // set by open
	late    lateSpans // of tiers that were made before rows that are sealed or about to be
	torn    bool      // the tiers' newest blocks were looked at for what a power cut left
}

// open lists the files of the levels that the options want.
func (ts *tierSet) open() error {
	for i, keep := range []time.Duration{ts.opts.Keep10s, ts.opts.Keep5m} {
		if keep <= 0 {
			continue
		}
		t := &tier{seconds: tierLevels[i], keep: keep}
		for f := range figures {
			dir := t.dir(ts.dir, f)
			if err := os.MkdirAll(dir, 0o750); err != nil {
				return err
			}
			starts, err := listBlockFiles(dir)
			if err != nil {
				return fmt.Errorf("list the tiers: %w", err)
			}
			v := &view{}
			for _, start := range starts {
				v.files = append(v.files, ts.file(t, f, start))
			}
			t.views[f].Store(v)
		}
		ts.levels = append(ts.levels, t)
	}
	late, damages, err := loadLate(ts.dir)
	for _, d := range damages {
		ts.damages.report(d)
	}
	ts.late = late
	return err
}

func (t *tier) dir(root string, f figure) string {
	return filepath.Join(root, tiersDir, strconv.FormatInt(t.seconds, 10)+"s", figureNames[f])
}

// tierDirs lists the directories of the figures that a store has, below its own, in the order in
// which a block's figures are written.
func tierDirs(root string) (out []string) {
	for _, seconds := range tierLevels {
		t := tier{seconds: seconds}
		for f := range figures {
			dir := t.dir("", f)
			if _, err := os.Stat(filepath.Join(root, dir)); err == nil {
				out = append(out, dir)
			}
		}
	}
	return out
}

func (ts *tierSet) file(t *tier, f figure, start int64) *blockFile {
	return &blockFile{hour: start, path: filepath.Join(t.dir(ts.dir, f), blockFileName(start)), fs: ts.fs,
		report: ts.damages.report}
}

// made says how many blocks of a span (its start in buckets) the tier has.
func (t *tier) made(start int64) (int, error) {
	spans, err := t.views[figSum].Load().spans(start, start+1)
	if err != nil || len(spans) == 0 {
		return 0, err
	}
	return len(spans[0].frames), nil
}

// update brings the tiers up to date. Only the sealer calls it.
func (ts *tierSet) update(now time.Time) error {
	if err := ts.dropTorn(); err != nil {
		return err
	}
	for level, t := range ts.levels {
		for _, start := range ts.spansOf(t, level) {
			if now.Unix() < start+t.blockSpan()+tierDelay {
				continue
			}
			if err := ts.bringUp(level, start); err != nil {
				return fmt.Errorf("tier of %d s from %d: %w", t.seconds, start, err)
			}
		}
	}
	return nil
}

// bringUp makes one span of a tier where it is missing or older than late rows.
func (ts *tierSet) bringUp(level int, start int64) error {
	t := ts.levels[level]
	n, err := t.made(start / t.seconds)
	if err != nil {
		return err
	}
	late := ts.late.has(t, start)
	if n > 0 && !late {
		return nil
	}
	if err := ts.makeSpan(t, level, start, uint64(n+1)); err != nil || !late {
		return err
	}
	return ts.setLate(ts.late.without(t, start))
}

// dropTorn looks, once, for blocks at the ends of a tier's files that a power cut kept from being whole; they are
// made again. The log has no rows of tiers to make them from. A block is synced before the next is written, so it is at
// the end of the newest file, or of one in which late rows had a span made again.
func (ts *tierSet) dropTorn() error {
	if ts.torn {
		return nil
	}
	for _, t := range ts.levels {
		for f := range figures {
			list := t.views[f].Load().files
			for i, file := range list {
				again := func(s lateSpan) bool {
					return s.seconds == t.seconds &&
						tsdb.FloorDiv(s.start/t.seconds, fileSeconds)*fileSeconds == file.hour
				}
				if i < len(list)-1 && !slices.ContainsFunc(slices.Collect(maps.Keys(ts.late)), again) {
					continue
				}
				if err := file.dropTornEnd(); err != nil {
					return err
				}
			}
		}
	}
	ts.torn = true
	return nil
}

// dropTornEnd forgets the file's last block where it is not whole.
func (b *blockFile) dropTornEnd() error {
	frames, err := b.frames()
	if err != nil {
		return err
	}
	for _, fr := range frames {
		if fr.offset+fr.size == b.end && len(checkFrame(fr)) > 0 {
			b.drop(fr)
			return nil
		}
	}
	return nil
}

// spansOf lists the spans, by their start in seconds, that there is a source for.
func (ts *tierSet) spansOf(t *tier, level int) (out []int64) {
	files, unit := ts.head.blocks.view.Load().files, int64(1)
	if level > 0 {
		files, unit = ts.levels[level-1].views[figSum].Load().files, ts.levels[level-1].seconds
	}
	for _, f := range files {
		from := tsdb.FloorDiv(f.hour*unit, t.blockSpan()) * t.blockSpan()
		for at := from; at < (f.hour+fileSeconds)*unit; at += t.blockSpan() {
			out = append(out, at)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// makeSpan writes one block of every figure.
func (ts *tierSet) makeSpan(t *tier, level int, start int64, id uint64) error {
	var src tierSource
	var err error
	if level == 0 {
		src, err = newSecondsSource(ts.head, start, t)
	} else {
		src, err = newTierSource(ts.head, ts.levels[level-1], start, t)
	}
	if err != nil {
		return err
	}
	defer src.release()
	entries, limits := ts.head.known()
	var writers [figures]*blockWriter
	for f := range writers {
		writers[f] = newBlockWriter(start/t.seconds, id)
	}
	var node nodeBuckets
	var cols nodeColumns
	for from := 0; from < len(entries); from += chunkNodes {
		for slot := range min(chunkNodes, len(entries)-from) {
			e := &entries[from+slot]
			if !src.read(from+slot, &e.metrics, limits[e.name], &node) {
				continue
			}
			for f, w := range writers {
				w.add(slot, figureColumns{&node, figure(f), int(t.seconds)}, &cols, 0)
			}
		}
		for _, w := range writers {
			w.endChunk()
		}
	}
	if err := src.failed(); err != nil {
		return err
	}
	if err := ts.commits.saveNames(); err != nil {
		return err
	}
	for f, w := range writers {
		if err := ts.addBlock(t, figure(f), start/t.seconds, w.finish()); err != nil {
			return err
		}
	}
	return nil
}

// addBlock appends a block to the file it belongs to, adding that to the view where it is new.
func (ts *tierSet) addBlock(t *tier, f figure, start int64, block []byte) error {
	at := tsdb.FloorDiv(start, fileSeconds) * fileSeconds
	v := t.views[f].Load()
	i, found := slices.BinarySearchFunc(v.files, at, func(b *blockFile, at int64) int { return int(b.hour - at) })
	if found {
		return v.files[i].add(block)
	}
	file := ts.file(t, f, at)
	if err := file.add(block); err != nil {
		return err
	}
	t.views[f].Store(&view{files: slices.Insert(slices.Clone(v.files), i, file)})
	return nil
}

// bucketFigures is one metric's buckets of a block.
type bucketFigures struct {
	count               [BlockSeconds]int
	sum, min, max, last [BlockSeconds]float64
}

func (b *bucketFigures) add(k, count int, sum, least, most, last float64) {
	if b.count[k] == 0 {
		b.min[k], b.max[k] = least, most
	}
	b.count[k] += count
	b.sum[k] += sum
	b.last[k] = last
	b.min[k], b.max[k] = min(b.min[k], least), max(b.max[k], most)
}

// nodeBuckets is one node's part of a tier's block.
type nodeBuckets struct {
	metrics  []collector.Metric
	by       [collector.MetricCount]bucketFigures
	limit    float64 // 0 where it is not known: then nothing is counted
	occupied [BlockSeconds]int
	reported [BlockSeconds]int
}

func (n *nodeBuckets) reset() { *n = nodeBuckets{metrics: n.metrics[:0]} }

// figureColumns shows one figure of a node to a blockWriter.
type figureColumns struct {
	n       *nodeBuckets
	figure  figure
	seconds int
}

var occupancyMetric = []collector.Metric{collector.ReadBytes}

func (c figureColumns) metrics() []collector.Metric {
	switch c.figure {
	case figOccupied, figUnreported, figLimit:
		if c.n.limit <= 0 {
			return nil
		}
		return occupancyMetric
	}
	return c.n.metrics
}

func (c figureColumns) read(m collector.Metric, col *column.Column, _ *column.Whole) (columnKind, float64) {
	*col = column.Column{}
	b := &c.n.by[m]
	counts := &b.count
	if c.figure == figOccupied || c.figure == figUnreported || c.figure == figLimit {
		counts = &c.n.reported
	}
	for k, count := range counts {
		if count == 0 {
			continue
		}
		col.Present.Set(k)
		switch c.figure {
		case figSum:
			col.V[k] = b.sum[k]
		case figMin:
			col.V[k] = b.min[k]
		case figMax:
			col.V[k] = b.max[k]
		case figLast:
			col.V[k] = b.last[k]
		case figAbsent, figUnreported:
			col.V[k] = float64(c.seconds - count)
		case figOccupied:
			col.V[k] = float64(c.n.occupied[k])
		case figLimit:
			col.V[k] = c.n.limit
		}
	}
	if col.Present == (column.Mask{}) {
		return columnNone, 0
	}
	col.Measure()
	if col.Stats.Count == BlockSeconds && col.Stats.Min == col.Stats.Max {
		return columnConstant, col.Stats.Min
	}
	return columnVaried, 0
}
