package backtest

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/collector/topology"
	"fairway/remap/policy/dfra"
	"fairway/tsdb/history"
)

// The rows have an index before the first named column, as pandas writes it.
const summarySample = `darshan_app,darshan_nprocs,darshan_tot_bytes_read_posix,` +
	`darshan_tot_bytes_written_posix,darshan_tot_opens_posix,darshan_tot_stats_posix,darshan_walltime,` +
	`darshan_biggest_write_api_files,darshan_biggest_read_api_files,darshan_max_bytes_written_posix,` +
	`darshan_max_bytes_read_posix
0,/bin/a,64,0.0,6.4e10,128,0,100,64,0,1e9,0
1,/bin/a,64,0.0,6.4e10,128,0,100,1,0,1e9,0
2,/bin/b,64,1e9,0,1,0,100,0,1,0,1e9
3,/bin/idle,64,0,0,1,0,100,0,1,0,0
`

const taihuSample = `jobid,queue,nodenum,corenum,submittime,starttime,endtime,runtime
1,q,16,64,2018-02-22 10:07:46,2018-02-22 10:08:51,2018-02-22 11:08:51,3600
2,q,16,64,2018-02-22 12:07:46,2018-02-22 12:08:51,2018-02-22 13:08:51,3600
`

func TestReadSummaries(t *testing.T) {
	s, err := ReadSummaries("s.csv", strings.NewReader(summarySample))
	if err != nil || len(s) != 3 {
		t.Fatal(s, err)
	}
	for i, want := range []history.Profile{
		{WriteBytes: 6.4e10, Mode: topology.ModeNN, IONodes: 16, MetaOps: 128},
		{WriteBytes: 6.4e10, Mode: topology.ModeN1, IONodes: 16, MetaOps: 128},
		{ReadBytes: 1e9, Mode: topology.Mode11, IONodes: 1, MetaOps: 1},
	} {
		p := s[i].profile(16)
		if p.WriteBytes != want.WriteBytes || p.ReadBytes != want.ReadBytes || p.Mode != want.Mode ||
			p.IONodes != want.IONodes || p.MetaOps != want.MetaOps {
			t.Errorf("profile %d: %+v", i, p)
		}
	}
	near(t, "metadata queue", *s[0].profile(1).MetaQueue, 128*metaSeconds/100)
}

func TestTaihuLightListGetsTheSummariesIO(t *testing.T) {
	s, _ := ReadSummaries("s.csv", strings.NewReader(summarySample))
	runs, err := TaihuLight2018("t.csv", strings.NewReader(taihuSample), s[:2], 1)
	if err != nil || len(runs) != 2 || runs[0].App != "q/16" || runs[0].Profile.Mode != topology.ModeNN ||
		runs[1].Profile.Mode != topology.ModeN1 || runs[1].Seconds() != 3600 {
		t.Errorf("%+v, %v", runs, err)
	}
	for text, want := range map[string]string{
		strings.Replace(taihuSample, "16,64", "many,64", 1):             `t.csv:2: column "nodenum" is "many"`,
		strings.Replace(taihuSample, "2018-02-22 12:08:51", "today", 1): `t.csv:3: column "starttime" is "today"`,
		strings.Replace(taihuSample, "endtime", "end", 1):               `column "endtime" is missing`,
		strings.Replace(taihuSample, ",2018-02-22 11:08:51,3600", "",
			1): `t.csv:2: column "endtime" is not in this row`,
		"": "heading",
	} {
		if _, err := TaihuLight2018("t.csv", strings.NewReader(text), s, 1); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func FuzzReadTables(f *testing.F) {
	f.Add(summarySample)
	f.Add(taihuSample)
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = ReadSummaries("f", strings.NewReader(text))
		s := []Summary{{App: "a", Procs: 1, WriteBytes: 1}}
		runs, err := TaihuLight2018("f", strings.NewReader(text), s, 1)
		if err == nil {
			_, _ = Run(small, limits, runs, Policy{Decide: dfra.Decide})
		}
	})
}

// TestRealList replays the real list with the real summaries.
func TestRealList(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "data", "traces")
	list, err := os.Open(filepath.Join(dir, "taihulight_jobs_2018.csv"))
	if err != nil {
		t.Skipf("skipped: the published list of jobs is not beside the repository: %v", err)
	}
	defer list.Close()
	in, err := os.Open(filepath.Join(dir, "mira-summaries_2017-02-14_2018-02-15.csv.gz"))
	if err != nil {
		t.Skipf("skipped: the published summaries of jobs are not beside the repository: %v", err)
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ReadSummaries("mira", z)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := TaihuLight2018("taihulight", list, s, 1)
	if err != nil || len(runs) != 3621 {
		t.Fatal(len(runs), err)
	}
	r, err := Run(TaihuLight(), dfra.Config{}, runs, policies[1])
	if err != nil || r.Jobs != 3621 || r.Unplaced != 0 || r.Upgraded == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
