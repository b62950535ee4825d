package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/remap"
	"fairway/remap/desk"
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

// TestWhatIsOldIsForgotten while the daemon runs, of a state directory of the version before, by the settings of each.
func TestWhatIsOldIsForgotten(t *testing.T) {
	c := stateOf(t)
	h, _, err := history.Open(filepath.Join(c.StateDir, "history"))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	path := filepath.Join(c.StateDir, "journal")
	before, err := journal.Verify(path)
	if err != nil {
		t.Fatal(err)
	}
	rules := desk.DefaultSettings()
	k, _, err := desk.Open(desk.Config{Settings: rules, Path: path, Situation: func() *remap.Situation {
		return &remap.Situation{}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	d := &daemon{conf: c, log: slog.New(slog.DiscardHandler), history: h, desk: k}
	was, later := h.Count(), time.Now().AddDate(20, 0, 0)
	if err := d.forget(t.Context(), later); err != nil || h.Count() != was || was == 0 {
		t.Errorf("by default %d of %d runs are kept, %v", h.Count(), was, err)
	}
	if sum, err := journal.Verify(path); err != nil || sum.Archived != 0 {
		t.Errorf("%d records are not worth a segment: %+v %v", before.Records, sum, err)
	}
	c.Keep.History = 24 * time.Hour
	if err := d.forget(t.Context(), later); err != nil || h.Count() != 0 {
		t.Errorf("%d runs are kept, %v", h.Count(), err)
	}
	old, err := k.Archive(t.Context(), later, 1)
	if err != nil || old == nil {
		t.Fatalf("the desk's journal gives %+v, %v", old, err)
	}
	sum, err := journal.Verify(path)
	if err != nil || sum.Archived != old.Records || sum.Records < before.Records {
		t.Errorf("the chain is %+v, %v; it was %+v, and %+v went", sum, err, before, old)
	}
	for name, long := range map[string]*time.Duration{"history": &c.Keep.History,
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
	if _, err := c.backUp(t.Context(), dir, time.Now()); err != nil {
		t.Fatal(err)
	}
	other := *c
	other.StateDir = filepath.Join(t.TempDir(), "state")
	_, sum, err := other.restore(dir)
	if err != nil || sum.Records != was.Records || sum.LastHash != was.LastHash || sum.Archived == 0 {
		t.Errorf("%+v %v, was %+v", sum, err, was)
	}
	if _, err := os.Stat(filepath.Join(other.StateDir, filepath.Base(old.Segment))); err != nil {
		t.Error(err)
	}
}

// TestADaemonForgetsEachDay, without being started again.
func TestADaemonForgetsEachDay(t *testing.T) {
	h, _, err := history.Open(filepath.Join(t.TempDir(), "history"))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	synctest.Test(t, func(t *testing.T) {
		r := history.Run{Job: "1", User: "wei", App: "wrf", Nodes: 1, Start: time.Now()}
		if err := h.Begin(r); err != nil {
			t.Fatal(err)
		}
		r.End = r.Start.Add(time.Hour)
		if err := h.End(r); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		d := &daemon{conf: &Config{Keeping: Keeping{Keep: Keep{History: 24 * time.Hour}}},
			log: slog.New(slog.DiscardHandler), history: h}
		go d.forgetOld(ctx)
		for _, c := range []struct {
			after time.Duration
			want  int
		}{{24 * time.Hour, 1}, {25 * time.Hour, 0}} {
			time.Sleep(c.after)
			synctest.Wait()
			if h.Count() != c.want {
				t.Errorf("at %s there are %d runs, want %d", time.Since(r.Start), h.Count(), c.want)
			}
		}
		stop()
		synctest.Wait()
	})
}
