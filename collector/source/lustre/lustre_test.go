package lustre

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"fairway/cmd/lab/conform/sourcetest"
	"fairway/collector"
)

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

const (
	llite = "sys/kernel/debug/lustre/llite/fs-ff01/stats"
	ostIO = "sys/kernel/debug/lustre/ost/OSS/ost_io/stats"
	mdt   = "proc/fs/lustre/mds/MDS/mdt/stats"
	cbd   = "sys/kernel/debug/lustre/ldlm/services/ldlm_cbd/stats"
)

var client = [2]fstest.MapFS{
	{
		llite: file(
			"snapshot_time 10.000000001 secs.nsecs\nread_bytes 5 samples [bytes] 1 9 1000\nwrite_bytes 10 samples " +
				"[bytes] 1 9 2000 77\nopen 3 samples [regs]\nopencount 9 samples [reqs] 1 1 9 9\n"),
		"sys/kernel/debug/lustre/llite/fs-ff01/read_ahead_stats": file(
			"snapshot_time 10.1 secs.nsecs\nhits 10 samples [pages]\nmisses 10 samples [pages]\n"),
		cbd: file("req_waittime 9 samples [usecs] 1 3 9 9\nldlm_bl_callback 9 samples [usecs] 1 3 9 9\n")},
	{
		llite: file(
			"snapshot_time 11.000000001 secs.nsecs\nread_bytes 9 samples [bytes] 1 9 5000\nwrite_bytes 12 samples " +
				"[bytes] 1 9 2500 18446744073709551615\nopen 5 samples [regs]\ngetattr 4 samples [usecs] 1 2 8 " +
				"20\nopencount 19 samples [reqs] 1 1 9 9\n"),
		"sys/kernel/debug/lustre/llite/fs-ff01/read_ahead_stats": file(
			"snapshot_time 11.1 secs.nsecs\nhits 40 samples [pages]\nmisses 20 samples [pages]\n"),
		cbd: file("req_waittime 49 samples [usecs] 1 3 9 9\nldlm_bl_callback 39 samples [usecs] 1 3 9 9\n")},
}

var server = [2]fstest.MapFS{
	{"proc/fs/lustre/obdfilter/fs-OST0000/stats": file(
		"snapshot_time 1 secs.usecs\nread_bytes 0 samples [bytes] 0 0 0\nwrite_bytes 10 samples [bytes] 4096 4096 " +
			"40960\n"),
		"proc/fs/lustre/obdfilter/fs-OST0000/job_stats": file(
			"job_stats:\n- job_id:          24\n  snapshot_time:   1\n  write_bytes:     { samples: 10, unit: bytes, " +
				"min: 1, max: 2, sum: 40960 }\n  punch:           { samples: 0, unit:  reqs }\n- job_id: " +
				"\"bash:0:h\"\n  write_bytes: { samples: 1, unit: bytes, min: 1, max: 1, sum: 1, hist: { 32K: 1, " +
				"64K: 2 } }\n"),
		"proc/fs/lustre/obdfilter/fs-OST0000/num_exports": file("4\n"),
		ostIO: file(
			"req_waittime 10 samples [usec] 1 2 1000 5\nreq_qdepth 10 samples [reqs] 0 9 20 1\nreq_active 10 samples " +
				"[reqs] 1 3 20 2\nost_write 10 samples [usec] 1 2 5000 9\n"),
		"sys/kernel/debug/lustre/ost/OSS/ost_io/threads_started": file("17\n"),
		mdt: file(
			"req_waittime 10 samples [usec] 1 2 100 5\nreq_qdepth 10 samples [reqs] 0 9 0 1\nmds_getattr 4 samples " +
				"[usec] 1 1 40 1\nmds_reint_open 3 samples [reqs] 1 1 3 3\n"),
		"proc/fs/lustre/mdt/fs-MDT0000/md_stats": file("open 10 samples [reqs]\n"),
	},
	{"proc/fs/lustre/obdfilter/fs-OST0000/stats": file(
		"snapshot_time 2 secs.usecs\nread_bytes 2 samples [bytes] 0 0 8192\nwrite_bytes 30 samples [bytes] 4096 4096 " +
			"140960\n"),
		"proc/fs/lustre/obdfilter/fs-OST0000/job_stats": file(
			"job_stats:\n- job_id:          24\n  snapshot_time:   2\n  write_bytes:     { samples: 20, unit: bytes, " +
				"min: 1, max: 2, sum: 90960 }\n  punch:           { samples: 3, unit:  reqs }\n- job_id: " +
				"\"SLURM_JOB24:0:h\"\n  write_bytes: { samples: 5, unit: bytes, min: 1, max: 1, sum: 5000 }\n"),
		"proc/fs/lustre/obdfilter/fs-OST0000/num_exports": file("4\n"),
		ostIO: file(
			"req_waittime 30 samples [usec] 1 2 41000 5\nreq_qdepth 30 samples [reqs] 0 9 100 1\nreq_active 30 " +
				"samples [reqs] 1 3 80 2\nost_write 30 samples [usec] 1 2 205000 9\n"),
		"sys/kernel/debug/lustre/ost/OSS/ost_io/threads_started": file("17\n"),
		mdt: file(
			"req_waittime 20 samples [usec] 1 2 1100 5\nreq_qdepth 20 samples [reqs] 0 9 50 1\nmds_getattr 14 " +
				"samples [usec] 1 1 540 1\nmds_reint_open 3 samples [reqs] 1 1 3 3\n"),
		"proc/fs/lustre/mdt/fs-MDT0000/md_stats": file("open 17 samples [reqs]\ngetattr 3 samples [reqs]\n"),
	},
}

// two reads a tree at two ticks one second apart.
func two(t *testing.T, trees [2]fstest.MapFS) collector.Reading {
	t.Helper()
	now := fstest.MapFS{}
	s := New(now)
	var r collector.Reading
	for i, tree := range trees {
		clear(now)
		maps.Copy(now, tree)
		r = collector.Reading{Now: time.Unix(int64(100+i), 0)}
		if err := s.Read(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func expect(t *testing.T, got []collector.Sample, want map[collector.Metric]float64) {
	t.Helper()
	f := collector.Frame{Samples: got}
	for m, v := range want {
		if x, ok := f.Value(m); !ok || math.Abs(x-v) > 1e-9*math.Abs(v) {
			t.Errorf("%v = %v (%v), want %v", m, x, ok, v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d samples, want %d: %v", len(got), len(want), got)
	}
}

func TestClient(t *testing.T) {
	expect(t, two(t, client).Samples, map[collector.Metric]float64{collector.ReadBytes: 4000, collector.WriteBytes: 500,
		collector.ReadOps:  4,
		collector.WriteOps: 2, collector.MetaOps: 2 + 4, collector.ClientMeta: 2e-6, collector.CacheHitRatio: 0.75,
		collector.LockCallbacks: 30})
}

// What never happened has no line and is known to be nothing; from 2.14 on programs' times are counted.
func TestClientOf214(t *testing.T) {
	lines := func(n int) fstest.MapFS {
		return fstest.MapFS{
			llite: file(fmt.Sprintf("snapshot_time 1.5 secs.nsecs\nread_bytes %d samples [bytes] 1 4096 %d "+
				"1\nread %d samples [usec] 1 900 %d 1\nopen %d samples [usec] 1 90 %d 1\ninode_permission 99 samples "+
				"[usec] 1 1 "+
				"99 99\n", n, 4096*n, n, 300*n, n, 50*n))}
	}
	expect(t, two(t, [2]fstest.MapFS{lines(10), lines(14)}).Samples, map[collector.Metric]float64{
		collector.ReadBytes: 4 * 4096, collector.ReadOps: 4, collector.WriteBytes: 0, collector.WriteOps: 0,
		collector.MetaOps: 4, collector.ClientRead: 300e-6, collector.ClientMeta: 50e-6})
}

// What a client asked of each storage target; one that was asked nothing, and a metadata server's own
// connection, are left out.
func TestTargetsOfAClient(t *testing.T) {
	const osc = "proc/fs/lustre/osc/"
	r := two(t, [2]fstest.MapFS{
		{llite: client[0][llite],
			osc + "fs-OST0043-osc-ffff01/stats": file(
				"snapshot_time 10 secs.nsecs\nreq_waittime 15 samples [usec] 1 2 9000 5\nread_bytes 1 samples " +
					"[bytes] 1 9 4096 1\nwrite_bytes 10 samples [bytes] 1 9 40960 1\nost_read 1 samples [usec] 1 9 " +
					"500 1\nost_write 10 samples [usec] 1 9 1000 1\nost_statfs 4 samples [usec] 1 1 4 4\n"),
			osc + "fs-OST0044-osc-ffff01/stats": file(
				"snapshot_time 10 secs.nsecs\nwrite_bytes 1 samples [bytes] 1 9 10 1\nost_write 1 samples [usec] 1 9 " +
					"10 1\n"),
			osc + "fs-OST0044-osc-MDT0000/stats": file(
				"snapshot_time 10 secs.nsecs\nost_write 1 samples [usec] 1 9 10 1\n"),
		},
		{llite: client[1][llite],
			osc + "fs-OST0043-osc-ffff01/stats": file(
				"snapshot_time 11 secs.nsecs\nreq_waittime 25 samples [usec] 1 2 99000 5\nread_bytes 3 samples " +
					"[bytes] 1 9 12288 1\nwrite_bytes 14 samples [bytes] 1 9 57344 1\nost_read 3 samples [usec] 1 9 " +
					"2500 1\nost_write 14 samples [usec] 1 9 153000 1\nost_statfs 9 samples [usec] 1 1 4 4\n"),
			osc + "fs-OST0044-osc-ffff01/stats": file(
				"snapshot_time 11 secs.nsecs\nwrite_bytes 1 samples [bytes] 1 9 10 1\nost_write 1 samples [usec] 1 9 " +
					"10 1\n"),
			osc + "fs-OST0044-osc-MDT0000/stats": file(
				"snapshot_time 11 secs.nsecs\nost_write 7 samples [usec] 1 9 70 1\n"),
		},
	})
	if len(r.Targets) != 1 || r.Targets[0].Target != "fs-OST0043" {
		t.Fatalf("targets %+v, want fs-OST0043 alone", r.Targets)
	}
	expect(t, r.Targets[0].Samples, map[collector.Metric]float64{collector.ReadBytes: 8192, collector.ReadOps: 2,
		collector.ClientRead: 0.001,
		collector.WriteBytes: 16384, collector.WriteOps: 4, collector.ClientWrite: 0.038, collector.InFlight: 0.09})
}

func TestServers(t *testing.T) {
	r := two(t, server)
	f := collector.Frame{Samples: r.Samples}
	for m, want := range map[collector.Metric]float64{collector.WriteBytes: 100000, collector.WriteOps: 20,
		collector.ReadBytes: 8192, collector.WriteExec: 0.01,
		collector.WriteWait: 0.002, collector.QueueLen: 4, collector.ThreadsBusy: 3, collector.Threads: 17,
		collector.Connections: 4,
		collector.MetaOps:     10, collector.MetaWait: 1e-4, collector.MetaExec: 5e-5, collector.MetaQueueLen: 5} {
		if v, ok := f.Value(m); !ok || math.Abs(v-want) > 1e-9 {
			t.Errorf("%v = %v (%v), want %v", m, v, ok, want)
		}
	}
	if len(r.Jobs) != 2 || r.Jobs[0].Job != "24" || r.Jobs[1].Job != collector.UncountedWork {
		t.Fatalf("jobs %v, want one and what none did", r.Jobs)
	}
	expect(t, r.Jobs[0].Samples, map[collector.Metric]float64{collector.WriteBytes: 55000, collector.WriteOps: 15,
		collector.MetaOps: 3})
	expect(t, r.Jobs[1].Samples, map[collector.Metric]float64{collector.WriteBytes: 45000, collector.WriteOps: 5,
		collector.ReadBytes: 8192, collector.ReadOps: 2})
}

// A job's creations, opens and time in service are counted where the metadata is; one that begins is counted from
// nothing, and a creation is a part of its open.
func TestJobsOfAMetadataServer(t *testing.T) {
	tree := func(opens int, more string) fstest.MapFS {
		const folder = "sys/kernel/debug/lustre/mdt/fs-MDT0000/"
		return fstest.MapFS{folder + "md_stats": file(fmt.Sprintf("open %d samples [reqs]\n", opens+1)),
			folder + "job_stats": file(fmt.Sprintf("job_stats:\n- job_id:          31\n"+
				"  snapshot_time:   %[1]d\n  open: { samples: %[1]d, unit: usecs, min: 1, max: 9, sum: 99 }\n"+
				"  mknod:           { samples: 8, unit: usecs, min: 1, max: 9, sum: 99 }\n", opens) + more)}
	}
	r := two(t, [2]fstest.MapFS{tree(100, ""),
		tree(116, "- job_id: SLURM_JOB32\n  snapshot_time: 3\n  open: { samples: 4, unit: usecs, min: 1, max: 9, "+
			"sum: 9 }\n  mknod: { samples: 1, unit: usecs, min: 1, max: 9, sum: 9 }\n")})
	if len(r.Jobs) != 3 || r.Jobs[2].Job != collector.UncountedWork {
		t.Fatalf("jobs %+v", r.Jobs)
	}
	expect(t, r.Jobs[0].Samples, map[collector.Metric]float64{collector.MetaOps: 16, collector.FilesCreated: 0,
		collector.FilesOpened: 16, collector.MetaExec: 0})
	expect(t, r.Jobs[1].Samples, map[collector.Metric]float64{collector.MetaOps: 4, collector.FilesCreated: 1,
		collector.FilesOpened: 4, collector.MetaExec: 9e-6 / 4})
}

func TestConformance(t *testing.T) {
	sourcetest.Run(t, sourcetest.Suite{
		New:   func(fsys fs.FS) collector.Source { return New(fsys) },
		First: client[0], Second: client[1],
		Want: []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.ReadOps, collector.WriteOps,
			collector.MetaOps},
	})
}

// TestCapacity: a server's targets are asked once a minute how full they are; what only root may use counts as
// neither, more than 4 TB are counted, and what cannot be is absent.
func TestCapacity(t *testing.T) {
	tree := fstest.MapFS{}
	put := func(target, total, free, available, inodes, inodesFree string) {
		for name, v := range map[string]string{"kbytestotal": total, "kbytesfree": free, "kbytesavail": available,
			"filestotal": inodes, "filesfree": inodesFree} {
			tree["proc/fs/lustre/osd-ldiskfs/"+target+"/"+name] = file(v + "\n")
		}
	}
	put("fs-OST0000", "10000000000", "4000000000", "2000000000", "1000", "900")
	put("fs-OST0001", "1000", "900", "900", "1000", "10")
	put("fs-MDT0000", "1000", "2000", "900", "1000", "bad")
	put("MGS", "1000", "1", "1", "1000", "1")
	s := New(tree)
	read := func(at int64) (used string) {
		r := collector.Reading{Now: time.Unix(at, 0)}
		if err := s.Read(t.Context(), &r); err == nil {
			used = "all is well; "
		}
		if done := s.full.accounts.under.done; done != nil {
			<-done // it reads the tree, which changes
		}
		all := append([]collector.TargetSamples{{Target: "fullest", Samples: r.Samples}}, r.Targets...)
		for _, target := range all {
			for _, v := range target.Samples {
				used += fmt.Sprintf("%s %s %.3g; ", target.Target, v.Metric, v.Value)
			}
		}
		return used
	}
	want := "fullest space_used_ratio 0.75; fullest inodes_used_ratio 0.99; fs-OST0000 space_used_ratio 0.75; " +
		"fs-OST0000 inodes_used_ratio 0.1; fs-OST0001 space_used_ratio 0.1; fs-OST0001 inodes_used_ratio 0.99; "
	if got := read(1000); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	put("fs-OST0000", "10000000000", "3000000000", "1000000000", "1000", "900")
	put("fs-MDT0000", "1000", "900", "900", "1000", "900")
	if got := read(1059); got != "all is well; "+want {
		t.Errorf("a minute is not over: %s", got)
	}
	if got := read(1060); !strings.Contains(got, "all is well; fullest space_used_ratio 0.875; ") ||
		!strings.Contains(got, "fs-MDT0000 space_used_ratio 0.1; ") {
		t.Errorf("a minute later: %s", got)
	}
}

// TestReconnects: an import that lost its target while it was in use counts, one that idled does not; of a server the
// targets in recovery do.
func TestReconnects(t *testing.T) {
	tree := fstest.MapFS{}
	s := New(tree)
	for second, c := range []struct {
		state    string
		attempts int
		want     float64 // -1: not known
	}{{"FULL", 2, -1}, {"FULL", 2, 0}, {"DISCONN", 3, 1}, {"EVICTED", 5, 2}, {"FULL", 5, 0}, {"IDLE", 5, 0},
		{"FULL", 6, 0}, {"FULL", 7, 1}} {
		const osc = "sys/kernel/debug/lustre/osc/fs-OST0001-osc-ffff9c/"
		tree[osc+"stats"] = file("snapshot_time 1 secs.usecs\nreq_waittime 5 samples [usec] 1 2 10 5\n")
		tree[osc+"import"] = file(fmt.Sprintf("import:\n    name: a\n    state: %s\n    connection:\n"+
			"       connection_attempts: %d\n       generation: 2\n", c.state, c.attempts))
		r := collector.Reading{Now: time.Unix(int64(second), 0)}
		if err := s.Read(t.Context(), &r); err != nil {
			t.Error(err)
		}
		if got, known := collector.SampleOf(r.Samples, collector.Reconnects); known != (c.want >= 0) ||
			known && got != c.want {
			t.Errorf("second %d: %g, known: %t; want %g", second, got, known, c.want)
		}
	}
	for status, want := range map[string]float64{"INACTIVE": 1, "COMPLETE": 1, "RECOVERING": 2, "WAITING": 2} {
		s := New(fstest.MapFS{
			"proc/fs/lustre/mdt/fs-MDT0000/recovery_status":       file("status: RECOVERING\nrecovery_start: 9\n"),
			"proc/fs/lustre/obdfilter/fs-OST0000/recovery_status": file("status: " + status + "\n\n")})
		r := collector.Reading{Now: time.Unix(1, 0)}
		if err := s.Read(t.Context(), &r); err != nil {
			t.Error(err)
		}
		expect(t, r.Samples, map[collector.Metric]float64{collector.Recovering: want})
	}
}

func TestBadLinesCostThemselves(t *testing.T) {
	st, err := ParseStats([]byte("open x samples [reqs]\nclose 4 samples [reqs]\nhalf a line\n"))
	if len(st) != 1 || st[0].Samples != 4 || err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("%v, %v", st, err)
	}
	r,
		err := ParseRPCStats(
		[]byte(
			"read RPCs in flight: 3\npages per rpc         rpcs   % cum % |       rpcs   % cum %\n1K:\t 5 0 0 | 7 0 " +
				"0\nodd: 1 2\n"))
	if err == nil || r.Gauges["read RPCs in flight"] != 3 || len(r.Tables) != 1 ||
		r.Tables[0].Rows[0] != (Row{1024, 5, 7}) {
		t.Errorf("%+v, %v", r, err)
	}
	m,
		err := ParseRPCStats(
		[]byte(
			"modify_RPCs_in_flight:  0\n\n\t\t\tmodify\nrpcs in flight        rpcs   % cum %\n0:\t 0 0 0\n1:\t 90 45 " +
				"45\n"))
	if err != nil || len(m.Tables) != 1 || !m.Tables[0].Modify || m.Tables[0].Title != "rpcs in flight" ||
		m.Tables[0].Rows[1] != (Row{1, 0, 90}) {
		t.Errorf("a metadata client's table: %+v, %v", m, err)
	}
	if _, err := ParseJobStats([]byte("  open: { samples: 1 }\n")); err == nil {
		t.Error("a value before the first job was taken")
	}
}

// rpcs and params are what the trees of the other tests lack: tables of a client's requests and of a server's blocks,
// and a dump of lctl get_param.
const (
	rpcs = "snapshot_time:         1510950459.5 (secs.usecs)\nread RPCs in flight:  1\nwrite RPCs in flight: 2\n" +
		"pending write pages:  3\npending read pages:   4\n\n\t\t\tread\t\t\twrite\npages per rpc         rpcs   % " +
		"cum % |" +
		"       rpcs   % cum %\n1:\t\t         2  50  50   |          1  25  25\n2:\t\t         2  50 100   |        " +
		"  3  75 100\n"
	params = "health_check=healthy\nobdfilter.fs-OST0000.stats=\nsnapshot_time             1510950459.5 secs.usecs\n" +
		"read_bytes                2 samples [bytes] 4096 4096 8192\nobdfilter.fs-OST0000.job_stats=\njob_stats:\n" +
		"- job_id:          24\n  snapshot_time:   1\n  write_bytes:     { samples: 10, unit: bytes, min: 1, max: 2, " +
		"sum: 40960 }\n"
)

// readTree reads every file of a tree by its name.
func readTree(t *testing.T, tree fs.FS) map[string]int {
	t.Helper()
	read := map[string]int{}
	err := fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(tree, p)
		if err != nil {
			return err
		}
		kind := ""
		switch name := d.Name(); {
		case name == "stats" && !strings.Contains(p, "sys/lnet"), name == "md_stats", name == "read_ahead_stats":
			kind = "stats"
			_, err = ParseStats(b)
		case name == "rpc_stats" && !strings.Contains(p, "/mdc/"), strings.HasPrefix(name, "brw_stats"):
			kind = "rpc"
			_, err = ParseRPCStats(b)
		case name == "job_stats":
			kind = "jobs"
			_, err = ParseJobStats(b)
		}
		if err != nil {
			t.Errorf("%s: %v", p, err)
		}
		read[kind]++
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return read
}

// readParams reads a dump of parameters and returns how many of them are counters.
func readParams(t *testing.T, b []byte) (counters int) {
	t.Helper()
	for _, p := range ParseParams(b) {
		if strings.HasSuffix(p.Path, ".stats") || strings.HasSuffix(p.Path, ".md_stats") {
			counters++
			if _, err := ParseStats(p.Value); err != nil {
				t.Errorf("%s: %v", p.Path, err)
			}
		}
		if strings.HasSuffix(p.Path, "job_stats") {
			if _, err := ParseJobStats(p.Value); err != nil {
				t.Errorf("%s: %v", p.Path, err)
			}
		}
	}
	return counters
}

// TestFiles reads every line of the tests' own trees and, where counters of real systems lie beside the repository, of
// these; there the tests' lines have the shape of real ones.
func TestFiles(t *testing.T) {
	ours := fstest.MapFS{"proc/fs/lustre/osc/fs-OST0000-osc-ff01/rpc_stats": file(rpcs)}
	maps.Copy(ours, client[1])
	maps.Copy(ours, server[1])
	if read := readTree(t, ours); read["stats"] < 5 || read["rpc"] != 1 || read["jobs"] != 1 {
		t.Errorf("read %v", read)
	}
	if n := readParams(t, []byte(params)); n != 1 {
		t.Errorf("%d counters among the parameters", n)
	}
	root := filepath.Join("..", "..", "..", "shared", "data", "lustre")
	if _, err := os.Stat(root); err != nil {
		return
	}
	real := os.DirFS(root)
	if read := readTree(t, real); read["stats"] < 10 || read["rpc"] < 5 || read["jobs"] < 3 {
		t.Errorf("read %v of real systems", read)
	}
	known := shapes(t, real)
	for shape := range shapes(t, ours) {
		if !known[shape] {
			t.Errorf("no real file has a line such as %q", shape)
		}
	}
	b, err := fs.ReadFile(real, "hpe_2.10/proc/fs/lustre/obdfilter/lustrefs-OST0000/stats")
	if err != nil {
		t.Fatal(err)
	}
	stats, _ := ParseStats(b)
	for _, s := range stats {
		if s.Name == "statfs" && s.Samples != 35359+124430 {
			t.Errorf("statfs, which is listed twice, has %d samples", s.Samples)
		}
	}
	var in collector.Reading
	in.Now = time.Unix(1, 0)
	if err := New(os.DirFS(filepath.Join(root, "hpe_2.10"))).Read(context.Background(), &in); err != nil {
		t.Errorf("the whole tree: %v", err)
	}
	if b, err = fs.ReadFile(real, "whamcloud/valid.txt"); err != nil || readParams(t, b) == 0 {
		t.Errorf("no counters among the parameters, %v", err)
	}
}

var digits = regexp.MustCompile(`[0-9]+`)

// shapes are the lines of a tree's counters without their numbers and widths of columns.
func shapes(t *testing.T, tree fs.FS) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if name := path.Base(p); err != nil || d.IsDir() || name != "stats" && name != "md_stats" &&
			name != "rpc_stats" {
			return err
		}
		b, err := fs.ReadFile(tree, p)
		for line := range strings.Lines(string(b)) {
			if !strings.HasPrefix(line, "snapshot_time") { // its unit changed with the versions
				out[strings.Join(strings.Fields(digits.ReplaceAllString(line, "0")), " ")] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNoLustre(t *testing.T) {
	var r collector.Reading
	if err := New(fstest.MapFS{}).Read(t.Context(), &r); !errors.Is(err, collector.ErrNoData) {
		t.Error(err)
	}
}

func FuzzStats(f *testing.F) {
	f.Add([]byte("open 3 samples [reqs]\nread_bytes 1 samples [bytes] 1 2 3 4\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		st, _ := ParseStats(b)
		if len(st)*10 > len(b) {
			t.Errorf("%d lines out of %d bytes", len(st), len(b))
		}
	})
}

func FuzzRPCStats(f *testing.F) {
	f.Add([]byte("pages per rpc         rpcs   % cum % |       rpcs   % cum %\n1K:\t 5 0 0 | 7 0 0\n"))
	f.Fuzz(func(_ *testing.T, b []byte) { ParseRPCStats(b) })
}
