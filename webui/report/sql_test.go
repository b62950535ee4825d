//go:build cgo

package report

import (
	"database/sql"
	"math"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"

	"fairway/tsdb/history"
)

// TestReportAgreesWithSQL: a database that is given the same runs has the same sums for every project, user and
// application, up to the order of addition.
func TestReportAgreesWithSQL(t *testing.T) {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE runs (project TEXT, person TEXT, app TEXT, nodes BIGINT, started DOUBLE,
		ended DOUBLE, forwarders BIGINT, read DOUBLE, write DOUBLE, meta DOUBLE, io DOUBLE)`); err != nil {
		t.Fatal(err)
	}
	s, runs := sources(t, 3)
	insert(t, db, runs)
	to := monday.AddDate(0, 0, 7)
	r, err := Make(t.Context(), s, monday, to, to)
	if err != nil {
		t.Fatal(err)
	}
	for column, uses := range map[string][]Use{"project": r.Projects, "person": r.Users, "app": r.Apps,
		"'all'": {r.Total}} {
		compare(t, db, column, uses, monday.Unix(), to.Unix())
	}
}

func insert(t *testing.T, db *sql.DB, runs []history.Run) {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		var read, write, meta, io any // absent where the I/O of the run is not known
		if p := r.Profile; p != nil {
			read, write, meta, io = p.ReadBytes, p.WriteBytes, p.MetaOps, p.IOSeconds
		}
		if _, err := tx.Exec("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", r.Project, r.User, r.App,
			r.Nodes, float64(r.Start.UnixMilli())/1000, float64(r.End.UnixMilli())/1000, len(r.Forwarders), read,
			write, meta, io); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// compare wants the sums of the uses to be those of the database, a row for each name and no other.
func compare(t *testing.T, db *sql.DB, column string, uses []Use, from, to int64) {
	t.Helper()
	rows, err := db.Query("SELECT "+column+`, count(*), count(read), sum((ended - started) / 3600 * nodes),
		coalesce(sum(read), 0), coalesce(sum(write), 0), coalesce(sum(meta), 0), coalesce(sum(io), 0),
		coalesce(sum(io * forwarders), 0) FROM runs WHERE ended >= ? AND ended < ? GROUP BY 1`, from, to)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	want := map[string]Use{}
	for rows.Next() {
		var u Use
		if err := rows.Scan(&u.Name, &u.Runs, &u.Measured, &u.NodeHours, &u.ReadBytes, &u.WriteBytes, &u.MetaOps,
			&u.IOSeconds, &u.ForwarderSeconds); err != nil {
			t.Fatal(err)
		}
		want[u.Name] = u
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if len(want) != len(uses) || len(uses) == 0 {
		t.Errorf("by %s the report has %d rows, the database %d", column, len(uses), len(want))
	}
	for _, got := range uses {
		w := want[got.Name]
		near := got.Runs == w.Runs && got.Measured == w.Measured
		for _, pair := range [][2]float64{{got.NodeHours, w.NodeHours}, {got.ReadBytes, w.ReadBytes},
			{got.WriteBytes, w.WriteBytes}, {got.MetaOps, w.MetaOps}, {got.IOSeconds, w.IOSeconds},
			{got.ForwarderSeconds, w.ForwarderSeconds}} {
			near = near && math.Abs(pair[0]-pair[1]) <= 1e-9*math.Abs(pair[1])
		}
		if !near {
			t.Errorf("by %s: the report has %+v, the database %+v", column, got, w)
		}
	}
}
