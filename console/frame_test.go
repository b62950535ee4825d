package console

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// drawn is a terminal that knows what a frame is made of.
type drawn struct {
	t      *testing.T
	w      int
	rows   [][]cell
	row    int
	column int
	look   string
}

func (s *drawn) write(frame string) {
	for len(frame) > 0 {
		if rest, is := strings.CutPrefix(frame, "\x1b["); is {
			end := strings.IndexAny(rest, "HJKm")
			args, what := rest[:end], rest[end]
			frame = rest[end+1:]
			switch what {
			case 'H':
				if _, err := fmt.Sscanf(args, "%d;%d", &s.row, &s.column); err != nil {
					s.t.Fatal(args, err)
				}
			case 'J':
				for i := range s.rows {
					s.rows[i] = slices.Repeat([]cell{blank}, s.w)
				}
			case 'K':
				if s.look != "" || s.column > s.w {
					s.t.Fatalf("erased with look %q from column %d on", s.look, s.column)
				}
				for i := s.column; i <= s.w; i++ {
					s.rows[s.row-1][i-1] = blank
				}
			case 'm':
				s.look += "\x1b[" + args + "m"
				if args == "0" {
					s.look = ""
				}
			}
			continue
		}
		_, size := utf8.DecodeRuneInString(frame)
		if s.column > s.w {
			s.t.Fatalf("line %d is too long", s.row)
		}
		s.rows[s.row-1][s.column-1] = cell{frame[:size], s.look}
		s.column++
		frame = frame[size:]
	}
	if s.look != "" {
		s.t.Fatalf("look %q is left behind", s.look)
	}
}

// Whatever follows whatever, the screen is as one drawn anew, and less is written.
func TestAFrameLeavesTheScreenAsDrawnAnew(t *testing.T) {
	const w, h = 24, 3
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"fwd001", "2.9x", " ", "   ", "▁▂█", "\x1b[1mbold\x1b[0m", "\x1b[31m!\x1b[1m slow\x1b[0m", "é",
		"",
		"\x1b[7m  \x1b[0m", "│"}
	line := func() (text string) {
		n := 0
		for range random.IntN(8) {
			word := words[random.IntN(len(words))]
			c, _ := cells(word + "|")
			if c == nil {
				c = make([]cell, 2)
			}
			if n += len(c) - 1; n > w {
				break
			}
			text += word
		}
		return text
	}
	blankScreen := func() *drawn {
		s := &drawn{t: t, w: w, rows: make([][]cell, h)}
		s.write("\x1b[2J")
		return s
	}
	s := blankScreen()
	var shown []string
	written, whole := 0, 0
	for range 5000 {
		lines := make([]string, h)
		for i := range lines {
			if lines[i] = line(); shown != nil && random.IntN(2) == 0 {
				lines[i] = shown[i]
			}
		}
		f := frame(lines, shown, w)
		s.write(string(f))
		written += len(f)
		anew := blankScreen()
		all := frame(lines, nil, w)
		anew.write(string(all))
		whole += len(all)
		for i := range s.rows {
			if !slices.Equal(s.rows[i], anew.rows[i]) {
				t.Fatalf("%q after %q by %q", lines[i], shown[i], f)
			}
		}
		shown = lines
	}
	if written > whole*2/3 {
		t.Errorf("%d bytes of %d", written, whole)
	}
}
