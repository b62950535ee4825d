package site

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/cmd/lab/conform/recorded"
)

// TestRecordOfANode: one command makes a log that is read back, with labels and stand-ins.
func TestRecordOfANode(t *testing.T) {
	root, dir := t.TempDir(), filepath.Join(t.TempDir(), "record")
	if err := os.MkdirAll(filepath.Join(root, "proc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "proc", "loadavg"), []byte("cn7 10.7.0.1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := newRecord()
	c.SetIn(strings.NewReader(""))
	c.SetArgs([]string{"--for", "1ms", "--root", root, "--as", "cn7", "--stand-ins", "w", "--names", "cn[1-9]", dir})
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "n*.log"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs %q, %v", logs, err)
	}
	f, err := os.Open(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for frame, err := range recorded.Frames(f) {
		if err != nil || frame.Name != "proc/loadavg" || strings.Contains(string(frame.Text), "cn7") ||
			strings.Contains(string(frame.Text), "10.7.0.1") {
			t.Errorf("%+v, %v", frame, err)
		}
	}
}
