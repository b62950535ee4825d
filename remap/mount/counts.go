package mount

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/bits"
	"os"
	"regexp"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	report "fairway/collector/source/mount"
	"fairway/collector/topology"
)

// opKind is a kind of operation that is counted.
type opKind int

const (
	opRead opKind = iota
	opWrite
	opLookup
	opGetattr
	opSetattr
	opOpen
	opCreate
	opMkdir
	opMknod
	opSymlink
	opReadlink
	opLink
	opUnlink
	opRmdir
	opRename
	opReaddir
	opStatfs
	opFsync
	opKinds
)

var opNames = [opKinds]string{"read", "write", "lookup", "getattr", "setattr", "open", "create", "mkdir", "mknod",
	"symlink", "readlink",
	"link", "unlink", "rmdir", "rename", "readdir", "statfs", "fsync"}

// count adds an operation that was answered.
func count(o *report.Op, n int, took time.Duration, errno syscall.Errno) {
	o.Count++
	o.Bytes += uint64(n)
	o.Nanos += uint64(took)
	o.Hist[min(bits.Len64(uint64(took.Microseconds())), report.Buckets-1)]++
	if errno != 0 && errno != syscall.ENOENT {
		o.Errors++
	}
}

// jobTally is one job's share, by reads, writes and metadata.
type jobTally struct {
	read, write, meta report.Op    // guarded by counts.waits
	files             [2]fileSet   // opRead, opWrite
	last              atomic.Int64 // Unix seconds of the last operation
}

const (
	// keepJob is how long a job without I/O stays in the reports.
	keepJob = time.Hour
	// maxJobs bounds the jobs of one compute node; further ones count as no job.
	maxJobs = 1024
	// callerFor is how long a process keeps the job it was found in; a process number is not used
	// again as soon as that.
	callerFor  = 3 * time.Second
	maxCallers = 4096
)

// counts is everything the mount counts.
type counts struct {
	started time.Time

	mu      sync.RWMutex // guards the maps
	jobs    map[topology.JobID]*jobTally
	callers map[uint32]callerJob

	// waits guards underWay and the sums: a report counts each operation once.
	waits    sync.Mutex
	ops      [opKinds]report.Op
	underWay map[*operation]struct{}
}

// operation is one that has no answer yet.
type operation struct {
	kind  opKind
	job   *jobTally // nil: its caller is not known
	begun time.Duration
}

type callerJob struct {
	job   *jobTally
	until time.Time
}

func (c *counts) start() {
	c.started = time.Now()
	c.jobs, c.callers = map[topology.JobID]*jobTally{}, map[uint32]callerJob{}
	c.underWay = map[*operation]struct{}{}
}

// begin counts an operation as under way, in total and for the job of its caller.
func (c *counts) begin(ctx context.Context, kind opKind) *operation {
	o := &operation{kind: kind, begun: time.Since(c.started)}
	if who, ok := fuse.FromContext(ctx); ok {
		o.job = c.jobOf(who.Pid, c.started.Add(o.begun))
	}
	c.waits.Lock()
	defer c.waits.Unlock()
	c.underWay[o] = struct{}{}
	return o
}

// end counts an operation that was answered.
func (c *counts) end(o *operation, n int, errno syscall.Errno) {
	c.waits.Lock()
	defer c.waits.Unlock()
	now := time.Since(c.started) // not before a report's, which would see its time shrink
	delete(c.underWay, o)
	count(&c.ops[o.kind], n, now-o.begun, errno)
	if o.job != nil {
		o.job.last.Store(c.started.Add(now).Unix())
		count(o.job.of(o.kind), n, now-o.begun, errno)
	}
}

func (c *counts) now() time.Time { return c.started.Add(time.Since(c.started)) }

// of is the sum that an operation adds to.
func (j *jobTally) of(kind opKind) *report.Op {
	switch kind {
	case opRead:
		return &j.read
	case opWrite:
		return &j.write
	}
	return &j.meta
}

// renew adds up what is under way. The caller holds waits, and mu to read.
func (c *counts) renew() {
	for k := range c.ops {
		c.ops[k].UnderWay = report.UnderWay{}
	}
	for _, j := range c.jobs {
		j.read.UnderWay, j.write.UnderWay, j.meta.UnderWay = report.UnderWay{}, report.UnderWay{}, report.UnderWay{}
	}
	now := time.Since(c.started)
	for o := range c.underWay {
		c.ops[o.kind].UnderWay.Add(now - o.begun)
		if o.job != nil {
			o.job.of(o.kind).UnderWay.Add(now - o.begun)
		}
	}
}

// jobOf finds the tally of the job that a process belongs to.
func (c *counts) jobOf(pid uint32, now time.Time) *jobTally {
	c.mu.RLock()
	known, ok := c.callers[pid]
	c.mu.RUnlock()
	if ok && now.Before(known.until) {
		return known.job
	}
	id := jobOfProcess(pid)
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.jobs[id]
	if j == nil {
		c.forget(now)
		if len(c.jobs) >= maxJobs {
			id = ""
		}
		if j = c.jobs[id]; j == nil {
			j = &jobTally{}
			c.jobs[id] = j
		}
	}
	if len(c.callers) >= maxCallers {
		clear(c.callers)
	}
	c.callers[pid] = callerJob{j, now.Add(callerFor)}
	return j
}

// forget drops jobs that have long done nothing; the caller holds mu.
func (c *counts) forget(now time.Time) {
	for id, j := range c.jobs {
		if now.Unix()-j.last.Load() > int64(keepJob/time.Second) {
			delete(c.jobs, id)
		}
	}
}

// fill copies the counts into a report.
func (c *counts) fill(r *report.Report) {
	c.waits.Lock()
	defer c.waits.Unlock()
	c.mu.RLock()
	defer c.mu.RUnlock()
	c.renew()
	r.Started, r.CountsUnderWay = c.started, true
	r.Ops = make(map[string]report.Op, opKinds)
	for k, o := range c.ops {
		if o.Count+o.UnderWay.Count > 0 {
			r.Ops[opNames[k]] = o
		}
	}
	r.Jobs = make(map[topology.JobID]report.Share, len(c.jobs))
	for id, j := range c.jobs {
		r.Jobs[id] = report.Share{Read: j.read, Write: j.write, Meta: j.meta,
			ReadFiles: j.files[opRead].files(), WrittenFiles: j.files[opWrite].files()}
	}
}

// slurmCgroup is where Slurm has a job's control group, with either plug-in: version 1 /slurm/uid_N/job_N, version 2
// /system.slice/slurmstepd.scope/job_N. It is read from the top: below their own slice users name groups as they like.
var slurmCgroup = regexp.MustCompile(`(?m)^[0-9]+:[^:\n]*:(?:/\.\.)*` +
	`(?:/slurm[^/\n]*/uid_[0-9]+|/[^/\n]*\.slice/[^/\n]*slurmstepd\.scope)/job_([0-9]+)(?:/|$)`)

// maxEnviron bounds what is read of a process's environment, bytes.
const maxEnviron = 256 << 10

// jobOfProcess finds a process's Slurm job by its control group, else by SLURM_JOB_ID in the
// environment it was started with; "" where it has none or is gone. A user may write any number there: it counts where
// Slurm runs that job above the process, or the process is root's.
func jobOfProcess(pid uint32) topology.JobID {
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)); err == nil {
		if m := slurmCgroup.FindSubmatch(b); m != nil {
			return topology.JobID(m[1])
		}
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return ""
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, maxEnviron))
	id := jobOfEnviron(b)
	if id != "" && !ownedByRoot("/proc", pid) && !belowStep("/proc", pid, id) {
		return ""
	}
	return id
}

// maxAncestors bounds how far up the step of a job is looked for.
const maxAncestors = 256

// belowStep says whether a process runs below the program of root's with which Slurm runs a job's steps on a node.
func belowStep(proc string, pid uint32, id topology.JobID) bool {
	for range maxAncestors {
		stat, err := os.ReadFile(fmt.Sprintf("%s/%d/stat", proc, pid))
		if err != nil {
			return false
		}
		end := bytes.LastIndexByte(stat, ')') // the name before it may hold anything
		var state string
		if _, err := fmt.Sscan(string(stat[end+1:]), &state, &pid); err != nil || pid <= 1 {
			return false
		}
		title, err := os.ReadFile(fmt.Sprintf("%s/%d/cmdline", proc, pid))
		if err == nil && bytes.HasPrefix(title, []byte("slurmstepd: ["+string(id)+".")) && ownedByRoot(proc, pid) {
			return true
		}
	}
	return false
}

func ownedByRoot(proc string, pid uint32) bool {
	info, err := os.Stat(fmt.Sprintf("%s/%d", proc, pid))
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid == 0
}

func jobOfEnviron(b []byte) topology.JobID {
	for _, v := range bytes.Split(b, []byte{0}) {
		if id, ok := bytes.CutPrefix(v, []byte("SLURM_JOB_ID=")); ok && len(id) <= 64 {
			return topology.JobID(id)
		}
	}
	return ""
}
