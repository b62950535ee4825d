package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/anomaly/rootcause"
	"fairway/cmd/program"
)

// execute runs a command line with its standard input and returns what it printed and its exit code.
func execute(t *testing.T, stdin []byte, args ...string) (string, int, error) {
	t.Helper()
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetIn(bytes.NewReader(stdin))
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), exitCode(err), err
}

func TestRootcauseOfIntervals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.json")
	text := `{"files":[{"name":"File1","start":0,"end":10,"bytes":7},{"name":"File2","start":6,"end":12},{"name":"File3","start":4,"end":8},{"name":"File4","start":16,"end":18}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, stdin := range map[string][]byte{path: nil, "-": []byte("\n " + text)} {
		out, code, err := execute(t, stdin, "rootcause", name)
		var a rootcause.Answer
		if code != program.Done || json.Unmarshal([]byte(out), &a) != nil || a.IOTime != 14 || len(a.Critical) != 3 {
			t.Errorf("%s: exit code %d, %v, %s", name, code, err, out)
		}
		for _, field := range []string{`"io_time"`, `"span"`, `"bandwidth"`, `"critical"`, `"exclusive"`, `"factors"`, `"small":null`, `"nonconsec"`, `"collective"`, `"osts"`, `"procs_per_ost"`, `"verdict"`} {
			if !strings.Contains(out, field) {
				t.Errorf("no %s in %s", field, out)
			}
		}
	}
}

func TestRootcauseRefuses(t *testing.T) {
	for stdin, want := range map[string]string{"": "ends", "{}": "files", "no log": "neither", `{"files":[{"name":"a","start":1}]}`: "files[0]", "3.21\x00\x00\x00\x00": "Darshan"} {
		out, code, err := execute(t, []byte(stdin), "rootcause", "-")
		if code != program.Usage || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%q: exit code %d, error %v, output %q", stdin, code, err, out)
		}
	}
	for _, args := range [][]string{{"rootcause"}, {"rootcause", "/no/such/file"}, {"rootcause", "--op", "sideways", "-"}} {
		if _, code, err := execute(t, nil, args...); code != program.Usage {
			t.Errorf("%q: exit code %d, %v", args, code, err)
		}
	}
}

func TestRootcauseOfALog(t *testing.T) {
	log := "../../../shared/data/darshan/sample.darshan"
	b, err := os.ReadFile(log)
	if err != nil {
		t.Skipf("no sample logs beside the repository: %v", err)
	}
	for name, stdin := range map[string][]byte{log: nil, "-": b} {
		out, code, err := execute(t, stdin, "rootcause", "--op", "write", name)
		var a rootcause.Answer
		if code != program.Done || json.Unmarshal([]byte(out), &a) != nil || a.Bytes != 2199023259968 || a.Factors.OSTs != 24 || len(a.Critical) != 1 {
			t.Errorf("%s: exit code %d, %v, %s", name, code, err, out)
		}
	}
}
