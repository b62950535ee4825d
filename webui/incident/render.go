package incident

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"fairway/remap"
)

//go:embed incident.html
var htmlText string

var page = template.Must(template.New("incident").Funcs(template.FuncMap{
	"at":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
	"span":  func(s Span) string { return remap.Span(s.To.Sub(s.From).Seconds()) },
	"chart": chartSVG,
}).Parse(htmlText))

// HTML writes the incident as one page that opens from a file and asks nothing of the network.
func (inc *Incident) HTML(w io.Writer) error { return page.Execute(w, inc) }

// The size of a chart, in its own units.
const (
	width, height = 900.0, 130.0
	left, bottom  = 84.0, 18.0
)

// chartSVG draws a metric beside its peers'.
func chartSVG(inc *Incident, c Chart) template.HTML {
	top := 0.0
	for _, row := range [][]*float64{c.Node, c.High} {
		for _, v := range row {
			if v != nil {
				top = max(top, *v)
			}
		}
	}
	if top == 0 {
		top = 1
	}
	n := len(c.Node)
	x := func(i int) float64 { return left + (width-left)*float64(i)/math.Max(1, float64(n-1)) }
	y := func(v float64) float64 { return 4 + (height-bottom-8)*(1-v/top) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, width, height,
		template.HTMLEscapeString(c.Label))
	step := float64(inc.Series.StepSeconds)
	a := max(0, inc.Accused.From.Sub(inc.Series.From).Seconds()/step)
	z := min(float64(n-1), inc.Accused.To.Sub(inc.Series.From).Seconds()/step)
	if z > a {
		fmt.Fprintf(&b, `<rect class="accused" x="%.1f" y="4" width="%.1f" height="%g"/>`, x(int(a)),
			x(int(z))-x(int(a)), height-bottom-4)
	}
	b.WriteString(band(c, x, y))
	b.WriteString(line("mid", c.Mid, x, y))
	b.WriteString(line("node", c.Node, x, y))
	for _, v := range []float64{0, top / 2, top} {
		text := amount(v*c.Scale) + " " + c.Unit
		fmt.Fprintf(&b, `<text x="0" y="%.1f">%s</text>`, y(v)+4, template.HTMLEscapeString(strings.TrimSpace(text)))
	}
	for k := range 5 {
		i := k * (n - 1) / 4
		anchor := "start"
		if k == 4 {
			anchor = "end"
		}
		at := inc.Series.From.Add(time.Duration(i*inc.Series.StepSeconds) * time.Second)
		fmt.Fprintf(&b, `<text x="%.1f" y="%g" text-anchor="%s">%s</text>`, x(i), height-3, anchor,
			at.UTC().Format("15:04:05"))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// amount writes a value of an axis with three digits and no power of ten.
func amount(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// line draws what is known, in pieces.
func line(class string, row []*float64, x func(int) float64, y func(float64) float64) string {
	var d strings.Builder
	on := false
	for i, v := range row {
		if v == nil {
			on = false
			continue
		}
		op := "L"
		if !on {
			op = "M"
		}
		fmt.Fprintf(&d, "%s%.1f %.1f", op, x(i), y(*v))
		if !on { // a step between two gaps is a dot
			d.WriteString("h.8")
		}
		on = true
	}
	return fmt.Sprintf(`<path class="%s" d="%s"/>`, class, d.String())
}

// band draws the peers' range in the stretches where it is known.
func band(c Chart, x func(int) float64, y func(float64) float64) string {
	var b strings.Builder
	for i := 0; i < len(c.Low); {
		if c.Low[i] == nil {
			i++
			continue
		}
		end := i
		for end < len(c.Low) && c.Low[end] != nil {
			end++
		}
		fmt.Fprintf(&b, `<path class="band" d="M`)
		for k := i; k < end; k++ {
			fmt.Fprintf(&b, "%.1f %.1fL", x(k), y(*c.High[k]))
		}
		for k := end - 1; k >= i; k-- {
			fmt.Fprintf(&b, "%.1f %.1f", x(k), y(*c.Low[k]))
			if k > i {
				b.WriteString("L")
			}
		}
		b.WriteString(`Z"/>`)
		i = end
	}
	return b.String()
}
