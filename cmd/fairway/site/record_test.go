package site

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/anomaly/recorded"
	"fairway/cmd/fairway/cli"
	"fairway/cmd/lab/conform/manual"
	"fairway/cmd/program"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// command runs one command line and returns what it printed and its exit code.
func command(t *testing.T, args ...string) (string, int) {
	t.Helper()
	out, _, err := manual.Call(t, cli.NewRoot(Add), "", args...)
	if err != nil {
		out += err.Error()
	}
	return out, cli.Code(err)
}

// recordedSite answers as the daemon of eight forwarders does, of which fwd3 is a fifth as quick for the newest ten
// minutes. Of fwd7 there are no operations, and a minute is missing of all.
func recordedSite(t *testing.T, broken *string) *httptest.Server {
	r := rand.New(rand.NewPCG(1, 1))
	series := func(metric, node string, at int64) (v float64, ok bool) {
		long := 1.0
		if node == "fwd3" && time.Now().Unix()-at < 600 {
			long = 5
		}
		switch {
		case at/60%30 == 7 || node == "fwd7" && metric != "queue_len":
			return 0, false
		case strings.HasSuffix(metric, "_exec"):
			return 500e-6 * long * math.Exp(0.1*r.NormFloat64()), true
		case metric == "read_ops", metric == "write_ops":
			return 60, true
		case metric == "read_bytes", metric == "write_bytes":
			return 60 * 16e3, true
		case metric == "probe_stat", metric == "meta_wait":
			return 0, false
		}
		return 20e-6, true
	}
	d := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var answer any
		switch path := strings.TrimPrefix(q.URL.Path, "/api/v1/"); path {
		case *broken:
			http.Error(w, "broken", http.StatusInternalServerError)
			return
		case "nodes":
			var rows []api.NodeRow
			for i := range 8 {
				rows = append(rows, api.NodeRow{ID: topology.NodeID(fmt.Sprint("fwd", i)), Role: topology.Forwarder,
					Rack: "r,1"})
			}
			answer = rows
		case "jobs":
			answer = []api.JobRow{{Job: remap.Job{ID: "77", App: "wrf", Start: time.Now().Add(-time.Hour)}}}
		case "jobs/77":
			answer = api.JobView{Forwarders: map[topology.ForwarderID]int{"fwd2": 4, "fwd3": 4}}
		case "series":
			from, _ := time.Parse(time.RFC3339, q.URL.Query().Get("from"))
			to, _ := time.Parse(time.RFC3339, q.URL.Query().Get("to"))
			type point struct {
				T int64    `json:"t"`
				V *float64 `json:"v"`
			}
			type one struct {
				Node   string  `json:"node"`
				Points []point `json:"points"`
			}
			var all struct {
				Series []one `json:"series"`
			}
			for node := range strings.SplitSeq(q.URL.Query().Get("node"), ",") {
				s := one{Node: node}
				for at := from.Unix(); at < to.Unix(); at++ {
					p := point{T: 1000 * at}
					if v, ok := series(q.URL.Query().Get("metric"), node, at); ok {
						p.V = &v
					}
					s.Points = append(s.Points, p)
				}
				all.Series = append(all.Series, s)
			}
			answer = all
		default:
			http.NotFound(w, q)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(d.Close)
	return d
}

// TestRecordedSiteIsJudged: what --live writes is a trace that detect reads and finds the slow forwarder in; what
// cannot be recorded leaves nothing behind.
func TestRecordedSiteIsJudged(t *testing.T) {
	broken := ""
	d := recordedSite(t, &broken)
	parent := t.TempDir()
	dir := filepath.Join(parent, "trace")
	for _, b := range []string{"nodes", "series", "jobs/77"} {
		broken = b
		if out, code := command(t, "--addr", d.URL, "detect", "--live", "--last", "1m", dir); code == program.Done {
			t.Errorf("%s is broken: %s", b, out)
		}
		if left, _ := os.ReadDir(parent); len(left) > 0 {
			t.Errorf("%s is broken: %v is left", b, left)
		}
	}
	broken = ""
	out, code := command(t, "--addr", d.URL, "detect", "--live", "--last", "40m", dir)
	if code != program.Done || !strings.Contains(out, "rows of 8 forwarders") {
		t.Fatalf("%d %s", code, out)
	}
	if out, code := command(t, "--addr", d.URL, "detect", "--live", dir); code != program.Usage ||
		!strings.Contains(out, "is not empty") {
		t.Errorf("again into the same directory: %d %s", code, out)
	}
	out, code = command(t, "detect", dir)
	if code != program.Done || !strings.Contains(out, "fail_slow,fwd3,") || strings.Count(out, "fail_slow") != 1 {
		t.Errorf("%d %s", code, out)
	}
	detectedInJSON(t, dir, out)
	if out, code := command(t, "detect", filepath.Join(dir, "jobs.csv")); code != program.Usage ||
		!strings.Contains(out, "jobs.csv is not a directory") {
		t.Errorf("of a file: %d %s", code, out)
	}
	jobs, err := os.ReadFile(filepath.Join(dir, "jobs.csv"))
	if err != nil || !strings.Contains(string(jobs), "\n77,wrf,") || !strings.HasSuffix(string(jobs), ",fwd2;fwd3\n") {
		t.Errorf("%v %s", err, jobs)
	}
}

// detectedInJSON: each event of the CSV is an object of --json with the same fields, and what CSV has no column for.
func detectedInJSON(t *testing.T, dir, csv string) {
	t.Helper()
	out, code := command(t, "--json", "detect", dir)
	if code != program.Done {
		t.Fatalf("%d %s", code, out)
	}
	days := 0
	for line := range strings.Lines(out) {
		var e recorded.Event
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if e.Occupancy != nil {
			days++
			continue
		}
		if row := fmt.Sprintf("%s,%s,%d,", e.Type, e.Node, e.Start); !strings.Contains(csv, row) {
			t.Errorf("%s is not among\n%s", row, csv)
		}
		if e.Type == "fail_slow" && (e.Node != "fwd3" || !strings.Contains(e.Sentence, "fwd3") || e.Confidence <= 0 ||
			e.Confidence > 1) {
			t.Errorf("%s", line)
		}
	}
	if events := strings.Count(strings.TrimSpace(out), "\n") + 1 - days; days == 0 ||
		events != strings.Count(csv, "\n")-1 {
		t.Errorf("%d events and %d of occupancy, want the events of\n%s", events, days, csv)
	}
}
