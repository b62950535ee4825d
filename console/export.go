package console

import (
	"encoding/csv"
	"fmt"
	"os"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
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
	w := csv.NewWriter(f)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, text := range row {
			cells[i] = plainCell(text)
		}
		if err := w.Write(cells); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// plainCell quotes, by ', a text that a spreadsheet would take for a formula, as the browser's export does: users name
// jobs and applications.
func plainCell(text string) string {
	if text == "" || !strings.ContainsRune("=+-@\t\r", rune(text[0])) || text == "-" {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}

func (m exportedMsg) words() string {
	if m.err != nil {
		return "not exported: " + m.err.Error()
	}
	return fmt.Sprintf("wrote %s to %s", anomaly.Counted(m.rows, "row"), m.file)
}
