package scraped

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// nodeExporter runs a real node_exporter over a tree of /proc, and returns what asks it.
func nodeExporter(t *testing.T, proc string) func() string {
	t.Helper()
	program, err := exec.LookPath("prometheus-node-exporter")
	if err != nil {
		t.Skip("no node_exporter here (apt-get install prometheus-node-exporter)")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	c := exec.Command(program, "--path.procfs", proc, "--path.sysfs", t.TempDir(), "--collector.disable-defaults",
		"--collector.nfsd", "--collector.mountstats", "--collector.diskstats", "--web.listen-address", addr)
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
		if t.Failed() {
			t.Log(output.String())
		}
	})
	return func() string {
		for range 500 {
			res, err := http.Get("http://" + addr + "/metrics")
			if err != nil {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			b, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		t.Fatal("node_exporter does not answer")
		return ""
	}
}

// TestARealNodeExporter runs it over an NFS server's and an NFS client's files of two seconds.
func TestARealNodeExporter(t *testing.T) {
	proc := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(proc, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	second := func(n int) {
		write("net/rpc/nfsd", fmt.Sprintf("rc 0 0 0\nfh 0 0 0 0 0\nio %d %d\nth 8 0%s\nra 32%s\n"+
			"net 9 0 9 1\nrpc %d%s\n", n*1500, n*3000, strings.Repeat(" 0.000", 10), strings.Repeat(" 0", 11), n*90,
			strings.Repeat(" 0", 4)))
		write("diskstats", fmt.Sprintf("   8  16 sdb %d 0 %d %d %d 0 %d %d 0 9 9 0 0 0 0 0 0\n"+
			"   8  17 sdb1 %d 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", n*30, n*240, n*600, n*60, n*480, n*240, n*30))
		write("1/mountstats", fmt.Sprintf("device 10.2.0.1:/scratch mounted on /scratch with fstype nfs4 "+
			"statvers=1.1\n"+
			"\topts:\trw,vers=4.2,proto=tcp,sec=sys\n\tage:\t%d\n\tevents:\t%s\n"+
			"\tbytes:\t0 0 0 0 0 0 0 0\n"+
			"\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"+
			"\txprt:\ttcp 832 0 1 0 11 64 64 0 12 0 24 26 57\n"+
			"\tper-op statistics\n\t        READ: %d %d 0 20 %d 5 %d 900 0\n"+
			"\t       WRITE: %d %d 0 %d 8 5 %d 700 0\n"+
			"\t     GETATTR: %d %d 0 20 30 0 %d 30 0\n\n", n, strings.TrimSpace(strings.Repeat("0 ", 27)),
			n*45, n*45, n*15_000, n*900, n*15, n*15, n*30_000, n*150, n*60, n*60, n*60))
	}
	write("1/mountinfo", "36 25 0:40 / /scratch rw,relatime shared:1 - nfs4 10.2.0.1:/scratch rw,addr=10.2.0.1\n")
	if err := os.Symlink("1", filepath.Join(proc, "self")); err != nil {
		t.Fatal(err)
	}
	second(1)
	ask := nodeExporter(t, proc)
	first := ask()
	second(2)
	lines, bad, sum := folder(t, saved(t, map[string][]string{"gw1": {first, ask()}}))
	slices.Sort(lines)
	want := []string{
		"1015 10.2.0.1|gw1|NFS servers of /scratch as clients see them: read_bytes=1000 write_bytes=2000 read_ops=3 " +
			"write_ops=1 meta_ops=4 client_read=0.9/45 client_write=0.15/15 client_meta(GETATTR)=0.06/60",
		"1015 gw1 sdb|gw1|disks sdb: read_ops=2 write_ops=4 read_exec=0.6/30 write_exec=0.24/60",
		"1015 gw1|gw1|NFS servers: read_bytes=100 write_bytes=200 threads=8",
	}
	if !slices.Equal(lines, want) || len(bad) > 0 || sum.Resets > 0 {
		t.Errorf("got  %s\nwant %s\nbad %v", strings.Join(lines, "\n     "), strings.Join(want, "\n     "), bad)
	}
}
