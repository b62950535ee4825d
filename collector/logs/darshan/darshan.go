// Package darshan reads the I/O logs that the Darshan runtime writes for every MPI job: who ran, which
// files were opened, and per file the counters and first and last times of each kind of operation.
//
// Log formats 3.00, 3.10, 3.20, 3.21 and 3.41 are read in both byte orders, with zlib, bzip2 or no
// compression; formats 1.21 to 2.06, which are one compressed stream, too. Any other is refused with
// ErrVersion. Reading is streaming: one record is in memory at a time, and the table of names.
//
// Reader walks over the records as they lie in the log. Read gathers them by file.
package darshan

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrVersion is the error of a log in a format that is not known.
var ErrVersion = errors.New("unsupported version")

// ErrNotDarshan is the error of a file that is not a Darshan log at all.
var ErrNotDarshan = errors.New("not a Darshan log")

// ErrTooLarge is the error of a log with more names or files than are kept in memory.
var ErrTooLarge = errors.New("too large")

// Error says where in a log something was found that cannot be read.
type Error struct {
	Region string // "header", "job data", "record table", or the module's name
	Offset int64  // byte of the file at which the region begins
	At     int64  // byte of the decompressed region; -1 where it does not apply
	Err    error
}

func (e *Error) Error() string {
	if e.At < 0 {
		return fmt.Sprintf("%s at byte %d: %v", e.Region, e.Offset, e.Err)
	}
	return fmt.Sprintf("%s at byte %d, byte %d decompressed: %v", e.Region, e.Offset, e.At, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Module is one of the runtime's instruments, numbered as in format 3.41.
type Module uint8

// The modules. Only those with a Layout in this package are read; the others are skipped.
const (
	POSIX Module = 1
	MPIIO Module = 2
	H5F   Module = 3
	H5D   Module = 4
	// PnetCDFFile and PnetCDFVar are of PnetCDF's files and of their variables.
	PnetCDFFile Module = 5
	PnetCDFVar  Module = 6
	BGQ         Module = 7
	Lustre      Module = 8
	STDIO       Module = 9
	DXTPOSIX    Module = 10
	DXTMPIIO    Module = 11
	Heatmap     Module = 15
	// Combined is the one record of formats 1.x and 2.x, which counts POSIX, stdio and MPI-IO together.
	Combined Module = 255
)

const moduleCount = 64

// moduleNames are as the darshan tools print them.
var moduleNames = [...]string{"NULL", "POSIX", "MPI-IO", "H5F", "H5D", "PNETCDF_FILE", "PNETCDF_VAR", "BG/Q", "LUSTRE",
	"STDIO", "DXT_POSIX", "DXT_MPIIO", "MDHIM", "APXC", "APMPI", "HEATMAP", "DFS", "DAOS"}

// String returns the module's name as the darshan tools print it.
func (m Module) String() string {
	switch {
	case m == Combined:
		return "COMBINED"
	case int(m) < len(moduleNames):
		return moduleNames[m]
	}
	return fmt.Sprintf("UNKNOWN_%d", m)
}

// ModuleInfo is what a log's header says of one of its modules.
type ModuleInfo struct {
	Module  Module
	Version uint32
	// Offset and Length bound the module's region, bytes of the file.
	Offset, Length int64
	// Partial says that the runtime ran out of memory for this module: its totals are lower bounds.
	Partial bool
	// Read says that this package reads the module in this version; otherwise it is skipped.
	Read bool
}

// Compression is how the regions of a log are compressed.
type Compression uint8

// The compressions, as numbered in the header.
const (
	Zlib Compression = iota
	Bzip2
	None
)

// String returns the compression's name.
func (c Compression) String() string { return [...]string{"zlib", "bzip2", "none"}[c] }

// Job is the run a log belongs to.
type Job struct {
	// UID is the user's number. Anonymised logs hold a hash.
	UID int64
	// JobID is the batch system's number, or the process id where there was no batch system; 0 in
	// formats 1.x, which do not have it.
	JobID  int64
	NProcs int64
	// Start and End are UTC; one second's resolution before format 3.41.
	Start, End time.Time
	// RunSeconds is the run's length as the darshan tools count it: before format 3.41, whole seconds
	// with the last one included.
	RunSeconds float64
	// Exe is the command line, cut short by the runtime where ExeTruncated.
	Exe          string
	ExeTruncated bool
	// Metadata are the runtime's key=value notes, in order: lib_ver, h (MPI-IO hints), ...
	Metadata []Note
}

// Note is one key=value line of a log's metadata.
type Note struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// ClockUnset says that the node's clock was not set (a start before 2000): the times of day mean nothing.
func (j *Job) ClockUnset() bool { return j.Start.Unix() < 946684800 }

// Mount is one mounted file system of the node the log was written on.
type Mount struct {
	Path   string `json:"path"`
	FS     string `json:"fs"`
	device string // formats 1.x and 2.x, which join files to mounts by device number
}

// Header is everything of a log that is not a record.
type Header struct {
	// Version is the format's: "3.41".
	Version     string
	BigEndian   bool
	Compression Compression
	Job         Job
	Mounts      []Mount
	Modules     []ModuleInfo // those present, in the order of their numbers
}

// Mount finds the file system of a path: the longest mount point that is the path itself or a
// directory above it. ok is false without one.
func (h *Header) Mount(path string) (m Mount, ok bool) {
	best := -1
	for i := range h.Mounts {
		p := h.Mounts[i].Path
		if (best < 0 || len(p) > len(h.Mounts[best].Path)) && under(path, p) {
			best = i
		}
	}
	if best < 0 {
		return Mount{}, false
	}
	return h.Mounts[best], true
}

func under(path, dir string) bool {
	if dir == "" || !strings.HasPrefix(path, dir) {
		return false
	}
	return len(path) == len(dir) || dir[len(dir)-1] == '/' || path[len(dir)] == '/'
}
