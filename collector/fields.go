package collector

import "strconv"

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

// Decimal reads a count. What is above 2^63 is a wrapped negative, and no count.
func Decimal(b []byte) (v uint64, ok bool) {
	v, err := strconv.ParseUint(string(b), 10, 63)
	return v, err == nil
}
