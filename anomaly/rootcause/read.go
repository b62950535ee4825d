package rootcause

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"

	"fairway/collector/topology"
)

// fileJSON is a File as it is written in an intervals file.
type fileJSON struct {
	File
	Collective flag `json:"collective"`
	OSTs       osts `json:"osts"`
}

// osts is a stripe count or a list of targets, by name or by number.
type osts struct {
	count Known
	names []topology.TargetID
}

func (o *osts) UnmarshalJSON(b []byte) error {
	if b[0] != '[' && o.count.UnmarshalJSON(b) == nil {
		return nil
	}
	var list []any
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("osts: %s is neither a count nor a list of targets", b)
	}
	for _, v := range list {
		switch v := v.(type) {
		case string:
			o.names = append(o.names, topology.TargetID(v))
		case float64:
			o.names = append(o.names, TargetOf(int32(v)))
		default:
			return fmt.Errorf("osts: %v is neither a target's name nor its index", v)
		}
	}
	o.count = Known(len(list))
	return nil
}

// flag is true, false, or a share from 0 to 1.
type flag Known

func (f *flag) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "true":
		*f = 1
	case "false":
		*f = 0
	default:
		if (*Known)(f).UnmarshalJSON(b) != nil {
			return fmt.Errorf("collective: %s is neither true, false nor a share", b)
		}
	}
	return nil
}

// ReadJob reads and checks one job: {"files":[{"name","start","end","bytes","small","nonconsec",
// "collective","procs","osts"}],"procs":n,"records":[...],"storage":{...}}, where start and end are required, osts is a
// count or a list of targets and everything else may be missing. Its errors name the file and field.
func ReadJob(text *io.SectionReader) (Job, error) {
	j := Job{Procs: Unknown()}
	r := io.NewSectionReader(text, 0, text.Size())
	d := json.NewDecoder(r)
	if err := j.read(d); err != nil {
		var kind *json.UnmarshalTypeError
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			err = errors.New("the text ends inside the job")
		case errors.As(err, &kind):
			at, _, _ := strings.Cut(err.Error(), ": json: ")
			err = fmt.Errorf("%s.%s: a JSON %s; want a %s", at, kind.Field, kind.Value, plainKind(kind.Type.Kind()))
		}
		return Job{}, fmt.Errorf("line %d: %w", lineAt(text, d.InputOffset()), err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Job{}, errors.New("text after the job's closing brace")
	}
	return j, j.Check()
}

// lineAt is the line, from 1, of a byte of the text.
func lineAt(text *io.SectionReader, offset int64) int {
	head := bufio.NewScanner(io.NewSectionReader(text, 0, offset))
	head.Buffer(nil, int(offset)+1)
	line := 0
	for head.Scan() {
		line++
	}
	return max(1, line)
}

// plainKind names a type as JSON does.
func plainKind(k reflect.Kind) string {
	switch k {
	case reflect.Float64, reflect.Int, reflect.Int64:
		return "number"
	case reflect.Struct, reflect.Map:
		return "JSON object"
	}
	return k.String()
}

// read takes the fields of the outer object and the files one by one, so that an error names the file.
func (j *Job) read(d *json.Decoder) error {
	if err := expect(d, json.Delim('{')); err != nil {
		return err
	}
	seen := false
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		switch key {
		case "files":
			seen = true
			err = j.readFiles(d)
		case "records":
			err = d.Decode(&j.Records)
		case "storage":
			err = d.Decode(&j.Storage)
		case "procs":
			err = d.Decode(&j.Procs)
		default:
			err = fmt.Errorf("unknown field %q", key)
		}
		if err != nil {
			return err
		}
	}
	if !seen {
		return errors.New("no field \"files\"")
	}
	return expect(d, json.Delim('}'))
}

func (j *Job) readFiles(d *json.Decoder) error {
	if err := expect(d, json.Delim('[')); err != nil {
		return fmt.Errorf("files: %w", err)
	}
	d.DisallowUnknownFields()
	unknown := Unknown()
	missing := fileJSON{File: File{Start: math.NaN(), End: math.NaN(), Small: unknown, Nonconsec: unknown,
		Procs: unknown}, Collective: flag(unknown), OSTs: osts{count: unknown}}
	for d.More() {
		f := missing
		err := d.Decode(&f)
		switch {
		case err != nil:
			return fmt.Errorf("files[%d]: %w", len(j.Files), err)
		case !finite(f.Start):
			return fmt.Errorf("files[%d] %q: no field \"start\"", len(j.Files), f.Name)
		case !finite(f.End):
			return fmt.Errorf("files[%d] %q: no field \"end\"", len(j.Files), f.Name)
		}
		f.File.Collective, f.File.OSTs, f.Targets = Known(f.Collective), f.OSTs.count, f.OSTs.names
		j.Files = append(j.Files, f.File)
	}
	return expect(d, json.Delim(']'))
}

func expect(d *json.Decoder, want json.Delim) error {
	at := d.InputOffset()
	t, err := d.Token()
	if err != nil {
		return err
	}
	if t != want {
		return fmt.Errorf("byte %d: got %v, want %v", at, t, want)
	}
	return nil
}
