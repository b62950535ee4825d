//go:build cgo

package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"fairway/tsdb/history/archive"
)

func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// The sample logs go in once, and what is asked of them is known from the logs themselves.
func TestImportAndQuerySamples(t *testing.T) {
	logs, _ := filepath.Glob("../../../shared/data/darshan/*.darshan")
	if len(logs) == 0 {
		t.Skip("no sample logs beside the repository")
	}
	dir := filepath.Join(t.TempDir(), "archive")
	for round := range 2 {
		out, err := command(t, append([]string{"import", "--json", "--dir", dir, "../../../shared/data/darshan/expected"}, logs...)...)
		var r archive.Report
		if err != nil || json.Unmarshal([]byte(out), &r) != nil {
			t.Fatal(err, out)
		}
		if round == 0 && (r.Imported < 20 || len(r.Bad) != 0) || round == 1 && r.Imported != 0 {
			t.Errorf("round %d: %+v", round, r)
		}
	}
	out, err := command(t, "query", "--csv", "--dir", dir, "SELECT app, job_id, bytes_written, write_osts, write_procs_per_ost FROM job WHERE job_id = '4478544' AND bytes_written > 0")
	if err != nil || !strings.Contains(out, "vpicio_uni,4478544,2199023259968,24,85.3333") {
		t.Errorf("%v %s", err, out)
	}
	if _, err := command(t, "query", "--dir", dir, "DROP VIEW job"); err == nil {
		t.Error("a query changed the archive")
	}
	if out, err := command(t, "query"); err != nil || !strings.Contains(out, "low-bandwidth") {
		t.Errorf("%v %s", err, out)
	}
}
