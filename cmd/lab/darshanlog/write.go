package darshanlog

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"fairway/collector/topology"
)

// Job is what a log says of its job.
type Job struct {
	ID         topology.JobID // a number
	UID        int
	Exe        string // with arguments
	FS         string // type of the file system with the files
	MountPoint string
}

// FileName is how Darshan's runtime would call the log.
func (j *Job) FileName(user, exe string, began time.Time) string {
	began = began.Local()
	midnight := time.Date(began.Year(), began.Month(), began.Day(), 0, 0, 0, 0, began.Location())
	return fmt.Sprintf("%s_%s_id%s-%s_%d-%d-%d-%d_1.darshan", user, exe, j.ID, j.ID, int(began.Month()), began.Day(),
		int(began.Sub(midnight).Seconds()), recordID(exe)%1e9)
}

// Began is when the first rank began.
func Began(ranks []Rank) time.Time {
	first := slices.MinFunc(ranks, func(a, b Rank) int { return cmp.Compare(a.Start, b.Start) })
	return time.Unix(0, int64(first.Start*1e9))
}

// The layout of a log of format 3.41, as Darshan 3.4 and 3.5 write it.
const (
	version     = "3.41"
	magic       = 6567223
	headerBytes = 1328
	modules     = 64
	posix       = 1 // number of the module
	posixFormat = 4
	notesBytes  = 1024
)

// Write writes the log of a job whose ranks did that.
func Write(w io.Writer, j *Job, ranks []Rank) error {
	if len(ranks) == 0 {
		return errors.New("no rank left anything")
	}
	id, err := strconv.ParseInt(string(j.ID), 10, 64)
	if err != nil {
		return fmt.Errorf("job ID %q: not a number", j.ID)
	}
	begin, end := ranks[0].Start, ranks[0].End
	names := map[string]bool{}
	for i := range ranks {
		begin, end = min(begin, ranks[i].Start), max(end, ranks[i].End)
		for name := range ranks[i].Files {
			names[name] = true
		}
	}
	var b, table, records []byte
	b = appendInts(b, int64(j.UID), int64(begin), nanos(begin), int64(end), nanos(end), int64(ranks[0].Ranks), id)
	notes := make([]byte, notesBytes)
	copy(notes, "lib_ver=3.4.1\n")
	b = append(append(b, notes...), j.Exe+"\n"+j.FS+"\t"+j.MountPoint+"\x00"...)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		full := path.Join(j.MountPoint, name)
		table = append(appendInts(table, int64(recordID(full))), full+"\x00"...)
		for i := range ranks {
			if f := ranks[i].Files[name]; f != nil {
				records = f.append(records, recordID(full), ranks[i].Rank, begin)
			}
		}
	}
	return writeRegions(w, b, table, records)
}

// writeRegions writes the header and the three regions.
func writeRegions(w io.Writer, job, names, records []byte) error {
	var body bytes.Buffer
	type place struct{ off, length int }
	var places []place
	for _, region := range [][]byte{job, names, records} {
		off := headerBytes + body.Len()
		z := zlib.NewWriter(&body)
		if _, err := z.Write(region); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		places = append(places, place{off, headerBytes + body.Len() - off})
	}
	head := append(make([]byte, 0, headerBytes), version+"\x00\x00\x00\x00"...)
	head = appendInts(head, magic, 0, 0) // zlib; no module is truncated
	head = appendInts(head, int64(places[1].off), int64(places[1].length))
	for m := range modules {
		if m == posix && len(records) > 0 {
			head = appendInts(head, int64(places[2].off), int64(places[2].length))
			continue
		}
		head = appendInts(head, 0, 0)
	}
	for m := range modules {
		v := uint32(0)
		if m == posix {
			v = posixFormat
		}
		head = binary.LittleEndian.AppendUint32(head, v)
	}
	_, err := w.Write(append(head, body.Bytes()...))
	return err
}

// recordID is the number of a file, the same for all ranks.
func recordID(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

func nanos(t float64) int64 {
	_, part := math.Modf(t)
	return int64(part * 1e9)
}

func appendInts(b []byte, values ...int64) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// append adds the file's record of the POSIX module. What a program without MPI cannot know stays 0.
func (f *File) append(b []byte, id uint64, rank int, begin float64) []byte {
	const memAlignment = 8
	r, w := &f.Read, &f.Write
	b = appendInts(b, int64(id), int64(rank), f.Opens, 0, 0, r.Count, w.Count, 0, f.Stats, 0, 0, 0, 0, 0, 0, 0o644,
		r.Bytes, w.Bytes, r.MaxByte, w.MaxByte, r.Consec, w.Consec, r.Seq, w.Seq, f.RWSwitches, 0, memAlignment,
		f.NotAligned, fileAlignment, r.SlowestSize, w.SlowestSize)
	b = appendInts(appendInts(b, r.Sizes[:]...), w.Sizes[:]...)
	b = appendCommon(appendCommon(b, f.Strides), f.Sizes)
	b = appendInts(b, 0, 0, 0, 0) // the fastest and the slowest of all ranks
	at := func(t float64) float64 {
		if t == 0 {
			return 0
		}
		return max(t-begin, 1e-6)
	}
	for _, v := range []float64{at(f.Open.Start), at(r.Span.Start), at(w.Span.Start), at(f.Close.Start), at(f.Open.End),
		at(r.Span.End), at(w.Span.End), at(f.Close.End), r.Seconds, w.Seconds, f.MetaSeconds, r.Slowest, w.Slowest,
		0, 0, 0, 0} {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

// appendCommon adds the four commonest values, and then how often each was there.
func appendCommon(b []byte, counts map[int64]int64) []byte {
	values := slices.SortedFunc(maps.Keys(counts), func(x, y int64) int {
		return cmp.Or(cmp.Compare(counts[y], counts[x]), cmp.Compare(x, y))
	})
	var value, often [4]int64
	for i := range min(len(values), len(value)) {
		value[i], often[i] = values[i], counts[values[i]]
	}
	return appendInts(appendInts(b, value[:]...), often[:]...)
}

// Collect makes the log of a job from what its ranks left in a folder, in that folder; "" where they left nothing.
func Collect(dir string, of Job) (file string, err error) {
	ranks, err := Gather(dir, of.ID)
	if err != nil || len(ranks) == 0 {
		return "", err
	}
	var text bytes.Buffer
	if err := Write(&text, &of, ranks); err != nil {
		return "", err
	}
	file = filepath.Join(dir, of.FileName("root", of.Exe, Began(ranks)))
	return file, os.WriteFile(file, text.Bytes(), 0o600)
}
