package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	texttemplate "text/template"
	"time"

	"fairway/anomaly"
	"fairway/collector/escape"
	"fairway/remap"
)

var (
	//go:embed report.html
	htmlText string
	//go:embed report.md.tmpl
	markdownText string

	page = template.Must(template.New("report").Funcs(template.FuncMap(words)).Funcs(template.FuncMap{
		"volume": volumeChart, "slow": slowChart}).Parse(htmlText))
	markdown = texttemplate.Must(texttemplate.New("report").Funcs(words).Parse(markdownText))
)

// words are the functions that both forms use.
var words = texttemplate.FuncMap{
	"bytes": anomaly.Size, "count": countText, "span": spanText, "percent": func(x float64) string {
		return fmt.Sprintf("%.1f %%", 100*x)
	},
	"ratio": func(x *float64) string {
		if x == nil {
			return "not known"
		}
		return fmt.Sprintf("%.2fx", *x)
	},
	"day": func(t time.Time) string { return t.Format("2006-01-02 15:04 MST") },
	"kind": func(k anomaly.Kind) string {
		if k == anomaly.FailSlow { // its sentence says in which way it failed
			return ""
		}
		return remap.KindWords(k) + ": "
	},
	"name":  func(s string) string { return cmp.Or(s, "(unknown)") },
	"ended": endWords, "became": planWords, "hurt": hurtWords,
	"top":   func(all []Use) []Use { return all[:min(len(all), shown)] },
	"more":  func(all []Use) int { return max(0, len(all)-shown) },
	"line":  escape.EscapeMarkdown,
	"table": func(title string, all []Use) useTable { return useTable{title, all} },
}

type useTable struct {
	Title string
	All   []Use
}

// shown is how many rows of users, projects and applications are listed.
const shown = 20

// HTML writes the report as one page that opens from a file, with its pictures in it.
func (r *Report) HTML(w io.Writer) error { return page.Execute(w, r) }

// Markdown writes the report for a wiki or a terminal.
func (r *Report) Markdown(w io.Writer) error { return markdown.Execute(w, r) }

func countText(x float64) string {
	switch {
	case x >= 1e9:
		return fmt.Sprintf("%.3g G", x/1e9)
	case x >= 1e6:
		return fmt.Sprintf("%.3g M", x/1e6)
	case x >= 1e4:
		return fmt.Sprintf("%.3g k", x/1e3)
	}
	return fmt.Sprintf("%.0f", x)
}

func spanText(seconds float64) string {
	if d := time.Duration(seconds * float64(time.Second)); d >= 48*time.Hour {
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	}
	return remap.Span(seconds) // as on the pages
}

// The charts' size in units of their view box.
const (
	chartWidth, chartHeight = 960.0, 160.0
	chartLeft, chartBottom  = 60.0, 18.0
	dayWidth                = 60.0 // of "Wed 25 Nov" at the chart's type
)

// volumeChart draws read, written and routed bytes a second, step by step.
func volumeChart(r *Report) template.HTML {
	steps, seconds := r.Layer.Steps, float64(r.Layer.StepSeconds)
	most := 0.0
	for _, s := range steps {
		most = max(most, s.ReadBytes+s.WriteBytes+s.Routed)
	}
	if most == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="Moved by all forwarders">`,
		chartLeft+chartWidth, chartHeight+chartBottom)
	scale := (chartHeight - 10) / most
	width := chartWidth / float64(len(steps))
	for i, s := range steps {
		x, y := chartLeft+float64(i)*width, chartHeight
		for _, part := range []struct {
			class string
			bytes float64
		}{{"p", s.Routed}, {"w", s.WriteBytes}, {"r", s.ReadBytes}} {
			if high := part.bytes * scale; high > 0 {
				y -= high
				fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, part.class, x, y,
					math.Max(width-.5, .5), high)
			}
		}
	}
	fmt.Fprintf(&b, `<text x="0" y="12">%s/s</text><text x="0" y="%g">0</text>`, anomaly.Size(most/seconds),
		chartHeight)
	b.WriteString(r.axis())
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) // numbers and this file's words only
}

// maxSlowRows bounds the chart of slow forwarders; the table has all of them.
const maxSlowRows = 30

// slowChart draws when each forwarder was slow.
func slowChart(r *Report) template.HTML {
	var nodes []string
	for _, f := range r.Findings {
		if !slices.Contains(nodes, f.Node) && len(nodes) < maxSlowRows {
			nodes = append(nodes, f.Node)
		}
	}
	if len(nodes) == 0 {
		return ""
	}
	const row = 16.0
	height := row * float64(len(nodes))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="When forwarders were slow">`, chartLeft+chartWidth,
		height+chartBottom)
	span := r.To.Sub(r.From).Seconds()
	for i, n := range nodes {
		y := float64(i) * row
		fmt.Fprintf(&b, `<text x="0" y="%g">%s</text>`, y+12, template.HTMLEscapeString(n))
		for _, f := range r.Findings {
			if f.Node != n {
				continue
			}
			begin := max(0, f.Since.Sub(r.From).Seconds())
			class := "s"
			if f.Excluded {
				class = "x"
			}
			fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%g" width="%.1f" height="%g"><title>%s</title></rect>`, class,
				chartLeft+begin/span*chartWidth, y+2, math.Max(2, f.Seconds/span*chartWidth), row-4,
				template.HTMLEscapeString(f.ID+": "+f.Sentence))
		}
	}
	fmt.Fprintf(&b, `<g transform="translate(0 %g)">%s</g></svg>`, height-chartHeight, r.axis())
	return template.HTML(b.String()) // names are escaped above
}

// axis marks the days below a chart, at most eight of them.
func (r *Report) axis() string {
	days := int(r.To.Sub(r.From).Hours()/24) + 1
	every := (days + 7) / 8
	var b strings.Builder
	y, m, d := r.From.Date()
	for t := time.Date(y, m, d, 0, 0, 0, 0, r.From.Location()); t.Before(r.To); t = t.AddDate(0, 0, every) {
		if t.Before(r.From) {
			continue
		}
		x := chartLeft + t.Sub(r.From).Seconds()/r.To.Sub(r.From).Seconds()*chartWidth
		at, anchor := x+3, "start"
		if x+dayWidth > chartLeft+chartWidth { // the newest day has only begun
			at, anchor = x-3, "end"
		}
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="0" y2="%g"/><text x="%.1f" y="%g" text-anchor="%s">%s</text>`,
			x, x, chartHeight, at, chartHeight+13, anchor, t.Format("Mon 2 Jan"))
	}
	return b.String()
}
