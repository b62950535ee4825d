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
	for i := range a.Critical {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = a.Critical[i].append(b); err != nil {
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

func (c *Critical) append(b []byte) ([]byte, error) {
	b = append(b, `{"name":`...)
	if plain(c.Name) {
		b = append(append(append(b, '"'), c.Name...), '"')
	} else {
		name, err := json.Marshal(c.Name)
		if err != nil {
			return nil, err
		}
		b = append(b, name...)
	}
	for _, f := range []struct {
		key   string
		value float64
	}{{`,"start":`, c.Start}, {`,"end":`, c.End}, {`,"exclusive":`, c.Exclusive}, {`,"file_start":`, c.FileStart}} {
		b = append(b, f.key...)
		if x := max(f.value, -f.value); x != 0 && (x < 1e-6 || x >= 1e21) {
			number, err := json.Marshal(f.value) // has an exponent
			if err != nil {
				return nil, err
			}
			b = append(b, number...)
		} else {
			b = strconv.AppendFloat(b, f.value, 'f', -1, 64)
		}
	}
	return append(strconv.AppendInt(append(b, `,"file":`...), int64(c.File), 10), '}'), nil
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
