package tier

import (
	"fairway/collector"
	"fairway/tsdb"
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

// figuresAt are those of bucket k of so many seconds, by their columns; without the last ones a mean stands for it.
func figuresAt(cols *[figures]column.Column, k int, seconds int64, lasts bool) tsdb.Figures {
	f := tsdb.Figures{Count: seconds - int64(cols[figAbsent].V[k]), Sum: cols[figSum].V[k], Min: cols[figMin].V[k],
		Max: cols[figMax].V[k], Last: cols[figLast].V[k]}
	if !lasts {
		f.Last = f.Sum / float64(f.Count)
	}
	return f
}

// nodeBuckets is one node's part of a tier's block.
type nodeBuckets struct {
	metrics  []collector.Metric
	by       [collector.MetricCount][column.Seconds]tsdb.Figures
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
	for k := range col.V {
		b := &c.n.by[m][k]
		count := int(b.Count)
		if c.figure == figOccupied || c.figure == figUnreported || c.figure == figLimit {
			count = c.n.reported[k]
		}
		if count == 0 {
			continue
		}
		col.Present.Set(k)
		switch c.figure {
		case figSum:
			col.V[k] = b.Sum
		case figMin:
			col.V[k] = b.Min
		case figMax:
			col.V[k] = b.Max
		case figLast:
			col.V[k] = b.Last
		case figAbsent, figUnreported:
			col.V[k] = float64(c.seconds - count)
		case figOccupied:
			col.V[k] = float64(c.n.occupied[k])
		case figLimit:
			col.V[k] = c.n.limit
		}
	}
	return col.Kept()
}
