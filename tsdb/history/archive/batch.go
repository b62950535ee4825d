package archive

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"fairway/tsdb/history/iolog"
)

// batch collects rows in DuckDB's memory until they are worth a part. One goroutine owns it.
type batch struct {
	conn    *duckdb.Conn
	done    func() // closes conn
	writers map[*table]*writer
	names   map[fileDay]bool // names already in this batch
	reads   []iolog.Read
	rows    int
}

type fileDay struct {
	file int64
	day  int64
}

// writer appends rows to one in-memory table.
type writer struct {
	t   *table
	app *duckdb.Appender
	row []driver.Value
}

func newBatch() (*batch, error) {
	conn, done, err := openDB(context.Background())
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	b := &batch{conn: conn, done: done}
	for _, t := range tables {
		if err := b.exec(fmt.Sprintf("CREATE TABLE %q (%s)", t.name, t.declare())); err != nil {
			b.close()
			return nil, err
		}
	}
	return b, b.reset()
}

// close drops everything that was not written.
func (b *batch) close() {
	for _, w := range b.writers {
		w.app.Close() // its rows are dropped with the tables
	}
	b.done()
}

func (b *batch) exec(query string) error {
	_, err := b.conn.ExecContext(context.Background(), query, nil)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return nil
}

// reset opens an appender for every table.
func (b *batch) reset() error {
	b.names, b.reads, b.rows = map[fileDay]bool{}, nil, 0
	b.writers = map[*table]*writer{}
	for _, t := range tables {
		app, err := duckdb.NewAppenderFromConn(b.conn, "", t.name)
		if err != nil {
			return fmt.Errorf("archive: %w", err)
		}
		b.writers[t] = &writer{t: t, app: app, row: make([]driver.Value, len(t.columns)+1)}
	}
	return nil
}

func (w *writer) add(row any, day time.Time) error {
	w.t.values(w.row, reflect.ValueOf(row).Elem(), day)
	return w.app.AppendRow(w.row...)
}

// add takes the rows of one log, and the log itself as read.
func (b *batch) add(l *iolog.Log, read iolog.Read) error {
	b.note(read)
	if err := b.addRows(l); err != nil {
		return fmt.Errorf("archive: %s: %w", read.Path, err)
	}
	return nil
}

func (b *batch) addRows(l *iolog.Log) error {
	day := map[int64]time.Time{}
	var err error
	add := func(t *table, row any, at time.Time) {
		if err == nil {
			err = b.writers[t].add(row, at)
		}
	}
	last := dayOf(time.Time{})
	for i := range l.Jobs {
		last = dayOf(l.Jobs[i].Start)
		day[l.Jobs[i].Log] = last
		add(jobTable, &l.Jobs[i], last)
	}
	for i := range l.JobFiles {
		add(jobFileTable, &l.JobFiles[i], day[l.JobFiles[i].Log])
	}
	for i := range l.Files {
		if k := (fileDay{l.Files[i].ID, last.Unix()}); !b.names[k] {
			b.names[k] = true
			add(fileTable, &l.Files[i], last)
		}
	}
	for i := range l.Slurm {
		add(slurmTable, &l.Slurm[i], dayOf(l.Slurm[i].Start))
	}
	for i := range l.OSTs {
		add(ostTable, &l.OSTs[i], dayOf(l.OSTs[i].Time))
	}
	for i := range l.Forwarders {
		add(forwarderTable, &l.Forwarders[i], dayOf(l.Forwarders[i].Time))
	}
	b.rows += l.Rows()
	return err
}

// note remembers a file without rows of its own.
func (b *batch) note(read iolog.Read) { b.reads = append(b.reads, read) }

// name is the batch's own: the same logs give the same name, so that a repeated batch replaces itself.
func (b *batch) name() string {
	h := sha256.New()
	for _, r := range b.reads {
		fmt.Fprintln(h, r.Hash, r.Path)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// writeTo ends the batch: it writes its parts, one for each table and day, and is empty afterwards.
func (b *batch) writeTo(dir, name string) error {
	for i := range b.reads {
		if err := b.writers[readTable].add(&b.reads[i], dayOf(b.reads[i].Imported)); err != nil {
			return fmt.Errorf("archive: %w", err)
		}
	}
	for _, w := range b.writers {
		if err := w.app.Close(); err != nil {
			return fmt.Errorf("archive: table %s: %w", w.t.name, err)
		}
	}
	for _, t := range tables {
		if err := b.writeTable(t, dir, name); err != nil {
			return err
		}
		if err := b.exec(fmt.Sprintf("TRUNCATE %q", t.name)); err != nil {
			return err
		}
	}
	return b.reset()
}

func (b *batch) writeTable(t *table, dir, name string) error {
	days, err := b.days(t)
	if err != nil {
		return err
	}
	for _, day := range days {
		text := day.Format(time.DateOnly)
		folder := filepath.Join(dir, t.name, "day="+text)
		if err := os.MkdirAll(folder, 0o750); err != nil {
			return fmt.Errorf("archive: %w", err)
		}
		err := b.exec(
			fmt.Sprintf(
				"COPY (SELECT * EXCLUDE day FROM %q WHERE day = DATE '%s' ORDER BY %s) TO %s (FORMAT parquet, "+
					"COMPRESSION zstd)",
				t.name, text, t.order, quote(filepath.Join(folder, name+".parquet"))))
		if err != nil {
			return err
		}
	}
	return nil
}

// days lists the days that a table has rows of.
func (b *batch) days(t *table) ([]time.Time, error) {
	rows, err := b.conn.QueryContext(context.Background(),
		fmt.Sprintf("SELECT DISTINCT day FROM %q ORDER BY day", t.name), nil)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	defer rows.Close()
	var out []time.Time
	for dst := make([]driver.Value, 1); rows.Next(dst) == nil; {
		out = append(out, dst[0].(time.Time))
	}
	return out, nil
}

// quote makes a text an SQL literal.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
