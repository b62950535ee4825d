package lmt

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"fairway/collector"
	"fairway/collector/topology"
)

const maxLine = 4 << 20

// Read calls each for every reading of an input of size bytes, whose form it finds out: an SQLite
// database, rows with a header line, or cerebro strings. Deltas are set. Lines that cannot be read are
// passed over; the first 20 such errors are joined and returned at the end. An error of each ends the
// reading and is returned as it is.
func Read(in io.ReaderAt, size int64, o Options, each func(*Reading) error) error {
	d := &Differ{Interval: o.interval()}
	give := func(r *Reading) error {
		d.Add(r)
		return each(r)
	}
	head := make([]byte, 16)
	n, _ := in.ReadAt(head, 0)
	switch {
	case string(head[:n]) == sqliteMagic:
		return readDatabase(in, size, o, give)
	case n >= 8 && string(head[:8]) == "\x89HDF\r\n\x1a\n":
		return errors.New(
			"an HDF5 file (h5lmt) is not read; give the LMT database in SQLite's format, or its rows as CSV")
	}
	return readText(io.NewSectionReader(in, 0, size), o, give)
}

// rows reads lines of one input.
type rows struct {
	columns map[string]int
	comma   string
	clock   clock
	give    func(*Reading) error
	faults  collector.Faults
}

func readText(in io.Reader, o Options, give func(*Reading) error) error {
	r := &rows{clock: clock{zone: o.zone()}, give: give}
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 0, 64<<10), maxLine)
	seen := false
	for n := 1; s.Scan(); n++ {
		line := strings.TrimRight(s.Text(), "\r\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		known, err := r.line(n, line)
		if err != nil {
			return err
		}
		seen = seen || known
	}
	if s.Err() != nil {
		r.faults.Add(s.Err())
	}
	if !seen && r.faults.Kept() == 0 {
		return errors.New(
			"neither cerebro strings (ost: 2;...) nor rows with a header line (OST_NAME, TIMESTAMP, READ_BYTES, " +
				"WRITE_BYTES)")
	}
	return r.faults.All()
}

// line reads one line; known says that it is of a form that is read. The error is give's.
func (r *rows) line(n int, line string) (known bool, err error) {
	if r.columns == nil {
		readings, ok, bad := ParseCerebro(line)
		if bad != nil {
			r.faults.Add(fmt.Errorf("line %d: %w", n, bad))
		}
		for i := range readings {
			if err := r.give(&readings[i]); err != nil {
				return true, err
			}
		}
		return ok || r.header(line), nil
	}
	reading, bad := r.row(line)
	if bad != nil {
		r.faults.Add(fmt.Errorf("line %d: %w", n, bad))
	}
	if reading == nil {
		return true, nil
	}
	return true, r.give(reading)
}

// header takes the names of the columns.
func (r *rows) header(line string) bool {
	for _, comma := range []string{"\t", ",", "|"} {
		columns := map[string]int{}
		for i, name := range strings.Split(line, comma) {
			columns[strings.ToUpper(strings.Trim(strings.TrimSpace(name), `"`))] = i
		}
		_, when := columns["TIMESTAMP"]
		_, ost := columns["OST_NAME"]
		_, mdt := columns["MDS_NAME"]
		if when && (ost || mdt) {
			r.columns, r.comma = columns, comma
			return true
		}
	}
	return false
}

// row reads one row. A field that cannot be read is reported and left out; without target or time it is
// not a reading.
func (r *rows) row(line string) (*Reading, error) {
	fields := strings.Split(line, r.comma)
	last := slices.Max(slices.Collect(maps.Values(r.columns)))
	if len(fields) <= last {
		return nil, fmt.Errorf("%d fields, want %d", len(fields), last+1)
	}
	get := func(name string) (string, bool) {
		i, ok := r.columns[name]
		if !ok {
			return "", false
		}
		s := strings.Trim(strings.TrimSpace(fields[i]), `"`)
		return s, s != "" && s != "NULL" && s != `\N`
	}
	out := &Reading{Kind: "ost"}
	name, ok := get("OST_NAME")
	if !ok {
		if name, ok = get("MDS_NAME"); !ok {
			return nil, errors.New("OST_NAME: no target is named")
		}
		out.Kind = "mdt"
	}
	out.FileSystem, _ = get("FILESYSTEM_NAME")
	out.setTarget(name)
	if host, ok := get("HOSTNAME"); ok {
		out.Host = topology.NodeID(host)
	}
	when, _ := get("TIMESTAMP")
	var err error
	if out.Time, err = r.clock.read(when); err != nil {
		return nil, fmt.Errorf("TIMESTAMP: %w", err)
	}
	var bad error
	for _, c := range []struct {
		name string
		to   **uint64
	}{{"READ_BYTES", &out.ReadBytesTotal}, {"WRITE_BYTES", &out.WriteBytesTotal}, {"KBYTES_FREE", &out.KBytesFree},
		{"KBYTES_USED", &out.KBytesUsed}, {"INODES_FREE", &out.InodesFree}, {"INODES_USED", &out.InodesUsed}} {
		if s, ok := get(c.name); ok {
			if err := counts([]string{s}, c.to); err != nil && bad == nil {
				bad = fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	if s, ok := get("PCT_CPU"); ok {
		if out.CPUPercent, err = percent(s); err != nil && bad == nil {
			bad = fmt.Errorf("PCT_CPU: %w", err)
		}
	}
	return out, bad
}
