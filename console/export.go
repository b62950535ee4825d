package console

import (
	"encoding/csv"
	"fmt"
	"os"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/webui/api"
)

// exporter is a page with a table: its titles, then its rows as they are on screen.
type exporter interface{ table(s *State) [][]string }

// exportedMsg says what became of an export.
type exportedMsg struct {
	file string
	rows int
	err  error
}

// export writes the page's table to a new file in the directory that the console was started in.
func (s *State) export() tea.Cmd {
	p, ok := s.page().(exporter)
	if !ok {
		s.Note = "there is no table to export here"
		return nil
	}
	rows := p.table(s)
	file := fmt.Sprintf("fairway-%s-%s.csv", s.page().name(), s.Shown.At.UTC().Format("20060102T150405Z"))
	return func() tea.Msg { return exportedMsg{file, len(rows) - 1, writeCSV(file, rows)} }
}

func writeCSV(file string, rows [][]string) (err error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) // nothing is overwritten
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	w := csv.NewWriter(f)
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	return w.Error()
}

func (m exportedMsg) words() string {
	if m.err != nil {
		return "not exported: " + m.err.Error()
	}
	return fmt.Sprintf("wrote %s to %s", api.Counted(m.rows, "row"), m.file)
}

// texts are the rows of a list as a table; what is not known is empty.
func texts[R any](s *State, cols []column[R], rows []*R) [][]string {
	out := make([][]string, 1, len(rows)+1)
	for _, c := range cols {
		out[0] = append(out[0], c.title)
	}
	for _, r := range rows {
		var line []string
		for _, c := range cols {
			text := c.text(s, r)
			if text == missing {
				text = ""
			}
			line = append(line, text)
		}
		out = append(out, line)
	}
	return out
}
