package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/cmd/fairwayd/config"
	"fairway/remap/journal"
)

// stateOf is a configuration whose state directory is the kept one of a daemon that was killed, with an archive.
func stateOf(t *testing.T) *config.Config {
	c := config.Default()
	c.Name, c.StateDir = "hpc1", filepath.Join(unpack(t, "testdata/before/state.tar.gz"), "state")
	part := filepath.Join(c.StateDir, "archive", "job", "day=2026-11-21", "1f.parquet")
	left := filepath.Join(c.StateDir, "archive", "pending", "2f", "job", "day=2026-11-21", "2f.parquet")
	for _, f := range []string{part, left} {
		if err := os.MkdirAll(filepath.Dir(f), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, []byte("a part"), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return &c
}

// TestBackupHoldsEverything: what is restored has the same seconds, records, runs and archive.
func TestBackupHoldsEverything(t *testing.T) {
	c := stateOf(t)
	dir := filepath.Join(t.TempDir(), "copy")
	note, err := backUp(t.Context(), c, dir, "dev", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backUp(t.Context(), c, dir, "dev", time.Now()); err == nil ||
		!strings.Contains(err.Error(), "not empty") {
		t.Errorf("a second backup into the same directory: %v", err)
	}
	other := *c
	other.StateDir = filepath.Join(t.TempDir(), "state")
	again, sum, err := restore(&other, dir)
	if err != nil {
		t.Fatal(err)
	}
	if again.Site != "hpc1" || !again.At.Equal(note.At) {
		t.Errorf("the note is %+v, was %+v", again, note)
	}
	var want before
	b, err := os.ReadFile("testdata/before/want.json")
	if err == nil {
		err = json.Unmarshal(b, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	if sum.Records != uint64(len(want.Journal)) {
		t.Errorf("%d records, want %d", sum.Records, len(want.Journal))
	}
	checkStoreBefore(t, filepath.Join(other.StateDir, "store"), &want)
	for _, name := range []string{"journal", "history", "archive/job/day=2026-11-21/1f.parquet"} {
		was, err := os.ReadFile(filepath.Join(c.StateDir, name))
		if err != nil {
			t.Fatal(err)
		}
		is, err := os.ReadFile(filepath.Join(other.StateDir, name))
		if err != nil || !bytes.Equal(was, is) {
			t.Errorf("%s has %d bytes, had %d: %v", name, len(is), len(was), err)
		}
	}
	if _, err := os.Stat(filepath.Join(other.StateDir, "archive", "pending")); err == nil {
		t.Error("what a killed import left is in the copy")
	}
	if _, err := os.Stat(filepath.Join(other.StateDir, backupNote)); err == nil {
		t.Error("the note is in the state directory")
	}
}

// TestBackupWhileTheJournalGrows: a record that is half written is dropped, as after a crash.
func TestBackupWhileTheJournalGrows(t *testing.T) {
	c := stateOf(t)
	path := filepath.Join(c.StateDir, "journal")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"crc":"0`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	dir := filepath.Join(t.TempDir(), "copy")
	if _, err := backUp(t.Context(), c, dir, "dev", time.Now()); err != nil {
		t.Fatal(err)
	}
	other := *c
	other.StateDir = filepath.Join(t.TempDir(), "state")
	if _, _, err := restore(&other, dir); err != nil {
		t.Fatal(err)
	}
	j, sum, err := journal.Open(filepath.Join(other.StateDir, "journal"), func(*journal.Record) error { return nil })
	if err != nil || sum.TornBytes != 9 || sum.Records == 0 {
		t.Errorf("%+v: %v", sum, err)
	}
	if j != nil {
		j.Close()
	}
}

// TestRestoreRefuses: a copy that is not whole or not true changes nothing.
func TestRestoreRefuses(t *testing.T) {
	c := stateOf(t)
	for name, bad := range map[string]struct {
		spoil func(t *testing.T, dir, state string)
		want  string
	}{
		"without its note": {func(t *testing.T, dir, _ string) { remove(t, filepath.Join(dir, backupNote)) },
			"is not a whole backup"},
		"of a later version": {func(t *testing.T, dir, _ string) {
			write(t, filepath.Join(dir, backupNote), `{"version":9,"by":"v9"}`)
		}, "made by fairwayd v9: want version 1"},
		"with a name outside": {func(t *testing.T, dir, _ string) {
			write(t, filepath.Join(dir, backupNote), `{"version":1,"files":{"../x":1}}`)
		}, `names the file "../x"`},
		"cut short": {func(t *testing.T, dir, _ string) { write(t, filepath.Join(dir, "history"), "x") },
			"history: want"},
		"edited": {func(t *testing.T, dir, _ string) {
			path := filepath.Join(dir, "journal")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)/3] ^= 1
			write(t, path, string(b))
		}, "journal is damaged"},
		"over a state": {func(t *testing.T, _, state string) {
			if err := os.MkdirAll(state, 0o750); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(state, "journal"), "here")
		}, "is not empty: move it away"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, other := filepath.Join(t.TempDir(), "copy"), *c
			other.StateDir = filepath.Join(t.TempDir(), "state")
			if _, err := backUp(t.Context(), c, dir, "dev", time.Now()); err != nil {
				t.Fatal(err)
			}
			bad.spoil(t, dir, other.StateDir)
			if _, _, err := restore(&other, dir); err == nil || !strings.Contains(err.Error(), bad.want) {
				t.Errorf("got %v, want %q", err, bad.want)
			}
			if entries, _ := os.ReadDir(other.StateDir); len(entries) > 1 {
				t.Errorf("the state directory has %d entries", len(entries))
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// TestSegmentsOfTheJournalAreBackedUp: the chain of what is restored goes through them.
func TestSegmentsOfTheJournalAreBackedUp(t *testing.T) {
	c := stateOf(t)
	path := filepath.Join(c.StateDir, "journal")
	was, err := journal.Verify(path)
	if err != nil {
		t.Fatal(err)
	}
	j, _, err := journal.Open(path, func(*journal.Record) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	old, err := j.Old(time.Now().AddDate(20, 0, 0), 0)
	if err != nil || old == nil {
		t.Fatal(old, err)
	}
	if err := errors.Join(j.CutOff(old), j.Close()); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "copy")
	if _, err := backUp(t.Context(), c, dir, "dev", time.Now()); err != nil {
		t.Fatal(err)
	}
	other := *c
	other.StateDir = filepath.Join(t.TempDir(), "state")
	_, sum, err := restore(&other, dir)
	if err != nil || sum.Records != was.Records || sum.LastHash != was.LastHash || sum.Archived == 0 {
		t.Errorf("%+v %v, was %+v", sum, err, was)
	}
	if _, err := os.Stat(filepath.Join(other.StateDir, filepath.Base(old.Segment))); err != nil {
		t.Error(err)
	}
}

// TestStateOfALaterVersion: it is refused by that version's name and left alone; one of before gets a note.
func TestStateOfALaterVersion(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	for range 2 {
		if err := CheckFormat(dir, "dev"); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, formatFile)
	later := `{"format":99,"by":"7.1.0"}`
	if err := os.WriteFile(path, []byte(later), 0o640); err != nil {
		t.Fatal(err)
	}
	err := CheckFormat(dir, "dev")
	for _, want := range []string{dir, "fairwayd 7.1.0", "format 99", "up to 1", "backup"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != later {
		t.Errorf("the note is %s, %v", b, err)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "*")); len(found) != 1 {
		t.Errorf("the refused directory has %v", found)
	}
	if err := os.WriteFile(path, []byte("{"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := CheckFormat(dir, "dev"); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a broken note: %v", err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
