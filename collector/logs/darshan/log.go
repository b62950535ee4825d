package darshan

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// maxLogBytes bounds what Read keeps of one log, about.
const maxLogBytes = 96 << 20

// Log is a whole log, gathered by file.
type Log struct {
	Header
	Files    []File // in the order in which the records first name them
	Heatmaps []RankBins
	// Totals are those of POSIX, MPIIO and STDIO, as far as the log has them.
	Totals []Totals
}

// File is all that a log knows of one file.
type File struct {
	ID uint64
	// Name is the path; formats 1.x and 2.x keep its last characters only, shown after "...". It is
	// empty for a record without a name.
	Name string
	// Mount and FS are the mount point and type of its file system, empty where not known.
	Mount, FS string
	// POSIX, MPIIO and STDIO are what went through each interface, nil where nothing did. MPI-IO ends in
	// POSIX calls: never add the two. POSIX and STDIO together are what the file system saw.
	POSIX, MPIIO, STDIO *IO
	// Components is the file's Lustre layout, nil where not known.
	Components []Component
	// Library is what HDF5 or PnetCDF was asked for, nil where neither was used.
	Library *Library
	// DXTPOSIX and DXTMPIIO say when each interface was at work, nil where it was not traced.
	DXTPOSIX, DXTMPIIO *Activity
}

// The ids of the pseudo files <STDIN>, <STDOUT> and <STDERR>: hashes of these names, which stay where a log's
// names are hidden.
const (
	stdinID  = 14734109647742566553
	stdoutID = 15920181672442173319
	stderrID = 7238257241479193519
)

// Pseudo says that the file is a process's standard input or output.
func (f *File) Pseudo() bool {
	return f.ID == stdinID || f.ID == stdoutID || f.ID == stderrID ||
		f.Name == "<STDIN>" || f.Name == "<STDOUT>" || f.Name == "<STDERR>"
}

// OSTs returns the indices of the storage targets that hold the file, sorted, each once.
func (f *File) OSTs() []int64 {
	var out []int64
	for i := range f.Components {
		if f.Components[i].Instantiated() {
			out = append(out, f.Components[i].OSTs...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// RankBins is the heat map of one rank and interface.
type RankBins struct {
	Rank int64
	API  string // "POSIX", "MPIIO" or "STDIO"
	Bins
}

// Read reads a whole log of size bytes. With an error it returns what could be read, nil only when
// no header is found: a damaged region does not hide the others.
func Read(in io.ReaderAt, size int64) (*Log, error) {
	r, err := NewReader(in, size)
	if err != nil {
		return nil, err
	}
	g := gatherer{log: &Log{Header: *r.Header()}, r: r, files: map[uint64]int{}}
	err = r.Each(g.record)
	if g.below0 > 0 {
		err = errors.Join(err, fmt.Errorf("%d records count bytes below 0, as some MPI libraries have it: theirs are "+
			"missing in the sums", g.below0))
	}
	for i := range g.log.Files {
		g.log.Files[i].DXTPOSIX.merge()
		g.log.Files[i].DXTMPIIO.merge()
	}
	for i, m := range []Module{POSIX, MPIIO, STDIO} {
		if g.totals[i].totals.Files > 0 {
			t := g.totals[i].close()
			t.Module = m
			g.log.Totals = append(g.log.Totals, t)
		}
	}
	return g.log, err
}

// gatherer puts the records of one file together.
type gatherer struct {
	log   *Log
	r     *Reader
	files map[uint64]int
	bytes int
	// below0 are the records whose bytes cannot be.
	below0 int
	// byName are the files by their names, for datasets that do not say the id of theirs.
	byName map[string]int
	// totals are those of POSIX, MPI-IO and STDIO.
	totals [3]totaller
}

func (g *gatherer) record(rec *Record) error {
	if rec.Module == Heatmap {
		name, _ := g.r.Name(rec.ID)
		g.log.Heatmaps = append(g.log.Heatmaps, RankBins{rec.Rank, trimHeatmap(name), *rec.Bins})
		return g.grow(16 * len(rec.Bins.Read))
	}
	switch rec.Module {
	case BGQ:
		return nil
	case H5F, H5D, PnetCDFFile, PnetCDFVar:
		return g.library(rec)
	}
	f, err := g.file(rec)
	if err != nil {
		return err
	}
	switch rec.Module {
	case DXTPOSIX:
		return g.trace(&f.DXTPOSIX, rec.Trace)
	case DXTMPIIO:
		return g.trace(&f.DXTMPIIO, rec.Trace)
	case Lustre:
		if f.Components == nil {
			f.Components = rec.Layout.Components
			for i := range f.Components {
				err = errors.Join(err, g.grow(128+8*len(f.Components[i].OSTs)))
			}
		}
		return err
	case Combined:
		return g.combined(f, rec)
	case POSIX:
		return g.add(0, rec.Rank, &f.POSIX, posixFigures.io(rec))
	case MPIIO:
		return g.add(1, rec.Rank, &f.MPIIO, mpiioFigures.io(rec))
	case STDIO:
		return g.add(2, rec.Rank, &f.STDIO, stdioFigures.io(rec))
	}
	return nil
}

func trimHeatmap(name string) string {
	const prefix = "heatmap:"
	if len(name) > len(prefix) && name[:len(prefix)] == prefix {
		return name[len(prefix):]
	}
	return name
}

func (g *gatherer) grow(n int) error {
	if g.bytes += n; g.bytes > maxLogBytes {
		return fmt.Errorf("%w: the files of the log do not fit in %d bytes; read it record by record", ErrTooLarge,
			maxLogBytes)
	}
	return nil
}

func (g *gatherer) file(rec *Record) (*File, error) {
	i, ok := g.files[rec.ID]
	if ok {
		return &g.log.Files[i], nil
	}
	f := File{ID: rec.ID}
	f.Name, _ = g.r.Name(rec.ID)
	if m, ok := g.r.mountOf(rec, f.Name); ok {
		f.Mount, f.FS = m.Path, m.FS
	}
	g.files[rec.ID] = len(g.log.Files)
	g.log.Files = append(g.log.Files, f)
	return &g.log.Files[len(g.log.Files)-1], g.grow(256 + len(f.Name))
}

// add puts one record's figures to those of the file's other ranks and to the totals of its interface.
func (g *gatherer) add(which int, rank int64, to **IO, one *IO) error {
	if one.Shared {
		one.Ranks = g.log.Job.NProcs
	} else {
		one.Ranks = 1
	}
	one.setMovers(g.log.Job.NProcs)
	if min(one.BytesRead, one.BytesWritten) < NotRecorded {
		g.below0++
	}
	t := &g.totals[which]
	before := len(t.ranks)
	t.add(rank, one, *to == nil)
	if err := g.grow(32 * (len(t.ranks) - before)); err != nil {
		return err
	}
	if *to == nil {
		*to = one
		return g.grow(512)
	}
	(*to).merge(one)
	return nil
}

// combined splits a record of formats 1.x and 2.x into its interfaces.
func (g *gatherer) combined(f *File, rec *Record) error {
	posix, stdio, mpiio := combinedIO(rec)
	for i, one := range []struct {
		to **IO
		io *IO
	}{{&f.POSIX, posix}, {&f.MPIIO, mpiio}, {&f.STDIO, stdio}} {
		if one.io == nil {
			continue
		}
		if g.log.Version[0] == '1' && one.io.Shared {
			one.io.SlowestSeconds = NotRecorded
		}
		if err := g.add(i, rec.Rank, one.to, one.io); err != nil {
			return err
		}
	}
	return nil
}

// Notes says what a reader of the log's figures has to know: truncated modules, versions with wrong
// counters, a clock that was not set.
func (h *Header) Notes() []string {
	var out []string
	for i := range h.Modules {
		m := &h.Modules[i]
		if m.Partial {
			out = append(out, fmt.Sprintf("%s: the runtime ran out of memory for it; its totals are lower bounds",
				m.Module))
		}
		if !m.Read {
			out = append(out, fmt.Sprintf("%s version %d is not read; %d bytes skipped", m.Module, m.Version, m.Length))
		}
	}
	if h.Version == "3.20" {
		out = append(out, "format 3.20: runtime 3.2.0 wrote wrong common access sizes and counts (ACCESS, COUNT)")
	}
	if len(h.Version) > 0 && h.Version < "2.03" {
		out = append(out, "format "+h.Version+": times do not count from the start of the job")
	}
	if h.Job.End.Before(h.Job.Start) {
		out = append(out, "the job's end lies before its start; how long it ran is not known")
	}
	if h.Job.ClockUnset() {
		out = append(out, "the node's clock was not set; start and end are no times of day")
	}
	return out
}
