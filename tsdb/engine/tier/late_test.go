package tier

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"fairway/tsdb/engine/disk"
)

func TestTheListOfLateSpans(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, Dir), 0o700); err != nil {
		t.Fatal(err)
	}
	s := &Set{Config: Config{Files: disk.OS{}, Dir: dir}}
	want := lateSpans{{10, 1200}: true, {300, 36000}: true}
	if err := s.setLate(want); err != nil {
		t.Fatal(err)
	}
	got, damages, err := loadLate(dir)
	if err != nil || len(damages) > 0 || !maps.Equal(got, want) {
		t.Errorf("read back: %v %v %v", got, damages, err)
	}
	path := filepath.Join(dir, Dir, LateFile)
	for text, damaged := range map[string]bool{"FWLT 1\n10 1200\n300": true, "nothing\n": true, "": true,
		"FWLT 9\n": false} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, damages, err := loadLate(dir)
		if len(damages) > 0 != damaged || !damaged && !errors.Is(err, disk.ErrNewerFormat) {
			t.Errorf("%q: %v %v", text, damages, err)
		}
	}
}
