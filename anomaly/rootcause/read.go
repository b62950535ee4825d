package rootcause

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"fairway/collector/topology"
)

// fileJSON is a File as it is written in an intervals file; pointers are fields that may be missing.
type fileJSON struct {
	Name       string   `json:"name"`
	Start      *float64 `json:"start"`
	End        *float64 `json:"end"`
	Bytes      float64  `json:"bytes"`
	Small      *float64 `json:"small"`
	Nonconsec  *float64 `json:"nonconsec"`
	Collective flag     `json:"collective"`
	Procs      *float64 `json:"procs"`
	OSTs       osts     `json:"osts"`
}

// osts is a stripe count or a list of targets, by name or by number.
type osts struct {
	count Known
	names []topology.TargetID
	set   bool
}

func (o *osts) UnmarshalJSON(b []byte) error {
	o.set = true
	var n *float64
	if json.Unmarshal(b, &n) == nil {
		o.count = known(n)
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
type flag struct {
	share Known
	set   bool
}

func (f *flag) UnmarshalJSON(b []byte) error {
	f.set = true
	switch string(b) {
	case "true":
		f.share = 1
		return nil
	case "false":
		return nil
	}
	var n *float64
	if err := json.Unmarshal(b, &n); err != nil {
		return fmt.Errorf("collective: %s is neither true, false nor a share", b)
	}
	f.share = known(n)
	return nil
}

func known(p *float64) Known {
	if p == nil {
		return Unknown()
	}
	return Known(*p)
}

// maxHeld bounds a text that must be held as a whole, bytes.
const maxHeld = 1 << 30

// ReadJob reads and checks one job: {"files":[{"name","start","end","bytes","small","nonconsec",
// "collective","procs","osts"}],"procs":n,"records":[...],"storage":{...}}, where start and end are required, osts is a
// count or a list of targets and everything else may be missing. Its errors name the file and field.
func ReadJob(text *io.SectionReader) (Job, error) {
	if j, ok := fastJob(text, text.Size()); ok {
		return j, j.Check()
	}
	if text.Size() > maxHeld {
		return Job{}, fmt.Errorf("more than %d bytes, and not the plain objects that are read piece by piece", maxHeld)
	}
	b := make([]byte, text.Size())
	if _, err := io.ReadFull(io.NewSectionReader(text, 0, text.Size()), b); err != nil {
		return Job{}, err
	}
	return parseJob(b)
}

// parseJob is ReadJob for any shape.
func parseJob(b []byte) (Job, error) {
	j := Job{Procs: Unknown()}
	r := bytes.NewReader(b)
	d := json.NewDecoder(r)
	if err := j.read(d); err != nil {
		line := 1 + bytes.Count(b[:d.InputOffset()], []byte{'\n'})
		var kind *json.UnmarshalTypeError
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			err = errors.New("the text ends inside the job")
		case errors.As(err, &kind):
			at, _, _ := strings.Cut(err.Error(), ": json: ")
			err = fmt.Errorf("%s.%s: a JSON %s; want a %s", at, kind.Field, kind.Value, plainKind(kind.Type.Kind()))
		}
		return Job{}, fmt.Errorf("line %d: %w", line, err)
	}
	if rest, _ := io.ReadAll(io.MultiReader(d.Buffered(), r)); len(bytes.TrimSpace(rest)) > 0 {
		return Job{}, errors.New("text after the job's closing brace")
	}
	return j, j.Check()
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
			var n *float64
			err = d.Decode(&n)
			j.Procs = known(n)
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
	for d.More() {
		var f fileJSON
		err := d.Decode(&f)
		switch {
		case err != nil:
			return fmt.Errorf("files[%d]: %w", len(j.Files), err)
		case f.Start == nil:
			return fmt.Errorf("files[%d] %q: no field \"start\"", len(j.Files), f.Name)
		case f.End == nil:
			return fmt.Errorf("files[%d] %q: no field \"end\"", len(j.Files), f.Name)
		}
		if !f.OSTs.set {
			f.OSTs.count = Unknown()
		}
		if !f.Collective.set {
			f.Collective.share = Unknown()
		}
		j.Files = append(j.Files, File{
			Name: f.Name, Start: *f.Start, End: *f.End, Bytes: f.Bytes,
			Small: known(f.Small), Nonconsec: known(f.Nonconsec), Collective: f.Collective.share,
			Procs: known(f.Procs), OSTs: f.OSTs.count, Targets: f.OSTs.names,
		})
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
