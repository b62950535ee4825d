package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/remap/journal"
	"fairway/tsdb/history"
)

// TestStateOfALaterVersion: it is refused by that version's name and left alone; one of before gets a note.
func TestStateOfALaterVersion(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	for range 2 {
		if err := checkFormat(dir); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, formatFile)
	later := `{"format":99,"by":"7.1.0"}`
	if err := os.WriteFile(path, []byte(later), 0o640); err != nil {
		t.Fatal(err)
	}
	err := checkFormat(dir)
	for _, want := range []string{dir, "fairwayd 7.1.0", "format 99", "up to 1", "backup"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != later {
		t.Errorf("the note is %s, %v", b, err)
	}
	c := defaultConfig()
	c.StateDir, c.Listen = dir, Listen{Socket: filepath.Join(t.TempDir(), "s")}
	if err := run(t.Context(), &c, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "7.1.0") {
		t.Errorf("the daemon starts on it: %v", err)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "*")); len(found) != 1 {
		t.Errorf("the refused directory has %v", found)
	}
	if err := os.WriteFile(path, []byte("{"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := checkFormat(dir); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a broken note: %v", err)
	}
}

// TestWhatIsOldIsForgotten at the start, of a state directory of the version before, by the settings of each.
func TestWhatIsOldIsForgotten(t *testing.T) {
	c := stateOf(t)
	runs := func() int {
		h, sum, err := history.Open(filepath.Join(c.StateDir, "history"))
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		return sum.Runs
	}
	was := runs()
	d := &daemon{conf: c, log: slog.New(slog.DiscardHandler)}
	later := time.Now().AddDate(20, 0, 0)
	if err := d.forget(later); err != nil || runs() != was || was == 0 {
		t.Errorf("by default %d of %d runs are kept, %v", runs(), was, err)
	}
	c.Keep.History = 24 * time.Hour
	if err := d.forget(later); err != nil || runs() != 0 {
		t.Errorf("%d runs are kept, %v", runs(), err)
	}
	for name, long := range map[string]*time.Duration{"journal": &c.Keep.Journal, "history": &c.Keep.History,
		"archive": &c.Keep.Archive} {
		was := *long
		*long = time.Minute
		if err := c.Keep.validate(); err == nil || !strings.Contains(err.Error(), "keep."+name) {
			t.Errorf("keep.%s = 1m: %v", name, err)
		}
		*long = was
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
	segment, _, err := journal.Archive(path, time.Now().AddDate(20, 0, 0), 0)
	if err != nil || segment == "" {
		t.Fatal(segment, err)
	}
	dir := filepath.Join(t.TempDir(), "copy")
	if _, err := c.backUp(t.Context(), dir, time.Now()); err != nil {
		t.Fatal(err)
	}
	other := *c
	other.StateDir = filepath.Join(t.TempDir(), "state")
	_, sum, err := other.restore(dir)
	if err != nil || sum.Records != was.Records || sum.LastHash != was.LastHash || sum.Archived == 0 {
		t.Errorf("%+v %v, was %+v", sum, err, was)
	}
	if _, err := os.Stat(filepath.Join(other.StateDir, filepath.Base(segment))); err != nil {
		t.Error(err)
	}
}
