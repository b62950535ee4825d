package rootcause

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
)

// writeAtOnce is how much of a long list is put together before it is written.
const writeAtOnce = 64 << 10

// WriteJSON writes the answer as encoding/json does, and a line's end. A job's critical files may be hundreds of
// thousands: they are written piece by piece, which takes half the time and no memory.
func (a *Answer) WriteJSON(w io.Writer) error {
	const list = `"critical":[]`
	short := *a
	short.Critical = []Critical{}
	text, err := json.Marshal(&short)
	if err != nil {
		return err
	}
	at := bytes.Index(text, []byte(list)) + len(list) - 1 // no text comes before it
	b := append([]byte(nil), text[:at]...)
	var reached []byte // the end of the last one, where the next begins most often
	for i := range a.Critical {
		if i > 0 {
			b = append(b, ',')
			if a.Critical[i].Start != a.Critical[i-1].End {
				reached = reached[:0]
			}
		}
		if b, reached, err = a.Critical[i].append(b, reached); err != nil {
			return err
		}
		if len(b) >= writeAtOnce {
			if _, err := w.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	_, err = w.Write(append(append(b, text[at:]...), '\n'))
	return err
}

// append writes one; start is the text of its Start, or empty, and becomes that of its End.
func (c *Critical) append(b, start []byte) (out, end []byte, err error) {
	b = append(b, `{"name":`...)
	if plain(c.Name) {
		b = append(append(append(b, '"'), c.Name...), '"')
	} else {
		name, err := json.Marshal(c.Name)
		if err != nil {
			return nil, nil, err
		}
		b = append(b, name...)
	}
	b = append(b, `,"start":`...)
	if len(start) > 0 {
		b = append(b, start...)
	} else if b, err = appendNumber(b, c.Start); err != nil {
		return nil, nil, err
	}
	b = append(b, `,"end":`...)
	at := len(b)
	if b, err = appendNumber(b, c.End); err != nil {
		return nil, nil, err
	}
	end = append(start[:0], b[at:]...)
	if b, err = appendNumber(append(b, `,"exclusive":`...), c.Exclusive); err != nil {
		return nil, nil, err
	}
	if b, err = appendNumber(append(b, `,"file_start":`...), c.FileStart); err != nil {
		return nil, nil, err
	}
	return append(strconv.AppendInt(append(b, `,"file":`...), int64(c.File), 10), '}'), end, nil
}

// appendNumber writes a number as encoding/json does.
func appendNumber(b []byte, v float64) ([]byte, error) {
	if x := max(v, -v); x != 0 && (x < 1e-6 || x >= 1e21) { // has an exponent
		number, err := json.Marshal(v)
		return append(b, number...), err
	}
	return strconv.AppendFloat(b, v, 'f', -1, 64), nil
}

// plain says that a string is its own JSON.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}
