package logs

import (
	"bufio"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"time"

	"fairway/collector/logs/darshan"
)

// logJSON is the document of one log but for its files, which follow one by one.
type logJSON struct {
	Log         string                 `json:"log"`
	Version     string                 `json:"version"`
	ByteOrder   string                 `json:"byte_order"`
	Compression string                 `json:"compression"`
	Job         jobJSON                `json:"job"`
	Mounts      []darshan.Mount        `json:"mounts"`
	Modules     []moduleJSON           `json:"modules"`
	Derived     map[string]derivedJSON `json:"derived"`
	Notes       []string               `json:"notes,omitempty"`
	Errors      []string               `json:"errors,omitempty"`
}

type jobJSON struct {
	UID          int64          `json:"uid"`
	JobID        int64          `json:"jobid"`
	NProcs       int64          `json:"nprocs"`
	Start        time.Time      `json:"start"`
	End          time.Time      `json:"end"`
	RunSeconds   float64        `json:"run_seconds"`
	Exe          string         `json:"exe"`
	ExeTruncated bool           `json:"exe_truncated,omitempty"`
	Metadata     []darshan.Note `json:"metadata,omitempty"`
}

type moduleJSON struct {
	Module  string `json:"module"`
	Version uint32 `json:"version,omitempty"`
	Bytes   int64  `json:"compressed_bytes"`
	Partial bool   `json:"partial,omitempty"`
	Read    bool   `json:"read"`
}

type derivedJSON struct {
	Files              int64    `json:"files"`
	BytesRead          int64    `json:"bytes_read"`
	BytesWritten       int64    `json:"bytes_written"`
	SlowestRank        int64    `json:"slowest_rank"`
	SlowestRankSeconds *float64 `json:"slowest_rank_seconds,omitempty"`
	SharedSeconds      *float64 `json:"shared_seconds,omitempty"`
	IOSeconds          *float64 `json:"io_seconds,omitempty"`
	BytesPerSec        *float64 `json:"bytes_per_sec,omitempty"`
}

// fileJSON is one file. Ids have 64 bits, more than a JSON number keeps: they are text.
type fileJSON struct {
	ID     string          `json:"id"`
	Name   string          `json:"name,omitempty"`
	Mount  string          `json:"mount,omitempty"`
	FS     string          `json:"fs,omitempty"`
	POSIX  *ioJSON         `json:"posix,omitempty"`
	MPIIO  *ioJSON         `json:"mpiio,omitempty"`
	STDIO  *ioJSON         `json:"stdio,omitempty"`
	Lustre []componentJSON `json:"lustre,omitempty"`
	OSTs   []int64         `json:"osts,omitempty"`
}

type ioJSON struct {
	Ranks  int64 `json:"ranks"`
	Shared bool  `json:"shared"`
	callsJSON
	bytesJSON
	timesJSON
}

// callsJSON counts calls by kind.
type callsJSON struct {
	Opens      *int64 `json:"opens,omitempty"`
	Reads      *int64 `json:"reads,omitempty"`
	Writes     *int64 `json:"writes,omitempty"`
	Seeks      *int64 `json:"seeks,omitempty"`
	Stats      *int64 `json:"stats,omitempty"`
	Syncs      *int64 `json:"syncs,omitempty"`
	Collective *int64 `json:"collective_ops,omitempty"`
}

// bytesJSON is what was moved, how much of it in order, and in requests of which size.
type bytesJSON struct {
	BytesRead    *int64  `json:"bytes_read,omitempty"`
	BytesWritten *int64  `json:"bytes_written,omitempty"`
	ConsecReads  *int64  `json:"consec_reads,omitempty"`
	ConsecWrites *int64  `json:"consec_writes,omitempty"`
	SeqReads     *int64  `json:"seq_reads,omitempty"`
	SeqWrites    *int64  `json:"seq_writes,omitempty"`
	SmallReads   *int64  `json:"small_reads,omitempty"`
	SmallWrites  *int64  `json:"small_writes,omitempty"`
	SizeRead     []int64 `json:"size_read,omitempty"`
	SizeWrite    []int64 `json:"size_write,omitempty"`
}

type timesJSON struct {
	Open          *spanJSON `json:"open,omitempty"`
	Read          *spanJSON `json:"read,omitempty"`
	Write         *spanJSON `json:"write,omitempty"`
	Close         *spanJSON `json:"close,omitempty"`
	ReadSeconds   *float64  `json:"read_seconds,omitempty"`
	WriteSeconds  *float64  `json:"write_seconds,omitempty"`
	MetaSeconds   *float64  `json:"meta_seconds,omitempty"`
	SlowestSecond *float64  `json:"slowest_rank_seconds,omitempty"`
}

// spanJSON has the seconds since job start that are known.
type spanJSON struct {
	Start *float64 `json:"start,omitempty"`
	End   *float64 `json:"end,omitempty"`
}

type componentJSON struct {
	StripeSize  int64   `json:"stripe_size"`
	StripeCount int64   `json:"stripe_count"`
	Offset      *int64  `json:"stripe_offset,omitempty"` // as asked for, -1 for none
	Pattern     string  `json:"pattern,omitempty"`
	Flags       string  `json:"flags,omitempty"`
	ExtentStart int64   `json:"extent_start"`
	ExtentEnd   int64   `json:"extent_end"`
	Pool        string  `json:"pool,omitempty"`
	OSTs        []int64 `json:"osts"`
}

type heatmapJSON struct {
	API        string   `json:"api"`
	Rank       int64    `json:"rank"`
	BinSeconds *float64 `json:"bin_seconds,omitempty"`
	Read       []int64  `json:"read"`
	Write      []int64  `json:"write"`
}

// darshanJSON prints one log as one line of JSON, file by file: a log of many files is never held as text.
func darshanJSON(out io.Writer, name string, in io.ReaderAt, size int64) error {
	log, err := darshan.Read(in, size)
	if log == nil {
		return err
	}
	w := bufio.NewWriterSize(out, 64<<10)
	head, headErr := json.Marshal(logDocument(name, log, err))
	if headErr != nil {
		return headErr
	}
	w.Write(head[:len(head)-1])
	w.WriteString(`,"files":[`)
	for i := range log.Files {
		if err := member(w, i, fileDocument(&log.Files[i])); err != nil {
			return err
		}
	}
	w.WriteString(`]`)
	if len(log.Heatmaps) > 0 {
		w.WriteString(`,"heatmaps":[`)
		for i, h := range log.Heatmaps {
			one := heatmapJSON{API: h.API, Rank: h.Rank, BinSeconds: seconds(h.WidthSeconds), Read: h.Read,
				Write: h.Write}
			if err := member(w, i, one); err != nil {
				return err
			}
		}
		w.WriteString(`]`)
	}
	w.WriteString("}\n")
	if flushErr := w.Flush(); flushErr != nil {
		return flushErr
	}
	return err
}

// member writes the i-th element of a list. The writer keeps its first error for Flush.
func member(w *bufio.Writer, i int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if i > 0 {
		w.WriteByte(',')
	}
	_, err = w.Write(b)
	return err
}

func logDocument(name string, log *darshan.Log, bad error) logJSON {
	j := &log.Job
	doc := logJSON{Log: name, Version: log.Version, ByteOrder: "little", Compression: log.Compression.String(),
		Job:    jobJSON{j.UID, j.JobID, j.NProcs, j.Start, j.End, j.RunSeconds, j.Exe, j.ExeTruncated, j.Metadata},
		Mounts: log.Mounts, Derived: map[string]derivedJSON{}, Notes: log.Notes()}
	if log.BigEndian {
		doc.ByteOrder = "big"
	}
	if doc.Mounts == nil {
		doc.Mounts = []darshan.Mount{}
	}
	doc.Modules = []moduleJSON{}
	for _, m := range log.Modules {
		doc.Modules = append(doc.Modules, moduleJSON{m.Module.String(), m.Version, m.Length, m.Partial, m.Read})
	}
	for i := range log.Totals {
		t := &log.Totals[i]
		d := derivedJSON{Files: t.Files, BytesRead: t.BytesRead, BytesWritten: t.BytesWritten,
			SlowestRank:        t.SlowestRank,
			SlowestRankSeconds: seconds(t.SlowestRankSeconds), SharedSeconds: seconds(t.SharedSeconds),
			IOSeconds: seconds(t.IOSeconds())}
		if rate, ok := t.BytesPerSec(); ok {
			d.BytesPerSec = seconds(rate)
		}
		doc.Derived[t.Module.String()] = d
	}
	if bad != nil {
		doc.Errors = []string{bad.Error()}
	}
	return doc
}

func fileDocument(f *darshan.File) fileJSON {
	doc := fileJSON{ID: strconv.FormatUint(f.ID, 10), Name: f.Name, Mount: f.Mount, FS: f.FS,
		POSIX: ioDocument(f.POSIX),
		MPIIO: ioDocument(f.MPIIO), STDIO: ioDocument(f.STDIO), OSTs: f.OSTs()}
	for i := range f.Components {
		c := &f.Components[i]
		one := componentJSON{StripeSize: c.StripeSize, StripeCount: c.StripeCount, Offset: c.StripeOffset,
			ExtentStart: c.ExtentStart,
			ExtentEnd:   c.ExtentEnd, Pool: c.Pool, OSTs: c.OSTs}
		if c.Pattern >= 0 {
			one.Pattern, one.Flags = c.PatternName(), c.FlagNames()
		}
		doc.Lustre = append(doc.Lustre, one)
	}
	return doc
}

func ioDocument(o *darshan.IO) *ioJSON {
	if o == nil {
		return nil
	}
	doc := &ioJSON{o.Ranks, o.Shared,
		callsJSON{count(o.Opens), count(o.Reads), count(o.Writes), count(o.Seeks), count(o.Stats), count(o.Syncs),
			count(o.CollectiveOps)},
		bytesJSON{BytesRead: count(o.BytesRead), BytesWritten: count(o.BytesWritten),
			ConsecReads: count(o.ConsecReads), ConsecWrites: count(o.ConsecWrites), SeqReads: count(o.SeqReads),
			SeqWrites: count(o.SeqWrites), SmallReads: count(o.SmallReads()), SmallWrites: count(o.SmallWrites())},
		timesJSON{span(o.Open), span(o.Read), span(o.Write), span(o.Close), seconds(o.ReadSeconds),
			seconds(o.WriteSeconds), seconds(o.MetaSeconds), seconds(o.SlowestSeconds)}}
	if doc.SmallReads != nil {
		doc.SizeRead, doc.SizeWrite = o.SizeRead[:], o.SizeWrite[:]
	}
	return doc
}

// count and seconds leave out what is not recorded.
func count(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

func seconds(v float64) *float64 {
	if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// span leaves out operations that never happened.
func span(s darshan.Span) *spanJSON {
	if s.Start == 0 && s.End == 0 {
		return nil
	}
	doc := &spanJSON{seconds(s.Start), seconds(s.End)}
	if doc.Start == nil && doc.End == nil {
		return nil
	}
	return doc
}
