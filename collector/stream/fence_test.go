package stream

import (
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestAMadeUpTermLocksNobody: after an order of a term that no daemon has, orders of the true one are refused for a
// while, also over a restart of the agent, and then obeyed.
func TestAMadeUpTermLocksNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "term")
	synctest.Test(t, func(t *testing.T) {
		open := func() *Fence {
			f, err := OpenFence(path, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		f := open()
		for _, c := range []struct {
			after time.Duration
			term  uint64
			want  bool
		}{
			{0, 7, true}, {0, 6, false}, {0, math.MaxUint64, true}, {0, 7, false},
			{fenceHolds - 2*time.Second, 7, false},
			{2 * time.Second, 7, true}, {0, 6, false}, {time.Minute, 8, true}, {fenceHolds - time.Second, 7, false},
		} {
			time.Sleep(c.after)
			if got := f.admits(c.term); got != c.want {
				t.Errorf("after %s term %d: %v", c.after, c.term, got)
			}
		}
		if words := f.words(7); !strings.Contains(words, "it is obeyed from") {
			t.Error(words)
		}
		f = open() // it cannot know when the newest order came, and holds as long again
		if f.admits(7) || !f.admits(8) {
			t.Error("a restart opens the fence")
		}
	})
}
