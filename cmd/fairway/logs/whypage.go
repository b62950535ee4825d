package logs

import (
	"fmt"
	"html/template"
	"io"

	"fairway/anomaly/rootcause"
	"fairway/cmd/fairway/cli"
	"fairway/console/screen/job"
	"fairway/webui/api"
)

// causePage is a job's explanation as one page: no script, no font, no picture from elsewhere.
const causePage = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Job {{.Job}}: where its I/O time went</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #1a1a1a }
h1 { font-size: 1.4em } h2 { font-size: 1.15em; margin-top: 2em } h3 { font-size: 1em }
.main { border-left: 4px solid #b3261e; padding: .4em .8em; background: #f7f0ef }
li { margin: .3em 0 } li.cause { font-weight: 600 } li p { margin: .1em 0; font-weight: 400; color: #555 }
svg { width: 100%; height: 2.2em; background: #eee } rect { fill: #2f6f9f } rect.odd { fill: #7fb0d0 }
table { border-collapse: collapse } td, th { padding: .15em .8em .15em 0; text-align: left; vertical-align: top }
td.n, th.n { text-align: right } td:first-child { overflow-wrap: anywhere }
</style></head><body>
<h1>Job {{.Job}}: where its I/O time went</h1>
{{with .Forwarders}}<p>Forwarders: {{range .}}{{.}} {{end}}</p>{{end}}
{{range .Logs}}<h2>{{.App}}: {{.Procs}} processes, {{stamp .Start}}</h2>
{{with .Main}}<p class="main">{{.Text}}{{with .Advice}} {{.}}{{end}}</p>{{end}}
{{range directions .}}<h3>{{.Name}}</h3>
{{if not .Answer}}<p>none</p>{{else}}
{{with pieces .Answer}}<svg viewBox="0 0 1000 20" preserveAspectRatio="none" role="img">
{{range .}}<rect x="{{.X}}" width="{{.Width}}" height="20"{{if .Odd}} class="odd"{{end}}><title>{{.Text}}</title></rect>
{{end}}</svg>{{end}}
<ul>{{range .Answer.Reasons}}<li{{if .Cause}} class="cause"{{end}}>{{.Text}}{{with .Advice}}<p>{{.}}</p>{{end}}</li>
{{end}}</ul>
<table><tr><th>Critical file</th><th class="n">From s</th><th class="n">Exclusive s</th>
<th class="n">Of I/O time</th></tr>
{{$a := .Answer}}{{range longest .Answer}}<tr><td>{{.Name}}</td><td class="n">{{printf "%.1f" .Start}}</td>
<td class="n">{{printf "%.1f" .Exclusive}}</td><td class="n">{{share . $a}}</td></tr>
{{end}}</table>{{end}}{{end}}{{end}}
</body></html>
`

// directionOf is one direction of a program's I/O; Answer is nil where there was none.
type directionOf struct {
	Name   string
	Answer *rootcause.Answer
}

// pieceOf is a block of the strip, in thousandths of its width.
type pieceOf struct {
	X, Width float64
	Odd      bool
	Text     string
}

// piecesOf places the critical files' pieces side by side on the job's clock.
func piecesOf(a *rootcause.Answer) (out []pieceOf) {
	if len(a.Critical) == 0 {
		return nil
	}
	from, to := a.Critical[0].Start, a.Critical[0].End
	for _, c := range a.Critical {
		from, to = min(from, c.Start), max(to, c.End)
	}
	scale := 1000 / max(1e-9, to-from)
	for i, c := range a.Critical {
		out = append(out, pieceOf{(c.Start - from) * scale, max(1, c.Exclusive*scale), i%2 == 1,
			fmt.Sprintf("%s: %.1f s from %.1f s", c.Name, c.Exclusive, c.Start)})
	}
	return out
}

// writeCausePage writes a job's explanation as one HTML page.
func writeCausePage(w io.Writer, v api.JobCause) error {
	page, err := template.New("why").Funcs(template.FuncMap{
		"stamp":  cli.Stamp,
		"pieces": piecesOf,
		"directions": func(l api.LogCause) []directionOf {
			return []directionOf{{"Reads", l.Read}, {"Writes", l.Write}}
		},
		"longest": func(a *rootcause.Answer) []rootcause.Critical {
			return job.LongestCritical(a.Critical, shownCritical)
		},
		"share": func(c rootcause.Critical, a *rootcause.Answer) string {
			return fmt.Sprintf("%.0f %%", 100*c.Exclusive/a.IOTime)
		},
	}).Parse(causePage)
	if err != nil {
		return err
	}
	return page.Execute(w, v)
}
