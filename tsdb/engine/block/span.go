package block

import (
	"slices"

	"fairway/tsdb/engine/column"
	"fairway/tsdb/engine/rows"
)

// Span is 120 seconds for which the store has rows, and where they are; later pieces win.
type Span struct {
	Start  int64
	frames []*frame
	open   []*rows.Block
}

// Spans lists the spans that overlap [from, to), Unix seconds, in order of time.
func (l *List) Spans(from, to int64) ([]Span, error) {
	v := l.view.Load()
	out := make([]Span, 0, min((to-from)/column.Seconds+2, FileSeconds/column.Seconds))
	at := func(start int64) *Span {
		i, found := slices.BinarySearchFunc(out, start, func(s Span, start int64) int { return int(s.Start - start) })
		if !found {
			out = slices.Insert(out, i, Span{Start: start})
		}
		return &out[i]
	}
	inside := func(start int64) bool { return start < to && start+column.Seconds > from }
	for _, file := range v.files {
		if file.Start >= to || file.Start+FileSeconds <= from {
			continue
		}
		frames, err := file.frames()
		if err != nil {
			return nil, err
		}
		for _, f := range frames {
			if inside(f.start) {
				s := at(f.start)
				s.frames = append(s.frames, f)
			}
		}
	}
	for _, b := range v.open {
		if inside(b.Start) {
			s := at(b.Start)
			s.open = append(s.open, b)
		}
	}
	return out, nil
}

// Pieces returns how many blocks, open or sealed, the span's values are in.
func (s *Span) Pieces() int { return len(s.frames) + len(s.open) }

// Window returns which of a span's seconds lie in [from, to).
func (s *Span) Window(from, to int64) (lo, hi int) {
	return int(max(from-s.Start, 0)), int(min(to-s.Start, column.Seconds))
}
