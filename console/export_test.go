package console

import (
	"os"
	"path/filepath"
	"testing"
)

// Whoever opens the file gets names as text, never as formulas, though users chose them.
func TestExportHasNoFormulas(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.csv")
	rows := [][]string{{"job", "application", "change"}, {"7", `=cmd|' /C calc'!A0`, "-1.5"}, {"8", "+1+1", "-"},
		{"9", "@x", "-a"}}
	if err := writeCSV(file, rows); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	want := "job,application,change\n7,'=cmd|' /C calc'!A0,-1.5\n8,'+1+1,-\n9,'@x,'-a\n"
	if err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}
