// Package strictjson reads the JSON files that people write for the policies, and names the place of a mistake: the
// line, the field and what was wanted.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
)

// Read reads one JSON value of at most most bytes into v. Fields that v does not have and text behind the value are
// errors. Errors begin with "line N: " where the place is known.
func Read(r io.Reader, most int64, v any) error {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return err
	case int64(len(text)) > most:
		return fmt.Errorf("more than %d bytes", most)
	case len(bytes.TrimSpace(text)) == 0:
		return errors.New("it is empty; want a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return explain(text, err)
	}
	if rest := bytes.TrimLeft(text[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return fmt.Errorf("line %d: something follows the closing brace", line(text, int64(len(text)-len(rest))))
	}
	return nil
}

// line is the number of the line on which a byte stands; the first is 1.
func line(text []byte, at int64) int {
	return 1 + bytes.Count(text[:min(max(at, 0), int64(len(text)))], []byte("\n"))
}

var unknown = regexp.MustCompile(`^json: unknown field (".*")$`)

func explain(text []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch field := unknown.FindStringSubmatch(err.Error()); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("line %d: the text ends inside the object", line(text, int64(len(bytes.TrimSpace(text)))))
	case errors.As(err, &syntax):
		return fmt.Errorf("line %d: not JSON: %w", line(text, syntax.Offset-1), err)
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("line %d: a JSON %s; want %s", line(text, kind.Offset-1), kind.Value, wanted(kind.Type))
	case kind != nil:
		return fmt.Errorf("line %d: %s: a JSON %s; want %s", line(text, kind.Offset-1), kind.Field, kind.Value,
			wanted(kind.Type))
	case field != nil:
		if at := place(text, field[1]); at >= 0 {
			return fmt.Errorf("line %d: unknown field %s", line(text, int64(at)), field[1])
		}
		return fmt.Errorf("unknown field %s", field[1])
	}
	return err
}

// place is where a quoted key stands first, or -1.
func place(text []byte, quoted string) int {
	key, err := strconv.Unquote(quoted)
	if err != nil {
		return -1
	}
	at := regexp.MustCompile(`"` + regexp.QuoteMeta(key) + `"\s*:`).FindIndex(text)
	if at == nil {
		return -1 // written with escapes
	}
	return at[0]
}

// wanted is a Go type in words of JSON.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number, 0 or more"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	}
	return "an object"
}
