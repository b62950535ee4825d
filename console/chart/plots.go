package chart

import (
	"math"
	"strings"
	"time"

	"fairway/tsdb"
	"fairway/webui/api"
)

// RangeBar draws the least, the mean and the most of shares 0..1 in w cells: |---*----|.
func RangeBar(least, mean, most float64, w int) string {
	at := func(v float64) int { return max(0, min(w-1, int(math.Round(v*float64(w-1))))) }
	line := []byte(strings.Repeat(" ", w))
	for i := at(least); i <= at(most); i++ {
		line[i] = '-'
	}
	line[at(least)], line[at(most)] = '|', '|'
	line[at(mean)] = '*'
	return strings.TrimRight(string(line), " ")
}

// sparkSteps are the heights of a sparkline in characters every terminal has.
var sparkSteps = []rune("_.-=*#")

// Sparkline draws the last w seconds before end, one column a bucket holding the largest value of
// its seconds; a second without a point leaves a gap.
func (p *Palette) Sparkline(points []tsdb.Point, end time.Time, span time.Duration, top float64, w int) string {
	if w <= 0 || top <= 0 {
		return strings.Repeat(" ", max(0, w))
	}
	peak := make([]float64, w)
	for i := range peak {
		peak[i] = -1
	}
	start, width := end.Add(-span).UnixMilli(), float64(span.Milliseconds())/float64(w)
	for _, one := range points {
		i := int(math.Floor(float64(one.TimeMillis-start) / width))
		if i >= 0 && i < w && one.Value > peak[i] {
			peak[i] = one.Value
		}
	}
	steps := sparkSteps
	if p.Blocks {
		steps = blockSteps
	}
	line := make([]rune, w)
	for i, v := range peak {
		line[i] = ' '
		if v >= 0 {
			line[i] = steps[min(len(steps)-1, int(v/top*float64(len(steps))))]
		}
	}
	return string(line)
}

// Bar is a progress bar of w columns, 0..1.
func Bar(done float64, w int) string {
	n := max(0, min(w, int(done*float64(w)+0.5)))
	return "[" + strings.Repeat("#", n) + strings.Repeat("-", w-n) + "]"
}

// Tenths draws bandwidths as the grid does levels, and a computation elsewhere.
func Tenths(p *Palette, io []float64, most float64, computes []bool) string {
	b := NewPainter(p)
	for c, bw := range io {
		look, symbol := "", byte(' ')
		switch {
		case bw > most*1e-9:
			l := min(9, int(bw/most*10))
			look, symbol = p.Level[l], byte('0'+l)
		case computes[c]:
			symbol = '-'
		}
		b.Wear(look)
		b.WriteByte(symbol)
	}
	return b.Painted()
}

// BoxPlot draws |--[==|==]--| from the least to the most value in w cells, with o where the job stands.
func BoxPlot(s *api.Spread, w int) string {
	from, to := s.Min, s.Max
	if s.This != nil {
		from, to = min(from, *s.This), max(to, *s.This)
	}
	at := func(v float64) int {
		if to <= from {
			return w / 2
		}
		return max(0, min(w-1, int((v-from)/(to-from)*float64(w-1)+0.5)))
	}
	line := []byte(strings.Repeat(" ", w))
	fill := func(a, b float64, c byte) {
		for i := at(a); i <= at(b); i++ {
			line[i] = c
		}
	}
	fill(s.Min, s.Max, '-')
	line[at(s.Min)], line[at(s.Max)] = '|', '|'
	fill(s.Q1, s.Q3, '=')
	line[at(s.Q1)], line[at(s.Q3)] = '[', ']'
	line[at(s.Median)] = '|'
	if s.This != nil {
		line[at(*s.This)] = 'o'
	}
	return string(line)
}
