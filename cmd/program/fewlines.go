package program

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Who may send messages may have them refused as fast as the network carries them, and each refusal is worth a line. A
// log that fills the disk is worth none.
const (
	// linesAlike is how many lines with one message are written within linesWithin.
	linesAlike  = 200
	linesWithin = 10 * time.Second
	// mostMessages bounds the messages that are counted: they are constants of the programs.
	mostMessages = 1000
)

// fewLines leaves out lines that are much alike. The first that is written after some were left out has their number.
type fewLines struct {
	slog.Handler
	*alike
}

// alike is what all handlers that were made from one share.
type alike struct {
	mu    sync.Mutex // guards everything that follows
	lines map[string]*lineCount
}

type lineCount struct {
	begun         time.Time
	written, left int
}

func newFewLines(h slog.Handler) slog.Handler {
	return fewLines{h, &alike{lines: map[string]*lineCount{}}}
}

// count says whether a line is written, and how many before it were not.
func (a *alike) count(message string, at time.Time) (write, last bool, left int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.lines[message]
	if c == nil {
		if len(a.lines) >= mostMessages {
			clear(a.lines)
		}
		c = &lineCount{}
		a.lines[message] = c
	}
	if d := at.Sub(c.begun); d >= linesWithin || d < 0 {
		left = c.left
		*c = lineCount{begun: at}
	}
	if c.written >= linesAlike {
		c.left++
		return false, false, 0
	}
	c.written++
	return true, c.written == linesAlike, left
}

// Handle implements slog.Handler.
func (f fewLines) Handle(ctx context.Context, r slog.Record) error {
	write, last, left := f.count(r.Message, r.Time)
	if !write {
		return nil
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("like_it_left_out_before", left))
	}
	if last {
		r = r.Clone()
		r.AddAttrs(slog.String("more_like_it_left_out_for", linesWithin.String()))
	}
	return f.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (f fewLines) WithAttrs(attrs []slog.Attr) slog.Handler {
	return fewLines{f.Handler.WithAttrs(attrs), f.alike}
}

// WithGroup implements slog.Handler.
func (f fewLines) WithGroup(name string) slog.Handler {
	return fewLines{f.Handler.WithGroup(name), f.alike}
}
