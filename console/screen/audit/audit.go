// Package audit shows who did what.
package audit

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
	"fairway/webui/api"
)

// auditRows is how many entries the page asks for.
const auditRows = 500

// Screen is the append-only record of who did what, the newest first, all of it or what a filter
// lets through.
type Screen struct {
	query   api.AuditQuery
	entries screen.Load[[]api.AuditEntry]
	cursor  int
	typing  *screen.Input
	refused string // why the text typed is not a filter
}

func New(a screen.Address) *Screen {
	return &Screen{query: api.AuditQuery{Actor: a.Actor, Subject: a.Subject, From: a.From, To: a.To, Limit: auditRows}}
}

func (p *Screen) Name() string { return screen.OnAudit }

func (p *Screen) Address(*screen.State) screen.Address {
	return screen.Address{Page: "audit", AuditFilter: screen.AuditFilter{Actor: p.query.Actor, Subject: p.query.Subject,
		From: p.query.From, To: p.query.To}}
}

// Refresh asks for what was done up to the second shown.
func (p *Screen) Refresh(s *screen.State) tea.Cmd {
	q := p.query
	if s.Replays() {
		end := s.Past.Add(time.Second)
		if to, ok := auditMoment(q.To, s.Now); !ok || to.After(end) {
			q.To = end.UTC().Format(time.RFC3339)
		}
	}
	call := strings.TrimSpace("audit " + auditText(q, time.UTC))
	return p.entries.Refresh(s, call, screen.With(s.Server.Audit, q))
}

func (p *Screen) Answer(s *screen.State, msg tea.Msg) tea.Cmd {
	p.entries.Take(msg)
	p.cursor = max(0, min(p.cursor, len(p.entries.Value)-1))
	return nil
}

func (p *Screen) Field() *screen.Input { return p.typing }

// Typed asks anew with the filter typed; one that cannot be read stays open.
func (p *Screen) Typed(s *screen.State, ok bool) tea.Cmd {
	p.refused = ""
	if !ok {
		p.typing = nil
		return nil
	}
	q, err := parseAuditFilter(p.typing.Text, s.Now)
	if err != nil {
		p.refused = err.Error()
		return nil
	}
	p.typing, p.cursor = nil, 0
	if q != p.query {
		p.query, p.entries.Have = q, false
	}
	return p.Refresh(s)
}

func (p *Screen) Act(s *screen.State, a screen.Action) tea.Cmd {
	rows := p.entries.Value
	switch a {
	case screen.ActFilter:
		p.typing = &screen.Input{Label: "filter (actor= subject= from= to=):", Text: auditText(p.query, time.Local)}
	case screen.ActOpen:
		if p.cursor < len(rows) {
			if at, ok := addressOf(s, rows[p.cursor].Subject); ok {
				return s.Host.Open(at)
			}
		}
		s.Note = "nothing to open"
	default:
		p.cursor = a.Moved(p.cursor, len(rows))
	}
	return nil
}

// addressOf is the screen of what an entry of the audit is about, where it has one.
func addressOf(s *screen.State, subject string) (screen.Address, bool) {
	switch {
	case strings.HasPrefix(subject, "P-"):
		return screen.AtPlan(subject), true
	case strings.HasPrefix(subject, "F-"):
		return screen.AtFinding(subject), true
	case s.Forwarder(topology.ForwarderID(subject)) != nil:
		return screen.AtForwarder(topology.ForwarderID(subject)), true
	}
	return screen.Address{}, false
}

func (p *Screen) Title(s *screen.State, _ int) string {
	switch text := auditText(p.query, time.Local); {
	case text != "":
		return " audit   " + chart.Clean(text)
	case len(p.entries.Value) == auditRows:
		return " audit   the newest; " + s.Key(screen.ActFilter) + " filters, fairway audit has all"
	}
	return " audit   who did what, newest first"
}

func (p *Screen) Body(s *screen.State, w, h int) []string {
	rows := p.entries.Value
	if !p.entries.Have && p.refused == "" {
		return p.entries.Missing(s, "the audit", w)
	}
	var lines []string
	if p.refused != "" {
		lines = append(lines, s.Bold(chart.Clip(" "+chart.Clean(p.refused), w)))
	}
	lines = append(lines, p.entries.Old(s, "as it was", w)...)
	if len(rows) == 0 {
		text := "Nothing was done here yet. What is proposed, approved, applied, rolled back or excluded is kept " +
			"here for ever."
		if filter := auditText(p.query, time.Local); filter != "" {
			text = "No entry matches " + chart.Clean(filter) + ". A name must be whole: press " +
				s.Key(screen.ActFilter) +
				" to change the filter."
		}
		return append(append(lines, ""), chart.Paragraphs(w, text)...)
	}
	if p.query != (api.AuditQuery{Limit: auditRows}) {
		text := fmt.Sprintf(" %d match", len(rows))
		if len(rows) == auditRows {
			text = fmt.Sprintf(" the newest %d that match; a narrower from and to shows older ones", auditRows)
		}
		lines = append(lines, chart.Clip(text, w))
	}
	// Below 100 columns nothing of a reason would be left; the chosen one's is below the list in any width.
	line := func(seq, at, who, what, subject, result, reason string) string {
		if w < 100 {
			return chart.Row([]int{6, 2, -14, -14, -14, -13}, seq, "", at, who, what, subject) + result
		}
		return chart.Row([]int{8, 2, -14, -15, 1, -15, -13, -14}, seq, "", at, who, "", what, subject, result) + reason
	}
	lines = append(lines, s.Bold(chart.Clip(line("SEQ", "TIME", "WHO", "WHAT", "SUBJECT", "RESULT", "REASON"), w)))
	p.cursor = max(0, min(p.cursor, len(rows)-1))
	var under []string
	if reason := chart.Clean(rows[p.cursor].Reason); reason != "" && h-len(lines) > 6 {
		under = append([]string{s.Palette.Rule(w)}, chart.Paragraphs(w, reason)...)
	}
	lines = append(lines, table.Lines(s.Palette, len(rows), p.cursor, w, h-len(lines)-len(under), "",
		func(i int) string {
			r := &rows[i]
			return line(strconv.FormatUint(r.Seq, 10), chart.Moment(r.At, s.Now), chart.Clean(r.Actor),
				chart.Clean(r.Action),
				chart.Clean(r.Subject), chart.Clean(r.Result), chart.Clean(r.Reason))
		})...)
	return append(lines, under...)
}

// auditText is a filter as it is typed, its times in a zone.
func auditText(q api.AuditQuery, zone *time.Location) string {
	var words []string
	for _, f := range []struct{ name, text string }{{"actor", q.Actor}, {"subject", q.Subject}, {"from", q.From},
		{"to", q.To}} {
		if at, err := time.Parse(time.RFC3339, f.text); err == nil {
			f.text = at.In(zone).Format("2006-01-02 15:04:05")
		}
		if f.text != "" {
			words = append(words, f.name+"="+f.text)
		}
	}
	return strings.Join(words, " ")
}

// parseAuditFilter reads what was typed: words name=value, in which a value may hold spaces. Times are
// of the operator's zone and become absolute, so that the page's address means the same tomorrow.
func parseAuditFilter(text string, now time.Time) (api.AuditQuery, error) {
	q := api.AuditQuery{Limit: auditRows}
	places := map[string]*string{"actor": &q.Actor, "subject": &q.Subject, "from": &q.From, "to": &q.To}
	var to *string
	for _, word := range strings.Fields(text) {
		name, value, named := strings.Cut(word, "=")
		if place := places[name]; named && place != nil {
			to = place
			*to = value
			continue
		}
		if to == nil {
			return q, fmt.Errorf("%q: say of what, such as actor=%s", word, word)
		}
		*to = strings.TrimSpace(*to + " " + word)
	}
	for _, name := range []string{"from", "to"} {
		place := places[name]
		if *place == "" {
			continue
		}
		at, ok := auditMoment(*place, now)
		if !ok {
			return q, fmt.Errorf("%s=%s is not a time such as 11:42, 2026-11-21 11:42 or -2h", name, *place)
		}
		*place = at.UTC().Format(time.RFC3339)
	}
	return q, nil
}

// auditMoment reads a time of day (the newest past one), a day, both, RFC 3339, or -2h before now.
func auditMoment(text string, now time.Time) (time.Time, bool) {
	if at, ok := api.ParseTime(text, now); ok {
		return at, true
	}
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, true
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if at, err := time.Parse(layout, text); err == nil {
			n := now.Local()
			at = time.Date(n.Year(), n.Month(), n.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.Local)
			if at.After(now) {
				at = at.AddDate(0, 0, -1)
			}
			return at, true
		}
	}
	return time.Time{}, false
}
