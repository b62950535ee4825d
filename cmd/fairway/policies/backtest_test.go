package policies

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/lab/conform/manual"
	"fairway/cmd/program"
)

// run runs a command line and returns what it printed, what it complained of, and its exit code.
func run(t *testing.T, stdin string, args ...string) (out, errs string, code int) {
	t.Helper()
	out, errs, err := manual.Call(t, cli.NewRoot(Add), stdin, args...)
	return out, errs, cli.Code(err)
}

const jobsCSV = `job,user,app,nodes,start,end,volume_bytes,io_nodes,mode,meta_queue
1,wei,ROMS,1024,2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,4e13,1024,N-N,1
2,wei,ROMS,1024,2026-01-01T02:00:00Z,2026-01-01T03:00:00Z,4e13,1024,N-N,1
3,wei,ROMS,lots,2026-01-01T02:00:00Z,2026-01-01T03:00:00Z,4e13,1024,N-N,1
`

func TestBacktestOfACSV(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.csv")
	if err := os.WriteFile(file, []byte(jobsCSV), 0o600); err != nil {
		t.Fatal(err)
	}
	out, warned, code := run(t, "", "backtest", "--csv", file, "--json")
	var answer backtestAnswer
	if err := json.Unmarshal([]byte(out), &answer); code != program.Done || err != nil || len(answer.Policies) != 5 ||
		answer.Slowdowns == nil {
		t.Fatalf("%d %v\n%s", code, err, out)
	}
	results := answer.Policies
	if d := results[2]; d.Policy != "dfra" || d.Upgraded != 1 || d.Against.Gain != 1 || results[0].Granted != 0 ||
		results[1].Policy != "rr-32" || results[4].Granted != 0 {
		t.Errorf("%+v", results)
	}
	if !strings.Contains(warned, file+":4: nodes: \"lots\"") {
		t.Errorf("the bad row is not named: %q", warned)
	}
	if out, _, code = run(t, "", "backtest", "--csv", file); code != program.Done ||
		!strings.Contains(out,
			"2 jobs replayed; the last run predicted the next one within 20 % in 100.0 % of 1 case\n") {
		t.Errorf("%d\n%s", code, out)
	}
	single := filepath.Join(t.TempDir(), "single.csv")
	if err := os.WriteFile(single, []byte(strings.Join(strings.SplitAfter(jobsCSV, "\n")[:2], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, code = run(t, "", "backtest", "--csv", single); code != program.Done ||
		!strings.HasPrefix(out, "1 job replayed\n") {
		t.Errorf("%d\n%s", code, out)
	}
	for _, args := range [][]string{{"backtest"}, {"backtest", "--csv", file, "--forwarders", "3"}} {
		if _, _, code := run(t, "", args...); code == program.Done {
			t.Errorf("%v is taken", args)
		}
	}
	if _, _, code := run(t, "", "backtest", "--csv", file+".none"); code != program.Failed {
		t.Errorf("a missing file: %d", code)
	}
}

func TestDecideByEveryPolicy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "case.json")
	text := "{\"config\":{},\"job\":{\"app\":\"A\",\"user\":\"u\",\"nodes\":512,\"default_forwarders\":[\"f1\"]}," +
		"\"history\":[{\"app\":\"A\",\"user\":\"u\",\"nodes\":512,\"end\":1," +
		"\"volume_bytes\":1e12,\"io_nodes\":256,\"mode\":\"N-N\",\"meta_queue\":1}]," +
		"\"forwarders\":{\"idle\":[\"a\",\"b\",\"c\"],\"anomalous\":[\"f1\",\"a\"]},\"neighbours\":[]}"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for policy, want := range map[string]string{"dfra": `"upgrade" 2`, "mckp": `"upgrade" 2`, "avoid": `"default" 1`} {
		out, _, code := run(t, "", "decide", "--policy", policy, file)
		var d struct {
			Action json.RawMessage `json:"action"`
			Count  json.RawMessage `json:"count"`
		}
		if err := json.Unmarshal([]byte(out), &d); code != program.Done || err != nil ||
			string(d.Action)+" "+string(d.Count) != want {
			t.Errorf("%s: %s, %v", policy, out, err)
		}
	}
	if _, _, code := run(t, "", "decide", "--policy", "luck", file); code != program.Usage {
		t.Errorf("an unknown policy: %d", code)
	}
}
