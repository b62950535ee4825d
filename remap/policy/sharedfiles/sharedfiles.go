// Package sharedfiles finds the files that several processes of a job wrote (mode N-1 or N-M, or
// collective MPI-IO), in its I/O logs or in its profile, and makes a case of each for package filedomain.
// What the records do not have is assumed, and listed as an assumption.
package sharedfiles

import (
	"cmp"
	"fmt"
	"slices"

	"fairway/collector/topology"
	"fairway/remap/policy/filedomain"
	"fairway/tsdb/history"
	"fairway/tsdb/history/iolog"
)

// How a file was written, as far as its records show.
const (
	Collective  = "collective MPI-IO"
	Independent = "independent MPI-IO"
	Posix       = "POSIX"
	NotKnown    = "not known"
)

// File is one file that several processes wrote.
type File struct {
	Name string `json:"name"` // "" where only a profile shows it
	App  string `json:"app"`
	// Procs is how many of the program's processes used the file; of a profile, how many nodes did I/O.
	Procs   int64  `json:"procs"`
	Bytes   int64  `json:"bytes"` // written
	Through string `json:"through"`
	// StripeSize, bytes, and Servers, over which the file is striped; nil where the records do not have it.
	StripeSize *int64 `json:"stripe_size"`
	Servers    *int   `json:"servers"`
	// From is "log" or "profile".
	From string `json:"from"`
}

// FromLogs lists the files of a job's logs that more than one process wrote, the most bytes first. Reads
// share their locks, so files that were only read are left out.
func FromLogs(logs []iolog.Log) []File {
	out := []File{}
	for i := range logs {
		l := &logs[i]
		app, names := "", map[int64]string{}
		if len(l.Jobs) > 0 {
			app = l.Jobs[0].App
		}
		for _, f := range l.Files {
			names[f.ID] = f.Path
		}
		for k := range l.JobFiles {
			if r := &l.JobFiles[k]; r.Procs > 1 && r.BytesWritten > 0 {
				out = append(out, fromLog(r, app, cmp.Or(names[r.File], fmt.Sprintf("file %016x", uint64(r.File)))))
			}
		}
	}
	slices.SortStableFunc(out, func(a, b File) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}

func fromLog(r *iolog.JobFile, app, name string) File {
	f := File{Name: name, App: app, Procs: r.Procs, Bytes: r.BytesWritten, Through: Posix, StripeSize: r.StripeSize,
		From: "log"}
	switch {
	case r.UsesCollective:
		f.Through = Collective
	case r.UsesMPIIO:
		f.Through = Independent
	}
	n := len(r.OSTs)
	if r.StripeCount != nil && *r.StripeCount > 0 {
		n = int(*r.StripeCount)
	}
	if n > 0 {
		f.Servers = &n
	}
	return f
}

// FromProfile is the shared file that a run's profile shows, if its mode is one of a shared file. While the
// run goes on nobody has counted which of its nodes write: all of them are taken.
func FromProfile(r *history.Run) []File {
	p := r.Profile
	if p == nil || p.Mode != topology.ModeN1 && p.Mode != topology.ModeNM || p.WriteBytes < 1 {
		return []File{}
	}
	writers := p.IONodes
	if p.From == history.FromWatching {
		writers = r.Nodes
	}
	if writers < 2 {
		return []File{}
	}
	return []File{{App: r.App, Procs: int64(writers), Bytes: int64(p.WriteBytes), Through: NotKnown, From: "profile"}}
}

// Given overrides the records and fills in what they do not have; 0 is not given.
type Given struct {
	Servers     int
	StripeSize  int64
	Aggregators int
	// Nodes are the run's compute nodes, MachineServers the storage targets of the machine.
	Nodes, MachineServers int
}

const (
	// stripe is Lustre's default stripe, bytes.
	stripe = 1 << 20
	// MaxStripes bounds a case: about a quarter of a second over all methods.
	MaxStripes = 1 << 20
)

// Case makes the question for package filedomain and lists what the records do not have. It fails
// where nothing says on how many servers the file lies, or a given value is out of range.
func Case(f *File, g Given) (c filedomain.Case, assumed []string, err error) {
	assume := func(format string, args ...any) { assumed = append(assumed, fmt.Sprintf(format, args...)) }
	c = filedomain.Case{Method: filedomain.Even}
	switch {
	case g.StripeSize != 0:
		c.StripeSize = g.StripeSize
		assume("stripes of %d bytes: given in the question", c.StripeSize)
	case f.StripeSize != nil && *f.StripeSize > 0:
		c.StripeSize = *f.StripeSize
	default:
		c.StripeSize = stripe
		assume("stripes of 1 MiB, Lustre's default: no record has the file's")
	}
	switch {
	case g.Servers != 0:
		c.Servers = g.Servers
		assume("%d servers: given in the question", c.Servers)
	case f.Servers != nil:
		c.Servers = *f.Servers
	case g.MachineServers > 0:
		c.Servers = g.MachineServers
		assume("%d servers, all storage targets of the machine: no record has the number that the file is striped over",
			c.Servers)
	default:
		return c, assumed,
			fmt.Errorf(
				"no record has the number of servers that %s is striped over, and no storage node is "+
					"configured: say it with "+
					"servers=N (on Lustre: lfs getstripe -c FILE)", cmp.Or(f.Name, "the file"))
	}
	switch {
	case g.Aggregators != 0:
		c.Aggregators = g.Aggregators
		assume("%d aggregators: given in the question", c.Aggregators)
	case g.Nodes > 0:
		c.Aggregators = int(min(int64(g.Nodes), f.Procs))
		assume("%d aggregators, one a compute node: ROMIO's own choice", c.Aggregators)
	default:
		c.Aggregators = int(f.Procs)
		assume("%d aggregators, every process: the run's nodes are not known", c.Aggregators)
	}
	c.End = f.Bytes
	assume("the region is what was written, each byte once from the file's start on")
	if c.StripeSize > 0 && c.End/c.StripeSize >= MaxStripes {
		c.End = MaxStripes * c.StripeSize
		assume("only its first %d stripes are counted", int64(MaxStripes))
	}
	return c, assumed, c.Check()
}

// Caveat is why the hints may do nothing for a file as it was written; "" where they do.
func Caveat(f *File) string {
	switch f.Through {
	case Posix:
		return "It was written by POSIX calls: hints do nothing until the program writes by collective MPI-IO " +
			"(MPI_File_write_all, or HDF5 and PnetCDF with collective transfers)."
	case Independent:
		return "It was written by independent MPI-IO: hints act on collective calls alone, such as MPI_File_write_all."
	case NotKnown:
		return "How it was written is not known: hints act on collective MPI-IO alone. A Darshan log of the job " +
			"has it (fairway import)."
	}
	return ""
}
