package format

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/sitefiles/model"
)

// sample reads a file of a real system; the test is skipped where the samples are not beside the repository.
func sample(t *testing.T, name string) string {
	t.Helper()
	file := filepath.Join("..", "..", "..", "..", "..", "shared", "data", filepath.FromSlash(name))
	b, err := os.ReadFile(file)
	if err != nil {
		t.Skipf("skipped: needs the samples of real systems in ../shared/data: %v", err)
	}
	return string(b)
}

// same compares what was written with a sample, and shows the first line that differs.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		var a, b string
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			t.Errorf("%s, line %d: wrote\n%q\na real system\n%q", what, i+1, a, b)
			return
		}
	}
}

// TestRealSamples writes files with the numbers of real systems' files, and wants their bytes.
func TestRealSamples(t *testing.T) {
	sample(t, "lustre/hpe_2.10/proc/sys/lnet/stats")
	for name, check := range map[string]func(*testing.T){
		"lnet stats": testLNetStats, "routes": testRoutes, "stats": testStatsFiles, "stats of 2.14": testSectionsOf214,
		"job_stats": testJobStats, "linux": testPressureAndPorts, "lnetctl": testLnetctlNet, "mmpmon": testMmpmon,
	} {
		t.Run(name, check)
	}
}

// testLNetStats writes the counters of three generations with their own numbers.
func testLNetStats(t *testing.T) {
	for _, dir := range []string{"llnl_lmt/1.8.3", "llnl_lmt/2.10.8", "hpe_2.10"} {
		text := sample(t, "lustre/"+dir+"/proc/sys/lnet/stats")
		var c model.Counters
		if _, err := fmt.Sscan(text, &c.Alloc, &c.AllocMax, &c.Errors, &c.Sent, &c.Received, &c.Routed, &c.Dropped,
			&c.SentBytes, &c.ReceivedBytes, &c.RoutedBytes, &c.DroppedBytes); err != nil {
			t.Fatal(err)
		}
		same(t, dir, LNetStats(c), text)
	}
}

func testRoutes(t *testing.T) {
	text := sample(t, "lustre/llnl_lmt/2.10.8/proc/sys/lnet/routes")
	var rows []*model.Route
	for _, line := range strings.Split(text, "\n")[2:] {
		var r model.Route
		var state string
		if n, _ := fmt.Sscan(line, &r.Net, &r.Hops, &r.Priority, &state, &r.Gateway); n == 5 {
			r.Down = state != "up"
			rows = append(rows, &r)
		}
	}
	if len(rows) != 4 {
		t.Fatalf("%d routes in the sample", len(rows))
	}
	same(t, "routes", Routes(false, rows), text)
}

// lineOf reads one line of a file of statistics by its places.
func lineOf(text string) (l Line, ok bool) {
	f := strings.Fields(text)
	if len(f) < 4 || f[2] != "samples" {
		return l, false
	}
	l.Name, l.Unit = f[0], strings.Trim(f[3], "[]")
	l.Only = onlyCount
	fmt.Sscan(f[1], &l.N)
	if len(f) >= 7 {
		l.Only = noSquares
		fmt.Sscan(strings.Join(f[4:7], " "), &l.Min, &l.Max, &l.Sum)
	}
	if len(f) == 8 {
		l.Only = all
		fmt.Sscan(f[7], &l.SquareS)
	}
	return l, true
}

func timeOf(t *testing.T, text string) time.Time {
	t.Helper()
	var sec, nsec int64
	if _, err := fmt.Sscanf(text, "%d.%d", &sec, &nsec); err != nil {
		t.Fatal(text, err)
	}
	return time.Unix(sec, nsec).UTC()
}

// testStatsFiles writes every file of statistics that there is a sample of, of a client and of servers.
func testStatsFiles(t *testing.T) {
	const dir = "lustre/hpe_2.10/proc/fs/lustre/"
	for _, name := range []string{
		"osc/lustrefs-OST0000-osc-ffff88105db50000/stats", "mdc/lustrefs-MDT0000-mdc-ffff88105db50000/stats",
		"llite/lustrefs-ffff88105db50000/stats", "ost/OSS/ost_io/stats", "mds/MDS/mdt/stats",
		"obdfilter/lustrefs-OST0000/stats", "mdt/lustrefs-MDT0000/md_stats",
	} {
		text := sample(t, dir+name)
		var lines []Line
		var at Times
		for line := range strings.Lines(text) {
			if l, ok := lineOf(line); ok {
				lines = append(lines, l)
			} else if f := strings.Fields(line); f[0] == "snapshot_time" {
				at.Now = timeOf(t, f[1])
			}
		}
		same(t, name, Release(10).StatsFile(at, lines), text)
	}
}

// testSectionsOf214 does the same with parameters as lctl prints them.
func testSectionsOf214(t *testing.T) {
	for _, s := range []struct{ file, param string }{
		{"lustre/whamcloud/lctl_get_param_all_2.14.txt", "ost.OSS.ost_io.stats"},
		{"lustre/whamcloud/lctl_get_param_all_2.14.txt", "obdfilter.ai400x2-OST0000.stats"},
		{"lustre/whamcloud/lctl_get_param_all_2.14.txt", "mdt.ai400x2-MDT0000.md_stats"},
		{"lustre/whamcloud/llite_client.txt", "llite.ai400x2-ff47bce9ca35d800.stats"},
	} {
		_, body, ok := strings.Cut(sample(t, s.file), s.param+"=\n")
		if !ok {
			t.Fatalf("%s has no %s", s.file, s.param)
		}
		var lines []Line
		var at Times
		var want strings.Builder
		for line := range strings.Lines(body) {
			l, ok := lineOf(line)
			f := strings.Fields(line)
			switch {
			case ok:
				lines = append(lines, l)
			case len(f) > 1 && f[0] == "snapshot_time":
				at.Now = timeOf(t, f[1])
			default:
				f = nil
			}
			if f == nil {
				break
			}
			want.WriteString(strings.TrimRight(line, "\n") + "\n")
		}
		same(t, s.param, Release(14).StatsFile(at, lines), want.String())
	}
}

// testJobStats writes a target's jobs with the sample's own numbers: 2.10 and 2.14.
func testJobStats(t *testing.T) {
	st := func(n, least, most, sum, squares uint64) *model.Stat {
		return &model.Stat{N: n, Min: least, Max: most, Sum: sum, SquareS: squares}
	}
	job := func(id string, at time.Duration, by map[string]*model.Stat) *model.JobStats {
		j := &model.JobStats{Job: id, Last: at}
		for name, v := range by {
			*j.Stats.Of(name, "") = *v
		}
		return j
	}
	text := sample(t, "lustre/hpe_2.10/proc/fs/lustre/obdfilter/lustrefs-OST0000/job_stats")
	want, _, _ := strings.Cut(text, "- job_id:          26")
	j := job("24", 1510782606*time.Second, map[string]*model.Stat{
		"write_bytes": st(64575, 4096, 4194304, 215147593728, 0), "punch": st(1, 0, 0, 0, 0)})
	ops := []string{"read_bytes", "write_bytes", "getattr", "setattr", "punch", "sync", "destroy", "create", "statfs",
		"get_info", "set_info", "quotactl"}
	same(t, "2.10", Release(10).JobStats(Times{}, time.Unix(0, 0), []*model.JobStats{j}, ops), want)

	text = sample(t, "lustre/whamcloud/job_stats_slurm_2.14_obdfilter.txt")
	want = ""
	for _, name := range []string{"getattr", "punch"} {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "  "+name+":") {
				want += line
				break
			}
		}
	}
	got := Release(14).jobLine("getattr", model.Stat{}) + Release(14).jobLine("punch", *st(85, 96, 354, 16840, 3813568))
	same(t, "2.14", got, want)
}

// testPressureAndPorts writes Linux's files with the samples' numbers.
func testPressureAndPorts(t *testing.T) {
	text := sample(t, "linux/procfs/sys/class/infiniband/mlx4_0/ports/1/counters/port_rcv_data")
	same(t, "port_rcv_data", Infiniband(4*2221223609, 0, 1, 1, 0)["counters/port_rcv_data"], text)
	heads := strings.Join(strings.SplitAfter(sample(t, "linux/procfs/proc/net/dev"), "\n")[:2], "")
	if got := NetDev(nil); !strings.HasPrefix(got, heads) {
		t.Errorf("net/dev begins with %q", got)
	}
}

// testLnetctlNet writes lnetctl's counts as a real one prints them.
func testLnetctlNet(t *testing.T) {
	text := sample(t, "lustre/whamcloud/lnetctl_net_show.txt")
	at := strings.Index(text, "        - nid: 172.16.0.24@tcp\n")
	end := strings.Index(text[at:], "          dropped_stats:")
	want := strings.Replace(text[at:at+end], "drop_count: 4", "drop_count: 0", 1)
	ni := &model.NI{NID: "172.16.0.24@tcp", Net: "tcp", Link: "mlxen0", Sent: model.Counts{340418, 124552},
		Received: model.Counts{340401, 63529, 61023, 10}}
	got := Release(14).NetShow([]*model.NI{ni}, 2)
	got = got[strings.Index(got, "        - nid: 172.16.0.24@tcp\n"):]
	got = got[:strings.Index(got, "          dropped_stats:")]
	same(t, "net show", got, want)
	same(t, "stats show", namesOf(Release(15).StatsShow(model.Counters{})),
		namesOf(sample(t, "lustre/whamcloud/lnetctl_stats.txt")))
}

// namesOf leaves the keys of YAML.
func namesOf(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(strings.TrimRight(line, "\n"), ":")
		out.WriteString(name + "\n")
	}
	return out.String()
}

// TestTables are the widths of the tables that no sample shows: the kernel's own format strings.
func TestTables(t *testing.T) {
	same(t, "peers", Peers([]*model.Peer{{NID: "10.0.0.1@tcp", Tx: model.Credits{Max: 8, Now: -3, Min: -20},
		Rtr: model.Credits{Max: 128, Now: 120, Min: 4}, Queued: 3146000}}),
		"nid                      refs state  last   max   rtr   min    tx   min queue\n"+
			"10.0.0.1@tcp               12    NA    -1     8   120     4    -3   -20 3146000\n")
	same(t, "buffers", Buffers([3][]*model.Pool{{{Pages: 0, Count: 512, Credits: 512, Min: 480}},
		{{Pages: 1, Count: 4096, Credits: 4096, Min: 3000}}, {{Pages: 256, Count: 256, Credits: -2, Min: -40}}}),
		"pages count credits     min\n    0   512     512     480\n    1  4096    4096    3000\n  256   256      -2  "+
			"   -40\n")
	ni := &model.NI{NID: "10.0.0.1@tcp", PeerTx: 8, PeerRtr: 128, Tx: []model.Credits{{Max: 128, Now: 120, Min: 60}}}
	same(t, "nis", NIs([]*model.NI{ni}),
		"nid                      status alive refs peer  rtr   max    tx   min\n"+
			"0@lo                         up     0    2    0    0     0     0     0\n"+
			"10.0.0.1@tcp                 up     0    9    8  128   128   120    60\n")
}

func testMmpmon(t *testing.T) {
	got := Mmpmon(FSIO{Addr: "10.22.0.106", Node: "ib-pitzer-rw02.ten", Cluster: "gpfs.domain", System: "scratch",
		Disks: 48, Read: 205607400434, Written: 74839282351, Opens: 2377656, Closes: 2201576, Reads: 59420404,
		Write: 18874626, Dirs: 40971, Inodes: 544768}, time.Unix(1579358234, 53212000))
	want, _, _ := strings.Cut(sample(t, "dvs_gpfs/mmpmon_fs_io_s.txt"), "\n")
	same(t, "mmpmon", got, want+"\n")
}
