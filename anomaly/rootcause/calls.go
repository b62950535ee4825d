package rootcause

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Calls are what a log says of one direction of a file's calls.
type Calls struct {
	// Seconds is the time in which the file was in I/O: of the traced calls, else those of its slowest process.
	Seconds float64
	// AllSeconds are those of all processes.
	AllSeconds float64
	// Rank is the process that Seconds are of; AllRanks where all processes used the file.
	Rank int64
	// Trace are starts and ends of times in calls, in turn; nil where calls were not traced.
	Trace []float64
	// Heat are starts and ends of times in which the heat map has bytes of that direction, of all files.
	Heat []float64
	// Layer is where the time was taken: "FS", "MPI-IO" or "DXT".
	Layer string
	// Metadata is true of opening, closing and looking.
	Metadata bool
	// Requests is how many there were, of Bytes together.
	Requests int64
	// Unaligned and Random are shares of the requests, 0..1; Independent is the share of the calls of MPI-IO that were
	// not collective; Again is how often each byte was moved.
	Unaligned, Random, Independent, Again Known
	Alignment                             int64
	// Opened is how many processes opened the file.
	Opened int64
	Above  Above
}

// Above is what the layers above the file system were asked for, of one direction of a file.
type Above struct {
	// MPIIOBytes is 0 where MPI-IO was not used, or not known.
	MPIIOBytes float64
	// Library is HDF5 or PnetCDF, empty without one; Accesses are reads or writes of its datasets or variables.
	Library  string
	Accesses int64
	Bytes    float64
	// Collective and Nonblocking are shares of the accesses of both directions, 0..1.
	Collective, Nonblocking Known
}

// asked are the bytes that the program itself asked for, of those that were moved.
func (u *Above) asked(moved float64) float64 {
	for _, bytes := range []float64{u.Bytes, u.MPIIOBytes} {
		if bytes > 0 {
			return min(bytes, moved)
		}
	}
	return moved
}

// AllRanks is the rank of what all processes did together.
const AllRanks = -1

// criticalPath is the files that a job's I/O time goes to. Where only intervals are known it is IOMiner's. Where calls
// are known no file counts for more than they took: of traced ones the sweep line runs over the times in calls; else
// the process that took longest counts, whose calls follow on each other, as the darshan tools estimate it: its own
// files and those that all processes used.
func criticalPath(j *Job) []Critical {
	if !j.knowsCalls() {
		return criticalFiles(j.Files)
	}
	if traced(j.Files) {
		return tracedPath(j.Files)
	}
	out := []Critical{} // a list in JSON, also of none
	rank := slowestRank(j.Files)
	for i := range j.Files {
		f := &j.Files[i]
		if f.seconds() > 0 && (f.Calls == nil || f.Calls.Rank == rank || f.Calls.Rank == AllRanks) {
			c := Critical{Name: f.Name, Start: f.Start, End: f.End, Exclusive: f.seconds(), FileStart: f.Start, File: i}
			if f.Calls != nil {
				if c.active = f.Calls.Heat; f.Calls.Trace != nil {
					c.active = f.Calls.Trace
				}
			}
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b Critical) int { return cmp.Compare(a.Start, b.Start) })
	return inTheirTime(out)
}

func (j *Job) knowsCalls() bool {
	return slices.ContainsFunc(j.Files, func(f File) bool { return f.Calls != nil })
}

// slowestRank is the process with most time in calls on files of its own.
func slowestRank(files []File) (rank int64) {
	seconds := map[int64]float64{}
	for i := range files {
		if c := files[i].Calls; c != nil && c.Rank != AllRanks {
			seconds[c.Rank] += c.Seconds
		}
	}
	rank = AllRanks
	for _, r := range slices.Sorted(maps.Keys(seconds)) {
		if rank == AllRanks || seconds[r] > seconds[rank] {
			rank = r
		}
	}
	return rank
}

// inTheirTime shortens the pieces where they take longer together than the time in which they lie: processes with
// threads do.
func inTheirTime(pieces []Critical) []Critical {
	var all, union, reached float64
	reached = math.Inf(-1)
	for _, c := range pieces {
		all += c.Exclusive
		union += max(0, c.End-max(c.Start, reached))
		reached = max(reached, c.End)
	}
	if all > union {
		for i := range pieces {
			pieces[i].Exclusive *= union / all
		}
	}
	return pieces
}

// traced says that it is known of nearly all of the time when the calls were.
func traced(files []File) bool {
	var all, known float64
	for i := range files {
		c := files[i].Calls
		if c == nil {
			return false
		}
		if all += c.Seconds; c.Trace != nil {
			known += c.Seconds
		}
	}
	return known > 0 && known >= tracedShare*all
}

// tracedShare is how much of the time in calls must have been traced for the rest to be left out.
const tracedShare = 0.95

// tracedPath runs the sweep line over the times in calls, and puts together what falls to one file.
func tracedPath(files []File) []Critical {
	var parts []File
	var of []int
	for i := range files {
		t := files[i].Calls.Trace
		for k := 0; k+1 < len(t); k += 2 {
			parts = append(parts, File{Name: files[i].Name, Start: t[k], End: t[k+1]})
			of = append(of, i)
		}
	}
	byFile := map[int]*Critical{}
	var order []int
	for _, p := range criticalFiles(parts) {
		i := of[p.File]
		c := byFile[i]
		if c == nil {
			c = &Critical{Name: p.Name, Start: p.Start, FileStart: files[i].Start, File: i,
				active: files[i].Calls.Trace}
			byFile[i] = c
			order = append(order, i)
		}
		c.End = p.End
		c.Exclusive += p.Exclusive
	}
	out := make([]Critical, 0, len(order))
	for _, i := range order {
		c := byFile[i]
		c.Exclusive = min(c.Exclusive, files[i].seconds()) // pauses that were closed are no calls
		out = append(out, *c)
	}
	return out
}

// busiest is the file and direction whose calls took longest, of all processes together; nil where calls are not known.
func busiest(files []File) (most *File, all float64) {
	for i := range files {
		f := &files[i]
		if f.Calls == nil {
			continue
		}
		all += f.Calls.AllSeconds
		if most == nil || f.Calls.AllSeconds > most.Calls.AllSeconds {
			most = f
		}
	}
	return most, all
}

// TakeSpans leaves only the intervals, from a file's first access to its last, as IOMiner takes them.
func (j *Job) TakeSpans() {
	j.Files = slices.DeleteFunc(j.Files, func(f File) bool { return f.Calls != nil && f.Calls.Metadata })
	for i := range j.Files {
		j.Files[i].Calls = nil
	}
}
