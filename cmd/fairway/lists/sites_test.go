package lists

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/cmd/fairway/cli"
	"fairway/cmd/lab/conform/manual"
	"fairway/cmd/lab/simsite"
	"fairway/cmd/program"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/webui/api"
	"fairway/webui/sites"
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

// --site asks the daemon of that name in the file, with that one's token.
func TestSiteIsAskedByItsName(t *testing.T) {
	s := simsite.New(t, simsite.Options{Forwarders: 4, Compute: 16})
	s.Run(0)
	dir := t.TempDir()
	token, file := filepath.Join(dir, "token"), filepath.Join(dir, "sites.toml")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(token, simsite.ViewerSecret)
	write(file, "[site.hpc1]\naddr = \"http://"+s.TCP+"\"\ntoken_file = \""+token+
		"\"\n[site.hpc2]\naddr = \"unix:/none\"\n")
	t.Setenv("FAIRWAY_SITES", file)
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"sites", program.Done, "hpc2  no answer"},
		{"--site hpc1 jobs --json", program.Done, "["},
		{"--site hpc2 jobs", program.Unreachable, "/none"},
		{"--site hpc3 jobs", program.Usage, `no site "hpc3"; it has hpc1, hpc2`},
		{"--site hpc1 --addr unix:/x jobs", program.Usage, "leave one out"},
	} {
		if out, code := command(t, strings.Fields(c.args)...); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("fairway %s: exit %d, %s", c.args, code, out)
		}
	}
	write(file, "[site.hpc1]\nadr = \"x\"\n")
	if out, code := command(t, "sites"); code != program.Usage || !strings.Contains(out, "adr") {
		t.Errorf("of a wrong key: exit %d, %s", code, out)
	}
}

const sitesGolden = `hpc1 needs you; nothing is known of dead, refusing and slow.
3 forwarders, 12 compute nodes, 0 B/s read, 0 B/s written, 2 open findings.

SITE      STATE        NEWEST  FINDINGS  ADDRESS                 WORST
dead      no answer    -       -         http://127.0.0.1:DEADx  fairwayd does not answer: connection ` +
	`refused (http://127.0.0.1:DEADx)
hpc1      1 needs you  0 s     1         http://127.0.0.1:HPC1x  back end: scratch-OST0005 takes?<b>3x</b> ?[31mas ` +
	`long (F-000012)
hpc2      watched      0 s     1         http://127.0.0.1:HPC2x  -
refusing  not known    -       -         http://127.0.0.1:REFUx  not allowed: not for you
slow      no answer    -       -         http://127.0.0.1:SLOWx  unreachable: no answer within 4s

SHARED TARGETS
scratch-OST0005 is accused by hpc1 (F-000012) and hpc2 (F-000003)
  hpc2's job 77 (olga, WRF) writes 8.1 GB/s there, 89 % of what hpc1 and hpc2 report
  nothing is known of dead, refusing and slow
Targets to which several sites give one name are taken for one.
`

// All sites are asked at once: two share a slow target, and a dead, a slow and a refusing one cost only their rows.
func TestSitesInOneList(t *testing.T) {
	const ost = "scratch-OST0005"
	finding := func(id string) anomaly.Finding {
		return anomaly.Finding{ID: id, Node: ost, Kind: anomaly.TargetSlow, State: anomaly.Confirmed}
	}
	overview := func(id, calm string) api.Overview { // a clock ahead: of no age
		o := api.Overview{At: time.Now().Add(time.Hour), Findings: []anomaly.Finding{finding(id)},
			Forwarders: []api.ForwarderRow{{}}}
		if o.CalmWord = calm; calm == "" {
			o.Forwarders, o.ComputeNodes = append(o.Forwarders, api.ForwarderRow{}), 12
			o.Needs = []advise.Card{{Stage: advise.BackEnd, Finding: id,
				Sentence: "scratch-OST0005 takes\n<b>3x</b> \x1b[31mas long"}}
		}
		return o
	}
	moved := 8.1e9
	jobs := []api.JobRow{{Job: remap.Job{ID: "77", User: "olga", App: "WRF"},
		Now: &api.JobNow{MovedBytesPerSec: &moved}}}
	asked := map[string]string{}
	var mu sync.Mutex
	daemon := func(answers map[string]any) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			asked[r.Host+r.URL.Path] = r.Header.Get("Authorization") + " " + r.URL.Query().Get("target")
			mu.Unlock()
			switch v := answers[r.URL.Path].(type) {
			case nil:
				api.WriteProblem(w, r, fmt.Errorf("%w: not for you", api.ErrNotAllowed))
			case func(*http.Request):
				v(r)
			default:
				json.NewEncoder(w).Encode(v)
			}
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	uses := func(job topology.JobID, write float64) any {
		return map[string]any{"targets": []api.TargetUse{{Target: ost, Job: job, WriteBytesPerSec: write}}}
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	addrs := map[string]string{
		"hpc1": daemon(map[string]any{"/api/v1/overview": overview("F-000012", ""), "/api/v1/jobs": []api.JobRow{},
			"/api/v1/flow": uses("5", 1e9)}),
		"hpc2": daemon(map[string]any{"/api/v1/overview": overview("F-000003", "watched"), "/api/v1/jobs": jobs,
			"/api/v1/flow": uses("77", moved)}),
		"dead": gone.URL, "refusing": daemon(nil),
		"slow": daemon(map[string]any{"/api/v1/overview": func(r *http.Request) { <-r.Context().Done() }}),
	}
	dir := t.TempDir()
	text := ""
	for name, addr := range addrs {
		token := filepath.Join(dir, name)
		if err := os.WriteFile(token, []byte("secret-"+name), 0o600); err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("[site.%s]\naddr = %q\ntoken_file = %q\n", name, addr, token)
	}
	file := filepath.Join(dir, "sites.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FAIRWAY_SITES", file)
	var out bytes.Buffer
	root := cli.NewRoot(Add)
	root.SetOut(program.Plain(&out))
	root.SetArgs([]string{"sites"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	for name, addr := range addrs {
		got = strings.ReplaceAll(got, strings.TrimPrefix(addr, "http://127.0.0.1:"), strings.ToUpper(name)[:4]+"x")
		if host := strings.TrimPrefix(addr, "http://"); strings.HasPrefix(name, "hpc") &&
			asked[host+"/api/v1/flow"] != "Bearer secret-"+name+" scratch-OST0005" {
			t.Errorf("%s was asked with %q", name, asked[host+"/api/v1/flow"])
		}
	}
	if got != sitesGolden {
		t.Errorf("got\n%s\nwant\n%s", got, sitesGolden)
	}
}

// A view that watches the sites is asked by --addr, and knows since when one is silent.
func TestSitesOfAView(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	view := sites.Merge([]sites.Answer{{Site: "hpc1", Addr: "https://hpc1:7117", Since: now.Add(-3 * time.Minute),
		Err: fmt.Errorf("%w: refused", api.ErrUnreachable)}}, now)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/sites" {
			api.WriteProblem(w, r, api.ErrNotFound)
			return
		}
		api.WriteJSON(w, view)
	}))
	t.Cleanup(s.Close)
	const want = "Nothing is known of 1 machine.\n\n" +
		"SITE  STATE      NEWEST  FINDINGS  ADDRESS            WORST\n" +
		"hpc1  no answer  -       -         https://hpc1:7117  unreachable: refused, for 3m00\n"
	if out, code := command(t, "--addr", s.URL, "sites"); code != program.Done || out != want {
		t.Errorf("exit %d\n%s\nwant\n%s", code, out, want)
	}
}
