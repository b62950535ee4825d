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

	"fairway/cmd/program"
)

// PrintJSON writes one value, indented, with a line end.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(program.Raw(w))
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

// PrintRows writes a table with a row for each of all.
func PrintRows[T any](w io.Writer, heading []string, all []T, row func(*T) []string) error {
	rows := make([][]string, len(all))
	for i := range all {
		rows[i] = row(&all[i])
	}
	return PrintTable(w, heading, rows)
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
