package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/cmd/program"
)

// fairway runs a command in this process.
func fairway(args ...string) (out, errs string, err error) {
	root := newRoot()
	var o, e bytes.Buffer
	root.SetOut(&o)
	root.SetErr(&e)
	root.SetArgs(args)
	err = root.Execute()
	return o.String(), e.String(), err
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
	out, warned, err := fairway("backtest", "--csv", file, "--json")
	var answer backtestAnswer
	if err := errors.Join(err, json.Unmarshal([]byte(out), &answer)); err != nil || len(answer.Policies) != 5 ||
		answer.Slowdowns == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	results := answer.Policies
	if d := results[2]; d.Policy != "dfra" || d.Upgraded != 1 || d.Against.Gain != 1 || results[0].Granted != 0 ||
		results[1].Policy != "rr-32" || results[4].Granted != 0 {
		t.Errorf("%+v", results)
	}
	if !strings.Contains(warned, file+":4: nodes: \"lots\"") {
		t.Errorf("the bad row is not named: %q", warned)
	}
	if out, _, err = fairway("backtest", "--csv", file); err != nil ||
		!strings.Contains(out,
			"2 jobs replayed; the last run predicted the next one within 20 % in 100.0 % of 1 case\n") {
		t.Errorf("%v\n%s", err, out)
	}
	single := filepath.Join(t.TempDir(), "single.csv")
	if err := os.WriteFile(single, []byte(strings.Join(strings.SplitAfter(jobsCSV, "\n")[:2], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, err = fairway("backtest", "--csv", single); err != nil || !strings.HasPrefix(out, "1 job replayed\n") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, args := range [][]string{{"backtest"}, {"backtest", "--csv", file, "--forwarders", "3"}} {
		if _, _, err := fairway(args...); exitCode(err) == program.Done {
			t.Errorf("%v is taken", args)
		}
	}
	if _, _, err := fairway("backtest", "--csv", file+".none"); exitCode(err) != program.Failed {
		t.Errorf("a missing file: %v", err)
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
		out, _, err := fairway("decide", "--policy", policy, file)
		var d struct {
			Action json.RawMessage `json:"action"`
			Count  json.RawMessage `json:"count"`
		}
		if err := errors.Join(err, json.Unmarshal([]byte(out), &d)); err != nil ||
			string(d.Action)+" "+string(d.Count) != want {
			t.Errorf("%s: %s, %v", policy, out, err)
		}
	}
	if _, _, err := fairway("decide", "--policy", "luck", file); exitCode(err) != program.Usage {
		t.Errorf("an unknown policy: %v", err)
	}
}
