package console

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"
)

// helpPage lists the keys that work on the page it was called from, out of the key table.
type helpPage struct {
	of     string
	keys   *Keys
	top    int
	find   string
	typing *Input
}

func (p *helpPage) Name() string                   { return onHelp }
func (p *helpPage) Address(*State) Address         { return Address{Page: "overview"} }
func (p *helpPage) Refresh(*State) tea.Cmd         { return nil }
func (p *helpPage) Answer(*State, tea.Msg) tea.Cmd { return nil }
func (p *helpPage) Title(*State, int) string       { return " keys on this screen (" + p.of + ")" }

func (p *helpPage) Field() *Input { return p.typing }

// typed ends the search: enter keeps it, escape takes it away.
func (p *helpPage) Typed(s *State, ok bool) tea.Cmd {
	p.find, p.top = "", 0
	if ok {
		p.find = strings.TrimSpace(p.typing.Text)
	}
	p.typing = nil
	return nil
}

// searched is what is looked for, also while it is typed.
func (p *helpPage) searched() string {
	if p.typing != nil {
		return strings.ToLower(p.typing.Text)
	}
	return strings.ToLower(p.find)
}

func (p *helpPage) Act(s *State, a Action) tea.Cmd {
	if a == actFilter {
		p.typing = &Input{Label: "a key or a word:", Text: p.find}
		return nil
	}
	p.top = max(0, p.top+a.Step())
	return nil
}

func (p *helpPage) Body(s *State, w, h int) []string {
	lines := []string{""}
	find := p.searched()
	for i := range p.keys.table {
		b := &p.keys.table[i]
		keys := p.keys.shownOn(p.of, b)
		if keys == "" || !b.works(p.of) || !strings.Contains(strings.ToLower(keys+" "+b.does), find) {
			continue
		}
		does, look := b.does, ""
		if b.changes {
			does, look = does+"  CHANGES THE MACHINE", s.Palette.bold
		}
		for i, l := range wrap(does, max(1, w-14)) {
			if i > 0 {
				keys = ""
			}
			lines = append(lines, s.Palette.paint(look, clip(" "+left(keys, 12)+l, w)))
		}
	}
	if replayed[p.of] || s.Replays() {
		lines = append(lines, "", " In a replay ("+s.Key(actHistory)+"):")
		for i := range p.keys.replay {
			b := &p.keys.replay[i]
			if b.show == "" || !strings.Contains(strings.ToLower(b.show+" "+b.does), find) {
				continue
			}
			lines = append(lines, clip(" "+left(b.show, 14)+b.does, w))
		}
		for _, gap := range s.Shown.NotKept {
			for _, l := range wrap("of the second shown, "+gap, w-2) {
				lines = append(lines, " "+strings.TrimSpace(l))
			}
		}
	}
	text := "CELLS  first column: . idle, 0-9 tenths of full, - not known. Second: ! suspect, x excluded, d " +
		"dedicated, > touched by a waiting plan, ? stale. " +
		"A stale or excluded cell shows no level. NUMBERS  148 measured, ~148 estimated, - missing; rates in MB/s " +
		"(1e6). " +
		"A lower-case key never changes the machine, except " + p.keys.name(onPlan, actStop) + ", which stops an apply."
	lines = append(lines, "")
	for _, l := range wrap(text, w-2) {
		lines = append(lines, " "+strings.TrimSpace(l))
	}
	return Scroll(lines, &p.top, h)
}
