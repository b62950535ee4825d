package block

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"fairway/collector"
	"fairway/collector/appendlog"
	"fairway/tsdb/engine/disk"
	"fairway/tsdb/engine/rows"
)

// errDamaged says that bytes of a block are not what was written. What they held is left out of
// answers and reported.
var errDamaged = errors.New("damaged")

// frame is a sealed block in a file: its header, kept in memory. It is immutable.
type frame struct {
	start   int64
	id      uint64 // open blocks of this span up to this id are in it or in earlier frames
	offset  int64
	size    int64
	chunks  int
	limits  []float64
	metrics []frameMetric // by metric number
	file    io.ReaderAt
	path    string
}

type frameMetric struct {
	metric    collector.Metric
	at        int64 // of the directory, from the block's start
	index     uint32
	dataBytes uint32
	sum       uint32 // of the directory
}

func (m *frameMetric) indexAt(chunks int) int64 { return m.at + 4*int64(chunks+1) }
func (m *frameMetric) dataAt(chunks int) int64  { return m.indexAt(chunks) + int64(m.index) }

// Limits of what a header may say, so that a damaged one cannot make a reader allocate much.
const (
	maxChunks      = rows.MaxNodes/rows.ChunkNodes + 8
	maxBlockHeader = blockFixed + 8*maxLimits + blockMetric*256 + 4
)

// readFrame reads the header of the block at an offset of a file. io.EOF says that the file ends there,
// errDamaged that it is not intact, disk.ErrNewerFormat that this program is too old for it.
func readFrame(file io.ReaderAt, path string, offset, fileSize int64) (*frame, error) {
	if offset == fileSize {
		return nil, io.EOF
	}
	head := make([]byte, min(maxBlockHeader, fileSize-offset))
	if _, err := file.ReadAt(head, offset); err != nil {
		return nil, fmt.Errorf("read %s at byte %d: %w", path, offset, err)
	}
	if len(head) < blockFixed || string(head[:4]) != blockMagic {
		return nil, fmt.Errorf("%w: no block begins here", errDamaged)
	}
	// Where a header ends follows from its counts in every version, so that damage is not taken for another one, nor
	// another one for an unfinished end, which the next block overwrites. Metrics of version 1 had no sums.
	version, perMetric := binary.LittleEndian.Uint16(head[4:]), blockMetric
	if version == 1 {
		perMetric -= 4
	}
	metrics, limits := int(binary.LittleEndian.Uint16(head[36:])), int(binary.LittleEndian.Uint16(head[38:]))
	sum := blockFixed + 8*limits + perMetric*metrics
	if sum+4 > len(head) || appendlog.Sum(head[:sum]) != binary.LittleEndian.Uint32(head[sum:]) {
		return nil, fmt.Errorf("%w: the block's header has a wrong checksum", errDamaged)
	}
	where := fmt.Sprintf("block at byte %d of %s", offset, path)
	if err := disk.CheckVersion(where, version, blockVersion); err != nil {
		return nil, err
	}
	f := &frame{
		start: int64(binary.LittleEndian.Uint64(head[8:])), id: binary.LittleEndian.Uint64(head[16:]),
		offset: offset, size: int64(binary.LittleEndian.Uint64(head[24:])),
		chunks: int(binary.LittleEndian.Uint32(head[32:])), file: file, path: path,
	}
	if f.size < int64(sum+4) || f.size > fileSize-offset || f.chunks > maxChunks {
		return nil, fmt.Errorf("%w: a block of %d bytes with %d chunks, %d bytes are there", errDamaged, f.size,
			f.chunks, fileSize-offset)
	}
	for i := range limits {
		f.limits = append(f.limits, math.Float64frombits(binary.LittleEndian.Uint64(head[blockFixed+8*i:])))
	}
	for i := range metrics {
		b := head[blockFixed+8*limits+blockMetric*i:]
		m := frameMetric{
			metric: collector.Metric(b[0]), at: int64(binary.LittleEndian.Uint64(b[1:])),
			index: binary.LittleEndian.Uint32(b[9:]), dataBytes: binary.LittleEndian.Uint32(b[13:]),
			sum: binary.LittleEndian.Uint32(b[17:]),
		}
		if int(m.metric) >= collector.MetricCount {
			return nil, fmt.Errorf("block at byte %d of %s has metric number %d: %w", offset, path, m.metric,
				disk.ErrNewerFormat)
		}
		if m.at < 0 || m.dataAt(f.chunks)+int64(m.dataBytes) > f.size {
			return nil, fmt.Errorf("%w: metric %s lies outside the block", errDamaged, m.metric)
		}
		f.metrics = append(f.metrics, m)
	}
	return f, nil
}

func (f *frame) metric(m collector.Metric) *frameMetric {
	for i := range f.metrics {
		if f.metrics[i].metric == m {
			return &f.metrics[i]
		}
	}
	return nil
}
