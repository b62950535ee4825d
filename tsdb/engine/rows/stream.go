package rows

// stream is a node's rows in an open block: of every row that differs from the one before, its second and then its
// bytes. What is written does not change any more, so that readers need no copy.
type stream struct {
	buf    []byte
	newest int // where the newest row begins
}

// append adds a second and its row.
func (s *stream) append(sec int, row []byte) {
	s.buf = append(append(s.buf, byte(sec)), row...)
	s.newest = len(s.buf) - len(row)
}

// last returns the newest row; it is empty before the first.
func (s *stream) last() []byte { return s.buf[s.newest:] }

// streamReader walks a stream's bytes, which no one but append wrote.
type streamReader struct {
	buf []byte
	at  int
}

// next returns the next second and its row, ok false at the end.
func (r *streamReader) next() (sec int, row []byte, ok bool) {
	if r.at+1 >= len(r.buf) {
		return 0, nil, false
	}
	size, ok := Size(r.buf[r.at+1:])
	if !ok {
		return 0, nil, false
	}
	sec, row = int(r.buf[r.at]), r.buf[r.at+1:][:size]
	r.at += 1 + size
	return sec, row, true
}
