package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/spf13/cobra"

	"fairway/cmd/program"
)

// plain writes what commands print, without what could change a terminal: names of jobs, nodes, sources and files are
// texts from outside. Line ends and tabs pass; every other control character, and one that is not printed, is a '?'.
type plain struct {
	to   io.Writer
	rest []byte // the beginning of a character whose end has not been written yet
}

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

// raw is where JSON goes as it is: it escapes what a terminal would obey, and programs read it.
func raw(w io.Writer) io.Writer {
	if p, ok := w.(*plain); ok {
		return p.to
	}
	return w
}

// printJSON writes one value, indented, with a line end.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(raw(w))
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// oneLine keeps a cell in its line and its column.
var oneLine = strings.NewReplacer("\n", "?", "\t", "?")

// printTable writes rows under a heading, columns aligned; every row has the heading's length.
func printTable(w io.Writer, heading []string, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{heading}, rows...) {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, oneLine.Replace(cell))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// openInput opens a file named on the command line; "-" is standard input. What is compressed by gzip is
// decompressed. A file that cannot be opened is a usage error.
func openInput(cmd *cobra.Command, name string) (io.ReadCloser, error) {
	if name == "-" {
		return unzipped(io.NopCloser(cmd.InOrStdin()))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, program.BadUsage(err)
	}
	if !isGzip(f) {
		return f, nil // as a file, which can be read at any place
	}
	return unzipped(f)
}

// input is a file and what is read of it.
type input struct {
	io.Reader
	io.Closer
}

func unzipped(f io.ReadCloser) (io.ReadCloser, error) {
	b := bufio.NewReader(f)
	if head, _ := b.Peek(2); string(head) != "\x1f\x8b" {
		return input{b, f}, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		f.Close()
		return nil, err
	}
	return input{z, f}, nil
}

// isGzip says that a file is compressed by gzip.
func isGzip(f io.ReaderAt) bool {
	var head [2]byte
	n, _ := f.ReadAt(head[:], 0)
	return n == 2 && string(head[:]) == "\x1f\x8b"
}
