package tier

import (
	"fairway/collector"
	"fairway/tsdb/engine/column"
)

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

// bucketFigures is one metric's buckets of a block.
type bucketFigures struct {
	count               [column.Seconds]int
	sum, min, max, last [column.Seconds]float64
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
	occupied [column.Seconds]int
	reported [column.Seconds]int
}

func (n *nodeBuckets) reset() { *n = nodeBuckets{metrics: n.metrics[:0]} }

// figureColumns shows one figure of a node to a block.Writer.
type figureColumns struct {
	n       *nodeBuckets
	figure  figure
	seconds int
}

var occupancyMetric = []collector.Metric{collector.ReadBytes}

func (c figureColumns) Metrics() []collector.Metric {
	switch c.figure {
	case figOccupied, figUnreported, figLimit:
		if c.n.limit <= 0 {
			return nil
		}
		return occupancyMetric
	}
	return c.n.metrics
}

func (c figureColumns) Read(m collector.Metric, col *column.Column, _ *column.Whole) (column.Kind, float64) {
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
		return column.None, 0
	}
	col.Measure()
	if col.Stats.Count == column.Seconds && col.Stats.Min == col.Stats.Max {
		return column.Constant, col.Stats.Min
	}
	return column.Varied, 0
}
