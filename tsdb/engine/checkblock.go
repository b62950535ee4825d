package engine

import (
	"encoding/binary"
	"fmt"

	"fairway/collector/appendlog"
)

// checkFrame reads a block's index and the checksums of all its columns.
func checkFrame(f *frame) []Damage {
	var r frameReader
	var out []Damage
	for i := range f.metrics {
		fm := &f.metrics[i]
		data, err := f.allData(fm)
		if err != nil {
			return append(out, Damage{f.path, f.offset, err.Error(), fmt.Sprintf("%s in the %d s from %d", fm.metric,
				BlockSeconds, f.start)})
		}
		for number := range f.chunks {
			c, err := r.chunk(f, fm.metric, number, chunkNodes-1)
			if err != nil {
				out = append(out, Damage{f.path, f.offset, err.Error(),
					fmt.Sprintf("%s of up to %d nodes in the %d s from %d", fm.metric, chunkNodes, BlockSeconds,
						f.start)})
				continue
			}
			for k := range c.entries {
				e := c.entry(k)
				if e == nil || e.kind != columnVaried || e.inline != nil {
					continue
				}
				if _, err := e.cut(data); err != nil {
					at := f.offset + fm.dataAt(f.chunks) + int64(e.dataAt)
					out = append(out, Damage{f.path, at, err.Error(),
						fmt.Sprintf("%s of node number %d in the %d s from %d", fm.metric, number*chunkNodes+k,
							BlockSeconds, f.start)})
				}
			}
		}
	}
	return out
}

// allData reads the data of all columns of a metric.
func (f *frame) allData(fm *frameMetric) ([]byte, error) {
	data := make([]byte, fm.dataBytes)
	if _, err := f.file.ReadAt(data, f.offset+fm.dataAt(f.chunks)); err != nil && len(data) > 0 {
		return nil, readError(f, err)
	}
	return data, nil
}

// cut returns an entry's part of what allData read.
func (e *entry) cut(data []byte) ([]byte, error) {
	if int64(e.dataAt)+int64(e.dataLen)+4 > int64(len(data)) {
		return nil, fmt.Errorf("%w: its data lies outside the block", errDamaged)
	}
	return checkedData(data[e.dataAt:][:e.dataLen+4])
}

// checkedData takes the checksum from behind a column's bytes and compares it.
func checkedData(b []byte) ([]byte, error) {
	data, sum := b[:len(b)-4], b[len(b)-4:]
	if appendlog.Sum(data) != binary.LittleEndian.Uint32(sum) {
		return nil, fmt.Errorf("%w: its data has a wrong checksum", errDamaged)
	}
	return data, nil
}
