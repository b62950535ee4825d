package logread

import (
	"io"
	"math"
	"path"
	"strconv"
	"strings"

	"fairway/collector/logs/darshan"
	"fairway/tsdb/history/iolog"
)

// Darshan reads a Darshan log of any known version into a job, its files and their names. Bytes and
// requests are those of POSIX and stdio; MPI-IO's stand in where a file has neither, for it reads and
// writes through POSIX.
func Darshan(in *io.SectionReader, id int64) (*iolog.Log, error) {
	from, err := darshan.Read(in, in.Size())
	if from == nil || err != nil && len(from.Files) == 0 {
		return nil, err
	}
	j := jobOf(&from.Header, id)
	l := &iolog.Log{Kind: "darshan"}
	for i := range from.Files {
		f := &from.Files[i]
		if f.Pseudo() {
			continue
		}
		row := fileOf(f, &j)
		add(&j, &row)
		l.JobFiles = append(l.JobFiles, row)
		l.Files = append(l.Files, iolog.File{ID: row.File, Path: f.Name, Mount: f.Mount, FS: f.FS})
	}
	if err != nil {
		l.Problem, j.Partial = err.Error(), true
	}
	l.Jobs = []iolog.Job{j}
	return l, nil
}

func jobOf(h *darshan.Header, id int64) iolog.Job {
	exe, _, _ := strings.Cut(h.Job.Exe, " ")
	j := iolog.Job{
		Log: id, JobID: strconv.FormatInt(h.Job.JobID, 10), UID: h.Job.UID, App: path.Base(exe), Exe: h.Job.Exe,
		Procs: h.Job.NProcs,
		Start: h.Job.Start.UTC(), End: h.Job.End.UTC(), RunSeconds: h.Job.RunSeconds, SizeReads: make([]int64, 10),
		SizeWrites: make([]int64, 10),
	}
	for _, m := range h.Modules {
		j.Partial = j.Partial || m.Partial
		if !m.Read {
			j.Skipped = append(j.Skipped, m.Module.String())
		}
	}
	return j
}

// fileOf makes a file's row, and counts its requests by size into the job.
func fileOf(f *darshan.File, j *iolog.Job) iolog.JobFile {
	none := math.NaN()
	row := iolog.JobFile{
		Log: j.Log, File: int64(f.ID), JobID: j.JobID, ReadStart: none, ReadEnd: none, WriteStart: none, WriteEnd: none,
		UsesPosix: f.POSIX != nil, UsesStdio: f.STDIO != nil, UsesMPIIO: f.MPIIO != nil,
		UsesCollective: f.MPIIO != nil && f.MPIIO.CollectiveOps > 0,
	}
	layout(&row, f.Components)
	if p := f.POSIX; p != nil {
		row.PosixReads, row.PosixWrites = known(p.Reads), known(p.Writes)
		row.SeqReads, row.SeqWrites, row.ConsecReads, row.ConsecWrites = known(p.SeqReads), known(p.SeqWrites),
			known(p.ConsecReads), known(p.ConsecWrites)
		row.SmallReads, row.SmallWrites = known(p.SmallReads()), known(p.SmallWrites())
	}
	interfaces := []*darshan.IO{f.POSIX, f.STDIO}
	if f.POSIX == nil && f.STDIO == nil {
		interfaces = []*darshan.IO{f.MPIIO}
	}
	for _, o := range interfaces {
		if o == nil {
			continue
		}
		row.Procs = max(row.Procs, o.Ranks)
		row.Opens += known(o.Opens)
		row.Reads += known(o.Reads)
		row.Writes += known(o.Writes)
		row.BytesRead += known(o.BytesRead)
		row.BytesWritten += known(o.BytesWritten)
		row.ReadSeconds += max(0, o.ReadSeconds)
		row.WriteSeconds += max(0, o.WriteSeconds)
		row.MetaSeconds += max(0, o.MetaSeconds)
		j.MetaOps += known(o.Opens) + known(o.Stats) + known(o.Syncs)
		widen(&row.ReadStart, &row.ReadEnd, o.Read)
		widen(&row.WriteStart, &row.WriteEnd, o.Write)
		for bin := range j.SizeReads {
			j.SizeReads[bin] += known(o.SizeRead[bin])
			j.SizeWrites[bin] += known(o.SizeWrite[bin])
		}
	}
	return row
}

// known is 0 for a counter that the log's version does not have.
func known(n int64) int64 { return max(0, n) }

func widen(start, end *float64, s darshan.Span) {
	if !s.Known() || s.End < s.Start {
		return
	}
	if math.IsNaN(*start) {
		*start, *end = s.Start, s.End
		return
	}
	*start, *end = min(*start, s.Start), max(*end, s.End)
}

// layout takes the targets of the components that exist, and the first one's striping.
func layout(row *iolog.JobFile, components []darshan.Component) {
	if components == nil {
		return
	}
	var count int64
	row.OSTs = []int32{}
	for i := range components {
		c := &components[i]
		if !c.Instantiated() {
			continue
		}
		if row.StripeSize == nil {
			row.StripeSize, row.StripeOffset = &c.StripeSize, c.StripeOffset
		}
		count += c.StripeCount
		for _, ost := range c.OSTs {
			if ost >= 0 && ost <= math.MaxInt32 {
				row.OSTs = append(row.OSTs, int32(ost))
			}
		}
	}
	row.StripeCount = &count
}

// add sums a file into its job.
func add(j *iolog.Job, f *iolog.JobFile) {
	if f.Procs > 0 {
		j.Files++
	}
	if f.Procs > 1 {
		j.SharedFiles++
	}
	if f.Procs > 0 && f.Procs == j.Procs {
		j.FullFiles++
	}
	for _, c := range []struct {
		to   *int64
		from int64
	}{
		{&j.BytesRead, f.BytesRead}, {&j.BytesWritten, f.BytesWritten}, {&j.Reads, f.Reads}, {&j.Writes, f.Writes},
		{&j.PosixReads, f.PosixReads}, {&j.PosixWrites, f.PosixWrites}, {&j.SeqReads, f.SeqReads},
		{&j.SeqWrites, f.SeqWrites},
		{&j.ConsecReads, f.ConsecReads}, {&j.ConsecWrites, f.ConsecWrites},
	} {
		*c.to += c.from
	}
	j.MetaSeconds += f.MetaSeconds
	j.UsesPosix = j.UsesPosix || f.UsesPosix
	j.UsesStdio = j.UsesStdio || f.UsesStdio
	j.UsesMPIIO = j.UsesMPIIO || f.UsesMPIIO
	j.UsesCollective = j.UsesCollective || f.UsesCollective
}
