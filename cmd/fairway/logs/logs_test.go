package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/lab/conform/manual"
	"fairway/cmd/program"
)

// runWith runs a command line with its output caught.
func runWith(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	stdout, stderr, err := manual.Call(t, cli.NewRoot(Add), stdin, args...)
	return stdout, stderr, cli.Code(err)
}

// logFile is a log of every kind of record, of format 3.21.
const logFile = "../../../collector/logs/darshan/testdata/bzip2.darshan"

// TestDarshanGoesOnAfterABadLog: the good logs are printed in order, the bad ones are named with the
// reason, and the code is that of bad input.
func TestDarshanGoesOnAfterABadLog(t *testing.T) {
	b, err := os.ReadFile(logFile)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	old := append([]byte("1.4\x00"), b[4:]...)
	torn := bytes.Clone(b)
	torn[len(b)-10] ^= 1
	var names []string
	for range 5 {
		names = append(names, file("a", b), file("old", old), file("b", b), file("torn", torn),
			filepath.Join(dir, "missing"))
	}
	out, bad, code := runWith(t, "", append([]string{"darshan"}, names...)...)
	if code != program.Usage {
		t.Errorf("exit code %d", code)
	}
	var logs []string
	for line := range strings.Lines(out) {
		var doc struct {
			Log    string
			Errors []string
			Files  []struct{ Name string }
		}
		if err := json.Unmarshal([]byte(line), &doc); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		logs = append(logs, filepath.Base(doc.Log))
		if (doc.Errors != nil) != strings.HasSuffix(doc.Log, "torn") || len(doc.Files) != 2 {
			t.Errorf("%s: %d files, errors %q", doc.Log, len(doc.Files), doc.Errors)
		}
	}
	if want := strings.Repeat("a b torn ", 5); strings.Join(logs, " ")+" " != want {
		t.Errorf("printed %v", logs)
	}
	for _, says := range []string{`old: header at byte 0: unsupported version "1.4"`, "torn: HEATMAP at byte ",
		"missing: no such file", "15 of 25 logs"} {
		if !strings.Contains(bad, says) {
			t.Errorf("%q is not in %s", says, bad)
		}
	}
}

func TestDarshanCounters(t *testing.T) {
	b, err := os.ReadFile(logFile)
	if err != nil {
		t.Fatal(err)
	}
	out, bad, code := runWith(t, string(b), "darshan", "--counters", "-")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if code != program.Done || bad != "" || len(lines) != 3*86+68+29+21+3*7 {
		t.Errorf("%d lines, code %d, %s", len(lines), code, bad)
	}
	if want := "POSIX\t-1\t11\tPOSIX_BYTES_READ\t114\t/scratch/home/out\t/scratch/home\tnfs"; lines[14] != want {
		t.Errorf("%q, want %q", lines[14], want)
	}
}

func TestSacctAndLMTLines(t *testing.T) {
	out, bad, code := runWith(t, "JobID|Start|NodeList\n7|2024-05-01T10:00:00|n[1-2]\nx|y|z\n8||\n", "sacct", "--zone",
		"+02:00", "-")
	if want := `{"job":"7","start":"2024-05-01T08:00:00Z","nodes":["n1","n2"],"node_list":"n[1-2]"}` + "\n" +
		`{"job":"8"}` + "\n"; out != want {
		t.Errorf("%s, want %s", out, want)
	}
	if code != program.Usage || !strings.Contains(bad, `line 3: JobID: "x" is not a job ID`) {
		t.Errorf("code %d, %s", code, bad)
	}
	out, bad,
		code = runWith(t,
		"OST_NAME,TIMESTAMP,READ_BYTES,WRITE_BYTES\na-OST000a,2024-05-01 10:00:00,5,6\na-OST000a,2024-05-01 "+
			"10:00:05,5,9\n", "lmt", "--zone", "UTC", "-")
	if code != program.Done || bad != "" ||
		!strings.HasSuffix(out, `"delta":{"start":"2024-05-01T10:00:00Z","seconds":5,"read_bytes":0,"write_bytes":3}}`+
			"\n") {
		t.Errorf("code %d, %s, %s", code, bad, out)
	}
	if _, _, code := runWith(t, "", "sacct", "--zone", "Mars/Olympus", "-"); code != program.Usage {
		t.Errorf("code %d", code)
	}
}

// TestLustreTellsFilesByTheirContent: and says so of a file that it does not read.
func TestLustreTellsFilesByTheirContent(t *testing.T) {
	for text, want := range map[string]string{
		"snapshot_time 1.5 secs.nsecs\nopen 4 samples [reqs]\n": `"stat":{"name":"open"`,
		"job_stats:\n- job_id: 24\n  snapshot_time: 7.25 secs.nsecs\n" +
			"  sync: { samples: 1, unit: reqs }\n": `"snapshot":"7.25"`,
		"pages per rpc  rpcs % cum % | rpcs % cum %\n" +
			"1: 5 0 0 | 7 0 0\n": `"rpc":{"tables":[{"title":"pages per rpc"`,
		"0 28 0 5 6 7 0 100 200 300 0\n":     `"routed":7,"dropped":0,"sent_bytes":100`,
		"0 28 0 5 6 7 0 100 200 300 0 8 9\n": `"routed":7,"dropped":0,"sent_bytes":100`,
		"mdt.fs-MDT0000.uuid=abc\nmdt.fs-MDT0000.md_stats=\n" +
			"open 4 samples [reqs]\n": `"param":"mdt.fs-MDT0000.md_stats","stat"`,
	} {
		out, bad, code := runWith(t, text, "lustre", "-")
		if code != program.Done || bad != "" || !strings.Contains(out, want) {
			t.Errorf("%q: code %d, %s, %s", text, code, bad, out)
		}
	}
	for _, text := range []string{"FULL\n", "", "mdt.fs-MDT0000.uuid=abc\n"} {
		if out, bad, code := runWith(t, text, "lustre", "-"); code != program.Usage || out != "" ||
			!strings.Contains(bad, "not of a kind that is read") {
			t.Errorf("%q: code %d, %s, %s", text, code, bad, out)
		}
	}
}

func TestWhatIsNoLWFSTrace(t *testing.T) {
	if out, bad, code := runWith(t, "no trace\n", "lwfs", "-"); code != program.Usage || out != "" ||
		!strings.Contains(bad, "-: no line of an LWFS trace") {
		t.Errorf("code %d, %s, %s", code, bad, out)
	}
}

// brokenWriter is an output that cannot be written to.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestOutputThatCannotBeWritten(t *testing.T) {
	for _, args := range [][]string{{"darshan", logFile, logFile}, {"darshan", "--counters", logFile, logFile}} {
		root := cli.NewRoot(Add)
		root.SetArgs(args)
		root.SetOut(brokenWriter{})
		var bad bytes.Buffer
		root.SetErr(&bad)
		if err := root.ExecuteContext(t.Context()); cli.Code(err) != program.Failed ||
			!strings.Contains(err.Error(), "no space left") {
			t.Errorf("%v: %v", args, err)
		}
	}
}
