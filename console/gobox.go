package console

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/screen/whatif"
	"fairway/console/table"
	"fairway/webui/api"
)

// goPage is the go box: type a part of a name, enter opens the first hit.
type goPage struct {
	screen.Place
	model *Model
	under screen.Screen // the screen below
	query *screen.Input
	jobs  screen.Load[[]api.JobRow] // those that run and those that ended last
}

func newGoPage(m *Model) *goPage {
	return &goPage{Place: beside(screen.OnGo), model: m, under: m.top(), query: &screen.Input{Label: ":"}}
}

func (p *goPage) Answer(_ *screen.State, msg tea.Msg) tea.Cmd {
	p.jobs.Take(msg)
	return nil
}
func (p *goPage) Refresh(s *screen.State) tea.Cmd {
	return p.jobs.Refresh(s, "the jobs", s.Server.Jobs)
}
func (p *goPage) Act(*screen.State, screen.Action) tea.Cmd { return nil }
func (p *goPage) Title(*screen.State, int) string {
	return " go to a forwarder, job, plan, screen or action"
}
func (p *goPage) Field() *screen.Input { return p.query }

func (p *goPage) Typed(s *screen.State, ok bool) tea.Cmd {
	hits := p.hits(s)
	if !ok || p.query.Text == "" {
		return s.Host.Back()
	}
	if len(hits) == 0 {
		return nil // the page says so, and what was typed can be corrected
	}
	s.Host.Back()
	switch h := hits[0]; {
	case h.refused != "":
		s.Note = "refused: " + h.refused
	case h.act != "":
		return p.model.do(h.act) // as its key does: what changes the machine asks once
	default:
		return s.Host.Open(h.at)
	}
	return nil
}

// hit is one answer of the go box: with its key and the command that does the same.
type hit struct {
	name, about, key, twin string
	at                     screen.Address
	act                    screen.Action // instead of an address
	refused                string        // why it would not be done
}

// actions are what the screen below can do, or why it does not now.
func (p *goPage) actions(s *screen.State) (out []hit) {
	if p.under == screen.Screen(p.model.overview) {
		return nil
	}
	r, _ := p.under.(screen.Refuser)
	cmd, _ := p.under.(screen.Twinned)
	for i := range p.model.keys.table {
		b := &p.model.keys.table[i]
		if b.on == nil || b.hint == "" || !b.works(p.under.Name()) || shared[b.act] || b.act == screen.ActOpen {
			continue
		}
		h := hit{name: b.hint, about: b.does, key: b.show, act: b.act}
		if cmd != nil {
			h.twin = cmd.Twin(s, b.act)
		}
		if r != nil {
			h.refused = r.Refuses(s, b.act)
		}
		if s.Replays() && screen.ChangesMachine[b.act] {
			h.refused = "actions are off in a replay"
		}
		if h.refused != "" {
			h.about = "refused: " + h.refused
		}
		out = append(out, h)
	}
	return out
}

// shared are the actions of every screen that the key table lists for some.
var shared = map[screen.Action]bool{screen.ActBack: true, screen.ActUpOrQuit: true, screen.ActCopy: true,
	screen.ActHistory: true, screen.ActWhatIf: true}

// known are the screens and what the overview names.
func (p *goPage) known(s *screen.State) []hit {
	place := func(name, about string, act screen.Action, twin string) hit {
		return hit{name: name, about: about, key: s.Key(act), twin: twin, act: act}
	}
	all := []hit{
		place("overview", "the whole layer", screen.ActOverview, "fairway top"),
		place("plans", "all plans", screen.ActPlans, "fairway plans"),
		place("findings", "what is wrong", screen.ActFindings, "fairway findings"),
		place("jobs", "running and ended jobs", screen.ActJobs, "fairway jobs"),
		place("audit", "who did what", screen.ActAudit, "fairway audit"),
		place("calendar", "how busy the forwarders were, day by day", screen.ActCalendar, "fairway occupancy"),
		place("logs", "jobs of low bandwidth", screen.ActLogs, "fairway query low-bandwidth"),
		{name: "what if: shares", about: "what a sharing policy gives each job", key: s.Key(screen.ActWhatIf),
			twin: "fairway shares", at: screen.Address{Page: "whatif"}},
		{name: "what if: staggered I/O", about: "a pattern for periodic applications",
			key:  s.Key(screen.ActWhatIf) + " " + p.model.keys.name(screen.OnShares, screen.ActPanel),
			twin: "fairway periodic", at: screen.Address{Page: "whatif",
				WhatIf: screen.WhatIf{Set: whatif.ExamplePattern}}},
		{name: "slow", about: "the slowest forwarders first", key: s.Key(screen.ActOverview),
			twin: "fairway nodes --role forwarder", at: screen.Address{Page: "overview", View: "table",
				Sort: screen.BySlowness}},
		{name: "who waits", about: "jobs, those that wait the most first", key: s.Key(screen.ActJobs),
			twin: "fairway jobs", at: screen.Address{Page: "jobs"}},
		place("requests", "what this console sent", screen.ActRequests, ""),
		place("help", "all keys of the overview", screen.ActHelp, "fairway --help"),
	}
	for _, f := range screen.OpenFindings(s.Shown.Findings) {
		all = append(all, hit{name: chart.Clean(f.ID), about: screen.Subject(f.Node) + " " + screen.FindingTitle(&f),
			twin: "fairway findings " + chart.Clean(f.ID), at: screen.AtFinding(f.ID)})
	}
	for _, w := range s.Shown.Waiting {
		all = append(all, hit{name: chart.Clean(w.ID), about: chart.Clean(w.Title),
			twin: "fairway plan show " + chart.Clean(w.ID),
			at:   screen.AtPlan(w.ID)})
	}
	jobs := map[topology.JobID]bool{}
	people := map[string]bool{}
	list := func(what, name string) {
		if name = chart.Clean(name); name != "" && !people[what+name] {
			people[what+name] = true
			all = append(all, hit{name: name, about: what + ": its jobs", twin: "fairway jobs",
				at: screen.Address{Page: "jobs", Filter: name}})
		}
	}
	for i := range p.jobs.Value {
		r := &p.jobs.Value[i]
		jobs[r.ID] = true
		about := strings.TrimSpace("job of " + chart.OrMissing(r.User) + "  " + chart.Clean(r.App))
		if !r.End.IsZero() {
			about += ", ended"
		}
		all = append(all, hit{name: chart.Clean(string(r.ID)), about: about,
			twin: "fairway job " + chart.Clean(string(r.ID)), at: screen.AtJob(r.ID, "")})
		list("user", r.User)
		list("application", r.App)
	}
	for i := range s.Shown.Forwarders {
		r := &s.Shown.Forwarders[i]
		id := chart.Clean(string(r.ID))
		if j := r.TopJob; j != "" && !jobs[j] {
			jobs[j] = true
			all = append(all, hit{name: chart.Clean(string(j)), about: "job, the largest on " + id,
				twin: "fairway job " + chart.Clean(string(j)), at: screen.AtJob(j, "")})
		}
		all = append(all, hit{name: id, about: s.StandingText(r), key: s.Key(screen.ActOpen),
			twin: "fairway node " + id, at: screen.AtForwarder(r.ID)})
	}
	return all
}

// hits are the actions, screens, forwarders and waiting plans whose name holds the query's letters in order; those
// that start with it come first.
func (p *goPage) hits(s *screen.State) []hit {
	query := strings.ToLower(strings.TrimSpace(p.query.Text))
	if opener := []rune(s.Key(screen.ActGo)); len(opener) == 1 && !unicode.IsLetter(opener[0]) {
		query = strings.TrimLeft(query, string(opener)) // typed twice
	}
	all := append(p.actions(s), p.known(s)...)
	if recorded.MatchString(query) && !slices.ContainsFunc(all,
		func(h hit) bool { return strings.EqualFold(h.name, query) }) {
		all = append(all, recordOf(strings.ToUpper(query)))
	}
	var starts, others []hit
	for _, h := range all {
		switch name := strings.ToLower(h.name); {
		case strings.HasPrefix(name, query):
			starts = append(starts, h)
		case fuzzy(name, query):
			others = append(others, h)
		}
	}
	return append(starts, others...)
}

// recorded is the whole number of a plan or a finding: it may have ended long ago.
var recorded = regexp.MustCompile(`^(p-[0-9]{6,}|f-[0-9]{4,})$`)

func recordOf(id string) hit {
	if strings.HasPrefix(id, "P-") {
		return hit{name: id, about: "plan, of which nothing waits", twin: "fairway plan show " + id,
			at: screen.AtPlan(id)}
	}
	return hit{name: id, about: "finding, not open", twin: "fairway findings " + id, at: screen.AtFinding(id)}
}

// fuzzy says whether name holds the letters of query in this order.
func fuzzy(name, query string) bool {
	for _, r := range query {
		i := strings.IndexRune(name, r)
		if i < 0 {
			return false
		}
		name = name[i+len(string(r)):]
	}
	return true
}

func (p *goPage) Body(s *screen.State, w, h int) []string {
	about := max(30, w-62)
	row := func(name, does, key, twin string) string {
		return chart.Clip(" "+chart.Row([]int{-18, 1 - about, 1, -7}, name, does, "", key)+twin, w)
	}
	lines := []string{s.Bold(row("NAME", "", "KEY", "COMMAND"))}
	hits := p.hits(s)
	if len(hits) == 0 {
		return append(lines, chart.Clip(fmt.Sprintf(" Nothing called %q. Try a job, user, application, forwarder, "+
			"F- or P- number; escape goes back.", p.query.Text), w))
	}
	for i, one := range hits {
		if len(lines) == h-1 && len(hits) > i+1 {
			return append(lines, " : more; type further letters")
		}
		line := row(one.name, one.about, one.key, one.twin)
		if i == 0 {
			line = table.Selected(s.Palette, line, w)
		}
		lines = append(lines, line)
	}
	return lines
}
