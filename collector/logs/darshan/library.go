package darshan

import "strings"

// Library is what a program asked of HDF5 or PnetCDF: reads and writes of a file's datasets or variables, which become
// requests of MPI-IO, or of the file system, below.
type Library struct {
	Name                    string // LibraryHDF5 or LibraryPnetCDF
	Reads, Writes           int64
	BytesRead, BytesWritten int64
	// Collective counts PnetCDF's collective calls, and the accesses to HDF5's datasets of which at least one was
	// collective; Nonblocking counts PnetCDF's.
	Collective, Nonblocking int64
}

// The libraries' names.
const (
	LibraryHDF5    = "HDF5"
	LibraryPnetCDF = "PnetCDF"
)

// library adds a record of a library to its file. A file that no layer below knows did no I/O.
func (g *gatherer) library(rec *Record) error {
	i, ok := g.fileOf(rec)
	if !ok {
		return nil
	}
	f := &g.log.Files[i]
	if f.Library == nil {
		f.Library = &Library{Name: LibraryPnetCDF}
		if rec.Module == H5F || rec.Module == H5D {
			f.Library.Name = LibraryHDF5
		}
	}
	l, c := f.Library, rec.Counters
	switch rec.Module {
	case H5D:
		l.Reads, l.Writes = l.Reads+max(0, c[h5dReads]), l.Writes+max(0, c[h5dReads+1])
		l.BytesRead, l.BytesWritten = l.BytesRead+max(0, c[h5dBytesRead]), l.BytesWritten+max(0, c[h5dBytesRead+1])
		if c[h5dCollective] > 0 {
			l.Collective += max(0, total(c[h5dReads:h5dReads+2]...))
		}
	case PnetCDFVar:
		l.Reads += total(c[pnetcdfIndepReads], c[pnetcdfCollReads], c[pnetcdfNBReads])
		l.Writes += total(c[pnetcdfIndepReads+1], c[pnetcdfCollReads+1], c[pnetcdfNBReads+1])
		l.BytesRead += max(0, c[pnetcdfBytesRead])
		l.BytesWritten += max(0, c[pnetcdfBytesRead+1])
		l.Collective += max(0, total(c[pnetcdfCollReads:pnetcdfNBReads]...))
		l.Nonblocking += max(0, total(c[pnetcdfNBReads:pnetcdfBytesRead]...))
	}
	return g.grow(16)
}

// fileOf finds the file of a library's record. Datasets of version 1 have its name before their own.
func (g *gatherer) fileOf(rec *Record) (int, bool) {
	id := rec.ID
	if namesFile(rec.Module) {
		if id = uint64(rec.Counters[len(rec.Counters)-1]); id == 0 {
			name, _ := g.r.Name(rec.ID)
			name, _, _ = strings.Cut(name, ":/")
			if g.byName == nil {
				g.byName = map[string]int{}
				for i := range g.log.Files {
					g.byName[g.log.Files[i].Name] = i
				}
			}
			i, ok := g.byName[name]
			return i, ok
		}
	}
	i, ok := g.files[id]
	return i, ok
}
