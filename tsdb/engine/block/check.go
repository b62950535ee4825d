package block

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"fairway/collector"
	"fairway/collector/appendlog"
	"fairway/tsdb/engine/column"
	"fairway/tsdb/engine/disk"
	"fairway/tsdb/engine/rows"
)

// check reads a block's index and the checksums of all its columns, and decodes them where that is wanted.
func (f *frame) check(decode bool) (damages []disk.Damage, columns int64) {
	var r frameReader
	var c column.Column
	for i := range f.metrics {
		fm := &f.metrics[i]
		add := func(at int64, err error, what string, args ...any) {
			damages = append(damages, disk.Damage{File: f.path, Offset: at, What: err.Error(),
				Lost: fmt.Sprintf("%s of %s in the %d s from %d", fm.metric, fmt.Sprintf(what, args...),
					column.Seconds, f.start)})
		}
		var data []byte
		if !decode {
			var err error
			if data, err = f.allData(fm); err != nil {
				add(f.offset, err, "all nodes")
				return damages, columns
			}
		}
		for number := range f.chunks {
			record, err := r.chunk(f, fm.metric, number, rows.ChunkNodes-1)
			if err != nil {
				add(f.offset, err, "up to %d nodes", rows.ChunkNodes)
				continue
			}
			for k := range rows.ChunkNodes {
				node, ok := number*rows.ChunkNodes+k, false
				if decode {
					ok, err = r.column(f, fm.metric, node, &c)
				} else {
					ok, err = record.entry(k).intact(data)
				}
				if err != nil {
					add(f.offset, err, "node number %d", node)
				} else if ok {
					columns++
				}
			}
		}
	}
	return damages, columns
}

// allData reads the data of all columns of a metric.
func (f *frame) allData(fm *frameMetric) ([]byte, error) {
	data := make([]byte, fm.dataBytes)
	if _, err := f.file.ReadAt(data, f.offset+fm.dataAt(f.chunks)); err != nil && len(data) > 0 {
		return nil, readError(f, err)
	}
	return data, nil
}

// intact says whether a node has a column; the error that its part of what allData read is damaged.
func (e *Entry) intact(data []byte) (ok bool, err error) {
	if e == nil || e.kind != column.Varied || e.inline != nil {
		return e != nil, nil
	}
	if int64(e.dataAt)+int64(e.dataLen)+4 > int64(len(data)) {
		return false, fmt.Errorf("%w: its data lies outside the block", errDamaged)
	}
	_, err = checkedData(data[e.dataAt:][:e.dataLen+4])
	return err == nil, err
}

// checkedData takes the checksum from behind a column's bytes and compares it.
func checkedData(b []byte) ([]byte, error) {
	data, sum := b[:len(b)-4], b[len(b)-4:]
	if appendlog.Sum(data) != binary.LittleEndian.Uint32(sum) {
		return nil, fmt.Errorf("%w: its data has a wrong checksum", errDamaged)
	}
	return data, nil
}

// Found is what Check found.
type Found struct {
	Files, Blocks int
	Columns       int64
	Damages       []disk.Damage
	Repaired      []string // files that were written again without what is lost
}

// Check decodes every column of the block files in a directory. With repair it writes the damaged files again with
// everything in them that is intact; the old one stays beside it with ".damaged" at its end.
func Check(dir string, repair bool) (found Found, err error) {
	starts, err := listFiles(dir)
	if err != nil {
		return found, fmt.Errorf("check: %w", err)
	}
	for _, start := range starts {
		if err := found.file(filepath.Join(dir, fileName(start)), repair); err != nil {
			return found, err
		}
	}
	return found, nil
}

// file decodes every column of a file.
func (found *Found) file(path string, repair bool) error {
	f, err := disk.OS{}.Open(path)
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
	found.Files++
	found.Blocks += len(frames)
	if end != size {
		damages = append(damages, disk.Damage{File: path, Offset: end,
			What: fmt.Sprintf("%d bytes that are no block", size-end), Lost: "nothing that was sealed, after a crash"})
	}
	bad := map[*frame]bool{}
	for _, fr := range frames {
		more, columns := fr.check(true)
		found.Columns += columns
		bad[fr] = len(more) > 0
		damages = append(damages, more...)
	}
	found.Damages = append(found.Damages, damages...)
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
	if err := disk.Replace(disk.OS{}, path, out.Bytes()); err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	found.Repaired = append(found.Repaired, path)
	return nil
}

// frameColumns shows one node of a sealed block to a Writer, without what is damaged.
type frameColumns struct {
	r    *frameReader
	f    *frame
	node int
}

func (s frameColumns) Metrics() []collector.Metric {
	var out []collector.Metric
	for i := range s.f.metrics {
		out = append(out, s.f.metrics[i].metric)
	}
	return out
}

func (s frameColumns) Read(m collector.Metric, c *column.Column, _ *column.Whole) (column.Kind, float64) {
	ok, err := s.r.column(s.f, m, s.node, c)
	if err != nil || !ok {
		return column.None, 0
	}
	if c.Present == column.Full && c.Stats.Min == c.Stats.Max {
		return column.Constant, c.Stats.Min
	}
	return column.Varied, 0
}

// salvage encodes a block again from the columns that are intact. Counts of occupied seconds are
// left out; they follow from the values.
func salvage(f *frame) []byte {
	w := NewWriter(f.start, f.id)
	var r frameReader
	var n Scratch
	for number := range f.chunks {
		for slot := range rows.ChunkNodes {
			w.Add(slot, frameColumns{&r, f, number*rows.ChunkNodes + slot}, &n, 0)
		}
		w.EndChunk()
	}
	return w.Finish()
}
