package rootcause

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
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
	*o = osts{count: Unknown(), set: true}
	if v, err := strconv.ParseFloat(string(b), 64); err == nil {
		o.count = Known(v)
	}
	if b[0] != '[' && (o.count.OK() || string(b) == "null") {
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
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil && string(b) != "null" {
		return fmt.Errorf("collective: %s is neither true, false nor a share", b)
	}
	if f.share = Unknown(); err == nil {
		f.share = Known(v)
	}
	return nil
}

func known(p *float64) Known {
	if p == nil {
		return Unknown()
	}
	return Known(*p)
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
	for room := [5]float64{}; d.More(); {
		// The decoder writes through pointers that are there, so that a million files cost it no allocations.
		for i := range room {
			room[i] = math.NaN()
		}
		f := fileJSON{Start: &room[0], End: &room[1], Small: &room[2], Nonconsec: &room[3], Procs: &room[4]}
		err := d.Decode(&f)
		switch {
		case err != nil:
			return fmt.Errorf("files[%d]: %w", len(j.Files), err)
		case !known(f.Start).OK():
			return fmt.Errorf("files[%d] %q: no field \"start\"", len(j.Files), f.Name)
		case !known(f.End).OK():
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
