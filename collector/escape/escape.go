// Package escape writes what users named into files for other programs, one way of escaping a format: a job's name is
// neither a formula of a spreadsheet nor a picture of a page. HTML is html/template's.
package escape

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// WriteCSV writes rows in which a text that a spreadsheet would take for a formula is quoted by '. What a spreadsheet
// of another language takes for the end of a cell (; and tabs) is in quotes as a comma is.
func WriteCSV(to io.Writer, rows [][]string) error {
	var b bytes.Buffer
	for _, row := range rows {
		for i, text := range row {
			if i > 0 {
				b.WriteByte(',')
			}
			text = QuoteCell(text)
			if strings.ContainsAny(text, ",;\"\t\r\n") || strings.HasPrefix(text, " ") {
				text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
			}
			b.WriteString(text)
		}
		b.WriteByte('\n')
	}
	_, err := to.Write(b.Bytes())
	return err
}

// QuoteCell quotes a text that a spreadsheet would take for a formula, also by letters of full width or behind what is
// not seen; a number stays as it is.
func QuoteCell(text string) string {
	start := strings.TrimLeftFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) })
	if start == "" || start == "-" ||
		!strings.ContainsRune("=+-@\uff1d\uff0b\uff0d\uff20", firstRune(start)) &&
			!strings.ContainsAny(text[:1], "\t\r\n") {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}

func firstRune(text string) rune {
	r, _ := utf8.DecodeRuneInString(text)
	return r
}

// marks are what begins something in Markdown: a picture, a link, emphasis, code, HTML, a cell of a table.
var marks = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "!", `\!`, "|", `\|`,
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "~", `\~`, "://", `:\//`, "www.", `www\.`, "@", `\@`, "\n", " ", "\r", " ")

// EscapeMarkdown makes a text one that Markdown shows as it is, in a line or a cell of a table.
func EscapeMarkdown(text string) string { return marks.Replace(text) }
