package nfs

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"fairway/cmd/lab/conform/recorded"
	"fairway/collector"
	"fairway/collector/hostname"
)

// mounted is one file system as mountstats prints it at one place.
func mounted(device, point string, reads, bytes, sent, answered int) string {
	return fmt.Sprintf("device %s mounted on %s with fstype nfs4 statvers=1.1\n\topts:\trw,vers=4.2,proto=tcp\n"+
		"\tbytes:\t1 2 3 4 %d 0 7 8\n\tRPC iostats version: 1.1\n"+
		"\txprt:\ttcp 0 0 2 0 0 %d %d 1 9 0 31 7 5\n\tper-op statistics\n\t        READ: %d %d 0 9 9 1 2 %d 0\n"+
		"\t      LOOKUP: 5 5 0 9 9 1 2 50\n\n", device, point, bytes, sent, answered, reads, reads, 10*reads)
}

const proc = "device proc mounted on /proc with fstype proc\n"

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// reading takes a second.
func reading(t *testing.T, r *Reader, second int, read func(*collector.Reading) error) collector.Reading {
	t.Helper()
	into := collector.Reading{Now: time.Unix(1795000000+int64(second), 0)}
	r.Begin(into.Now)
	if err := read(&into); err != nil {
		t.Errorf("second %d: %v", second, err)
	}
	return into
}

// TestSuperblocksCountOnce: what is mounted at several places was read once, and two file systems of one server twice.
func TestSuperblocksCountOnce(t *testing.T) {
	homes := func(k int) string { // two homes of one export, at automounted places, and another file system
		return proc + mounted("srv:/home/a", "/home/a", 100*k, 1000*k, 7, 7) +
			mounted("srv:/home/b", "/home/b", 100*k, 1000*k, 7, 7) + mounted("srv:/pfs", "/pfs", 10*k, 500*k, 7, 7)
	}
	busy := func(k int) string { // the counters rise while they are printed
		return strings.Replace(homes(k), "READ: 100 100", "READ: 99 99", 1)
	}
	const info = "22 1 0:20 / /proc rw - proc proc rw\n40 1 0:51 /a /home/a rw - nfs4 srv:/home/a rw\n" +
		"41 1 0:51 /b /home/b rw - nfs4 srv:/home/b rw\n42 1 0:52 / /pfs rw - nfs4 srv:/pfs rw\n"
	for name, c := range map[string]struct {
		tree func(int) fstest.MapFS
	}{
		"by device number": {func(int) fstest.MapFS { return fstest.MapFS{"self/mountinfo": file(info)} }},
		"at an automounter's places": {func(int) fstest.MapFS {
			return fstest.MapFS{"self/mountinfo": file("38 1 0:49 / /home/a rw - autofs auto.home rw\n" +
				"39 1 0:50 / /home/b rw - autofs auto.home rw\n" + info)}
		}},
		"two at one place": {func(int) fstest.MapFS {
			return fstest.MapFS{"self/mountinfo": file(info + "43 1 0:59 / /pfs rw - nfs4 srv2:/pfs rw\n")}
		}},
		"by their counters": {func(int) fstest.MapFS { return fstest.MapFS{} }},
	} {
		r := New(nil)
		defer r.Close()
		var last collector.Reading
		for k := 1; k <= 3; k++ {
			tree := c.tree(k)
			tree["self/mountstats"] = file(homes(k))
			if tree["self/mountinfo"] != nil {
				tree["self/mountstats"] = file(busy(k))
			}
			r.files = tree
			last = reading(t, r, k, r.Client)
		}
		for m, want := range map[collector.Metric]float64{collector.ReadBytes: 1500, collector.ReadOps: 110} {
			if v, _ := collector.SampleOf(last.Samples, m); v != want {
				t.Errorf("%s: %v = %g, want %g", name, m, v, want)
			}
		}
	}
}

// TestWhatCannotBeReadCostsItself: an operation with a bad counter leaves its class unknown, and the others as they
// are.
func TestWhatCannotBeReadCostsItself(t *testing.T) {
	r := New(nil)
	defer r.Close()
	for k := 1; k <= 2; k++ {
		text := strings.Replace(mounted("s:/p", "/p", 10*k, 100*k, 1, 1), "LOOKUP: 5", "LOOKUP: x", 1) + "\tnew: 1 2\n"
		r.files = fstest.MapFS{"self/mountstats": file(proc + text),
			"net/rpc/nfsd": file(fmt.Sprintf("io %d 0\nnew a b\nth 8 0 0.000\nproc3 22 0 7 %s\n", 100*k,
				strings.Repeat("3 ", 20)))}
		into := collector.Reading{Now: time.Unix(int64(k), 0)}
		r.Begin(into.Now)
		if err := r.Client(&into); err == nil || !strings.Contains(err.Error(), `/p: line "LOOKUP: x`) {
			t.Errorf("the status is %v", err)
		}
		_, meta := collector.SampleOf(into.Samples, collector.MetaOps)
		if v, _ := collector.SampleOf(into.Samples, collector.ReadOps); meta || k == 2 && v != 10 {
			t.Errorf("second %d: reads %g, metadata known: %t", k, v, meta)
		}
		into.Samples = nil
		if err := r.Server(&into); err == nil || !strings.Contains(err.Error(), `line "new a b"`) {
			t.Errorf("the server's status is %v", err)
		}
		if v, _ := collector.SampleOf(into.Samples, collector.ReadBytes); k == 2 && v != 100 || !r.Serves() {
			t.Errorf("the server read %g", v)
		}
	}
}

// TestAnswersAreNoErrors: names that are not there are answers, data that could not be read is an error.
func TestAnswersAreNoErrors(t *testing.T) {
	r := New(nil)
	defer r.Close()
	var last collector.Reading
	for k := range 2 {
		r.files = fstest.MapFS{"self/mountstats": file(proc + mounted("s:/p", "/p", 10*k, 100*k, 7, 7) +
			fmt.Sprintf("\tACCESS: 9 9 0 1 1 0 0 0 %d\n\tLOOKUP: 9 9 0 1 1 0 0 0 %d\n\tOPEN: 9 9 0 1 1 0 0 0 %d\n"+
				"\tREAD: 9 9 0 1 1 0 0 0 %d\n\tGETATTR: 9 9 0 1 1 0 0 0 %d\n", 90*k, 80*k, 70*k, 2*k, 3*k))}
		last = reading(t, r, k, r.Client)
	}
	if v, ok := collector.SampleOf(last.Samples, collector.Errors); !ok || v != 5 {
		t.Errorf("%g errors, known: %t; want 5", v, ok)
	}
}

// TestReconnects: a connection that was lost in use and made anew counts once, whichever mounts share it; one that
// idled, a new mount and UDP do not.
func TestReconnects(t *testing.T) {
	r := New(nil)
	defer r.Close()
	second := 0
	for _, c := range []struct {
		until, connects, sent int
		want                  float64 // in the last second; -1: not known
	}{{1, 2, 10, -1}, {2, 2, 20, 0}, {3, 3, 30, 1}, {4, 3, 30, 0}, {5, 5, 31, 2}, {290, 5, 31, 0}, {291, 6, 50, 1},
		{590, 6, 50, 0}, {591, 7, 51, 0}, {592, 8, 52, 1}} {
		shared := fmt.Sprintf("\txprt:\ttcp 0 0 %d 0 0 %d 9 1 9 0 31 7 5\n\txprt:\tudp 740 1 9 9 5 2 2 16 2 2\n",
			c.connects, c.sent)
		tree := proc
		for _, point := range []string{"/a", "/b"} {
			tree += "device s:" + point + " mounted on " + point + " with fstype nfs4 statvers=1.1\n\tage:\t" +
				fmt.Sprint(len(tree)) + "\n" + shared
		}
		r.files = fstest.MapFS{"self/mountstats": file(tree)}
		got, known := 0.0, false
		for ; second < c.until; second++ {
			got, known = collector.SampleOf(reading(t, r, second, r.Client).Samples, collector.Reconnects)
		}
		if known != (c.want >= 0) || known && got != c.want {
			t.Errorf("second %d: %g, known: %t; want %g", c.until, got, known, c.want)
		}
	}
}

// TestWhatIsExportedIsBehind: of a gateway's own mounts those that it does not serve are not behind it.
func TestWhatIsExportedIsBehind(t *testing.T) {
	for name, c := range map[string]struct {
		exports string
		want    []string
	}{
		"no list":                 {"", []string{"be1", "be2", "adm"}},
		"no client yet":           {"# Version 1.1\n", []string{"be1", "be2", "adm"}},
		"what is mounted there":   {"/mnt/pfs\t*(rw,fsid=7)\n", []string{"be1"}},
		"a folder of it":          {"/mnt/pfs/jobs\t10.0.0.0/8(rw,fsid=7)\n", []string{"be1"}},
		"all below":               {"/mnt\t*(rw,crossmnt,fsid=7)\n", []string{"be1", "be2"}},
		"nothing below":           {"/mnt\t*(rw,fsid=7)\n", nil},
		"one with a blank":        {`/mnt/b\040b *(ro)` + "\n", []string{"be2"}},
		"version 4's root is not": {"/\t*(ro,v4root,crossmnt,fsid=0)\n/home\t*(rw)\n", []string{"adm"}},
	} {
		r := New(nil)
		defer r.Close()
		var last collector.Reading
		for k := 1; k <= 2; k++ {
			tree := fstest.MapFS{"self/mountstats": file(proc + mounted("be1:/x", "/mnt/pfs", 10*k, 100*k, 7, 7) +
				mounted("be2:/", `/mnt/b\040b`, 20*k, 100*k, 7, 7) + mounted("adm:/home", "/home", 30*k, 100*k, 7, 7))}
			if c.exports != "" {
				tree["fs/nfsd/exports"] = file(c.exports)
			}
			r.files = tree
			last = reading(t, r, k, r.BackEnds)
		}
		var got []string
		for _, target := range last.Targets {
			got = append(got, string(target.Target))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: behind it are %v, want %v", name, got, c.want)
		}
	}
}

// TestCountersOfTheServerThatBeganAnew: its bytes, which some kernels keep in 32 bits, went back with all others.
func TestCountersOfTheServerThatBeganAnew(t *testing.T) {
	r := New(nil)
	defer r.Close()
	for k, c := range []struct{ bytes, reads int }{{3_500_000_000, 1000}, {100, 3}, {1100, 4}} {
		r.files = fstest.MapFS{"net/rpc/nfsd": file(fmt.Sprintf("io %d 0\nth 8 0\nproc3 22 0 7 0 0 0 0 %d%s\n", c.bytes,
			c.reads, strings.Repeat(" 0", 15)))}
		into := reading(t, r, k, r.Server)
		if v, ok := collector.SampleOf(into.Samples, collector.ReadBytes); ok != (k == 2) || ok && v != 1000 {
			t.Errorf("second %d: %g, known: %t", k, v, ok)
		}
	}
}

// TestRequestsWithoutAnswer: a server that answers nothing shows in how long and how many wait, whatever was lost with
// connections before; what ends after a long wait is not taken for a crowd.
func TestRequestsWithoutAnswer(t *testing.T) {
	r := New(nil)
	r.ReportWaiting = true
	defer r.Close()
	for _, c := range []struct {
		second, sent, answered, reads int
		age, under                    float64
	}{
		{1, 1025, 1000, 100, 0, -1}, {2, 1125, 1100, 200, 0, 1}, // 25 were lost with a connection before
		{3, 1225, 1200, 300, 0, 1}, {4, 1228, 1200, 300, 1, 3}, {5, 1228, 1200, 300, 2, 3}, {8, 1228, 1200, 300, 5, 3},
		{9, 1229, 1204, 700, 0, 4}, {10, 1229, 1204, 700, 0, 0},
	} {
		r.files = fstest.MapFS{"self/mountstats": file(proc + mounted("s:/p", "/p", c.reads, 1, c.sent, c.answered))}
		into := reading(t, r, c.second, r.Client)
		age, _ := collector.SampleOf(into.Samples, collector.RequestAge)
		under, known := collector.SampleOf(into.Samples, collector.InFlight)
		if age != c.age || known != (c.under >= 0) || known && math.Abs(under-c.under) > 1e-9 {
			t.Errorf("second %d: %g under way (known: %t), the oldest for %g s; want %g, %g", c.second, under, known,
				age, c.under, c.age)
		}
	}
}

// TestShapesOfMountstats: lines of transports by RDMA and UDP, several of one mount, and operations of nine counters.
func TestShapesOfMountstats(t *testing.T) {
	r := New(nil)
	r.ReportWaiting = true
	defer r.Close()
	const head = "device s:/p mounted on /p with fstype nfs statvers=1.1\n\tfsc:\t0 1 1 0 6\n" +
		"\tbytes:\t0 0 0 0 0 0 0 0\n"
	for name, transports := range map[string]func(sent, answered int) string{
		"rdma": func(sent, answered int) string {
			return fmt.Sprintf("\txprt:\trdma 0 0 58 62 0 %d %d 36 9 1 1 1 2 3 4 5 7 0 7 0 0 0 0 1 1 0 9\n", sent,
				answered)
		},
		"udp": func(sent, answered int) string {
			return fmt.Sprintf("\txprt:\tudp 740 1 %d %d 5 2 2 16 2 2\n", sent, answered)
		},
		"nconnect": func(sent, answered int) string {
			return fmt.Sprintf("\txprt:\ttcp 689 1 2 0 0 10 10 0 2 0 10 0 2\n"+
				"\txprt:\ttcp 815 1 2 0 0 %d %d 0 2 0 10 0 2\n", sent-10, answered-10)
		},
	} {
		r.waiting = waiting{}
		var last collector.Reading
		for k, sent := range []int{100, 103, 103} {
			r.files = fstest.MapFS{"self/mountstats": file(proc + head + transports(sent, 100) +
				"\tper-op statistics\n\tNULL: 1 1 0 44 24 0 0 0 0\n\tREAD: 5 5 0 1 1 1 1 1 0\n")}
			last = reading(t, r, k, r.Client)
		}
		under, _ := collector.SampleOf(last.Samples, collector.InFlight)
		if age, _ := collector.SampleOf(last.Samples, collector.RequestAge); under != 3 || age != 2 {
			t.Errorf("%s: %g requests wait, the oldest for %g s", name, under, age)
		}
	}
}

// TestThreadsThatWereBusy: both meanings of pool_stats.
func TestThreadsThatWereBusy(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		want          float64
	}{
		"since 3.19": {"0 1000 1000 900 0", "0 1100 1100 990 0", .1},
		"before":     {"0 1000 20 980 0", "0 1100 45 1055 0", .25},
		"two pools":  {"0 500 500 400 0\n1 500 500 500 0", "0 600 600 450 0\n1 600 600 600 0", .25},
	} {
		r := New(nil)
		defer r.Close()
		var last collector.Reading
		for k, text := range []string{c.before, c.after} {
			r.files = fstest.MapFS{"net/rpc/nfsd": file("th 8 0\n"),
				"fs/nfsd/pool_stats": file("# pool packets-arrived sockets-enqueued threads-woken\n" + text)}
			last = reading(t, r, k, r.Server)
		}
		if v, _ := collector.SampleOf(last.Samples, collector.NoThreadRatio); math.Abs(v-c.want) > 1e-9 {
			t.Errorf("%s: %g, want %g", name, v, c.want)
		}
	}
}

// TestReadsOfSparseFiles: a read that may be answered with holes is a read, at the client and at the server.
func TestReadsOfSparseFiles(t *testing.T) {
	for name, read := range map[string]func(*Reader, *collector.Reading) error{"client": (*Reader).Client,
		"server": (*Reader).Server} {
		r := New(nil)
		defer r.Close()
		var last collector.Reading
		for k := range 2 {
			text := strings.Replace(mounted("s:/p", "/p", 10*k, 100*k, 7, 7), "per-op statistics\n",
				fmt.Sprintf("per-op statistics\n\t   READ_PLUS: %d %d 0 9 9 1 2 9 0\n", 3*k, 3*k), 1)
			served := strings.Fields(strings.Repeat("0 ", 76))
			served[25], served[68] = fmt.Sprint(10*k), fmt.Sprint(3*k)
			r.files = fstest.MapFS{"self/mountstats": file(proc + text),
				"net/rpc/nfsd": file("th 8 0\nproc4ops 76 " + strings.Join(served, " ") + "\n")}
			last = reading(t, r, k, func(into *collector.Reading) error { return read(r, into) })
		}
		reads, _ := collector.SampleOf(last.Samples, collector.ReadOps)
		if meta, _ := collector.SampleOf(last.Samples, collector.MetaOps); reads != 13 || meta != 0 {
			t.Errorf("%s: %g reads, %g of metadata", name, reads, meta)
		}
	}
}

// seconds plays a node's log: what is known of each second, and the errors.
func seconds(t *testing.T, log string, read func(*Reader, *collector.Reading) error,
	each func(*Reader, collector.Reading)) {
	tree := fstest.MapFS{}
	r := New(tree)
	r.names = hostname.New(func(context.Context, netip.Addr) (string, error) { return "be1", nil })
	defer r.Close()
	var at time.Time
	for _, f := range recorded.FramesOf(t, log) {
		if !f.At.Equal(at) && !at.IsZero() && tree["self/mountstats"] != nil {
			into := collector.Reading{Now: at}
			r.Begin(at)
			if err := read(r, &into); err != nil {
				t.Fatalf("%v: %v", at, err)
			}
			each(r, into)
		}
		at = f.At
		tree[strings.TrimPrefix(f.Name, "proc/")] = &fstest.MapFile{Data: f.Text}
	}
}

// TestRecordOfNFS: on a record of a real site a client's numbers are those that its programs counted, whichever way a
// file system is mounted, and a gateway that serves what it mounts shows its clients' load and its back end apart.
func TestRecordOfNFS(t *testing.T) {
	files := recorded.Open(t, "nfs-6.1", "nodes/cn1.log", "nodes/cn3.log", "nodes/gw2.log", "programs/load.cn1",
		"programs/load.cn3")
	// cn3 mounts the same export twice from 1795767464 on.
	for node, span := range map[string][2]int64{"cn1": {1795768310, 1795768640}, "cn3": {1795767466, 1795767536}} {
		got, covered := map[string]float64{}, map[int64]bool{} // a gap has no rates
		seconds(t, files["nodes/"+node+".log"], (*Reader).Client, func(r *Reader, into collector.Reading) {
			if s := into.Now.Unix(); s < span[0] || s > span[1] {
				return
			}
			for s := into.Now.Unix(); float64(into.Now.Unix()-s) < r.rates.Seconds(); s-- {
				covered[s] = true
			}
			for _, m := range []collector.Metric{collector.ReadBytes, collector.WriteBytes} {
				v, _ := collector.SampleOf(into.Samples, m)
				got[m.String()] += v * r.rates.Seconds()
			}
		})
		want := map[string]float64{}
		text, err := os.ReadFile(files["programs/load."+node])
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var at int64
			var who, class string
			var n, size float64
			if _, err := fmt.Sscanf(string(line), "%d %s %s n %g bytes %g", &at, &who, &class, &n, &size); err == nil &&
				at > span[0] && at <= span[1] && covered[at] {
				want[map[string]string{"r": "read_bytes", "w": "write_bytes"}[class]] += size
			}
		}
		for name, v := range got {
			if math.Abs(v/want[name]-1) > .03 {
				t.Errorf("%s: %s is %.0f, its programs counted %.0f", node, name, v, want[name])
			}
		}
		t.Logf("%s: %v, its programs %v", node, got, want)
	}
	serves, behind := map[string]float64{}, map[string]float64{}
	seconds(t, files["nodes/gw2.log"], func(r *Reader, into *collector.Reading) error {
		if err := r.Server(into); err != nil {
			return err
		}
		return r.BackEnds(into)
	}, func(_ *Reader, into collector.Reading) {
		for _, s := range into.Samples {
			serves[s.Metric.String()] += s.Value
		}
		if len(into.Targets) != 1 || into.Targets[0].Target != "be1" {
			t.Fatalf("targets %+v", into.Targets)
		}
		for _, s := range into.Targets[0].Samples {
			behind[s.Metric.String()] += s.Value
		}
	})
	// Its clients' reads come from its cache; what they write goes on to the back end.
	if r := behind["write_bytes"] / serves["write_bytes"]; r < .97 || r > 1.03 || serves["read_bytes"] < 2e8 ||
		behind["read_bytes"] > 1e6 {
		t.Errorf("the gateway serves %v, behind it is %v", serves, behind)
	}
}
