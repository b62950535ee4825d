package rootcause

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// scanner reads the common shape of an intervals file: an object whose only field is "files", a list of
// flat objects with plain strings and numbers. encoding/json takes four times as long for a million of
// them. Whatever else it meets makes it give up, and ParseJob begins again with encoding/json, which also
// words every error; so it only has to be right about what it accepts.
type scanner struct {
	b  []byte
	at int
}

// fastJob returns ok only for text that encoding/json would read to the same job.
func fastJob(b []byte) (files []File, ok bool) {
	s := scanner{b: b}
	if !s.is('{') || string(s.text()) != "files" || !s.is(':') || !s.is('[') {
		return nil, false
	}
	files = make([]File, 0, min(bytes.Count(b, []byte{'{'}), len(b)/len(`{"start":0,"end":1}`)))
	for first := true; !s.is(']'); first = false {
		if !first && !s.is(',') {
			return nil, false
		}
		files = append(files, File{Small: Unknown(), Nonconsec: Unknown(), Collective: Unknown(), Procs: Unknown(), OSTs: Unknown()})
		if !s.file(&files[len(files)-1]) {
			return nil, false
		}
	}
	ok = s.is('}')
	s.space()
	return files, ok && s.at == len(b)
}

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
	for _, c := range t {
		if c < ' ' || c == '\\' {
			return nil
		}
	}
	if !utf8.Valid(t) {
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
	if plain && whole+fraction <= exactDigits {
		v := float64(value) / powers[fraction]
		if negative {
			v = -v
		}
		return v, true
	}
	for s.at < len(s.b) && (s.b[s.at] >= '0' && s.b[s.at] <= '9' || s.b[s.at]|0x20 == 'e' || s.b[s.at] == '-' || s.b[s.at] == '+') {
		s.at++
	}
	v, err := strconv.ParseFloat(string(s.b[from:s.at]), 64)
	return v, err == nil
}

// digits steps over decimal digits, adds them to value and returns how many there were. More than
// exactDigits overflow value, which is not used then.
func (s *scanner) digits(value *uint64) (n int) {
	for ; s.at < len(s.b) && s.b[s.at]-'0' <= 9; s.at++ {
		*value = *value*10 + uint64(s.b[s.at]-'0')
		n++
	}
	return n
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
			f.Name = string(t)
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
