package console

import (
	"fmt"
	"os"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/collector/escape"
	"fairway/console/screen"
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
	return escape.WriteCSV(f, rows)
}

func (m exportedMsg) words() string {
	if m.err != nil {
		return "not exported: " + m.err.Error()
	}
	return fmt.Sprintf("wrote %s to %s", anomaly.Counted(m.rows, "row"), m.file)
}
