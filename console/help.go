package console

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"
)

// helpPage lists the keys that work on the page it was called from, out of the key table.
type helpPage struct {
	of     string
	top    int
	find   string
	typing *input
}

func (p *helpPage) name() string                           { return onHelp }
func (p *helpPage) address(*State) Address                 { return Address{Page: "overview"} }
func (p *helpPage) refresh(*State, *asker) tea.Cmd         { return nil }
func (p *helpPage) answer(*State, *asker, tea.Msg) tea.Cmd { return nil }
func (p *helpPage) title(*State, int) string               { return " keys on this screen (" + p.of + ")" }

func (p *helpPage) field() *input { return p.typing }

// typed ends the search: enter keeps it, escape takes it away.
func (p *helpPage) typed(_ *State, _ *asker, ok bool) tea.Cmd {
	p.find, p.top = "", 0
	if ok {
		p.find = strings.TrimSpace(p.typing.text)
	}
	p.typing = nil
	return nil
}

// searched is what is looked for, also while it is typed.
func (p *helpPage) searched() string {
	if p.typing != nil {
		return strings.ToLower(p.typing.text)
	}
	return strings.ToLower(p.find)
}

func (p *helpPage) act(_ *State, _ *asker, a action) tea.Cmd {
	if a == actFilter {
		p.typing = &input{label: "a key or a word:", text: p.find}
		return nil
	}
	p.top = max(0, p.top+steps[a])
	return nil
}

func (p *helpPage) body(s *State, w, h int) []string {
	lines := []string{""}
	find := p.searched()
	for i := range s.keys.table {
		b := &s.keys.table[i]
		keys := s.keys.shownOn(p.of, b)
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
	if replayed[p.of] || s.replay != nil {
		lines = append(lines, "", " In a replay ("+s.key(actHistory)+"):")
		for i := range s.keys.replay {
			b := &s.keys.replay[i]
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
		"A lower-case key never changes the machine, except " + s.keys.name(onPlan, actStop) + ", which stops an apply."
	lines = append(lines, "")
	for _, l := range wrap(text, w-2) {
		lines = append(lines, " "+strings.TrimSpace(l))
	}
	return scroll(lines, &p.top, h)
}
