package archive

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestOldDaysAreForgotten: of every table but the one that says which logs were read.
func TestOldDaysAreForgotten(t *testing.T) {
	dir := t.TempDir()
	part := func(table, day string) string { return filepath.Join(dir, table, "day="+day, "1f.parquet") }
	for _, table := range tables {
		for _, day := range []string{"2025-01-01", "2025-06-01", "2026-01-01"} {
			if err := os.MkdirAll(filepath.Dir(part(table.name, day)), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(part(table.name, day), []byte("a part"), 0o640); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := time.Date(2025, 6, 2, 0, 0, 0, 0, time.UTC)
	for _, want := range []int{1, 0} { // the second day has just ended: nothing is before its end
		if n, err := Forget(dir, before); n != want || err != nil {
			t.Errorf("%d days, %v, want %d", n, err, want)
		}
	}
	if n, err := Forget(dir, before.Add(time.Second)); n != 1 || err != nil {
		t.Errorf("%d days, %v, want 1", n, err)
	}
	for _, table := range tables {
		for day, want := range map[string]bool{"2025-01-01": table == readTable, "2025-06-01": table == readTable,
			"2026-01-01": true} {
			if _, err := os.Stat(part(table.name, day)); (err == nil) != want {
				t.Errorf("%s of %s: %v", day, table.name, err)
			}
		}
	}
	if n, err := Forget(filepath.Join(dir, "none"), before); n != 0 || err != nil {
		t.Errorf("no archive: %d %v", n, err)
	}
}
