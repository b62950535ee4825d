package state

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/fairwayd/config"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/remap/journal"
	"fairway/tsdb/history"
)

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
	d := &Old{&c.Keep, k, h, slog.New(slog.DiscardHandler)}
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
		d := &Old{Keep: &config.Keep{History: 24 * time.Hour}, History: h, Log: slog.New(slog.DiscardHandler)}
		go d.Run(ctx)
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
