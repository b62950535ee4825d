// Package iolog is the one schema of the I/O logs of a site: what a job's own log (Darshan), the batch
// system (Slurm), the storage servers (LMT) and the forwarders say, in tables that join by job, file,
// target and time (IOMiner, section II-B); and the questions with a name that are asked of them.
//
// Each table is one struct: a field is a column, named by its tag, and its comment is the column's
// documentation. Times are UTC. A NaN, a zero time, a nil pointer and a nil list are not known and
// become NULL.
package iolog

import (
	"errors"
	"time"
)

var (
	// ErrNotALog is the error of a file that is not an I/O log at all; such files are passed over.
	ErrNotALog = errors.New("not an I/O log")
	// ErrAccounts is the error of accounts in a file that may have none.
	ErrAccounts = errors.New("the accounts of a batch system or of servers")
)

// Job is one log of one program run; a batch job has one for each program it started.
type Job struct {
	// Log identifies the log: the first eight bytes of the SHA-256 of its content, as a signed integer.
	Log int64 `col:"log"`
	// JobID is the batch system's identifier, or the process number where there was no batch system; empty where the
	// log has none.
	JobID string `col:"job_id"`
	UID   int64  `col:"uid"`
	// Owner is OwnerFile where UID owned the log's file, OwnerTrusted where an administrator vouched for it; empty: the
	// log may be anybody's, and decides nothing. User is the name of UID on the host of the import.
	Owner string `col:"owner"`
	User  string `col:"user"`
	// App is the executable's base name; Exe the command line as logged, which may be cut.
	App        string    `col:"app"`
	Exe        string    `col:"exe"`
	Procs      int64     `col:"procs"`
	Start      time.Time `col:"start_time"`
	End        time.Time `col:"end_time"`
	RunSeconds float64   `col:"run_seconds"`
	// Partial is true where the logger ran out of memory and left records out.
	Partial bool `col:"partial"`
	// Skipped names the instruments of the log that are not read, such as MDHIM.
	Skipped []string `col:"skipped_modules"`
	// Notes say what a reader of the figures has to know: cut-off instruments, a clock that was not set.
	Notes []string `col:"notes"`
	// HeatRead and HeatWrite are the bytes of all processes by time, in bins of HeatSeconds since the start; nil where
	// the log has no heat map.
	HeatSeconds float64 `col:"heat_seconds"`
	HeatRead    []int64 `col:"heat_read"`
	HeatWrite   []int64 `col:"heat_write"`
	// Files counts the files that were opened, SharedFiles those whose bytes more than one process moved.
	Files       int64 `col:"files"`
	SharedFiles int64 `col:"shared_files"`
	// FullFiles counts those whose bytes all processes of the job moved.
	FullFiles int64 `col:"full_files"`

	BytesRead    int64 `col:"bytes_read"`
	BytesWritten int64 `col:"bytes_written"`
	Reads        int64 `col:"reads"`
	Writes       int64 `col:"writes"`
	// SeqReads and SeqWrites start behind the end of the request before; ConsecReads and ConsecWrites
	// exactly at it. Known for POSIX I/O only.
	SeqReads     int64 `col:"seq_reads"`
	SeqWrites    int64 `col:"seq_writes"`
	ConsecReads  int64 `col:"consec_reads"`
	ConsecWrites int64 `col:"consec_writes"`
	// PosixReads and PosixWrites are what the sequential and consecutive counts are a part of.
	PosixReads  int64 `col:"posix_reads"`
	PosixWrites int64 `col:"posix_writes"`
	// SizeReads and SizeWrites count requests by size, ten bins: below 100 B, 1 KiB, 10 KiB, 100 KiB,
	// 1 MiB, 4 MiB, 10 MiB, 100 MiB, 1 GiB, and above.
	SizeReads  []int64 `col:"size_reads"`
	SizeWrites []int64 `col:"size_writes"`
	// MetaSeconds is the time in open, close, stat and the like, summed over processes; MetaOps counts the
	// opens, stats and fsyncs.
	MetaSeconds float64 `col:"meta_seconds"`
	MetaOps     int64   `col:"meta_ops"`

	UsesPosix      bool `col:"uses_posix"`
	UsesStdio      bool `col:"uses_stdio"`
	UsesMPIIO      bool `col:"uses_mpiio"`
	UsesCollective bool `col:"uses_collective"`

	// Read and Write are the explanation of each direction.
	Read  Factors `col:"read_"`
	Write Factors `col:"write_"`
}

// Why a log counts as its user's.
const (
	OwnerFile    = "file"
	OwnerTrusted = "trusted"
)

// OwnedBy says whether a log is of a user's run, as far as it and its file say; what it says of times and of the job's
// number is compared by who asks.
func (j *Job) OwnedBy(user string) bool {
	return j.Owner == OwnerTrusted || j.Owner == OwnerFile && j.User != "" && j.User == user
}

// Factors are the contributing factors of one direction of a job's I/O, taken on its critical path
// (IOMiner, section II-D).
type Factors struct {
	// IOSeconds is the time in which at least one file was read (or written): where no trace says when calls were, no
	// more than the calls of the slowest process took.
	IOSeconds float64 `col:"io_seconds"`
	// BytesPerSec is the direction's bytes over IOSeconds.
	BytesPerSec float64 `col:"bytes_per_sec"`
	// CriticalFiles is the least number of files whose I/O covers that time.
	CriticalFiles int64 `col:"critical_files"`
	// LongestShare is the largest part of that time that one critical file takes, 0..1.
	LongestShare float64 `col:"longest_share"`
	Small        float64 `col:"small"`         // share of requests, 0..1
	Nonconsec    float64 `col:"nonconsec"`     // share of requests, 0..1
	Collective   float64 `col:"collective"`    // share of I/O time, 0..1
	OSTs         float64 `col:"osts"`          // mean stripe count
	ProcsPerOST  float64 `col:"procs_per_ost"` // contention level
}

// JobFile is one file as one job used it. Times are seconds since the job's start.
type JobFile struct {
	Log  int64 `col:"log"`
	File int64 `col:"file"`
	// JobID repeats Job.JobID, so that most joins need one table less.
	JobID string `col:"job_id"`
	// Procs is how many of the job's processes opened the file, Movers how many of them moved its bytes, as far as the
	// log bounds that.
	Procs  int64  `col:"procs"`
	Movers *int64 `col:"movers"`
	// CountedBy and TimedBy name the layer that bytes and requests, and the times, are taken from: of each the one that
	// saw more. FS is POSIX and stdio.
	CountedBy      string `col:"counted_by"`
	TimedBy        string `col:"timed_by"`
	UsesPosix      bool   `col:"uses_posix"`
	UsesStdio      bool   `col:"uses_stdio"`
	UsesMPIIO      bool   `col:"uses_mpiio"`
	UsesCollective bool   `col:"uses_collective"`
	// MPIIOOps are the reads and writes through MPI-IO, CollectiveOps those of them that were collective.
	MPIIOOps      int64 `col:"mpiio_ops"`
	CollectiveOps int64 `col:"collective_ops"`
	// MPIIORead and MPIIOWritten are the bytes that MPI-IO was asked for.
	MPIIORead    int64 `col:"mpiio_bytes_read"`
	MPIIOWritten int64 `col:"mpiio_bytes_written"`
	// Library is HDF5 or PnetCDF where that was used; what follows is what the program asked it for. HDF5's collective
	// accesses are those to datasets of which at least one was.
	Library            string `col:"library"`
	LibraryReads       int64  `col:"library_reads"`
	LibraryWrites      int64  `col:"library_writes"`
	LibraryRead        int64  `col:"library_bytes_read"`
	LibraryWritten     int64  `col:"library_bytes_written"`
	LibraryCollective  int64  `col:"library_collective"`
	LibraryNonblocking int64  `col:"library_nonblocking"`

	Opens        int64 `col:"opens"`
	BytesRead    int64 `col:"bytes_read"`
	BytesWritten int64 `col:"bytes_written"`
	Reads        int64 `col:"reads"`
	Writes       int64 `col:"writes"`
	PosixReads   int64 `col:"posix_reads"`
	PosixWrites  int64 `col:"posix_writes"`
	SeqReads     int64 `col:"seq_reads"`
	SeqWrites    int64 `col:"seq_writes"`
	ConsecReads  int64 `col:"consec_reads"`
	ConsecWrites int64 `col:"consec_writes"`
	// SmallReads and SmallWrites are below 1 MiB, a Lustre stripe and RPC by default; of POSIX, or of MPI-IO where that
	// is counted.
	SmallReads  int64 `col:"small_reads"`
	SmallWrites int64 `col:"small_writes"`
	// Unaligned counts POSIX requests that did not begin at a multiple of Alignment bytes.
	Unaligned *int64 `col:"unaligned"`
	Alignment *int64 `col:"alignment"`
	// ReadExtent and WrittenExtent are the highest bytes touched, plus one.
	ReadExtent    int64 `col:"read_extent"`
	WrittenExtent int64 `col:"written_extent"`

	ReadStart    float64 `col:"read_start"`
	ReadEnd      float64 `col:"read_end"`
	WriteStart   float64 `col:"write_start"`
	WriteEnd     float64 `col:"write_end"`
	ReadSeconds  float64 `col:"read_seconds"` // summed over processes
	WriteSeconds float64 `col:"write_seconds"`
	MetaSeconds  float64 `col:"meta_seconds"`
	// OpenStart and CloseEnd bound the metadata calls, as far as their times are known.
	OpenStart float64 `col:"open_start"`
	CloseEnd  float64 `col:"close_end"`
	// SlowestRank is the process that took longest, -1 where the log does not say; the seconds are its own.
	SlowestRank         int64   `col:"slowest_rank"`
	SlowestReadSeconds  float64 `col:"slowest_read_seconds"`
	SlowestWriteSeconds float64 `col:"slowest_write_seconds"`
	SlowestMetaSeconds  float64 `col:"slowest_meta_seconds"`
	// ReadTrace and WriteTrace are starts and ends, in turn, of times in which some process was in a call; nil
	// where calls were not traced. TracedRead and TracedWrite are seconds: less than the sum of these where short
	// pauses were closed.
	ReadTrace   []float64 `col:"read_trace"`
	WriteTrace  []float64 `col:"write_trace"`
	TracedRead  float64   `col:"traced_read_seconds"`
	TracedWrite float64   `col:"traced_write_seconds"`

	// StripeSize, StripeCount and StripeOffset are the file's Lustre layout, of a composite one the component that
	// holds most of what was touched; the offset as it was asked for, -1 being the file system's choice. Darshan
	// records it before version 2 of its LUSTRE module.
	StripeSize   *int64 `col:"stripe_size"`
	StripeCount  *int64 `col:"stripe_count"`
	StripeOffset *int64 `col:"stripe_offset"`
	// OSTs are the indices of the targets that the file is striped over.
	OSTs []int32 `col:"osts"`
}

// File is a file's name.
type File struct {
	// ID is Darshan's hash of the full path, as a signed integer.
	ID    int64  `col:"file"`
	Path  string `col:"path"`
	Mount string `col:"mount"` // longest matching mount point
	FS    string `col:"fs"`    // its file system's type
}

// Slurm is one batch job as the scheduler accounts for it.
type Slurm struct {
	// JobID is the number that the job's programs see, and so what their logs carry; SlurmID is as Slurm
	// prints it, "123_4" for a task of an array.
	JobID   string `col:"job_id"`
	SlurmID string `col:"slurm_id"`
	Name    string `col:"name"`
	// App is the name, or what "app=NAME" in the comment says: as predictions know the job.
	App        string    `col:"app"`
	User       string    `col:"user"`
	Account    string    `col:"account"`
	Partition  string    `col:"partition"`
	State      string    `col:"state"`
	Submit     time.Time `col:"submit_time"`
	Start      time.Time `col:"start_time"`
	End        time.Time `col:"end_time"`
	NodeCount  *int64    `col:"node_count"`
	ProcCount  *int64    `col:"proc_count"`
	RunSeconds float64   `col:"run_seconds"`
	Nodes      []string  `col:"nodes"`
}

// OST is what one storage target moved in five seconds.
type OST struct {
	// Time is the interval's begin.
	Time         time.Time `col:"time"`
	Target       string    `col:"target"`
	FS           string    `col:"fs"`
	BytesRead    float64   `col:"bytes_read"`
	BytesWritten float64   `col:"bytes_written"`
	Seconds      float64   `col:"seconds"` // 5, or more where rows were missing
	CPUPercent   float64   `col:"cpu_percent"`
}

// Forwarder is one second of one forwarding node.
type Forwarder struct {
	Time             time.Time `col:"time"`
	Node             string    `col:"node"`
	ReadBytesPerSec  float64   `col:"read_bytes"`
	WriteBytesPerSec float64   `col:"write_bytes"`
	ReadOpsPerSec    float64   `col:"read_ops"`
	WriteOpsPerSec   float64   `col:"write_ops"`
	MetaOpsPerSec    float64   `col:"meta_ops"`
	QueueLen         float64   `col:"queue_len"`
	MetaQueueLen     float64   `col:"meta_queue_len"`
}

// Read is one file that was read into the archive, or could not be.
type Read struct {
	// Hash is the SHA-256 of the content, hexadecimal.
	Hash     string    `col:"hash"`
	Path     string    `col:"path"`
	Size     int64     `col:"size"`
	Modified time.Time `col:"modified"`
	Imported time.Time `col:"imported"`
	// Kind is what the file was taken for, such as "darshan".
	Kind string `col:"kind"`
	// Rows counts what it gave, over all tables.
	Rows int64 `col:"row_count"`
	// Problem is why it could not be read, or what was left out of it; empty where all is well.
	Problem string `col:"problem"`
	// Bad is true where nothing of it is in the archive.
	Bad bool `col:"bad"`
	// UID owned the file. TrustedBy is the user who vouched for its owner.
	UID       int64  `col:"uid"`
	TrustedBy string `col:"trusted_by"`
}

// Log is everything that one file gives.
type Log struct {
	Kind       string
	Jobs       []Job
	JobFiles   []JobFile
	Files      []File
	Slurm      []Slurm
	OSTs       []OST
	Forwarders []Forwarder
	// Problem says what was left out.
	Problem string
}

// Rows counts the rows of all tables.
func (l *Log) Rows() int {
	return len(l.Jobs) + len(l.JobFiles) + len(l.Files) + len(l.Slurm) + len(l.OSTs) + len(l.Forwarders)
}

// Around is what the archive knows of the storage targets while a job ran, whoever used them.
type Around struct {
	// OSTs are rows of every target, in intervals of five seconds or, of a long job, of more.
	OSTs []OST
	// PeakBytesPerSec is, by file system, the most that one of its targets moved in five seconds lately.
	PeakBytesPerSec map[string]float64
	Neighbours      []Neighbour
}

// Neighbour is what another job read and wrote on one target while its files and the job's were in I/O;
// a file's bytes count evenly over its targets.
type Neighbour struct {
	JobID string
	App   string
	Mount string
	OST   int32
	Bytes float64
}
