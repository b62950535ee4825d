package archive

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"fairway/tsdb/history/iolog"
)

// Query answers one SELECT over the archive in dir, at most limit rows of it (0 is all). Nothing but the
// archive's own files can be read by it, and nothing written.
func Query(ctx context.Context, dir, query string, params map[string]any, limit int) (iolog.Result, error) {
	res, err := tryQuery(ctx, dir, query, params, limit)
	var bad *duckdb.Error
	if errors.As(err, &bad) && bad.Type == duckdb.ErrorTypeIO && ctx.Err() == nil {
		// An import merged parts between their listing and their reading.
		return tryQuery(ctx, dir, query, params, limit)
	}
	return res, err
}

func tryQuery(ctx context.Context, dir, query string, params map[string]any, limit int) (iolog.Result, error) {
	res := iolog.Result{Rows: [][]any{}}
	most := limitsOf(ctx).AnswerBytes
	bytes := answer{left: most, all: most}
	err := each(ctx, dir, query, params, &res.Columns, func(row []any) error {
		if limit > 0 && len(res.Rows) == limit {
			res.Cut = true
			return io.EOF
		}
		res.Rows = append(res.Rows, slices.Clone(row))
		return bytes.take(row)
	})
	return res, err
}

// Ask answers a question: a named analysis, or SQL of which at most limit rows are given (0 is all).
func Ask(ctx context.Context, dir string, q iolog.Question, limit int) (iolog.Result, error) {
	if q.Analysis.Name == "" {
		return Query(ctx, dir, q.SQL, nil, limit)
	}
	params, err := q.Analysis.Bind(q.Params)
	if err != nil {
		return iolog.Result{}, err
	}
	res, err := Query(ctx, dir, q.Analysis.SQL, params, limit)
	if err != nil {
		return iolog.Result{}, fmt.Errorf("%s: %w", q.Analysis.Name, err)
	}
	return res, nil
}

// Each is Query row by row; the row is reused. An io.EOF from visit ends it early.
func Each(ctx context.Context, dir, query string, params map[string]any, visit func(row []any) error) error {
	var columns []string
	return each(ctx, dir, query, params, &columns, visit)
}

func each(ctx context.Context, dir, query string, params map[string]any, columns *[]string,
	visit func([]any) error) error {
	conn, done, err := openReader(ctx, dir)
	if err != nil {
		return err
	}
	defer done()
	stmt, err := conn.Prepare(query)
	if err != nil {
		return fmt.Errorf("%w: %w", iolog.ErrQuery, err)
	}
	defer stmt.Close()
	if kind, err := stmt.(*duckdb.Stmt).StatementType(); err != nil || kind != duckdb.STATEMENT_TYPE_SELECT {
		return fmt.Errorf("%w: only SELECT is answered", iolog.ErrQuery)
	}
	rows, err := stmt.(driver.StmtQueryContext).QueryContext(ctx, named(params))
	if err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("%w: %w", iolog.ErrQuery, err))
	}
	defer rows.Close()
	*columns = rows.Columns()
	values, row := make([]driver.Value, len(*columns)), make([]any, len(*columns))
	for {
		if err := rows.Next(values); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return errors.Join(ctx.Err(), fmt.Errorf("%w: %w", iolog.ErrQuery, err))
		}
		for i, v := range values {
			row[i] = plain(v)
		}
		if err := visit(row); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// named sorts the parameters so that equal queries are equal.
func named(params map[string]any) []driver.NamedValue {
	var out []driver.NamedValue
	for i, name := range slices.Sorted(maps.Keys(params)) {
		out = append(out, driver.NamedValue{Name: name, Ordinal: i + 1, Value: params[name]})
	}
	return out
}

// openDB opens an empty database in memory; done closes it.
func openDB(ctx context.Context) (conn *duckdb.Conn, done func(), err error) {
	db, err := duckdb.NewConnector("", nil)
	if err != nil {
		return nil, nil, err
	}
	c, err := db.Connect(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return c.(*duckdb.Conn), func() {
		c.Close()
		db.Close()
	}, nil
}

// openReader makes an empty database with a view for every table, and then locks it against the host's files.
func openReader(ctx context.Context, dir string) (*duckdb.Conn, func(), error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("archive: %w", err)
	}
	conn, done, err := openDB(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("archive: %w", err)
	}
	if _, err := conn.ExecContext(ctx, prepare(dir, limitsOf(ctx)), nil); err != nil {
		done()
		if bad := (*duckdb.Error)(nil); errors.As(err, &bad) && bad.Type == duckdb.ErrorTypeOutOfMemory {
			err = fmt.Errorf("%w: %w", iolog.ErrQuery, err) // the archive is large for the bound of one question
		}
		return nil, nil, fmt.Errorf("archive %s: %w", dir, err)
	}
	return conn, done, nil
}

// prepare is the SQL before the user's: the views, then no file outside the archive, no extension, no
// way to change either.
func prepare(dir string, l Limits) string {
	var s strings.Builder
	// Nothing is written to disk: a query that needs more is refused.
	fmt.Fprintf(&s, "SET memory_limit = '%dB'; SET temp_directory = '';\n", l.MemoryBytes)
	if l.Threads > 0 {
		fmt.Fprintf(&s, "SET threads = %d;\n", l.Threads)
	}
	s.WriteString("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false;\n")
	for _, t := range tables {
		parts := filepath.Join(dir, t.name, "day=*", "*.parquet")
		if found, _ := filepath.Glob(parts); len(found) == 0 { // the pattern is ours, it cannot be bad
			fmt.Fprintf(&s, "CREATE TABLE %q (%s);\n", t.name, t.declare())
			continue
		}
		fmt.Fprintf(&s,
			"CREATE VIEW %q AS SELECT * FROM read_parquet(%s, hive_partitioning = true, hive_types = {'day': DATE}, "+
				"union_by_name = true) UNION ALL BY NAME SELECT %s WHERE false;\n", t.name, quote(parts), t.none())
	}
	fmt.Fprintf(&s,
		"SET allowed_directories = [%s]; SET enable_external_access = false; SET lock_configuration = true;",
		quote(dir+string(filepath.Separator)))
	return s.String()
}

// plain turns DuckDB's own types into ones that JSON and a table can show.
func plain(v any) any {
	switch v := v.(type) {
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
	case float32:
		return plain(float64(v))
	case int32:
		return int64(v)
	case int16:
		return int64(v)
	case int8:
		return int64(v)
	case uint64:
		return new(big.Int).SetUint64(v)
	case uint32:
		return int64(v)
	case uint16:
		return int64(v)
	case uint8:
		return int64(v)
	case *big.Int:
		if v.IsInt64() {
			return v.Int64()
		}
	case duckdb.Decimal:
		return v.Float64()
	case time.Time:
		return v.UTC()
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	case duckdb.Map, duckdb.Interval, duckdb.UUID, duckdb.Union, map[string]any:
		return fmt.Sprint(v)
	}
	return v
}
