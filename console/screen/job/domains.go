package job

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
	"fairway/remap/policy/sharedfiles"
	"fairway/webui/api"
)

// Domains compares the ways of dividing a job's shared file and advises hints.
type Domains struct {
	screen.Place
	screen.Page[api.DomainsView]
	id   topology.JobID
	edit *screen.Input
	top  int
}

func NewDomains(a screen.Address) *Domains {
	return &Domains{Place: screen.Place{On: screen.OnDomains, At: screen.Address{Page: "jobs", ID: a.ID,
		Part: screen.PartDomains, Domains: a.Domains}}, id: topology.JobID(a.ID)}
}

func (p *Domains) Field() *screen.Input { return p.edit }

func (p *Domains) call() string {
	return strings.TrimSpace("file domains of " + string(p.id) + " " + p.At.Domains.Values().Encode())
}

func (p *Domains) Refresh(s *screen.State) tea.Cmd {
	query := p.At.Domains
	return p.Load.Refresh(s, p.call(),
		func(ctx context.Context) (api.DomainsView, error) { return s.Server.Domains(ctx, p.id, query) })
}

// Typed reads "servers=8 stripe_size=1048576 aggregators=16"; an empty line takes all back.
func (p *Domains) Typed(s *screen.State, ok bool) tea.Cmd {
	text := p.edit.Text
	p.edit = nil
	if !ok {
		return nil
	}
	given, err := url.ParseQuery(strings.Join(strings.Fields(text), "&"))
	if err == nil {
		for name := range given {
			if !slices.Contains([]string{"servers", "stripe_size", "aggregators"}, name) {
				err = fmt.Errorf("%q: want servers=N, stripe_size=BYTES, aggregators=N, any of them", name)
			}
		}
	}
	q, bad := api.ParseDomainsQuery(given)
	if err == nil {
		err = bad
	}
	if err != nil {
		s.Note = chart.Clean(err.Error())
		return nil
	}
	q.File = p.At.Domains.File
	p.At.Domains, p.top = q, 0
	return p.Refresh(s)
}

func (p *Domains) Act(s *screen.State, a screen.Action) tea.Cmd {
	switch a {
	case screen.ActOpen:
		return s.Host.Open(screen.AtJob(p.id, ""))
	case screen.ActMetric:
		n := len(p.Load.Value.Files)
		if n < 2 {
			s.Note = "no other shared file"
			return nil
		}
		p.At.Domains.File, p.top = (p.At.Domains.File+1)%n, 0
		return p.Refresh(s)
	case screen.ActEdit:
		given := p.At.Domains
		given.File = 0
		p.edit = &screen.Input{Label: "servers= stripe_size= aggregators=",
			Text: strings.ReplaceAll(given.Values().Encode(),
				"&", " ")}
	default:
		p.top += a.Step() // kept in range where it is drawn
	}
	return nil
}

func (p *Domains) Title(*screen.State, int) string {
	return " file domains of job " + chart.Clean(string(p.id))
}

func (p *Domains) Body(s *screen.State, w, h int) []string {
	if !p.Load.Have || !p.Load.Of(p.call()) {
		return p.Load.Missing(s, "the shared files of job "+chart.Clean(string(p.id)), w)
	}
	v := &p.Load.Value
	var lines []string
	lines = append(lines, p.Load.Old(s, "as they were", w)...)
	if len(v.Files) == 0 {
		lines = append(lines,
			chart.Paragraphs(w,
				"No file of this job was written by several processes, as far as its logs and its profile show: "+
					"there is nothing to divide.")...)
		return append(lines,
			chart.Paragraphs(w,
				"Counters of nodes do not distinguish one shared file from many: 'fairway import PATH' "+
					"reads the job's "+
					"Darshan log.")...)
	}
	f := &v.Files[v.File]
	which := ""
	if n := len(v.Files) + v.Left; n > 1 {
		which = fmt.Sprintf("  (%d of %d shared files, the most bytes first)", v.File+1, n)
	}
	lines = append(lines, chart.Labelled("FILE", chart.OrMissing(f.Name)+which, w)...)
	lines = append(lines, chart.Labelled("WRITTEN",
		fmt.Sprintf("%s by %s of %s, through %s", anomaly.Size(float64(f.Bytes)),
			anomaly.Counted(f.Procs, "process"), chart.OrMissing(f.App), throughWords(f.Through)), w)...)
	if v.Problem != "" {
		return append(append(lines, chart.Labelled("MISSING", chart.Clean(v.Problem), w)...),
			chart.Labelled("", "press e and type servers=N", w)...)
	}
	lines = append(lines, chart.Labelled("ASSUMED", strings.Join(v.Assumed, "; "), w)...)
	return table.Scroll(append(lines, p.advised(s, w)...), &p.top, h)
}

// advised is what follows from a case: the advice and what it rests on.
func (p *Domains) advised(s *screen.State, w int) []string {
	v := &p.Load.Value
	lines := screen.Labelled(s, "ADVICE", v.Advice.Why, w)
	if v.Caveat != "" {
		lines = append(lines, chart.Labelled("!!", v.Caveat, w)...)
	}
	for i, name := range slices.Sorted(maps.Keys(v.Advice.Hints)) {
		label := ""
		if i == 0 {
			label = "HINTS"
		}
		lines = append(lines, chart.Labelled(label, name+"="+v.Advice.Hints[name]+"  "+v.Advice.Effects[name], w)...)
	}
	widths := []int{-15, 11, 9, 11, 9, 11, 9}
	lines = append(lines, s.Bold(chart.Clip(" "+chart.Row(widths, "METHOD", "CONFLICTS", "ON ONE", "LOCKS", "ON ONE",
		"REQUESTS", "WRITERS"), w)))
	for i := range v.Methods {
		m := &v.Methods[i]
		lines = append(lines, chart.Clip(" "+chart.Row(widths, string(m.Method), fmt.Sprint(m.TotalConflicts()),
			fmt.Sprint(slices.Max(m.Conflicts)), fmt.Sprint(m.TotalLocks()), fmt.Sprint(slices.Max(m.LockRequests)),
			fmt.Sprint(m.Requests), fmt.Sprint(m.AggregatorsUsed)), w))
	}
	lines = append(lines,
		chart.Clip(" over all servers and on the worst one; a conflict: a server's next stripe has another writer", w))
	lines = append(lines, p.stripes(s, w)...)
	lines = append(lines, p.servers(s, w)...)
	twin, _ := json.Marshal(v.Case) // it came as JSON
	return append(lines, chart.Labelled("CASE", "other numbers: e here, or 'fairway filedomain CASE.json' with "+
		string(twin),
		w)...)
}

// stripes draws who writes the first stripes under each method.
func (p *Domains) stripes(s *screen.State, w int) []string {
	v := &p.Load.Value
	n := min(v.Window.Stripes, max(8, w-18))
	at := max(0, min(v.Window.Cut-n/2, v.Window.Stripes-n))
	from := v.Window.First + int64(at)
	lines := []string{s.Palette.Paint(s.Palette.Bold,
		chart.Clip(fmt.Sprintf(" STRIPES        %d to %d: a letter a writer, in turn, / where writers meet", from,
			from+int64(n)-1), w))}
	for i := range v.Methods {
		row := make([]byte, n)
		for k, own := range v.Methods[i].Owners[at : at+n] {
			if row[k] = '/'; len(own) == 1 {
				row[k] = 'a' + byte(own[0]%26)
			}
		}
		lines = append(lines, chart.Clip(" "+chart.Left(string(v.Methods[i].Method), 15)+string(row), w))
	}
	return lines
}

// serverRows is how many servers are listed.
const serverRows = 64

// servers lists conflicts and lock requests of each server, method by method.
func (p *Domains) servers(s *screen.State, w int) []string {
	v := &p.Load.Value
	wide := max(9, (w-9)/len(v.Methods))
	head := " " + chart.Left("SERVER", 7)
	for i := range v.Methods {
		head += chart.Right(string(v.Methods[i].Method), wide)
	}
	lines := []string{s.Bold(chart.Clip(head, w))}
	for k := range min(v.Case.Servers, serverRows) {
		line := " " + chart.Left(strconv.Itoa(k), 7)
		for i := range v.Methods {
			m := &v.Methods[i]
			line += chart.Right(fmt.Sprintf("%d/%d", m.Conflicts[k], m.LockRequests[k]), wide)
		}
		lines = append(lines, chart.Clip(line, w))
	}
	text := " conflicts/locks"
	if v.Case.Servers > serverRows {
		text += fmt.Sprintf("; the first %d of %d servers", serverRows, v.Case.Servers)
	}
	return append(lines, chart.Clip(text, w))
}

// throughWords is what a shared file was written through, in a sentence.
func throughWords(through string) string {
	if through == sharedfiles.NotKnown {
		return "an unknown way"
	}
	return through
}
