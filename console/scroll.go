package console

import (
	"fmt"

	"fairway/webui/api"
)

// window is the first line shown so that the selected one of n is among h.
func window(selected, n, h int) int {
	if h <= 0 || n <= h || selected < h {
		return 0
	}
	return min(selected-h+1, n-h)
}

// scrolled draws the lines of a list of n in a height, the cursor's line among them and marked; a
// cursor below 0 is none. The last line counts what does not fit; hint says what else helps there.
func (s *State) scrolled(n, cursor, w, h int, hint string, line func(i int) string) []string {
	shown := max(0, h)
	if n > h {
		shown = max(0, h-1)
	}
	first := window(max(cursor, 0), n, shown)
	var out []string
	for i := first; i < min(n, first+shown); i++ {
		l := clip(line(i), w)
		if i == cursor {
			l = s.selected(l, w)
		}
		out = append(out, l)
	}
	if n > shown && h > 0 {
		out = append(out, clip(fmt.Sprintf(" : %d more of %d; move down%s", n-shown, n, hint), w))
	}
	return out
}

// scroll shows lines from *top on in a height, and says how many are left below.
func scroll(lines []string, top *int, h int) []string {
	if len(lines) <= h || h < 2 {
		*top = 0
		return lines
	}
	*top = max(0, min(*top, len(lines)-h+1))
	lines = lines[*top:]
	if len(lines) > h {
		lines = append(lines[:h-1:h-1], fmt.Sprintf(" : %s; move down", api.Counted(len(lines)-h+1, "more line")))
	}
	return lines
}

// steps are how far the keys of movement go in a list or a text.
var steps = map[action]int{actUp: -1, actDown: 1, actPageUp: -10, actPageDown: 10}

// selected marks the line under the cursor: reverse video, and a sign where there is none.
func (s *State) selected(line string, w int) string {
	if s.Palette.reverse == "" {
		return ">" + clip(line, w-1)[min(1, len(line)):]
	}
	return s.Palette.paint(s.Palette.reverse, left(line, w))
}
