package chart

import (
	"math"
	"strings"

	"github.com/charmbracelet/lipgloss"
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

// Most is the largest of the known values: the top of a graph.
func Most(values []*float64) (most float64) {
	for _, v := range values {
		if v != nil {
			most = max(most, *v)
		}
	}
	return most
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
	b := NewPainter(p)
	for _, v := range columns(slow, w) {
		switch {
		case math.IsNaN(v):
			b.Wear("")
			b.WriteByte(' ')
			continue
		case SlowStep(v) > 0:
			b.Wear(look)
		default:
			b.Wear("")
		}
		b.WriteRune(steps[SlowStep(v)])
	}
	return b.Painted()
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

// Card puts a frame in a look around lines, with a pill at the left of its upper edge and a tail at the right.
func (p *Palette) Card(look, pill, tail string, lines []string, w, h int) []string {
	b := p.border()
	if tail != "" {
		tail = Clip(" "+tail+" ", max(0, w-ansi.StringWidth(pill)-8))
	}
	gap := max(0, w-5-ansi.StringWidth(pill)-2-ansi.StringWidth(tail))
	edge := p.Paint(look, b.TopLeft+b.Top) + p.Paint(look+p.Reverse, " "+pill+" ") +
		p.Paint(look, strings.Repeat(b.Top, gap)) + p.Paint(p.Dim, tail) + p.Paint(look, b.Top+b.Top+b.TopRight)
	return p.framed(look, edge, " ", lines, w, h)
}

func (p *Palette) border() lipgloss.Border {
	if p.Blocks {
		return lipgloss.RoundedBorder()
	}
	return lipgloss.ASCIIBorder()
}

// framed puts an upper edge, sides with a margin and a lower edge around lines, w columns and h lines in all.
func (p *Palette) framed(look, edge, margin string, lines []string, w, h int) []string {
	b := p.border()
	out, side := []string{edge}, p.Paint(look, b.Left)
	for i := range h - 2 {
		line := ""
		if i < len(lines) {
			line = lines[i]
		}
		out = append(out, side+margin+Left(line, w-2-2*len(margin))+margin+side)
	}
	return append(out, p.Paint(look, b.BottomLeft+strings.Repeat(b.Bottom, w-2)+b.BottomRight))
}

// Braille draws values on a scale from 0 to top in w columns and some lines, the newest at the right: a line of dots,
// two a column and four a line of text. Without block graphics it is Graph.
func (p *Palette) Braille(values []*float64, top float64, w, high int) []string {
	if !p.Blocks {
		return p.Graph(values, top, w, high)
	}
	cells := make([][]rune, high)
	for i := range cells {
		cells[i] = []rune(strings.Repeat("\u2800", max(0, w)))
	}
	bits := [4][2]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}
	last := -1
	for i, v := range columns(values, 2*w) {
		if math.IsNaN(v) || top <= 0 {
			last = -1
			continue
		}
		at := 4*high - 1 - max(0, min(4*high-1, int(v/top*float64(4*high))))
		from, to := at, at
		if last >= 0 { // a step is a line, not two dots
			from, to = min(at, last), max(at, last)
		}
		for y := from; y <= to; y++ {
			cells[y/4][i/2] |= bits[y%4][i%2]
		}
		last = at
	}
	lines := make([]string, high)
	for i := range cells {
		lines[i] = strings.ReplaceAll(string(cells[i]), "\u2800", " ")
	}
	return lines
}

// Box puts a frame of w columns and h lines around lines, with a title in its upper edge.
func (p *Palette) Box(title string, lines []string, w, h int) []string {
	if w < 6 || h < 2 {
		return lines
	}
	b := p.border()
	head := Clip(" "+title+" ", w-4)
	edge := p.Paint(p.Frame, b.TopLeft+b.Top) + p.Paint(p.Bold, head) +
		p.Paint(p.Frame, strings.Repeat(b.Top, max(0, w-3-ansi.StringWidth(head)))+b.TopRight)
	return p.framed(p.Frame, edge, "", lines, w, h)
}

// Side is what stands between two columns of lines.
func (p *Palette) Side() string {
	return p.Paint(p.Frame, p.Glyph(" │ ", " | "))
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
