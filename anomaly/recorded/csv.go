package recorded

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// RowError is one row, or one log of a job, that could not be used. It is left out and counted; it never ends a run.
type RowError struct {
	File  string
	Line  int    // 0: the whole file
	Field string // empty: the whole row
	Why   string
}

func (e *RowError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s; it is left out", e.File, e.Why)
	}
	if e.Field == "" {
		return fmt.Sprintf("%s:%d: %s; the row is left out", e.File, e.Line, e.Why)
	}
	return fmt.Sprintf("%s:%d: field %s: %s; the row is left out", e.File, e.Line, e.Field, e.Why)
}

const maxLine = 1 << 16

// table reads one CSV file with a header, row by row. Its fields hold no commas; quotes around one are taken off.
type table struct {
	name    string
	columns []string // in the order in which the caller wants them
	at      []int    // position in the file of each; -1 where the file does not have it
	in      *bufio.Reader
	close   func() error
	line    int
	fields  [][]byte
	bad     func(*RowError)
}

// openTable opens dir/name or dir/name.gz and finds the columns; those behind a "?" may be missing.
// It returns fs.ErrNotExist where there is neither.
func openTable(dir, name string, columns []string, bad func(*RowError)) (*table, error) {
	path := filepath.Join(dir, name)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		path += ".gz"
		f, err = os.Open(path)
	} else if _, also := os.Stat(path + ".gz"); also == nil && err == nil {
		bad(&RowError{path + ".gz", 0, "", name + " is there too and is read"})
	}
	if err != nil {
		return nil, err
	}
	t := &table{name: path, close: f.Close, bad: bad}
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(bufio.NewReaderSize(f, 1<<18))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: not a gzip file: %w", path, err), f.Close())
		}
		r = z
	}
	t.in = bufio.NewReaderSize(r, maxLine)
	if head, _ := t.in.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		return nil, errors.Join(fmt.Errorf("%s: it is gzip data, and its name does not end in one .gz", path),
			f.Close())
	}
	if err := t.header(columns); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return t, nil
}

func (t *table) header(columns []string) error {
	line, err := t.readLine()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: empty, want a header with %s", t.name, strings.Join(columns, ","))
	}
	if err != nil {
		return err
	}
	names := strings.Split(strings.TrimPrefix(string(line), "\ufeff"), ",")
	for _, want := range columns {
		want, optional := strings.CutSuffix(want, "?")
		at := slices.IndexFunc(names, func(n string) bool {
			return string(unquoted([]byte(strings.TrimSpace(n)))) == want
		})
		if at < 0 && !optional {
			return fmt.Errorf("%s:1: field %s is missing in the header %.200q", t.name, want, line)
		}
		t.columns, t.at = append(t.columns, want), append(t.at, at)
	}
	t.fields = make([][]byte, 0, len(names))
	return nil
}

// readLine returns the next line without its end; an overlong one is an error of its row.
func (t *table) readLine() ([]byte, error) {
	for {
		line, err := t.in.ReadSlice('\n')
		t.line++
		if errors.Is(err, bufio.ErrBufferFull) {
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = t.in.ReadSlice('\n')
			}
			t.bad(&RowError{t.name, t.line, "", fmt.Sprintf("longer than %d bytes", maxLine)})
			if err == nil {
				continue
			}
		}
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			if errors.Is(err, io.EOF) {
				return nil, io.EOF
			}
			return nil, fmt.Errorf("%s:%d: %w: the file is damaged from here on; what came before is used", t.name,
				t.line, err)
		}
		return bytes.TrimRight(line, "\r\n"), nil
	}
}

// next moves to the next row that has all fields; io.EOF ends the file.
func (t *table) next() error {
	for {
		line, err := t.readLine()
		if err != nil {
			return err
		}
		if len(line) == 0 {
			continue
		}
		t.fields = slices.AppendSeq(t.fields[:0], bytes.SplitSeq(line, []byte{','}))
		if len(t.fields) == cap(t.fields) || len(t.fields) > t.last() {
			return nil
		}
		t.bad(&RowError{t.name, t.line, "", fmt.Sprintf("%d fields, want %d", len(t.fields), t.last()+1)})
	}
}

func (t *table) last() int { return slices.Max(t.at) }

// text returns a column's field; empty where the file does not have it.
func (t *table) text(col int) []byte {
	if t.at[col] < 0 || t.at[col] >= len(t.fields) {
		return nil
	}
	return unquoted(t.fields[t.at[col]])
}

// unquoted is a field without the quotes that some programs put around every one.
func unquoted(b []byte) []byte {
	if n := len(b); n >= 2 && b[0] == '"' && b[n-1] == '"' {
		return b[1 : n-1]
	}
	return b
}

// number reads a column that must be a number of 0 or more; an empty field is NaN.
func (t *table) number(col int) (float64, *RowError) {
	b := t.text(col)
	if len(b) == 0 {
		return math.NaN(), nil
	}
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		return 0, &RowError{t.name, t.line, t.columns[col], fmt.Sprintf("%.40q is not a number of 0 or more", b)}
	}
	return v, nil
}

// seconds reads a column that must be a time in whole seconds.
func (t *table) seconds(col int) (int64, *RowError) {
	v, bad := t.number(col)
	if bad == nil && !(v < 1<<40) {
		bad = &RowError{t.name, t.line, t.columns[col], "not a time in seconds"}
	}
	return int64(v), bad
}
