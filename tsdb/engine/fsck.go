package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"fairway/collector"
	"fairway/tsdb/engine/column"
)

// CheckReport is what Check found.
type CheckReport struct {
	Nodes       int      `json:"nodes"`
	LogSegments int      `json:"log_segments"`
	LogRecords  int      `json:"log_records"`
	BlockFiles  int      `json:"block_files"`
	Blocks      int      `json:"blocks"`
	Columns     int64    `json:"columns"`
	Damages     []Damage `json:"damages"`
	Repaired    []string `json:"repaired,omitempty"` // files that were rewritten without what is lost
}

// Check reads every byte of a store that no process has open and says what is damaged and what that
// costs. With repair it rewrites damaged block files with everything in them that is intact; the
// old file stays beside it with ".damaged" at its end. The error is for what kept it from checking.
func Check(dir string, repair bool) (*CheckReport, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("check store: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	defer lock.Close()
	rep := &CheckReport{}
	var table nodeTable
	damages, err := table.read(filepath.Join(dir, nodesFile))
	if err != nil {
		return rep, err
	}
	rep.Nodes, rep.Damages = len(table.byName), damages
	_, damages, err = loadLate(dir)
	if err != nil {
		return rep, err
	}
	rep.Damages = append(rep.Damages, damages...)
	if err := rep.checkLog(filepath.Join(dir, "wal")); err != nil {
		return rep, err
	}
	for _, sub := range append([]string{blocksDir}, tierDirs(dir)...) {
		starts, err := listBlockFiles(filepath.Join(dir, sub))
		if err != nil {
			return rep, fmt.Errorf("check: %w", err)
		}
		for _, start := range starts {
			if err := rep.checkFile(filepath.Join(dir, sub, blockFileName(start)), repair); err != nil {
				return rep, err
			}
		}
	}
	return rep, nil
}

func (rep *CheckReport) checkLog(dir string) error {
	numbers, err := listSegments(dir)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	next := uint64(0)
	for i, number := range numbers {
		path := filepath.Join(dir, segmentName(number))
		intact, torn, err := readSegment(path, func(_, _ uint64) {}, func(n uint64, _ []byte) error {
			if next != 0 && n > next {
				rep.Damages = append(rep.Damages,
					Damage{path, 0, fmt.Sprintf("records %d to %d are missing", next, n-1), "their rows"})
			}
			next = max(next, n+1)
			rep.LogRecords++
			return nil
		})
		if err != nil {
			return err
		}
		rep.LogSegments++
		if torn && i == len(numbers)-1 {
			rep.Damages = append(rep.Damages, Damage{path, intact, "the newest segment ends in an unfinished record",
				"nothing that was answered, after a crash"})
		}
	}
	return nil
}

// checkFile reads every column of a block file.
func (rep *CheckReport) checkFile(path string, repair bool) error {
	f, err := osFiles{}.Open(path)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return fmt.Errorf("check %s: %w", path, err)
	}
	frames, end, damages, err := walkFrames(f, path, size)
	if err != nil {
		return err
	}
	rep.BlockFiles++
	rep.Blocks += len(frames)
	if end != size {
		damages = append(damages, Damage{path, end, fmt.Sprintf("%d bytes that are no block", size-end),
			"nothing that was sealed, after a crash"})
	}
	bad := map[*frame]bool{}
	for _, fr := range frames {
		found, columns := decodeFrame(fr)
		rep.Columns += columns
		bad[fr] = len(found) > 0
		damages = append(damages, found...)
	}
	rep.Damages = append(rep.Damages, damages...)
	if len(damages) == 0 || !repair {
		return nil
	}
	out := bytes.NewBuffer(newFileHeader())
	for _, fr := range frames {
		if bad[fr] {
			out.Write(salvage(fr))
		} else if _, err := io.Copy(out, io.NewSectionReader(f, fr.offset, fr.size)); err != nil {
			return fmt.Errorf("repair %s: %w", path, err)
		}
	}
	if err := os.Link(path, path+".damaged"); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("repair: %w", err)
	}
	if err := replaceFile(osFiles{}, path, out.Bytes()); err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	rep.Repaired = append(rep.Repaired, path)
	return nil
}

// decodeFrame decodes every column of a block.
func decodeFrame(f *frame) (damages []Damage, columns int64) {
	var r frameReader
	var c column.Column
	for i := range f.metrics {
		m := f.metrics[i].metric
		for node := range f.chunks * chunkNodes {
			if _, err := r.chunk(f, m, node/chunkNodes, chunkNodes-1); err != nil {
				if node%chunkNodes == 0 {
					damages = append(damages,
						Damage{f.path, f.offset, err.Error(), fmt.Sprintf("%s of up to %d nodes in the %d s from %d", m,
							chunkNodes, BlockSeconds, f.start)})
				}
				continue
			}
			ok, err := r.column(f, m, node, &c)
			if err != nil {
				damages = append(damages,
					Damage{f.path, f.offset, err.Error(), fmt.Sprintf("%s of node number %d in the %d s from %d", m,
						node, BlockSeconds, f.start)})
			}
			if ok {
				columns++
			}
		}
	}
	return damages, columns
}

// frameColumns shows one node of a sealed block to a blockWriter, without what is damaged.
type frameColumns struct {
	r    *frameReader
	f    *frame
	node int
}

func (s frameColumns) metrics() []collector.Metric {
	var out []collector.Metric
	for i := range s.f.metrics {
		out = append(out, s.f.metrics[i].metric)
	}
	return out
}

func (s frameColumns) read(m collector.Metric, c *column.Column, _ *column.Whole) (columnKind, float64) {
	ok, err := s.r.column(s.f, m, s.node, c)
	if err != nil || !ok {
		return columnNone, 0
	}
	if c.Present == column.Full && c.Stats.Min == c.Stats.Max {
		return columnConstant, c.Stats.Min
	}
	return columnVaried, 0
}

// salvage encodes a block again from the columns that are intact. Counts of occupied seconds are
// left out; they follow from the values.
func salvage(f *frame) []byte {
	w := newBlockWriter(f.start, f.id)
	var r frameReader
	var n nodeColumns
	for number := range f.chunks {
		for slot := range chunkNodes {
			w.add(slot, frameColumns{&r, f, number*chunkNodes + slot}, &n, 0)
		}
		w.endChunk()
	}
	return w.finish()
}
