package console

import (
	"encoding/csv"
	"fmt"
	"os"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/console/screen"
	"fairway/webui/api"
)

// exportedMsg says what became of an export.
type exportedMsg struct {
	file string
	rows int
	err  error
}

// export writes the screen's table to a new file in the directory that the console was started in.
func export(s *screen.State, p screen.Screen) tea.Cmd {
	e, ok := p.(screen.Exporter)
	if !ok {
		s.Note = "no table to export here"
		return nil
	}
	rows := e.Table(s)
	file := fmt.Sprintf("fairway-%s-%s.csv", p.Name(), s.Shown.At.UTC().Format("20060102T150405Z"))
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
