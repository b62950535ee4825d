//go:build cgo

package iologs

import (
	"context"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fairway/cmd/fairwayd/config"
	"fairway/collector/topology"
	"fairway/tsdb/history"
	"fairway/tsdb/history/archive"
	"fairway/tsdb/history/iolog"
)

// What was imported into the archive is what the next job of the same kind is predicted from.
func TestDaemonLearnsFromTheArchive(t *testing.T) {
	conf := config.Default()
	conf.StateDir = t.TempDir()
	conf.Default = topology.Mapping{"n1": "f1", "n2": "f2"}
	for _, n := range []topology.NodeID{"n1", "n2"} {
		conf.Nodes = append(conf.Nodes, topology.Node{ID: n, Role: topology.Compute},
			topology.Node{ID: "f" + n[1:], Role: topology.Forwarder})
	}
	begin := time.Unix(1790000000, 0).UTC()
	end := begin.Add(time.Hour)
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte("stands for a log"), 0o600); err != nil {
		t.Fatal(err)
	}
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
	h, _, err := history.Open(filepath.Join(conf.StateDir, "history"))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	d := learner{&conf, h, slog.New(slog.DiscardHandler)}
	learned := d.learn(t.Context(), "")
	if again := d.learn(t.Context(), ""); learned == "" || again != learned || h.Count() != 1 {
		t.Errorf("%q, then %q, %d runs", learned, again, h.Count())
	}
	p, ok := h.Predict(history.Key{User: "wei", App: "ROMS", Nodes: 2})
	if !ok || p.Run.Profile.Mode != topology.ModeN1 || p.Run.Profile.WriteBytes != 80e9 ||
		*p.Run.Profile.MetaQueue != 2 {
		t.Errorf("%+v", p)
	}
}
