package live

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
	"fairway/webui/api"
)

// A grid frame is one binary message of the live feed, little-endian:
//
//	byte 0      version, 1
//	byte 1      metric, see GridMetrics
//	bytes 2-3   reserved, 0
//	bytes 4-7   generation of the machine's list of nodes, uint32
//	bytes 8-15  time, Unix ms of the snapshot or the past second, int64
//	bytes 16-23 full scale: the value of ten tenths, in the metric's unit, float64
//	bytes 24-27 count, uint32
//	then        count cells, one byte each, in the order of GET /api/v1/nodes?role=compute
//
// A cell is 0-9 for tenths of full scale, api.LevelIdle below 1 % of it, api.LevelUnknown without a fresh value.
const (
	GridVersion = 1
	gridHeader  = 28
)

// GridMetrics are the scales of the compute grid; the index is the frame's metric byte.
var GridMetrics = api.ScalesOf(topology.Compute)

// Grids makes grid frames. It keeps the shown levels, so that a value on a border between two
// steps does not flicker; one per Picture, for one goroutine at a time.
type Grids struct {
	p  *Picture
	mu sync.Mutex // guards everything that follows
	of map[int]*grid
}

type grid struct {
	generation uint32
	*places
	full  float64   // ten tenths of a cell
	peaks []float64 // the same of each cell, where nodes differ; else nil
	shown []byte
	next  []float64 // share of full scale; NaN is not known
}

// NewGrids returns the grids of a Picture.
func NewGrids(p *Picture) *Grids { return &Grids{p: p, of: map[int]*grid{}} }

// Frame makes the frame of one metric (an index of GridMetrics) of snapshot s.
func (g *Grids) Frame(s *Snapshot, metric int) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := &GridMetrics[metric]
	c := g.of[metric]
	if c == nil || c.generation != s.Generation {
		c = newGrid(s, m)
		g.of[metric] = c
	}
	c.forget()
	c.follow(g.p.cfg.Board)
	oldest := oldestShown(s.Made)
	g.p.cfg.Board.Layer(topology.Compute, func(n *window.Node) {
		if i := c.of(n); i >= 0 && n.TimeMillis >= oldest {
			c.next[i] = sumScale(m, n.Samples) / c.fullOf(i)
		}
	})
	for i, share := range c.next {
		c.shown[i] = api.NextLevel(c.shown[i], share)
	}
	return appendGrid(metric, s.Generation, s.Made, c.full, c.shown)
}

// FrameAt makes the frame of one metric as it was in the second that began at at, out of the store.
func (g *Grids) FrameAt(ctx context.Context, metric int, at time.Time) ([]byte, error) {
	s := g.p.Snapshot()
	if at.After(s.Made) {
		return nil, fmt.Errorf("%w: %s is not past", api.ErrInvalid, at.UTC().Format(time.RFC3339))
	}
	at = at.Truncate(time.Second)
	m := &GridMetrics[metric]
	c := newGrid(s, m)
	c.forget()
	ids := make([]topology.NodeID, len(c.nodes))
	for i, n := range c.nodes {
		ids[i] = n.ID
	}
	frames, err := g.p.past.frames(ctx, ids, at, m.Metrics...)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if f := frames[id]; f != nil {
			c.next[i] = sumScale(m, f.Samples) / c.fullOf(i)
		}
	}
	for i, share := range c.next {
		c.shown[i] = api.NextLevel(api.LevelUnknown, share)
	}
	return appendGrid(metric, s.Generation, at, c.full, c.shown), nil
}

// scaleOf is ten tenths of a grid: the peak that all nodes share, where the metric goes by it.
func scaleOf(m *api.Scale, nodes []topology.Node) float64 {
	if p := samePeak(nodes); m.Peak && p > 0 {
		return p
	}
	return m.Full
}

// fullOf is ten tenths of one cell.
func (c *grid) fullOf(i int) float64 {
	if c.peaks == nil {
		return c.full
	}
	return c.peaks[i]
}

func (c *grid) forget() {
	for i := range c.next {
		c.next[i] = math.NaN()
	}
}

// sumScale adds up the samples that the grid shows; not a number without any.
func sumScale(m *api.Scale, samples []collector.Sample) float64 {
	total, left := 0.0, len(m.Metrics)
	first, last := m.Metrics[0], m.Metrics[left-1] // the usual scale has one or two
	for i := range samples {
		s := &samples[i]
		if s.Metric != first && s.Metric != last && (len(m.Metrics) < 3 || !slices.Contains(m.Metrics, s.Metric)) {
			continue
		}
		total, left = total+s.Value, left-1
		if left == 0 {
			return total
		}
	}
	if left == len(m.Metrics) {
		return math.NaN()
	}
	return total
}

func newGrid(s *Snapshot, m *api.Scale) *grid {
	c := &grid{generation: s.Generation, places: newPlaces(s.Machine, topology.Compute)}
	if c.full = scaleOf(m, c.nodes); m.Peak && samePeak(c.nodes) == 0 {
		for _, n := range c.nodes {
			c.peaks = append(c.peaks, cmp.Or(max(0, n.PeakBytesPerSec), c.full))
		}
	}
	c.next, c.shown = make([]float64, len(c.nodes)), make([]byte, len(c.nodes))
	for i := range c.shown {
		c.shown[i] = api.LevelUnknown
	}
	return c
}

// samePeak is the peak that all nodes share; 0 when they differ or one is not known.
func samePeak(nodes []topology.Node) float64 {
	if len(nodes) == 0 {
		return 0
	}
	for _, n := range nodes {
		if n.PeakBytesPerSec != nodes[0].PeakBytesPerSec {
			return 0
		}
	}
	return nodes[0].PeakBytesPerSec
}

func appendGrid(metric int, generation uint32, at time.Time, full float64, cells []byte) []byte {
	b := append(make([]byte, 0, gridHeader+len(cells)), GridVersion, byte(metric), 0, 0)
	b = binary.LittleEndian.AppendUint32(b, generation)
	b = binary.LittleEndian.AppendUint64(b, uint64(at.UnixMilli()))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(full))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(cells)))
	return append(b, cells...)
}
