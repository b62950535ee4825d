package site

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/anomaly/survey"
	"fairway/cmd/fairway/cli"
	"fairway/cmd/lab/conform/manual"
	"fairway/cmd/program"
)

// looked runs fairway look.
func looked(t *testing.T, args ...string) (out, errs string, err error) {
	t.Helper()
	return manual.Call(t, cli.NewRoot(Add), "", append([]string{"look"}, args...)...)
}

// surveyed is the answer of fairway look in JSON.
func surveyed(t *testing.T, args ...string) (a survey.Answer) {
	t.Helper()
	out, errs, err := looked(t, append(args, "--json")...)
	if err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return a
}

// serve starts a program that listens at an address of its own, and waits until it answers at path.
func serve(t *testing.T, name, path string, args func(addr string) []string) (url string) {
	t.Helper()
	bin, err := exec.LookPath(name)
	if err != nil {
		t.Skip("no " + name + " here (apt-get install " + name + ")")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	c := exec.Command(bin, args(addr)...)
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
	for range 500 {
		if res, err := http.Get("http://" + addr + path); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return "http://" + addr
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal(name + " does not get ready")
	return ""
}

// objectServer answers as lustre_exporter does on a server of two targets, whose disks take so many times as long.
type objectServer struct {
	mu     sync.Mutex
	rng    *rand.Rand
	number int
	slow   float64
	reads  [2][11]int // by the power of two of their milliseconds
	bytes  [2]int
}

func (s *objectServer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for target := range s.reads {
		name := fmt.Sprintf("fs1-OST%04x", 2*s.number+target)
		for range 200 {
			bucket := 0
			for took := s.slow * 4 * s.rng.ExpFloat64(); took > float64(int(1)<<bucket) && bucket < 10; {
				bucket++
			}
			s.reads[target][bucket]++
		}
		s.bytes[target] += int(200 * (1 << 20) / s.slow)
		fmt.Fprintf(w, "lustre_read_bytes_total{component=\"ost\",target=%q} %d\n", name, s.bytes[target])
		for bucket, n := range s.reads[target] {
			fmt.Fprintf(w, "lustre_io_time_milliseconds_total{component=\"ost\",operation=\"read\",size=\"%d\","+
				"target=%q} %d\n", 1<<bucket, name, n)
		}
	}
}

// TestLookNamesTheSlowServer: a real Prometheus scrapes five servers; the one that is slow is named, and nobody else.
func TestLookNamesTheSlowServer(t *testing.T) {
	var targets []string
	for n := range 5 {
		s := &objectServer{rng: rand.New(rand.NewPCG(uint64(n), 3)), number: n, slow: 1}
		if n == 3 {
			s.slow = 4
		}
		server := httptest.NewServer(s)
		defer server.Close()
		targets = append(targets, fmt.Sprintf("\n  - targets: [%q]\n    labels: {instance: 'oss%d:9169'}",
			strings.TrimPrefix(server.URL, "http://"), n))
	}
	dir := t.TempDir()
	settings := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(settings, []byte("global: {scrape_interval: 50ms, scrape_timeout: 50ms}\nscrape_configs:\n"+
		"- job_name: lustre\n  static_configs:"+strings.Join(targets, "")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := serve(t, "prometheus", "/-/ready", func(addr string) []string {
		return []string{"--config.file", settings, "--storage.tsdb.path", filepath.Join(dir, "data"),
			"--web.listen-address", addr, "--log.level", "error"}
	})
	from := strings.Replace(url, "http://", "prometheus://", 1)
	var a survey.Answer
	for range 60 { // some twenty seconds on a quiet machine
		time.Sleep(2 * time.Second)
		if out, _, err := looked(t, "--from", from, "--last", "10m", "--json"); err == nil {
			a = survey.Answer{}
			if err := json.Unmarshal([]byte(out), &a); err != nil {
				t.Fatal(err)
			}
		}
		if len(a.Findings) > 0 && len(a.Findings[0].Targets) == 2 {
			break
		}
	}
	if len(a.Findings) != 1 || a.Findings[0].Name != "oss3" || a.Findings[0].Ratios["reads"] < 2 ||
		strings.Join(a.Findings[0].Targets, " ") != "fs1-OST0006 fs1-OST0007" {
		t.Fatalf("named are %+v of %+v", a.Findings, a.Groups)
	}
	out, errs, err := looked(t, "--from", from, "--last", "10m")
	if err != nil || errs != "" {
		t.Fatal(err, errs)
	}
	t.Log(out)
	for _, want := range []string{
		"\noss3 with all of fs1-OST0006, fs1-OST0007 takes ",
		" as long in reads as its peers, Lustre's object servers, since ",
		"\nOSTs of fs1: 10, imbalance (largest over mean) 1.", ", compared in reads\n", "\nnot known from this:\n",
		"  which job causes it, and which waits: ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// TestLookAtVictoriaMetrics: what Telegraf's nfsclient wrote of four gateways for hours shows the one that was slow for
// two of them, and that it is over.
func TestLookAtVictoriaMetrics(t *testing.T) {
	dir := t.TempDir()
	url := serve(t, "victoria-metrics", "/health", func(addr string) []string {
		return []string{"-httpListenAddr", addr, "-storageDataPath", dir, "-retentionPeriod", "1y"}
	})
	var lines bytes.Buffer
	rng := rand.New(rand.NewPCG(1, 2))
	var ops, rtt, moved [4]int
	now := time.Now().Add(-time.Minute).Truncate(10 * time.Second)
	for at := now.Add(-5 * time.Hour); at.Before(now); at = at.Add(10 * time.Second) {
		for gw := range ops {
			n := 300 + rng.IntN(100)
			ms := float64(n) * (5 + rng.Float64())
			if left := now.Sub(at); gw == 1 && left < 4*time.Hour && left > 2*time.Hour {
				ms *= 3
			}
			ops[gw], rtt[gw], moved[gw] = ops[gw]+n, rtt[gw]+int(ms), moved[gw]+n<<20
			for _, mount := range []string{"/scratch", "/mnt"} { // one mount in two places
				fmt.Fprintf(&lines, "nfsstat,host=cn1,mountpoint=%s%d,operation=READ,serverexport=gw%d:/scratch "+
					"ops=%di,retrans=0i,bytes=%di,rtt=%di,exe=%di %d\n", mount, gw, gw+1, ops[gw], moved[gw], rtt[gw],
					rtt[gw], at.UnixNano())
			}
		}
	}
	for _, path := range []string{"/write", "/internal/force_flush"} {
		res, err := http.Post(url+path, "text/plain", &lines)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode/100 != 2 {
			t.Fatal(path, res.Status)
		}
	}
	a := surveyed(t, "--from", url)
	if len(a.Findings) != 1 || a.Findings[0].Name != "gw2" || a.Findings[0].Ratios["reads"] < 2.5 ||
		a.Findings[0].Ratios["reads"] > 3.5 {
		t.Fatalf("named are %+v of %+v", a.Findings, a.Groups)
	}
	since, until := now.Sub(a.Findings[0].Since), now.Sub(a.Findings[0].Until)
	if since > 250*time.Minute || since < 210*time.Minute || until > 2*time.Hour || until < 90*time.Minute {
		t.Errorf("from %s to %s ago", since, until)
	}
	if m := a.Groups[0].Members[0]; *m.Mean < 30<<20 || *m.Mean > 40<<20 {
		t.Errorf("one mount in two places is counted %g", *m.Mean)
	}
}

// TestLookSaysWhatItCannotRead, and ends with the exit code that says whose fault it is.
func TestLookSaysWhatItCannotRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{nil, program.Usage, "'fairway look' needs --from"},
		{[]string{"--from", dir}, program.Usage, "has nothing that is read here of two scrapes (0 series)"},
		{[]string{"--from", file}, program.Usage, "is not a folder"},
		{[]string{"--from", filepath.Join(dir, "none")}, program.Usage, "no such file"},
		{[]string{"--from", "ftp://host"}, program.Usage, "want prometheus://HOST:PORT[/PREFIX], http"},
		{[]string{"--from", "prometheus://127.0.0.1:1"}, program.Unreachable, "connection refused"},
		{[]string{"--from", dir, "--nodes", "gw[1-"}, program.Usage, "--nodes: bad host list"},
		{[]string{"--from", dir, "--last", "1s"}, program.Usage, "--last 1s: want a minute or more"},
	} {
		_, errs, err := looked(t, test.args...)
		if cli.Code(err) != test.code || !strings.Contains(errs, test.want) {
			t.Errorf("%v ends with %d: %s", test.args, cli.Code(err), errs)
		}
	}
}
