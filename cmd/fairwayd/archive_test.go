//go:build cgo

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/tsdb/history"
	"fairway/tsdb/history/archive"
	"fairway/tsdb/history/iolog"
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

// What was imported into the archive is what the next job of the same kind is predicted from.
func TestDaemonLearnsFromTheArchive(t *testing.T) {
	conf := testConf(t)
	conf.Default = topology.Mapping{"n1": "f1", "n2": "f2"}
	for _, n := range []topology.NodeID{"n1", "n2"} {
		conf.Nodes = append(conf.Nodes, topology.Node{ID: n, Role: topology.Compute},
			topology.Node{ID: "f" + n[1:], Role: topology.Forwarder})
	}
	begin := time.Unix(1790000000, 0).UTC()
	end := begin.Add(time.Hour)
	file := filepath.Join(t.TempDir(), "log")
	write(t, file, "stands for a log")
	none := math.NaN()
	unknown := iolog.Factors{IOSeconds: none, BytesPerSec: none, LongestShare: none, Small: none, Nonconsec: none,
		Collective: none, OSTs: none, ProcsPerOST: none}
	written := unknown
	written.IOSeconds, written.BytesPerSec = 100, 8e8
	im := archive.Importer{Dir: filepath.Join(conf.StateDir, "archive"), TrustedBy: "root",
		Read: func(context.Context, archive.Input) (*iolog.Log, error) {
			return &iolog.Log{Kind: "test",
				Jobs: []iolog.Job{{Log: 1, JobID: "7", Procs: 4, Start: begin, End: end, BytesWritten: 80e9,
					MetaSeconds: 400, Write: written, Read: unknown}},
				JobFiles: []iolog.JobFile{{Log: 1, File: 1, Procs: 4, BytesWritten: 80e9}},
				Slurm: []iolog.Slurm{{JobID: "7", SlurmID: "7", Name: "ROMS", User: "wei", Start: begin, End: end,
					Nodes: []string{"n1", "n2"}}},
			}, nil
		}}
	if r, err := im.Import(t.Context(), file); err != nil || r.Imported != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	d := start(t, conf)
	defer d.Close()
	learned := d.learn(t.Context(), "")
	if again := d.learn(t.Context(), ""); learned == "" || again != learned || d.history.Count() != 1 {
		t.Errorf("%q, then %q, %d runs", learned, again, d.history.Count())
	}
	p, ok := d.history.Predict(history.Key{User: "wei", App: "ROMS", Nodes: 2})
	if !ok || p.Run.Profile.Mode != topology.ModeN1 || p.Run.Profile.WriteBytes != 80e9 ||
		*p.Run.Profile.MetaQueue != 2 {
		t.Errorf("%+v", p)
	}
}
