// Package escape writes what users named into files for other programs, one way of escaping a format: a job's name is
// neither a formula of a spreadsheet nor a picture of a page. HTML is html/template's.
package escape

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
)

// WriteCSV writes rows in which a text that a spreadsheet would take for a formula is quoted by '.
func WriteCSV(to io.Writer, rows [][]string) error {
	w := csv.NewWriter(to)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, text := range row {
			cells[i] = QuoteCell(text)
		}
		if err := w.Write(cells); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// QuoteCell quotes a text that a spreadsheet would take for a formula; a number stays as it is.
func QuoteCell(text string) string {
	start := strings.TrimLeft(text, " \t\r\n")
	if start == "" || start == "-" ||
		!strings.ContainsAny(start[:1], "=+-@") && !strings.ContainsAny(text[:1], "\t\r\n") {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}

// marks are what begins something in Markdown: a picture, a link, emphasis, code, HTML, a cell of a table.
var marks = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "!", `\!`, "|", `\|`,
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "~", `\~`, "://", `:\//`, "www.", `www\.`, "@", `\@`, "\n", " ", "\r", " ")

// EscapeMarkdown makes a text one that Markdown shows as it is, in a line or a cell of a table.
func EscapeMarkdown(text string) string { return marks.Replace(text) }
