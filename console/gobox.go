package console

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/webui/api"
)

// goPage is the go box: type a part of a name, enter opens the first hit.
type goPage struct{ query *input }

func newGoPage() *goPage { return &goPage{query: &input{label: ":"}} }

func (p *goPage) name() string                           { return "go" }
func (p *goPage) address(*State) Address                 { return Address{Page: "overview"} }
func (p *goPage) refresh(*State, *asker) tea.Cmd         { return nil }
func (p *goPage) answer(*State, *asker, tea.Msg) tea.Cmd { return nil }
func (p *goPage) act(*State, *asker, action) tea.Cmd     { return nil }
func (p *goPage) title(*State, int) string               { return " go to a forwarder, job, plan, screen or action" }
func (p *goPage) field() *input                          { return p.query }

func (p *goPage) typed(s *State, ask *asker, ok bool) tea.Cmd {
	hits := s.hits(p.query.text)
	if !ok || p.query.text == "" {
		return s.back(ask)
	}
	if len(hits) == 0 {
		return nil // the page says so, and what was typed can be mended
	}
	s.back(ask)
	switch h := hits[0]; {
	case h.refused != "":
		s.Note = "refused: " + h.refused
	case h.act != "":
		return s.page().act(s, ask, h.act) // as its key does: what changes the machine asks once
	default:
		if p := h.page(); p != nil {
			return s.open(ask, p)
		}
		s.home()
	}
	return nil
}

// hit is one answer of the go box: with its key and the command that does the same.
type hit struct {
	name, about, key, twin string
	page                   func() page // nil is the overview
	act                    action      // instead of a page: what the page below would do
	refused                string      // why it would not
}

// twinned is a page whose actions are commands too.
type twinned interface {
	// twin is the command that does what an action does here; "" where there is none.
	twin(s *State, a action) string
}

func (p *forwarderPage) twin(s *State, a action) string {
	id := clean(string(p.id))
	switch r := s.forwarder(p.id); {
	case a == actCanary:
		return "fairway canary " + id
	case a == actExclude && r != nil && r.State == api.StateExcluded:
		return "fairway return " + id
	case a == actExclude:
		return "fairway exclude " + id
	}
	return ""
}

func (p *planPage) twin(_ *State, a action) string {
	verb := map[action]string{actApprove: "approve", actReject: "reject", actRollBack: "rollback", actAll: "show"}[a]
	if verb == "" {
		return ""
	}
	return "fairway plan " + verb + " " + clean(p.id)
}

// findingTwin is the command of what both pages of findings do.
func findingTwin(f *anomaly.Finding, a action) string {
	if verb := map[action]string{actAck: "ack", actDismiss: "dismiss", actSilence: "silence"}[a]; verb != "" &&
		f != nil {
		return "fairway findings " + verb + " " + clean(f.ID)
	}
	return ""
}

func (p *findingPage) twin(s *State, a action) string { return findingTwin(p.newest(s), a) }

func (p *findingsPage) twin(s *State, a action) string {
	rows := p.rows(s)
	if len(rows) == 0 {
		return ""
	}
	return findingTwin(&rows[p.at(rows)], a)
}

// actions are what the page below the go box can do, or why it does not just now.
func (s *State) actions() (out []hit) {
	if len(s.pages) < 2 {
		return nil
	}
	p := s.pages[len(s.pages)-2]
	r, _ := p.(refuser)
	cmd, _ := p.(twinned)
	for i := range s.keys.table {
		b := &s.keys.table[i]
		if b.on == nil || b.hint == "" || !b.works(p.name()) || shared[b.act] || b.act == actOpen {
			continue
		}
		h := hit{name: b.hint, about: b.does, key: b.show, act: b.act}
		if cmd != nil {
			h.twin = cmd.twin(s, b.act)
		}
		if r != nil {
			h.refused = r.refuses(s, b.act)
		}
		if s.replay != nil && acts[b.act] {
			h.refused = "actions are off in a replay"
		}
		if h.refused != "" {
			h.about = "refused: " + h.refused
		}
		out = append(out, h)
	}
	return out
}

// shared are the actions of every page that the key table lists for some.
var shared = map[action]bool{actBack: true, actUpOrQuit: true, actCopy: true, actHistory: true, actWhatIf: true}

// hits are the screens, forwarders and waiting plans whose name holds the query's letters in
// order; those that start with it come first.
func (s *State) hits(query string) []hit {
	query = strings.ToLower(strings.TrimSpace(query))
	if opener := []rune(s.key(actGo)); len(opener) == 1 && !unicode.IsLetter(opener[0]) {
		query = strings.TrimLeft(query, string(opener)) // typed twice
	}
	screen := func(name, about, key, twin string, p func() page) hit {
		return hit{name: name, about: about, key: key, twin: twin, page: p}
	}
	all := append(s.actions(), []hit{
		screen("overview", "the whole layer", s.key(actOverview), "fairway top", func() page { return nil }),
		screen("plans", "all plans", s.key(actPlans), "fairway plans", func() page { return listOf(plansList) }),
		screen("findings", "what is wrong", s.key(actFindings), "fairway findings",
			func() page { return &findingsPage{} }),
		screen("jobs", "running and ended jobs", s.key(actJobs), "fairway jobs",
			func() page { return listOf(jobsList) }),
		screen("audit", "who did what", s.key(actAudit), "fairway audit",
			func() page { return newAuditPage(Address{}) }),
		screen("calendar", "how busy the forwarders were, day by day", s.key(actCalendar), "fairway occupancy",
			func() page { return newCalendarPage(calendarOf) }),
		screen("logs", "jobs of low bandwidth", s.key(actLogs), "fairway query low-bandwidth",
			func() page { return newLogsPage(Address{}) }),
		screen("what if: shares", "what a sharing policy gives each job", s.key(actWhatIf), "fairway shares",
			func() page { return newSharesPage("", "") }),
		screen("what if: staggered I/O", "a pattern for periodic applications",
			s.key(actWhatIf)+" "+s.keys.name(onShares, actPanel), "fairway periodic",
			func() page { return newPatternPage("") }),
		screen("requests", "what this console sent", s.key(actRequests), "", func() page { return &requestsPage{} }),
		screen("help", "all keys of the overview", s.key(actHelp), "fairway --help",
			func() page { return &helpPage{of: onOverview} }),
	}...)
	for _, f := range openFindings(s.Shown.Findings) {
		all = append(all, screen(clean(f.ID), subject(f.Node)+" "+findingTitle(&f), "", "fairway findings "+clean(f.ID),
			func() page { return newFindingPage(f.ID) }))
	}
	for _, w := range s.Shown.Waiting {
		all = append(all, screen(clean(w.ID), clean(w.Title), "", "fairway plan show "+clean(w.ID),
			func() page { return newPlanPage(w.ID) }))
	}
	jobs := map[topology.JobID]bool{}
	for i := range s.Shown.Forwarders {
		r := &s.Shown.Forwarders[i]
		if j := r.TopJob; j != "" && !jobs[j] {
			jobs[j] = true
			all = append(all, screen(clean(string(j)), "job, the largest on "+clean(string(r.ID)), "",
				"fairway job "+clean(string(j)), func() page { return newJobPage(string(j)) }))
		}
		all = append(all, screen(clean(string(r.ID)), string(r.State), s.key(actOpen),
			"fairway node "+clean(string(r.ID)), func() page { return newForwarderPage(string(r.ID)) }))
	}
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
			page: func() page { return newPlanPage(id) }}
	}
	return hit{name: id, about: "finding, not open", twin: "fairway findings " + id,
		page: func() page { return newFindingPage(id) }}
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

func (p *goPage) body(s *State, w, h int) []string {
	about := max(30, w-62)
	lines := []string{s.Palette.paint(s.Palette.bold,
		clip(" "+left("NAME", 18)+left("", about)+left("KEY", 7)+"COMMAND", w))}
	hits := s.hits(p.query.text)
	if len(hits) == 0 {
		return append(lines, " Nothing has these letters in its name; escape goes back.")
	}
	for i, one := range hits {
		if len(lines) == h-1 && len(hits) > i+1 {
			return append(lines, " : more; type further letters")
		}
		line := clip(" "+left(one.name, 18)+left(one.about, about-1)+" "+left(one.key, 7)+one.twin, w)
		if i == 0 {
			line = s.selected(line, w)
		}
		lines = append(lines, line)
	}
	return lines
}
