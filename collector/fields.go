package collector

import (
	"bytes"
	"fmt"
	"strconv"
)

// Fields appends the words of a line of a counter file to room: what is read each second or more often is split into
// the same room again.
func Fields(room [][]byte, line []byte) [][]byte {
	begin := -1
	for i, c := range line {
		switch blank := c == ' ' || '\t' <= c && c <= '\r'; {
		case !blank && begin < 0:
			begin = i
		case blank && begin >= 0:
			room = append(room, line[begin:i])
			begin = -1
		}
	}
	if begin >= 0 {
		room = append(room, line[begin:])
	}
	return room
}

// Lines hands every line that has words to each, with its words, and goes on behind one that each refuses: the error
// names the first of those. The words are good until each returns.
func Lines(text []byte, each func(line []byte, words [][]byte) error) (bad error) {
	var room [32][]byte
	for n := 1; len(text) > 0; n++ {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		words := Fields(room[:0], line)
		if len(words) == 0 {
			continue
		}
		if err := each(line, words); err != nil && bad == nil {
			bad = fmt.Errorf("line %d (%.40q): %w", n, line, err)
		}
	}
	return bad
}

// Decimal reads a count. What is above 2^63 is a wrapped negative, and no count.
func Decimal(b []byte) (v uint64, ok bool) {
	v, err := strconv.ParseUint(string(b), 10, 63)
	return v, err == nil
}
