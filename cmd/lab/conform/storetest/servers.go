package storetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"fairway/cmd/lab/leash"
)

// Victoria starts a real VictoriaMetrics on a free port, for one test, and returns its address.
func Victoria(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	return program(t, dir, "victoria", "victoria-metrics", "-httpListenAddr", "/health", "-storageDataPath",
		filepath.Join(dir, "data"), "-retentionPeriod", "100y", "-memory.allowedBytes", "64MB", "-search.disableCache")
}

// Prometheus starts a real Prometheus on a free port, for one test, which takes by remote write samples that are at
// most a window late, and returns its address.
func Prometheus(t *testing.T, window time.Duration) string {
	t.Helper()
	dir := t.TempDir()
	conf := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("storage: {tsdb: {out_of_order_time_window: %ds}}\n", int(window.Seconds()))
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return program(t, dir, "prometheus", "prometheus", "--web.listen-address", "/-/ready", "--config.file", conf,
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--web.enable-remote-write-receiver")
}

// program starts a program on a free port, for one test, and returns its address once it is healthy.
func program(t *testing.T, dir, name, file, listen, health string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(file)
	if err != nil {
		t.Skipf("no %s here (.ci/deps test installs it): %v", file, err)
	}
	addr := Free(t, 1)[0]
	Start(t, dir, name, "http://"+addr+health, exec.Command(path, append([]string{listen + "=" + addr}, args...)...))
	return "http://" + addr
}

// Free returns addresses that nobody listens at.
func Free(t *testing.T, n int) (out []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // all of them at the end
		out = append(out, l.Addr().String())
	}
	return out
}

// Start starts a server for one test, and returns once it is healthy.
func Start(t *testing.T, dir, name, health string, cmd *exec.Cmd) {
	t.Helper()
	Answers(t, health, Launch(t, dir, name, cmd))
}

// Launch starts a program for one test.
func Launch(t *testing.T, dir, name string, cmd *exec.Cmd) *leash.Process {
	t.Helper()
	p, err := leash.Launch(name, filepath.Join(dir, name+".log"), cmd, cmd.Start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// built finds a server in a variable, on the path, or where .ci/deps builds it.
func built(t *testing.T, name, variable, how string) string {
	t.Helper()
	cache, _ := os.UserCacheDir()
	for _, p := range []string{os.Getenv(variable), name, filepath.Join(cache, "fairway/bin", name)} {
		if found, err := exec.LookPath(p); p != "" && err == nil {
			return found
		}
	}
	t.Skipf("no %s here (%s builds it)", name, how)
	return ""
}

// Influx starts a real InfluxDB on free ports, for one test, and returns its address.
func Influx(t *testing.T) string {
	t.Helper()
	path, dir := built(t, "influxd", "FAIRWAY_INFLUXD", ".ci/deps test"), t.TempDir()
	addrs := Free(t, 2)
	conf := filepath.Join(dir, "influxdb.conf")
	text := fmt.Sprintf(
		"reporting-disabled = true\nbind-address = %q\n[meta]\ndir = %q\n[data]\ndir = %q\nwal-dir = "+
			"%q\nquery-log-enabled = false\nindex-version = \"inmem\"\n"+
			"[http]\nbind-address = %q\nflux-enabled = true\nlog-enabled = false\n[monitor]\nstore-enabled = false\n",
		addrs[0], filepath.Join(dir, "meta"), filepath.Join(dir, "data"), filepath.Join(dir, "wal"), addrs[1])
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	Start(t, dir, "influxd", "http://"+addrs[1]+"/ping", exec.Command(path, "-config", conf))
	return "http://" + addrs[1]
}

// InfluxDatabase makes an empty database of an InfluxDB 1.8.
func InfluxDatabase(t *testing.T, at, name string) {
	t.Helper()
	res, err := http.PostForm(at+"/query", url.Values{"q": {"CREATE DATABASE " + name}})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("create database: %s", res.Status)
	}
}

// Answers waits until a server that was launched answers.
func Answers(t *testing.T, url string, p *leash.Process) {
	t.Helper()
	const within = time.Minute // InfluxDB takes 4 s of CPU to begin
	if err := p.AwaitReady(t.Context(), within, func(context.Context) error {
		res, err := http.Get(url)
		if err == nil {
			err = res.Body.Close()
			if res.StatusCode >= http.StatusInternalServerError {
				err = errors.New(res.Status)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
