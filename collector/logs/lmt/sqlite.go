package lmt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// The few parts of SQLite's file format that a scan of whole tables needs (sqlite.org/fileformat2.html).
// SQLite itself, as C translated to Go, would be larger than the rest of the program.

const (
	sqliteMagic = "SQLite format 3\x00"
	maxDepth    = 20       // of a table's tree
	maxPayload  = 16 << 20 // of one row
)

// errDamaged is the error of a file whose structure is wrong.
var errDamaged = errors.New("the SQLite file is damaged")

// database is an SQLite file.
type database struct {
	in     io.ReaderAt
	pages  uint32
	page   int // bytes of a page
	usable int // those of them that hold data
	tables map[string]table
}

type table struct {
	root    uint32
	columns []string
	rowid   int // the column that is the row's number and is stored as NULL, or -1
}

// value is one column of one row: nil, int64, float64 or string.
type value any

func openDatabase(in io.ReaderAt, size int64) (*database, error) {
	head := make([]byte, 100)
	if _, err := in.ReadAt(head, 0); err != nil {
		return nil, fmt.Errorf("%w: %d bytes long", errDamaged, size)
	}
	db := &database{in: in, page: int(binary.BigEndian.Uint16(head[16:])), tables: map[string]table{}}
	if db.page == 1 {
		db.page = 65536
	}
	db.usable = db.page - int(head[20])
	if db.page < 512 || db.page&(db.page-1) != 0 || db.usable < 480 {
		return nil, fmt.Errorf("%w: pages of %d bytes", errDamaged, db.page)
	}
	if enc := binary.BigEndian.Uint32(head[56:]); enc > 1 {
		return nil, errors.New("an SQLite file in UTF-16 is not read")
	}
	db.pages = uint32(min(size/int64(db.page), math.MaxUint32))
	err := db.scan(1, func(_ int64, row []value) error {
		if len(row) < 5 || row[0] != value("table") {
			return nil
		}
		name, _ := row[1].(string)
		root, _ := row[3].(int64)
		sql, _ := row[4].(string)
		t := table{root: uint32(root), rowid: -1}
		t.setColumns(sql)
		db.tables[strings.ToUpper(name)] = t
		return nil
	})
	return db, err
}

// setColumns takes the columns' names from the statement that made the table.
func (t *table) setColumns(sql string) {
	open, end := strings.IndexByte(sql, '('), strings.LastIndexByte(sql, ')')
	if open < 0 || end < open {
		return
	}
	depth, from := 0, open+1
	for i := open + 1; i <= end; i++ {
		switch {
		case sql[i] == '(':
			depth++
		case sql[i] == ')' && i < end:
			depth--
		case (sql[i] == ',' || i == end) && depth == 0:
			t.addColumn(sql[from:i])
			from = i + 1
		}
	}
}

func (t *table) addColumn(definition string) {
	words := strings.Fields(strings.ToUpper(definition))
	if len(words) == 0 {
		return
	}
	name := strings.Trim(words[0], "\"`[]'")
	switch name {
	case "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT":
		return
	}
	if strings.Contains(strings.Join(words, " "), "INTEGER PRIMARY KEY") {
		t.rowid = len(t.columns)
	}
	t.columns = append(t.columns, name)
}

// each calls f for every row of a table, in the order of insertion, with the columns asked for; a column
// that the table does not have is nil.
func (db *database) each(name string, columns []string, f func(row []value) error) error {
	t, ok := db.tables[name]
	if !ok {
		return fmt.Errorf("the SQLite file has no table %s: is it an LMT database?", name)
	}
	places := make([]int, len(columns))
	for i, c := range columns {
		places[i] = slices.Index(t.columns, c)
	}
	out := make([]value, len(columns))
	return db.scan(t.root, func(id int64, row []value) error {
		for i, p := range places {
			out[i] = nil
			if p >= 0 && p < len(row) {
				out[i] = row[p]
			}
			if p >= 0 && p == t.rowid && out[i] == nil {
				out[i] = id
			}
		}
		return f(out)
	})
}

// scan calls f for every row below a page.
func (db *database) scan(root uint32, f func(id int64, row []value) error) error {
	s := &scan{db: db, f: f, left: db.pages}
	return s.tree(root, 0)
}

type scan struct {
	db   *database
	f    func(int64, []value) error
	left uint32 // pages that may still be visited: more than all of them is a loop
	row  []value
	long []byte
	page [maxDepth + 1][]byte // one page of each level of the tree
}

// read reads a page.
func (s *scan) read(n uint32, to []byte) error {
	if n == 0 || n > s.db.pages {
		return fmt.Errorf("%w: page %d of %d", errDamaged, n, s.db.pages)
	}
	if s.left == 0 {
		return fmt.Errorf("%w: its pages form a loop", errDamaged)
	}
	s.left--
	_, err := s.db.in.ReadAt(to, int64(n-1)*int64(s.db.page))
	return err
}

func (s *scan) tree(n uint32, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%w: a tree of over %d levels", errDamaged, maxDepth)
	}
	if s.page[depth] == nil {
		s.page[depth] = make([]byte, s.db.page)
	}
	b := s.page[depth]
	if err := s.read(n, b); err != nil {
		return err
	}
	head := 0
	if n == 1 {
		head = 100
	}
	kind, cells := b[head], int(binary.BigEndian.Uint16(b[head+3:]))
	first := head + 8
	if kind == 5 {
		first = head + 12
	} else if kind != 13 {
		return fmt.Errorf("%w: page %d is not part of a table (type %d)", errDamaged, n, kind)
	}
	if first+2*cells > len(b) {
		return fmt.Errorf("%w: page %d has %d cells", errDamaged, n, cells)
	}
	for i := range cells {
		at := int(binary.BigEndian.Uint16(b[first+2*i:]))
		if at+4 > s.db.usable {
			return fmt.Errorf("%w: page %d, cell %d", errDamaged, n, i)
		}
		var err error
		if kind == 5 {
			err = s.tree(binary.BigEndian.Uint32(b[at:]), depth+1)
		} else {
			err = s.leaf(b[at:s.db.usable])
		}
		if err != nil {
			return err
		}
	}
	if kind == 5 {
		return s.tree(binary.BigEndian.Uint32(b[head+8:]), depth+1)
	}
	return nil
}

// leaf reads a cell: the row's length, number and content, the end of which may lie in other pages.
func (s *scan) leaf(b []byte) error {
	length, k := varint(b)
	id, k2 := varint(b[k:])
	b = b[k+k2:]
	if length < 0 || length > maxPayload {
		return fmt.Errorf("%w: a row of %d bytes", errDamaged, length)
	}
	u := int64(s.db.usable)
	local := length
	if most := u - 35; length > most {
		least := (u-12)*32/255 - 23
		if local = least + (length-least)%(u-4); local > most {
			local = least
		}
	}
	if local > int64(len(b)) || (local < length && local+4 > int64(len(b))) {
		return fmt.Errorf("%w: a row of %d bytes runs over its page", errDamaged, length)
	}
	content := b[:local]
	if local < length {
		var err error
		if content, err = s.overflow(content, length, binary.BigEndian.Uint32(b[local:])); err != nil {
			return err
		}
	}
	if err := s.record(content); err != nil {
		return err
	}
	return s.f(id, s.row)
}

func (s *scan) overflow(begin []byte, length int64, next uint32) ([]byte, error) {
	out := append(s.long[:0], begin...)
	b := make([]byte, s.db.page)
	for int64(len(out)) < length {
		if err := s.read(next, b); err != nil {
			return nil, err
		}
		next = binary.BigEndian.Uint32(b)
		out = append(out, b[4:4+min(length-int64(len(out)), int64(s.db.usable-4))]...)
	}
	s.long = out
	return out, nil
}

// record takes a row's content apart: the columns' types, then their values.
func (s *scan) record(b []byte) error {
	size, k := varint(b)
	if size < int64(k) || size > int64(len(b)) {
		return fmt.Errorf("%w: a row's head of %d bytes", errDamaged, size)
	}
	types, body := b[k:size], b[size:]
	s.row = s.row[:0]
	for len(types) > 0 {
		t, k := varint(types)
		types = types[k:]
		v, n, err := column(t, body)
		if err != nil {
			return err
		}
		body = body[n:]
		s.row = append(s.row, v)
	}
	return nil
}

// column reads one value of a serial type.
func column(t int64, b []byte) (v value, n int, err error) {
	sizes := [...]int{0, 1, 2, 3, 4, 6, 8, 8, 0, 0}
	switch {
	case t < 0 || t == 10 || t == 11:
		return nil, 0, fmt.Errorf("%w: a column of type %d", errDamaged, t)
	case t >= 12:
		t -= 12
		if t/2 > int64(len(b)) {
			return nil, 0, fmt.Errorf("%w: a text of %d bytes", errDamaged, t/2)
		}
		return string(b[:t/2]), int(t / 2), nil
	}
	if n = sizes[t]; n > len(b) {
		return nil, 0, fmt.Errorf("%w: a row ends inside a number", errDamaged)
	}
	switch t {
	case 0:
		return nil, 0, nil
	case 8, 9:
		return t - 8, 0, nil
	}
	x := int64(int8(b[0]))
	for _, c := range b[1:n] {
		x = x<<8 | int64(c)
	}
	if t == 7 {
		return math.Float64frombits(uint64(x)), n, nil
	}
	return x, n, nil
}

// varint reads a number of up to nine bytes; a cut one ends with the bytes there are.
func varint(b []byte) (v int64, n int) {
	for n < len(b) {
		c := b[n]
		n++
		if n == 9 {
			return v<<8 | int64(c), n
		}
		v = v<<7 | int64(c&0x7f)
		if c < 0x80 {
			break
		}
	}
	return v, n
}
