package state

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/tsdb"
	"fairway/tsdb/engine"
	"fairway/tsdb/history"
)

// TestStateOfTheFirstVersion: what the programs of 2026-11-22 wrote, testdata/first, is opened whole: 15 minutes of
// three metrics of four forwarders, an exclusion that was returned with a finding, two ended runs and one that goes on.
func TestStateOfTheFirstVersion(t *testing.T) {
	dir := filepath.Join(unpack(t, "testdata/first/state.tar.gz"), "state")
	first := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	if err := CheckFormat(dir, "dev"); err != nil {
		t.Fatal(err)
	}
	db, err := engine.Open(filepath.Join(dir, "store"), engine.Options{SyncInterval: time.Nanosecond,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for n := range 4 {
		for k, m := range []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.QueueLen} {
			node := topology.NodeID(fmt.Sprintf("fwd%d", n))
			out, err := db.Select(t.Context(), tsdb.Query{Nodes: []topology.NodeID{node}, Metric: m,
				FromMillis: first.UnixMilli(), ToMillis: first.Add(time.Hour).UnixMilli()})
			if err != nil || len(out) != 1 || len(out[0].Points) != 900 {
				t.Errorf("%s of %s: %d series, %v", m, node, len(out), err)
				continue
			}
			for sec, p := range out[0].Points {
				if p.TimeMillis != first.UnixMilli()+int64(sec)*1000 || p.Value != float64(n*100000+k*10000+sec) {
					t.Errorf("%s of %s: point %d is %+v", m, node, sec, p)
					break
				}
			}
		}
	}
	d, sum, err := desk.Open(desk.Config{Settings: desk.DefaultSettings(), Path: filepath.Join(dir, "journal"),
		Situation: func() *remap.Situation { return remap.BuildSituation(remap.SituationParts{}) }})
	if err != nil || sum.Records != 3 || sum.TornBytes != 0 {
		t.Fatalf("%+v %v", sum, err)
	}
	defer d.Close()
	if found, err := d.Findings(t.Context()); err != nil || len(found) != 1 || found[0].ID != "F-0001" ||
		found[0].State != anomaly.Suspect || found[0].Sentence != "fwd1 is 9 times as slow" {
		t.Errorf("findings are %+v, %v", found, err)
	}
	if out := d.Excluded(); len(out) != 0 {
		t.Errorf("excluded are %v", out)
	}
	h, read, err := history.Open(filepath.Join(dir, "history"))
	if err != nil || read.Runs != 2 || read.Running != 1 || len(read.Damaged) > 0 {
		t.Fatalf("%+v %v", read, err)
	}
	defer h.Close()
	if r, ok, err := h.Job("2"); err != nil || !ok || r.User != "wei" || r.Profile.WriteBytes != 2e9 {
		t.Errorf("job 2 is %+v, %t, %v", r, ok, err)
	}
}
