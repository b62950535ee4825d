package logs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strconv"

	"fairway/collector/logs/darshan"
)

// member is one field of a JSON object; a nil value leaves it out.
type member struct {
	name  string
	value any
}

// object is a JSON object whose fields are written in their order.
type object []member

// MarshalJSON leaves out the fields without a value.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for _, m := range o {
		if m.value == nil {
			continue
		}
		text, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(strconv.AppendQuote(b, m.name), ':'), text...)
	}
	return append(b, '}'), nil
}

// darshanJSON prints one log as one line of JSON, file by file: a log of many files is never held as text.
func darshanJSON(w *bufio.Writer, name string, in io.ReaderAt, size int64) error {
	log, err := darshan.Read(in, size)
	if log == nil {
		return err
	}
	head, headErr := json.Marshal(logDocument(name, log, err))
	if headErr != nil {
		return headErr
	}
	w.Write(bytes.TrimSuffix(head, []byte("}")))
	w.WriteString(`,"files":[`)
	for i := range log.Files {
		if err := element(w, i, fileDocument(&log.Files[i])); err != nil {
			return err
		}
	}
	w.WriteString(`]`)
	for i, h := range log.Heatmaps {
		if i == 0 {
			w.WriteString(`,"heatmaps":[`)
		}
		if err := element(w, i, object{{"api", h.API}, {"rank", h.Rank}, {"bin_seconds", seconds(h.WidthSeconds)},
			{"read", h.Read}, {"write", h.Write}}); err != nil {
			return err
		}
		if i == len(log.Heatmaps)-1 {
			w.WriteString(`]`)
		}
	}
	w.WriteString("}\n")
	return err
}

// element writes the i-th element of a list. The writer keeps its first error.
func element(w *bufio.Writer, i int, v any) error {
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

// logDocument is the document of one log but for its files, which follow one by one.
func logDocument(name string, log *darshan.Log, bad error) object {
	j := &log.Job
	order, mounts, modules, derived := "little", log.Mounts, []object{}, map[string]object{}
	if log.BigEndian {
		order = "big"
	}
	if mounts == nil {
		mounts = []darshan.Mount{}
	}
	for _, m := range log.Modules {
		modules = append(modules, object{{"module", m.Module.String()}, {"version", set(m.Version)},
			{"compressed_bytes", m.Length}, {"partial", set(m.Partial)}, {"read", m.Read}})
	}
	for i := range log.Totals {
		t := &log.Totals[i]
		var perSec any
		if rate, ok := t.BytesPerSec(); ok {
			perSec = seconds(rate)
		}
		derived[t.Module.String()] = object{{"files", t.Files}, {"bytes_read", t.BytesRead},
			{"bytes_written", t.BytesWritten}, {"slowest_rank", t.SlowestRank},
			{"slowest_rank_seconds", seconds(t.SlowestRankSeconds)}, {"shared_seconds", seconds(t.SharedSeconds)},
			{"io_seconds", seconds(t.IOSeconds())}, {"bytes_per_sec", perSec}}
	}
	var errs any
	if bad != nil {
		errs = []string{bad.Error()}
	}
	return object{{"log", name}, {"version", log.Version}, {"byte_order", order},
		{"compression", log.Compression.String()},
		{"job", object{{"uid", j.UID}, {"jobid", j.JobID}, {"nprocs", j.NProcs}, {"start", j.Start}, {"end", j.End},
			{"run_seconds", j.RunSeconds}, {"exe", j.Exe}, {"exe_truncated", set(j.ExeTruncated)},
			{"metadata", some(j.Metadata)}}},
		{"mounts", mounts}, {"modules", modules}, {"derived", derived}, {"notes", some(log.Notes())}, {"errors", errs}}
}

// fileDocument is one file. Ids have 64 bits, more than a JSON number keeps: they are text.
func fileDocument(f *darshan.File) object {
	var lustre []object
	for i := range f.Components {
		c := &f.Components[i]
		pattern, flags := "", ""
		if c.Pattern >= 0 {
			pattern, flags = c.PatternName(), c.FlagNames()
		}
		var offset any // as asked for, -1 for none
		if c.StripeOffset != nil {
			offset = *c.StripeOffset
		}
		lustre = append(lustre, object{{"stripe_size", c.StripeSize}, {"stripe_count", c.StripeCount},
			{"stripe_offset", offset}, {"pattern", set(pattern)}, {"flags", set(flags)},
			{"extent_start", c.ExtentStart}, {"extent_end", c.ExtentEnd}, {"pool", set(c.Pool)}, {"osts", c.OSTs}})
	}
	return object{{"id", strconv.FormatUint(f.ID, 10)}, {"name", set(f.Name)}, {"mount", set(f.Mount)},
		{"fs", set(f.FS)}, {"posix", ioDocument(f.POSIX)}, {"mpiio", ioDocument(f.MPIIO)},
		{"stdio", ioDocument(f.STDIO)}, {"lustre", some(lustre)}, {"osts", some(f.OSTs())}}
}

// ioDocument is what went through one interface: calls by kind, bytes, how much of them in order and in requests of
// which size, and times.
func ioDocument(o *darshan.IO) any {
	if o == nil {
		return nil
	}
	small := count(o.SmallReads())
	var read, write any
	if small != nil {
		read, write = o.SizeRead[:], o.SizeWrite[:]
	}
	return object{{"ranks", o.Ranks}, {"shared", o.Shared}, {"opens", count(o.Opens)}, {"reads", count(o.Reads)},
		{"writes", count(o.Writes)}, {"seeks", count(o.Seeks)}, {"stats", count(o.Stats)}, {"syncs", count(o.Syncs)},
		{"collective_ops", count(o.CollectiveOps)}, {"bytes_read", count(o.BytesRead)},
		{"bytes_written", count(o.BytesWritten)}, {"consec_reads", count(o.ConsecReads)},
		{"consec_writes", count(o.ConsecWrites)}, {"seq_reads", count(o.SeqReads)}, {"seq_writes", count(o.SeqWrites)},
		{"small_reads", small}, {"small_writes", count(o.SmallWrites())}, {"size_read", read}, {"size_write", write},
		{"open", span(o.Open)}, {"read", span(o.Read)}, {"write", span(o.Write)}, {"close", span(o.Close)},
		{"read_seconds", seconds(o.ReadSeconds)}, {"write_seconds", seconds(o.WriteSeconds)},
		{"meta_seconds", seconds(o.MetaSeconds)}, {"slowest_rank_seconds", seconds(o.SlowestSeconds)}}
}

// count and seconds leave out what is not recorded.
func count(n int64) any {
	if n < 0 {
		return nil
	}
	return n
}

func seconds(v float64) any {
	if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return v
}

// set leaves out what is empty, some a list without elements.
func set[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}

func some[T any](list []T) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

// span leaves out operations that never happened, and of the others the seconds since job start that are not known.
func span(s darshan.Span) any {
	start, end := seconds(s.Start), seconds(s.End)
	if s.Start == 0 && s.End == 0 || start == nil && end == nil {
		return nil
	}
	return object{{"start", start}, {"end", end}}
}
