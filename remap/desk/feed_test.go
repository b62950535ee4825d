package desk

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fairway/remap"
)

func TestAwaitFeed(t *testing.T) {
	inDesk(t, newTestMachine(8, 8), nil, func(t *testing.T, d *Desk, _ string) {
		begun := time.Now()
		go func() {
			time.Sleep(7 * time.Second)
			d.Exclude(t.Context(), olga, "fwd1", time.Hour, remap.Answer{Reason: why})
		}()
		f, err := d.AwaitFeed(t.Context(), 0)
		if err != nil || f.Generation != 1 || time.Since(begun) != 7*time.Second {
			t.Errorf("after %s: %+v, %v", time.Since(begun), f, err)
		}
		f, err = d.AwaitFeed(t.Context(), 1)
		if err != nil || f.Generation != 1 || time.Since(begun) != 37*time.Second ||
			!f.ValidUntil.Equal(time.Now().Add(time.Minute)) {
			t.Errorf("without a change, after %s: %+v, %v", time.Since(begun), f, err)
		}
		if f, err = d.AwaitFeed(t.Context(), 0); err != nil || time.Since(begun) != 37*time.Second {
			t.Errorf("an old generation waited until %s: %+v, %v", time.Since(begun), f, err)
		}
	})
}

func TestFeedFileIsNeverOldNorHalf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "exclusions.json")
	read := func() (f remap.Feed) {
		b, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(b, &f)
		}
		if err != nil {
			t.Error(err)
		}
		return f
	}
	inDesk(t, newTestMachine(8, 8), nil, func(t *testing.T, d *Desk, _ string) {
		done := make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		go func() { defer close(done); d.KeepFeedFile(ctx, file, slog.New(slog.DiscardHandler)) }()
		for range 300 {
			time.Sleep(time.Second)
			if f := read(); time.Until(f.ValidUntil) < 29*time.Second {
				t.Fatalf("the file is good for %s", time.Until(f.ValidUntil))
			}
		}
		if _, err := d.Exclude(t.Context(), olga, "fwd1", time.Hour, remap.Answer{Reason: why}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		if f := read(); f.Generation != 1 || len(f.Exclusions) != 1 || f.Exclusions[0].Forwarder != "fwd1" {
			t.Errorf("after an exclusion the file has %+v", f)
		}
		stop()
		<-done
	})
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
