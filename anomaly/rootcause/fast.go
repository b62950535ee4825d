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
	if !s.is('{') || s.text() != "files" || !s.is(':') || !s.is('[') {
		return nil, false
	}
	files = make([]File, 0, 1+bytes.Count(b, []byte{'{'})/8)
	for first := true; !s.is(']'); first = false {
		if !first && !s.is(',') {
			return nil, false
		}
		f, ok := s.file()
		if !ok {
			return nil, false
		}
		files = append(files, f)
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

// text reads a string without escapes, whose bytes are its value; "\x00" is anything else.
func (s *scanner) text() string {
	const other = "\x00"
	if !s.is('"') {
		return other
	}
	n := bytes.IndexByte(s.b[s.at:], '"')
	if n < 0 {
		return other
	}
	t := s.b[s.at : s.at+n]
	for _, c := range t {
		if c < ' ' || c == '\\' {
			return other
		}
	}
	if !utf8.Valid(t) {
		return other
	}
	s.at += n + 1
	return string(t)
}

// number reads a number as JSON writes it.
func (s *scanner) number() (float64, bool) {
	s.space()
	from := s.at
	for s.at < len(s.b) && (s.b[s.at] >= '0' && s.b[s.at] <= '9' || s.b[s.at] == '.' || s.b[s.at] == '-' || s.b[s.at] == '+' || s.b[s.at] == 'e' || s.b[s.at] == 'E') {
		s.at++
	}
	t := s.b[from:s.at]
	digits := bytes.TrimPrefix(t, []byte{'-'})
	// ParseFloat takes more than JSON does: "+1", "01", ".5" and "5.".
	if len(digits) == 0 || digits[0] < '0' || digits[0] > '9' || len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		return 0, false
	}
	if dot := bytes.IndexByte(digits, '.'); dot >= 0 && (dot+1 == len(digits) || digits[dot+1] < '0' || digits[dot+1] > '9') {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(t), 64)
	return v, err == nil
}

// The fields of a file, as bits of what was seen.
const (
	sawStart = 1 << iota
	sawEnd
)

func (s *scanner) file() (f File, ok bool) {
	f = File{Small: Unknown(), Nonconsec: Unknown(), Collective: Unknown(), Procs: Unknown(), OSTs: Unknown()}
	if !s.is('{') {
		return f, false
	}
	saw := 0
	for first := true; !s.is('}'); first = false {
		if !first && !s.is(',') {
			return f, false
		}
		name := s.text()
		if !s.is(':') {
			return f, false
		}
		if name == "name" {
			if f.Name = s.text(); f.Name == "\x00" {
				return f, false
			}
			continue
		}
		v, ok := s.number()
		if !ok {
			return f, false
		}
		switch name {
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
			return f, false
		}
	}
	return f, saw == sawStart|sawEnd
}
