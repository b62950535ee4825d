package archive

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
)

// TestArchiveOnAnObjectStore: the command of docs/archive.md puts an archive on a server of the S3 API, where another
// reader finds its rows, also after parts were merged. A fresh folder that is filled from there answers as the first
// one, and knows which logs were read.
func TestArchiveOnAnObjectStore(t *testing.T) {
	server := os.Getenv("FAIRWAY_GOFAKES3")
	if _, err := exec.LookPath("rclone"); err != nil || server == "" {
		t.Skip("skipped: make engines builds gofakes3 and installs rclone")
	}
	addr := serveBucket(t, server)
	from, dir, fresh := t.TempDir(), t.TempDir(), t.TempDir()
	remote := ":s3,provider=Other,access_key_id=a,secret_access_key=b,endpoint='http://" + addr + "':"
	run := func(line string) {
		t.Helper()
		words := strings.Fields(strings.NewReplacer("/var/lib/fairway/archive", dir, "REMOTE:", remote).Replace(line))
		c := exec.Command(words[0], words[1:]...)
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "RCLONE_CONFIG=" + os.DevNull} // none of this host's AWS_*
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	page, err := os.ReadFile("../../../docs/archive.md")
	if err != nil {
		t.Fatal(err)
	}
	sync := ""
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "    flock ") {
			sync = strings.TrimSpace(line)
		}
	}

	for batch := range manyParts + 2 { // so many that they are merged
		logs(t, from, 2*(batch+1))
		run1(t, Importer{Dir: dir}, from)
		if batch == 3 {
			run(sync)
		}
	}
	run(sync)
	parts, err := filepath.Glob(filepath.Join(dir, "*", "day=*", "*.parquet"))
	if err != nil || len(parts) == 0 {
		t.Fatal(len(parts), err)
	}
	jobs := 0
	for _, p := range parts {
		name, _ := filepath.Rel(dir, p)
		res, err := http.Get("http://" + addr + "/bucket/archive/" + name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", name, res.Status, err)
		}
		if strings.HasPrefix(name, "job/") {
			rows, err := parquet.Read[foreignJob](bytes.NewReader(b), int64(len(b)))
			if err != nil {
				t.Fatal(name, err)
			}
			jobs += len(rows)
		}
	}
	if want := one(t, dir, "SELECT count(*) FROM job")[0]; fmt.Sprint(want) != fmt.Sprint(jobs) || jobs == 0 {
		t.Errorf("parquet-go reads %d jobs in the bucket, DuckDB %v in the archive", jobs, want)
	}

	run("rclone copy REMOTE:bucket/archive " + fresh)
	back, err := filepath.Glob(filepath.Join(fresh, "*", "day=*", "*.parquet"))
	if err != nil || len(back) != len(parts) {
		t.Errorf("%d parts came back of %d, %v", len(back), len(parts), err)
	}
	const sums = "SELECT count(*), sum(bytes_written), sum(log::HUGEINT) FROM job"
	if got, want := one(t, fresh, sums), one(t, dir, sums); !reflect.DeepEqual(got, want) {
		t.Errorf("the fresh archive has %v, want %v", got, want)
	}
	if rep := run1(t, Importer{Dir: fresh}, from); rep.Imported != 0 {
		t.Errorf("%d logs were read anew", rep.Imported)
	}
}

// serveBucket starts a server of the S3 API with one bucket for one test.
func serveBucket(t *testing.T, program string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = l.Addr().String()
	l.Close()
	c := exec.Command(program, "-host", addr, "-backend", "memory", "-initialbucket", "bucket", "-quiet")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	for range 500 {
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			return addr
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("gofakes3 does not answer")
	return ""
}
