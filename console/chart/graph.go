package chart

import (
	"math"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"fairway/anomaly"
)

// The heights of a graph of one line, in block graphics and in what every terminal has.
var (
	blockSteps = []rune("▁▂▃▄▅▆▇█")
	asciiSteps = []rune("_.:-=+*#")
)

func (p *Palette) steps() []rune {
	if p.Blocks {
		return blockSteps
	}
	return asciiSteps
}

// Graph draws values on a scale from 0 to top in w columns and some lines, the newest at the right; a column has the
// largest of its values. A missing one is a gap.
func (p *Palette) Graph(values []*float64, top float64, w, high int) []string {
	steps := p.steps()
	all := len(steps) * high
	lines := make([]string, high)
	var b strings.Builder
	for row := range high {
		b.Reset()
		under := all - len(steps)*(row+1) // steps in the lines below this one
		for _, v := range columns(values, w) {
			step := 0
			if top > 0 {
				step = max(0, min(all-1, int(v/top*float64(all))))
			}
			if step -= under; math.IsNaN(v) || step < 0 {
				b.WriteByte(' ')
			} else {
				b.WriteRune(steps[min(step, len(steps)-1)])
			}
		}
		lines[row] = b.String()
	}
	return lines
}

// columns puts values into w columns, the newest at the right; NaN is a gap. Each column but those of a short past has
// as many values, so that a column does not change while others come.
func columns(values []*float64, w int) []float64 {
	out := make([]float64, max(0, w))
	for i := range out {
		out[i] = math.NaN()
	}
	if w <= 0 || len(values) == 0 {
		return out
	}
	each := max(1, (len(values)+w-1)/w)
	for i, v := range values {
		k := w - 1 - (len(values)-1-i)/each
		if k >= 0 && v != nil && !(out[k] >= *v) {
			out[k] = *v
		}
	}
	return out
}

// slowSteps are from how many times as long as its peers on a forwarder is a step slower: the scale of every page.
var slowSteps = [8]float64{0, 1.5, 2, 3, 5, 10, 20, 50}

// SlowStep is where on that scale a forwarder is, 0 to 7; 0 is among its peers.
func SlowStep(slow float64) int {
	for i := len(slowSteps) - 1; i > 0; i-- {
		if slow >= slowSteps[i]*0.995 {
			return i
		}
	}
	return 0
}

// SlowGraph draws how many times as long as its peers a forwarder took. The lowest step is its peers' band; what is
// above it is painted.
func (p *Palette) SlowGraph(slow []*float64, w int, look string) string {
	steps := p.steps()
	var b strings.Builder
	painted := false
	for _, v := range columns(slow, w) {
		up := !math.IsNaN(v) && SlowStep(v) > 0
		if up != painted && look != "" {
			if up {
				b.WriteString(look)
			} else {
				b.WriteString(p.Reset)
			}
			painted = up
		}
		if math.IsNaN(v) {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(steps[SlowStep(v)])
	}
	if painted {
		b.WriteString(p.Reset)
	}
	return b.String()
}

// Times is a ratio to peers as people say it: 1x, 2.4x, 10x, over 100x.
func Times(v *float64) string {
	if v == nil {
		return Missing
	}
	if *v < 1.5 {
		return "1x"
	}
	return anomaly.Times(*v)
}

// Box puts a frame of w columns and h lines around lines, with a title in its upper edge.
func (p *Palette) Box(title string, lines []string, w, h int) []string {
	if w < 6 || h < 2 {
		return lines
	}
	corner, flat, side := [4]string{"+", "+", "+", "+"}, "-", "|"
	if p.Blocks {
		corner, flat, side = [4]string{"╭", "╮", "╰", "╯"}, "─", "│"
	}
	head := Clip(" "+title+" ", w-4)
	edge := p.Paint(p.Frame, corner[0]+flat) + p.Paint(p.Bold, head) +
		p.Paint(p.Frame, strings.Repeat(flat, max(0, w-3-ansi.StringWidth(head)))+corner[1])
	out := []string{edge}
	side = p.Paint(p.Frame, side)
	for i := range h - 2 {
		line := ""
		if i < len(lines) {
			line = lines[i]
		}
		out = append(out, side+Left(line, w-2)+side)
	}
	return append(out, p.Paint(p.Frame, corner[2]+strings.Repeat(flat, w-2)+corner[3]))
}

// Beside sets two columns of lines side by side, the left one of w columns.
func Beside(left []string, w int, right []string) []string {
	var out []string
	for i := range max(len(left), len(right)) {
		l, r := "", ""
		if i < len(left) {
			l = left[i]
		}
		if i < len(right) {
			r = right[i]
		}
		out = append(out, Left(l, w)+r)
	}
	return out
}
