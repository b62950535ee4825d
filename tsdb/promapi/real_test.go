package promapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// realPrometheus loads the seconds of server's nodes into a real Prometheus and returns its address.
func realPrometheus(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("no Prometheus here (apt-get install prometheus)")
	}
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed")
	}
	dir := t.TempDir()
	var text bytes.Buffer
	for name, v := range map[string]func(node string, sec int) float64{
		"fairway_read_bytes_per_second": func(node string, sec int) float64 {
			return map[string]float64{"f1": float64(sec), "c1": 5, "f2": 1000}[node]
		},
		"fairway_meta_wait_seconds": func(string, int) float64 { return 0.001 },
	} {
		fmt.Fprintf(&text, "# TYPE %s gauge\n", name)
		for _, n := range []struct{ node, rack, role string }{{"f1", "r1", "forwarder"}, {"f2", "r2", "forwarder"},
			{"c1", "r1", "compute"}} {
			for sec := range 600 {
				if n.node != "f2" || sec < 300 || sec >= 360 {
					fmt.Fprintf(&text, "%s{node=%q,rack=%q,role=%q} %v %d\n", name, n.node, n.rack, n.role,
						v(n.node, sec), start+sec)
				}
			}
		}
	}
	text.WriteString("# EOF\n")
	in, conf, data := filepath.Join(dir, "in"), filepath.Join(dir, "p.yml"), filepath.Join(dir, "data")
	for path, b := range map[string][]byte{in: text.Bytes(), conf: nil} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(tool, "tsdb", "create-blocks-from", "openmetrics", in,
		data).CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(program, "--config.file", conf, "--storage.tsdb.path", data, "--web.listen-address", addr,
		"--storage.tsdb.retention.time", "100y", "--query.lookback-delta", "10s", "--log.level", "error")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for range 500 {
		if res, err := http.Get("http://" + addr + "/-/ready"); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return "http://" + addr
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("Prometheus does not get ready")
	return ""
}

// TestAnswersAsPrometheusDoes puts the questions of Grafana's Prometheus data source to both.
func TestAnswersAsPrometheusDoes(t *testing.T) {
	theirs := realPrometheus(t) + "/api/v1/"
	ours := server(t).URL + "/prometheus/api/v1/"
	at := func(query, sec string) url.Values { return url.Values{"query": {query}, "time": {sec}} }
	span := func(query, step string) url.Values {
		return url.Values{"query": {query}, "start": {"1700000400"}, "end": {"1700000999.5"}, "step": {step}}
	}
	around := url.Values{"start": {"1700000400"}, "end": {"1700001000"}}
	with := func(name, value string) url.Values {
		return url.Values{"start": around["start"], "end": around["end"], name: {value}}
	}
	for _, c := range []struct {
		path string
		form url.Values
	}{
		{"query", at(`{__name__=~"fairway_(read|meta).+"}`, "1700000500")},
		// within the lookback of a gap
		{"query", at(`fairway_read_bytes_per_second`, "1700000705")},
		{"query", at(`fairway_read_bytes_per_second`, "1700000715")}, // and after it
		// from version 3 on a range leaves out its start
		{"query", at(`fairway_read_bytes_per_second{node="f1"}[29500ms]`, "1700000500")},
		{"query", at(`sum by (rack) (fairway_read_bytes_per_second)`, "1700000500")},
		{"query", at(`topk(2, fairway_read_bytes_per_second)`, "1700000900")},
		{"query", at(`max_over_time(fairway_read_bytes_per_second[5m])`, "1700000999")},
		{"query", at(`quantile_over_time(0.9, fairway_read_bytes_per_second[5m:10s])`, "1700000999")},
		{"query", at(`avg_over_time((fairway_read_bytes_per_second >= bool 400)[10m:1s])`, "1700000999")},
		{"query", at(`count_over_time(fairway_read_bytes_per_second[10m] offset 1m)`, "1700000999")},
		{"query", at(`fairway_read_bytes_per_second @ 1700000460`, "1700000999")},
		{"query", at(`absent(fairway_read_bytes_per_second{node="nobody"})`, "1700000999")},
		{"query", at(`fairway_read_bytes_per_second * on (node) group_left () fairway_meta_wait_seconds`,
			"1700000999")},
		{"query", at(`scalar(sum(fairway_read_bytes_per_second))`, "1700000500.25")},
		{"query", at(`"text"`, "1700000500")},
		{"query", at(`1/0`, "1700000500")},
		{"query", at(`no_such_metric`, "1700000500")},
		{"query_range", span(`fairway_read_bytes_per_second`, "15")},
		{"query_range", span(`rate(fairway_read_bytes_per_second{node="f1"}[1m])`, "30s")},
		{"query_range", span(`sum(fairway_read_bytes_per_second) by (role)`, "1m")},
		{"query_range", span(`deriv(fairway_read_bytes_per_second[2m])`, "60")},
		{"labels", around},
		{"labels", with("match[]", `fairway_read_bytes_per_second`)},
		{"label/node/values", around},
		{"label/role/values", with("match[]", `{rack="r1"}`)},
		{"label/__name__/values", with("match[]", `{__name__=~"fairway_(read|meta).+"}`)},
		{"label/nothing/values", around},
		{"series", with("match[]", `fairway_read_bytes_per_second{role="forwarder"}`)},
		{"series", with("match[]", `{node=~"f.*",__name__=~"fairway_(read|meta).+"}`)},
		{"query", at(`sum(`, "1700000500")},
		{"query", at(`rate(fairway_read_bytes_per_second)`, "1700000500")},
		{"query", url.Values{"query": {"1"}, "time": {"never"}}},
		{"query_range", url.Values{"query": {"1"}, "start": {"9"}, "end": {"1"}, "step": {"1"}}},
		{"query_range", url.Values{"query": {"1"}, "start": {"1"}, "end": {"9"}, "step": {"0"}}},
		{"series", nil},
	} {
		ourCode, our := answer(t, ours+c.path, c.form)
		theirCode, their := answer(t, theirs+c.path, c.form)
		for _, a := range []map[string]any{our, their} { // words of messages differ by version
			delete(a, "error")
			delete(a, "infos")
			inOrder(a)
		}
		if ourCode != theirCode || !reflect.DeepEqual(our, their) {
			t.Errorf("%s %v:\nours   %d %v\ntheirs %d %v", c.path, c.form, ourCode, our, theirCode, their)
		}
	}
	for _, path := range []string{"status/buildinfo", "metadata"} { // for the shape: what they say is not the same
		code, our := answer(t, ours+path, nil)
		theirCode, their := answer(t, theirs+path, nil)
		if code != 200 || theirCode != 200 || reflect.TypeOf(our["data"]) != reflect.TypeOf(their["data"]) ||
			our["status"] != their["status"] {
			t.Errorf("%s: ours %d %v, theirs %d %v", path, code, our, theirCode, their)
		}
	}
}

func answer(t *testing.T, at string, form url.Values) (code int, out map[string]any) {
	t.Helper()
	res, err := http.Get(at + "?" + form.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(body, &out)
	}
	if err != nil {
		t.Fatalf("%s: %v: %s", at, err, body)
	}
	return res.StatusCode, out
}

// inOrder sorts the series of an instant vector, which have no order of their own.
func inOrder(a map[string]any) {
	data, _ := a["data"].(map[string]any)
	result, ok := data["result"].([]any)
	if ok && data["resultType"] == "vector" {
		slices.SortFunc(result, func(x, y any) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
	}
}
