package job

import (
	"testing"
	"time"

	"fairway/webui/api"
)

// Runs that move next to no bytes for each metadata operation are counted in operations, others in bytes.
func TestRunsOnMetadataAreToldInOperations(t *testing.T) {
	run := func(bytes, ops, seconds float64) api.RunRow {
		rate, did := bytes/seconds, ops/seconds
		return api.RunRow{WriteBytes: bytes, MetaOps: ops, IOSeconds: seconds, BytesPerSec: &rate, MetaOpsPerSec: &did}
	}
	this := run(0, 600, 2)
	for _, c := range []struct {
		name string
		runs []api.RunRow
		only bool
	}{
		{"only metadata", []api.RunRow{run(0, 1000, 10), run(0, 3000, 10)}, true},
		{"a few bytes in each file", []api.RunRow{run(1e6, 1000, 10), run(1e6, 3000, 10)}, true},
		{"writers", []api.RunRow{run(1e9, 1000, 10), run(1e9, 3000, 10)}, false},
		{"no I/O of others", []api.RunRow{{}, {}}, true},
	} {
		v := api.JobRuns{This: &this, Runs: c.runs}
		v.Compare()
		if v.MetaOnly != c.only {
			t.Errorf("%s: metadata only %v", c.name, v.MetaOnly)
		}
		if s := v.MetaOpsPerSec; c.name != "no I/O of others" &&
			(s == nil || s.Min != 100 || s.Max != 300 || *s.This != 300 || s.Below != 1) {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
	unknown := api.JobRuns{Runs: []api.RunRow{{}}}
	if unknown.Compare(); unknown.MetaOnly || unknown.BytesPerSec != nil {
		t.Errorf("nothing is known: %+v", unknown)
	}
}

func TestJobsTitleCountsNoneAsNone(t *testing.T) {
	var running, ended api.JobRow
	ended.End = time.Unix(1_800_000_000, 0)
	for want, rows := range map[string][]api.JobRow{
		" jobs   1 running, none that ended is known": {running},
		" jobs   1 running, 1 that ended last":        {running, ended},
	} {
		if got := List.Title(nil, rows); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
