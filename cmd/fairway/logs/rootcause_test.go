package logs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/anomaly/rootcause"
	"fairway/cmd/fairway/cli"
	"fairway/cmd/lab/conform/manual"
	"fairway/cmd/program"
)

// execute runs a command line with its standard input and returns what it printed and its exit code.
func execute(t *testing.T, stdin []byte, args ...string) (string, int, error) {
	t.Helper()
	out, _, err := manual.Call(t, cli.NewRoot(Add), string(stdin), args...)
	return out, cli.Code(err), err
}

func TestRootcauseOfIntervals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.json")
	text := "{\"files\":[{\"name\":\"File1\",\"start\":0,\"end\":10,\"bytes\":7},{\"name\":\"File2\",\"start\":6," +
		"\"end\":12},{\"name\":\"File3\",\"start\":4,\"end\":8},{\"name\":\"File4\",\"start\":16,\"end\":18}]}"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, stdin := range map[string][]byte{path: nil, "-": []byte("\n " + text)} {
		out, code, err := execute(t, stdin, "rootcause", name)
		var a rootcause.Answer
		if code != program.Done || json.Unmarshal([]byte(out), &a) != nil || a.IOTime != 14 || len(a.Critical) != 3 {
			t.Errorf("%s: exit code %d, %v, %s", name, code, err, out)
		}
		for _, field := range []string{`"io_time"`, `"span"`, `"bandwidth"`, `"critical"`, `"exclusive"`, `"factors"`,
			`"small":null`, `"nonconsec"`, `"collective"`, `"osts"`, `"procs_per_ost"`, `"verdict"`} {
			if !strings.Contains(out, field) {
				t.Errorf("no %s in %s", field, out)
			}
		}
	}
}

func TestRootcauseRefuses(t *testing.T) {
	for stdin, want := range map[string]string{"": "ends", "{}": "files", "no log": "neither",
		`{"files":[{"name":"a","start":1}]}`: "files[0]", "3.21\x00\x00\x00\x00": "Darshan"} {
		out, code, err := execute(t, []byte(stdin), "rootcause", "-")
		if code != program.Usage || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%q: exit code %d, error %v, output %q", stdin, code, err, out)
		}
	}
	for _, args := range [][]string{{"rootcause"}, {"rootcause", "/no/such/file"},
		{"rootcause", "--op", "sideways", "-"}} {
		if _, code, err := execute(t, nil, args...); code != program.Usage {
			t.Errorf("%q: exit code %d, %v", args, code, err)
		}
	}
}

func TestRootcauseOfALog(t *testing.T) {
	log := "../../../collector/logs/darshan/testdata/darshan/wave-3.10.darshan"
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for name, stdin := range map[string][]byte{log: nil, "-": b} {
		out, code, err := execute(t, stdin, "rootcause", "--op", "write", name)
		var a rootcause.Answer
		if code != program.Done || json.Unmarshal([]byte(out), &a) != nil || a.Bytes != 64<<30+600 ||
			a.Factors.OSTs != 8 || len(a.Critical) != 1 {
			t.Errorf("%s: exit code %d, %v, %s", name, code, err, out)
		}
	}
}

// The record of the storage servers at a job's time joins its verdict; what cannot be joined or read is named with its
// file, line or flag, and nothing is printed.
func TestRootcauseWithLMT(t *testing.T) {
	// 8 targets below /scratch2, 2020-09-13
	const log = "../../../collector/logs/darshan/testdata/darshan/wave-3.10.darshan"
	out, _, err := execute(t, nil, "darshan", log)
	var head struct {
		Job struct{ Start, End time.Time }
	}
	if err := errors.Join(err, json.Unmarshal([]byte(out), &head)); err != nil {
		t.Fatal(err)
	}
	rows := func(fs string, begin time.Time) string {
		var b strings.Builder
		b.WriteString("OST_NAME,TIMESTAMP,READ_BYTES,WRITE_BYTES\n")
		for k := range 7 {
			at := begin.Add(time.Duration(k) * head.Job.End.Sub(head.Job.Start) / 5)
			for i := range 248 {
				fmt.Fprintf(&b, "%s-OST%04x,%s,0,%d\n", fs, i, at.UTC().Format(time.DateTime),
					int64(at.Sub(begin).Seconds()*1e8))
			}
		}
		return b.String()
	}
	dir, n := t.TempDir(), 0
	write := func(text string) string {
		n++
		path := filepath.Join(dir, fmt.Sprint("lmt", n, ".csv"))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, other := write(rows("snx1", head.Job.Start)), write(rows("snx2", head.Job.Start))
	old, bad := write(rows("snx1", head.Job.Start.Add(-24*time.Hour))),
		write(strings.Replace(rows("snx1", head.Job.Start), ",0,", ",zero,", 1))
	out, code, err := execute(t, nil, "rootcause", "--op", "write", log, "--zone", "UTC", "--lmt", good)
	if code != program.Done || !strings.Contains(out,
		"The servers' record knows 8 storage targets of the job; the busiest, snx1-OST") {
		t.Errorf("exit code %d, %v, %s", code, err, out)
	}
	for want, args := range map[string][]string{
		"which of snx1, snx2 is mounted there": {"--lmt", good, "--lmt", other},
		"on snx3, and the record is of snx1":   {"--lmt", good, "--mount", "/scratch2=snx3"},
		"another day's record":                 {"--lmt", old},
		"line 2: READ_BYTES":                   {"--lmt", bad},
		"no such file":                         {"--lmt", filepath.Join(dir, "none")},
		"POINT=FILESYSTEM":                     {"--lmt", good, "--mount", "scratch"},
		"absolute path":                        {"--lmt", good, "--mount", "scratch=snx1"},
		"neither cerebro":                      {"--lmt", write("hello\n")},
	} {
		out, code, err := execute(t, nil, append([]string{"rootcause", log, "--zone", "UTC"}, args...)...)
		if code != program.Usage || err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%q: exit code %d, %v, printed %q", args, code, err, out)
		}
	}
	if out, code, err := execute(t, nil, "rootcause", log, "--zone", "UTC", "--lmt", good, "--lmt", other, "--mount",
		"/scratch2=snx2"); code != program.Done || !strings.Contains(out, "snx2-OST") {
		t.Errorf("with the mount given: exit code %d, %v", code, err)
	}
	if _, code, err := execute(t, []byte(`{"files":[]}`), "rootcause", "-", "--lmt", good); code != program.Usage ||
		!strings.Contains(err.Error(), "on which day") {
		t.Errorf("of intervals: exit code %d, %v", code, err)
	}
}
