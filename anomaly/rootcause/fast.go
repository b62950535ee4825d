package rootcause

import (
	"bytes"
	"io"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// scanner reads the common shape of an intervals file: an object whose fields are "files", a list of
// flat objects with plain strings, numbers, true, false and null, and "procs". encoding/json takes four times as long
// for a million of them. Whatever else it meets makes it give up, and ReadJob begins again with encoding/json, which
// also words every error; so it only has to be right about what it accepts.
//
// It has a piece of the text at hand. What is cut off at the end of a piece is not understood, and tried again
// with more; only a whole file object, which ends in a brace, is taken.
type scanner struct {
	b     []byte
	at    int
	from  io.Reader
	ended bool   // nothing comes after b
	names []byte // room for names
}

// pieceBytes is what is at hand at most: small enough to stay in a processor's cache, large enough for any
// file object that is not odd. nameBytes is how much room for names is taken at once.
const (
	pieceBytes = 256 << 10
	nameBytes  = 256 << 10
)

// more reads on, and says whether there is more at hand than before.
func (s *scanner) more() bool {
	if s.ended || s.at == 0 && len(s.b) == cap(s.b) {
		return false
	}
	s.b = s.b[:copy(s.b[:cap(s.b)], s.b[s.at:])]
	s.at = 0
	had := len(s.b)
	for len(s.b) < cap(s.b) && !s.ended {
		n, err := s.from.Read(s.b[len(s.b):cap(s.b)])
		s.b = s.b[:len(s.b)+n]
		s.ended = err != nil // one that is not the end meets encoding/json again
	}
	return len(s.b) > had
}

// keep is the text of bytes that stay when those at hand go.
func (s *scanner) keep(b []byte) string {
	if len(b) > cap(s.names)-len(s.names) {
		s.names = make([]byte, 0, max(nameBytes, len(b)))
	}
	from := len(s.names)
	s.names = append(s.names, b...)
	return in(s.names[from:])
}

// fastJob returns ok only for text that encoding/json would read to the same job. size is how long the text is.
func fastJob(r io.Reader, size int64) (j Job, ok bool) {
	s := scanner{b: make([]byte, 0, min(pieceBytes, size+1)), from: r}
	s.more()
	j.Procs = Unknown()
	if !s.is('{') {
		return j, false
	}
	for first := true; !s.is('}'); first = false {
		if !first && !s.is(',') {
			return j, false
		}
		switch key := s.text(); {
		case !s.is(':'):
			return j, false
		case string(key) == "procs":
			v, ok := s.number()
			if !ok {
				return j, false
			}
			j.Procs = Known(v)
		case string(key) == "files" && j.Files == nil:
			if j.Files, ok = s.files(size); !ok {
				return j, false
			}
			s.more() // what follows is short, or odd
		default:
			return j, false
		}
	}
	s.space()
	return j, j.Files != nil && s.at == len(s.b) && s.ended
}

func (s *scanner) files(size int64) (files []File, ok bool) {
	if !s.is('[') {
		return nil, false
	}
	files = []File{}
	for begun := s.at; ; {
		at := s.at
		if s.is(']') {
			return files, true
		}
		if len(files) == cap(files) {
			files = slices.Grow(files, s.expect(len(files), s.at-begun, size))
		}
		files = append(files, File{Small: Unknown(), Nonconsec: Unknown(), Collective: Unknown(), Procs: Unknown(),
			OSTs: Unknown()})
		if (len(files) == 1 || s.is(',')) && s.file(&files[len(files)-1]) {
			continue
		}
		files = files[:len(files)-1]
		s.at = at
		if !s.more() {
			return nil, false
		}
		begun -= at
	}
}

// expect is for how many more files there should be room, when n took so many bytes of a text.
func (s *scanner) expect(n, bytes int, size int64) int {
	const few, most = 256, 1 << 22
	if n < few {
		return few
	}
	return int(min(most, 1+1.02*float64(size-int64(bytes))/float64(bytes)*float64(n)))
}

// word steps over a word and white space before it, if it is there.
func (s *scanner) word(w string) bool {
	s.space()
	if len(s.b)-s.at < len(w) || string(s.b[s.at:s.at+len(w)]) != w {
		return false
	}
	s.at += len(w)
	return true
}

// in is the text of bytes that nobody changes any more.
func in(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func (s *scanner) space() {
	for s.at < len(s.b) && (s.b[s.at] == ' ' || s.b[s.at] == '\n' || s.b[s.at] == '\t' || s.b[s.at] == '\r') {
		s.at++
	}
}

// is steps over one byte, and white space before it, if it is there.
func (s *scanner) is(c byte) bool {
	s.space()
	if s.at < len(s.b) && s.b[s.at] == c {
		s.at++
		return true
	}
	return false
}

// text reads a string without escapes, whose bytes are its value; nil is anything else.
func (s *scanner) text() []byte {
	if !s.is('"') {
		return nil
	}
	n := bytes.IndexByte(s.b[s.at:], '"')
	if n < 0 {
		return nil
	}
	t := s.b[s.at : s.at+n]
	var any byte
	for _, c := range t {
		if c < ' ' || c == '\\' {
			return nil
		}
		any |= c
	}
	if any >= utf8.RuneSelf && !utf8.Valid(t) {
		return nil
	}
	s.at += n + 1
	return t
}

// Up to here a float64 holds every digit and every power of ten exactly, so that one division rounds as
// strconv does (Clinger, How to read floating point numbers accurately, 1990).
const (
	exactDigits = 15
	exactPower  = 22
)

var powers = [exactPower + 1]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// wideDigits are as many digits, and as large a power of ten, as 64 bits hold.
const wideDigits = 19

var wide = [wideDigits + 1]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
	1e16, 1e17, 1e18, 1e19}

// quotient is value / 10^power, rounded once, half to even: 64 bits of the exact quotient and whether anything is left
// say how. value is not 0.
func quotient(value uint64, power int) float64 {
	up, down := bits.LeadingZeros64(value), bits.LeadingZeros64(wide[power])
	m, d := value<<up, wide[power]<<down
	q, rest := bits.Div64(m>>1, m<<63, d) // m>>1 < d, so it fits; q = m*2^63/d has 63 or 64 bits
	if rest != 0 {
		q |= 1 // too low a bit to be kept, enough to break a tie
	}
	const kept = 53
	cut := bits.Len64(q) - kept
	half, tail := uint64(1)<<(cut-1), q&(1<<cut-1)
	q >>= cut
	if tail > half || tail == half && q&1 == 1 {
		q++
	}
	return math.Ldexp(float64(q), cut-63+down-up)
}

// number reads a number as JSON writes it.
func (s *scanner) number() (float64, bool) {
	s.space()
	from := s.at
	negative := s.at < len(s.b) && s.b[s.at] == '-'
	if negative {
		s.at++
	}
	var value uint64
	whole := s.digits(&value)
	// ParseFloat takes more than JSON does: "01", ".5" and "5.".
	if whole == 0 || whole > 1 && s.b[s.at-whole] == '0' {
		return 0, false
	}
	fraction := 0
	if s.at < len(s.b) && s.b[s.at] == '.' {
		s.at++
		if fraction = s.digits(&value); fraction == 0 {
			return 0, false
		}
	}
	plain := s.at == len(s.b) || s.b[s.at]|0x20 != 'e'
	if n := whole + fraction; plain && (n <= exactDigits || n <= wideDigits && fraction <= wideDigits && value > 0) {
		v := 0.0
		if n <= exactDigits {
			v = float64(value) / powers[fraction]
		} else {
			v = quotient(value, fraction)
		}
		if negative {
			v = -v
		}
		return v, true
	}
	for s.at < len(s.b) && (s.b[s.at] >= '0' && s.b[s.at] <= '9' || s.b[s.at]|0x20 == 'e' || s.b[s.at] == '-' ||
		s.b[s.at] == '+') {
		s.at++
	}
	v, err := strconv.ParseFloat(in(s.b[from:s.at]), 64)
	return v, err == nil
}

// digits steps over decimal digits, adds them to value and returns how many there were. More than
// wideDigits overflow value, which is not used then.
func (s *scanner) digits(value *uint64) (n int) {
	for ; s.at < len(s.b) && s.b[s.at]-'0' <= 9; s.at++ {
		*value = *value*10 + uint64(s.b[s.at]-'0')
		n++
	}
	return n
}

// noNumber reads true and false where they are a share, and null where it is unknown; done says that it did.
func (s *scanner) noNumber(name []byte, f *File) (done, ok bool) {
	s.space()
	if s.at == len(s.b) {
		return false, false
	}
	switch s.b[s.at] {
	case 't':
		f.Collective = 1
		return true, string(name) == "collective" && s.word("true")
	case 'f':
		f.Collective = 0
		return true, string(name) == "collective" && s.word("false")
	case 'n':
		var to *Known
		switch string(name) {
		case "small":
			to = &f.Small
		case "nonconsec":
			to = &f.Nonconsec
		case "collective":
			to = &f.Collective
		case "procs":
			to = &f.Procs
		case "osts":
			to = &f.OSTs
		default:
			return true, false
		}
		*to = Unknown()
		return true, s.word("null")
	}
	return false, true
}

// The fields of a file, as bits of what was seen.
const (
	sawStart = 1 << iota
	sawEnd
)

// file fills in f, whose fields are not known so far.
func (s *scanner) file(f *File) bool {
	if !s.is('{') {
		return false
	}
	saw := 0
	for first := true; !s.is('}'); first = false {
		if !first && !s.is(',') {
			return false
		}
		name := s.text()
		if name == nil || !s.is(':') {
			return false
		}
		if string(name) == "name" {
			t := s.text()
			if t == nil {
				return false
			}
			f.Name = s.keep(t)
			continue
		}
		if done, ok := s.noNumber(name, f); done || !ok {
			if !ok {
				return false
			}
			continue
		}
		v, ok := s.number()
		if !ok {
			return false
		}
		switch string(name) {
		case "start":
			f.Start = v
			saw |= sawStart
		case "end":
			f.End = v
			saw |= sawEnd
		case "bytes":
			f.Bytes = v
		case "small":
			f.Small = Known(v)
		case "nonconsec":
			f.Nonconsec = Known(v)
		case "collective":
			f.Collective = Known(v)
		case "procs":
			f.Procs = Known(v)
		case "osts":
			f.OSTs = Known(v)
		default:
			return false
		}
	}
	return saw == sawStart|sawEnd
}
