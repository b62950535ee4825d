package archive

import (
	"database/sql/driver"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"fairway/tsdb/history/iolog"
)

// column is one field of a row struct.
type column struct {
	name  string
	kind  string // DuckDB's type
	field []int  // path to the field
}

// table is one table of the archive, derived from its row struct.
type table struct {
	name    string
	columns []column
	order   string // how rows are sorted inside a part: what queries filter by
}

// The tables. The struct is the schema: its tags are the column names.
var (
	jobTable       = newTable("job", iolog.Job{}, "start_time, log")
	jobFileTable   = newTable("jobfile", iolog.JobFile{}, "log, file")
	fileTable      = newTable("file", iolog.File{}, "file")
	slurmTable     = newTable("slurm", iolog.Slurm{}, "start_time, job_id")
	ostTable       = newTable("ost", iolog.OST{}, "target, time")
	forwarderTable = newTable("forwarder", iolog.Forwarder{}, "node, time")
	readTable      = newTable("read", iolog.Read{}, "path")

	tables = []*table{jobTable, jobFileTable, fileTable, slurmTable, ostTable, forwarderTable, readTable}
)

func newTable(name string, row any, order string) *table {
	return &table{name: name, columns: columnsOf(reflect.TypeOf(row), "", nil), order: order}
}

// columnsOf lists the tagged fields of a struct; a tagged struct field gives its own columns, prefixed.
func columnsOf(t reflect.Type, prefix string, path []int) []column {
	var out []column
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("col")
		if !ok {
			continue
		}
		at := append(append([]int(nil), path...), i)
		if f.Type.Kind() == reflect.Struct && f.Type != timeType {
			out = append(out, columnsOf(f.Type, prefix+tag, at)...)
			continue
		}
		kind, ok := kinds[f.Type.String()]
		if !ok {
			panic(fmt.Sprintf("BUG: %s.%s has no column type", t, f.Name))
		}
		out = append(out, column{name: prefix + tag, kind: kind, field: at})
	}
	return out
}

var timeType = reflect.TypeFor[time.Time]()

var kinds = map[string]string{
	"int64": "BIGINT", "*int64": "BIGINT", "float64": "DOUBLE", "string": "VARCHAR", "bool": "BOOLEAN",
	"time.Time": "TIMESTAMP", "[]int64": "BIGINT[]", "[]int32": "INTEGER[]", "[]string": "VARCHAR[]",
	"[]float64": "DOUBLE[]",
}

// declare is the table's column list as SQL, with the day of the partition last.
func (t *table) declare() string {
	var s strings.Builder
	for _, c := range t.columns {
		fmt.Fprintf(&s, "%q %s, ", c.name, c.kind)
	}
	return s.String() + "day DATE"
}

// none is a row of the table as SQL: parts of an earlier version may lack columns.
func (t *table) none() string {
	var s []string
	for _, c := range t.columns {
		s = append(s, fmt.Sprintf("NULL::%s AS %q", c.kind, c.name))
	}
	return strings.Join(s, ", ")
}

// values writes one row into dst, which has a place for every column and the day. An unknown value
// becomes NULL.
func (t *table) values(dst []driver.Value, row reflect.Value, day time.Time) {
	for i := range t.columns {
		dst[i] = value(row.FieldByIndex(t.columns[i].field))
	}
	dst[len(t.columns)] = day
}

func value(v reflect.Value) driver.Value {
	switch v.Kind() {
	case reflect.Int64:
		return v.Int()
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Float64:
		if f := v.Float(); !math.IsNaN(f) {
			return f
		}
		return nil
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return v.Elem().Int()
	case reflect.Slice:
		if v.IsNil() {
			return nil
		}
		return v.Interface()
	}
	if t := v.Interface().(time.Time); !t.IsZero() {
		return t.UTC()
	}
	return nil
}

var nan = math.NaN()

// dayOf is the partition of a time; rows without one lie in the epoch's first day, where they are easy
// to find.
func dayOf(t time.Time) time.Time {
	if t.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return t.UTC().Truncate(24 * time.Hour)
}
