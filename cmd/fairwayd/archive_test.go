//go:build cgo

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"fairway/tsdb/history/archive"
)

// The sample logs go in once, and what is asked of them is known from the logs themselves.
func TestImportAndQuerySamples(t *testing.T) {
	const samples = "../../collector/logs/darshan/testdata/"
	logs, _ := filepath.Glob(samples + "darshan*/*.darshan*")
	dir := filepath.Join(t.TempDir(), "archive")
	for round := range 2 {
		out, err := command(t, append([]string{"import", "--json", "--dir", dir,
			samples + "darshan/expected"}, logs...)...)
		var r archive.Report
		if err != nil || json.Unmarshal([]byte(out), &r) != nil {
			t.Fatal(err, out)
		}
		if round == 0 && (r.Imported != 8 || len(r.Bad) != 0) || round == 1 && r.Imported != 0 {
			t.Errorf("round %d: %+v", round, r)
		}
	}
	out, err := command(t, "query", "--csv", "--dir", dir,
		"SELECT app, job_id, bytes_written, write_osts, write_procs_per_ost FROM job WHERE job_id = '7700001' AND "+
			"exe LIKE '%--steps 64' AND "+
			"bytes_written > 0")
	if err != nil || !strings.Contains(out, "wave_mpi,7700001,68719477336,8,8") {
		t.Errorf("%v %s", err, out)
	}
	if _, err := command(t, "query", "--dir", dir, "DROP VIEW job"); err == nil {
		t.Error("a query changed the archive")
	}
	if out, err := command(t, "query"); err != nil || !strings.Contains(out, "low-bandwidth") {
		t.Errorf("%v %s", err, out)
	}
}
