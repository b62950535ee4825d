package console

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// frame is what has to be written for what differs.
func frame(lines, shown []string, w int) []byte {
	var b bytes.Buffer
	if len(lines) != len(shown) {
		shown = nil
		b.WriteString(ansi.EraseEntireScreen)
	}
	for i, l := range lines {
		if shown != nil && l == shown[i] {
			continue
		}
		if shown != nil {
			was, plain := cells(shown[i])
			is, alsoPlain := cells(l)
			if plain && alsoPlain {
				change(&b, i+1, is, was)
				continue
			}
		}
		fmt.Fprintf(&b, "\x1b[%d;1H%s", i+1, l)
		if ansi.StringWidth(l) < w { // after a full line this would erase its last column
			b.WriteString(ansi.EraseLineRight)
		}
	}
	return b.Bytes()
}

// cell is one column of a line.
type cell struct {
	text string
	look string // the sequences since the last reset
}

var blank = cell{text: " "}

// cells are a line's columns without the blank ones at its end. It is false for a line with characters of which
// terminals do not agree how wide they are: names in other scripts are written whole.
func cells(line string) (out []cell, plain bool) {
	look := ""
	for len(line) > 0 {
		if rest, is := strings.CutPrefix(line, "\x1b["); is {
			end := strings.IndexByte(rest, 'm')
			if end < 0 {
				return nil, false
			}
			one := line[:2+end+1]
			line = line[len(one):]
			if one == "\x1b[0m" || one == "\x1b[m" {
				look = ""
			} else {
				look += one
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(line)
		switch {
		case r >= ' ' && r <= '~':
		case r >= '\u2500' && r <= '\u259f', r >= '\u2800' && r <= '\u28ff': // boxes, blocks, dots
		default:
			return nil, false
		}
		out = append(out, cell{line[:size], look})
		line = line[size:]
	}
	for len(out) > 0 && out[len(out)-1] == blank {
		out = out[:len(out)-1]
	}
	return out, true
}

// skip is how many columns that stay as they are cost less to step over than to write again.
const skip = 6

// change writes what brings one line to another. The look of what follows is never left behind.
func change(b *bytes.Buffer, line int, is, was []cell) {
	at := func(all []cell, i int) cell {
		if i < len(all) {
			return all[i]
		}
		return blank
	}
	look, next := "", -1 // what is written next goes there
	wear := func(l string) {
		if l == look {
			return
		}
		if look != "" {
			b.WriteString("\x1b[0m")
		}
		b.WriteString(l)
		look = l
	}
	for i := range is {
		if is[i] == at(was, i) {
			continue
		}
		if next < 0 || i-next > skip {
			fmt.Fprintf(b, "\x1b[%d;%dH", line, i+1)
			next = i
		}
		for ; next <= i; next++ {
			wear(is[next].look)
			b.WriteString(is[next].text)
		}
	}
	wear("")
	if len(is) < len(was) {
		if next != len(is) {
			fmt.Fprintf(b, "\x1b[%d;%dH", line, len(is)+1)
		}
		b.WriteString(ansi.EraseLineRight)
	}
}
