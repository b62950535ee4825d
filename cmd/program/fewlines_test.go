package program

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestAFloodOfLinesIsCounted writes a message thousands of times: a part is written, other messages all are, and the
// next one after a while says how many were left out.
func TestAFloodOfLinesIsCounted(t *testing.T) {
	var out strings.Builder
	h := newFewLines(slog.NewTextHandler(&out, nil))
	at := time.Unix(1_700_000_000, 0)
	say := func(h slog.Handler, message string) {
		t.Helper()
		if err := h.Handle(context.Background(), slog.NewRecord(at, slog.LevelWarn, message, 0)); err != nil {
			t.Fatal(err)
		}
	}
	of := h.WithAttrs([]slog.Attr{slog.String("node", "cn1")}).WithGroup("more")
	for range 5000 {
		say(h, "refused")
		say(of, "refused")
	}
	say(h, "ready")
	if n := strings.Count(out.String(), "refused"); n != linesAlike {
		t.Errorf("%d lines, want %d", n, linesAlike)
	}
	if !strings.Contains(out.String(), "more_like_it_left_out_for=10s") || !strings.Contains(out.String(), "ready") {
		t.Errorf("the log ends %q", out.String()[out.Len()-200:])
	}
	out.Reset()
	at = at.Add(linesWithin)
	say(h, "refused")
	say(h, "refused")
	if n := strings.Count(out.String(), "like_it_left_out_before=9800"); n != 1 {
		t.Errorf("after a while: %s", out.String())
	}
}
