package block

import (
	"bytes"
	"math"
	"runtime"
	"testing"

	"fairway/collector"
	"fairway/tsdb/engine/column"
	"fairway/tsdb/engine/rows"
)

// sampleBlock is a small sealed block to start from.
func sampleBlock() []byte {
	b := rows.NewBlock(1, 1_700_000_400)
	var layouts rows.Layouts
	for node := range 70 {
		metrics := []collector.Metric{collector.ReadOps, collector.ReadBytes, collector.MetaWait}
		n, secs := b.Ensure(node, layouts.Of(nil, metrics))
		for sec := range 119 + node%2 {
			if node%9 > 0 || sec == 0 {
				var next []uint64
				for _, v := range []float64{float64(sec % 5), float64(sec % 5 * 4096), float64(node*sec) / 7} {
					next = append(next, math.Float64bits(v))
				}
				var row [rows.MaxBytes + rows.Slack]byte
				n.Append(sec, row[:rows.Put(row[:], next)])
			}
			secs.Set(sec)
		}
	}
	return new(Sealer).Seal(b, func(int) float64 { return 9000 })
}

// FuzzBlock reads arbitrary bytes as a block file: any answer but a crash, a value outside its own
// figures, or more memory than the file warrants.
func FuzzBlock(f *testing.F) {
	block := append(newFileHeader(), sampleBlock()...)
	f.Add(block)
	f.Add(block[:len(block)-20])
	f.Add(append(block[:len(block):len(block)], sampleBlock()...))
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		frames, _, _, err := walkFrames(bytes.NewReader(data), "fuzz", int64(len(data)))
		if err != nil {
			return
		}
		for _, fr := range frames {
			if fr.chunks > 4 { // chunks that the file has no room for cost nothing but time
				fr.chunks = 4
			}
			fr.check(true)
			fr.check(false)
			var r frameReader
			var c column.Column
			for i := range fr.metrics {
				if ok, err := r.column(fr, fr.metrics[i].metric, 1, &c); ok && err == nil &&
					c.Stats.Count > column.Seconds {
					t.Errorf("%d seconds", c.Stats.Count)
				}
			}
		}
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20+uint64(len(data))*200 {
			t.Errorf("%d bytes made it allocate %d", len(data), grown)
		}
	})
}
