package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"fairway/cmd/program"
)

// plain writes what commands print, without what could change a terminal: names of jobs, nodes, sources and files are
// texts from outside. Line ends and tabs pass; every other control character, and one that is not printed, is a '?'.
type plain struct {
	to   io.Writer
	rest []byte // the beginning of a character whose end has not been written yet
}

// Plain is w without what could change a terminal.
func Plain(w io.Writer) io.Writer { return &plain{to: w} }

// Write cleans b. It takes all of it, also where a character is not complete.
func (p *plain) Write(b []byte) (int, error) {
	n := len(b)
	if len(p.rest) > 0 {
		b = append(p.rest, b...)
		p.rest = nil
	}
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		if !utf8.FullRune(b) {
			p.rest = append([]byte(nil), b...)
			break
		}
		r, size := utf8.DecodeRune(b)
		b = b[size:]
		if r == utf8.RuneError && size == 1 || r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			r = '?'
		}
		out = utf8.AppendRune(out, r)
	}
	if _, err := p.to.Write(out); err != nil {
		return 0, err
	}
	return n, nil
}

// Raw is where JSON goes as it is: it escapes what a terminal would obey, and programs read it.
func Raw(w io.Writer) io.Writer {
	if p, ok := w.(*plain); ok {
		return p.to
	}
	return w
}

// PrintJSON writes one value, indented, with a line end.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(Raw(w))
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// OneLine keeps a cell in its line and its column.
var OneLine = strings.NewReplacer("\n", "?", "\t", "?")

// PrintTable writes rows under a heading, columns aligned; every row has the heading's length.
func PrintTable(w io.Writer, heading []string, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{heading}, rows...) {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, OneLine.Replace(cell))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// WriteFile writes what render makes to the file of --out, and prints its size; a file that cannot be written is a
// usage error.
func WriteFile(w io.Writer, path string, render func(io.Writer) error) error {
	var b bytes.Buffer
	if err := render(&b); err != nil {
		return err
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		return program.BadUsage(fmt.Errorf("--out: %w", err))
	}
	_, err := fmt.Fprintf(w, "%s: %d bytes\n", path, b.Len())
	return err
}

// Stamp is a time as tables show it; "-" for none.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}
