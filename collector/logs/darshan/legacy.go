package darshan

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/klauspost/compress/gzip"
)

// legacyReader reads formats 1.21 to 2.06: one compressed stream of a job and then records that count
// POSIX, stdio and MPI-IO together and keep only the end of each path.
type legacyReader struct {
	dec     decoder
	form    *legacyForm
	counted *countingReader
	suffix  string
}

// legacyForm is what depends on a 1.x or 2.x format's version.
type legacyForm struct {
	version   string
	metadata  int // bytes of key=value notes (2.x)
	jobBytes  int64
	recBytes  int
	suffixAt  int
	suffixLen int
	old       bool // 1.x: 32-bit, big-endian, no job id
	layout
}

// legacyForms lists the formats. Counters that 1.x logs do not have are those named here.
func legacyForms() []legacyForm {
	c := fixed[Combined]
	ints := func(missing ...string) []int { return places(c.ints, missing) }
	floats := func(missing ...string) []int { return places(c.floats, missing) }
	device := []string{"CP_DEVICE", "CP_SIZE_AT_OPEN"}
	rank := []string{"CP_FASTEST_RANK", "CP_FASTEST_RANK_BYTES", "CP_SLOWEST_RANK", "CP_SLOWEST_RANK_BYTES"}
	nc := []string{"CP_INDEP_NC_OPENS", "CP_COLL_NC_OPENS", "CP_HDF5_OPENS", "CP_MAX_READ_TIME_SIZE",
		"CP_MAX_WRITE_TIME_SIZE"}
	rankTime := []string{"CP_F_FASTEST_RANK_TIME", "CP_F_SLOWEST_RANK_TIME", "CP_F_VARIANCE_RANK_TIME",
		"CP_F_VARIANCE_RANK_BYTES"}
	maxTime := []string{"CP_F_MAX_READ_TIME", "CP_F_MAX_WRITE_TIME"}
	old := func(version string, ints, floats []int) legacyForm {
		l := layout{ints: ints, floats: floats, dropIf: -1}
		return legacyForm{version, 0, 1024, l.size() + 16, l.size(), 12, true, l}
	}
	forms := []legacyForm{
		old("1.21", ints(slices.Concat(nc, device, rank)...), floats(slices.Concat(rankTime, maxTime)...)),
		old("1.22", ints(slices.Concat(device, rank)...), floats(rankTime...)),
		old("1.23", ints(rank...), floats(rankTime...)),
		old("1.24", ints(rank...), floats(rankTime...)),
	}
	for v, metadata := range []int{0, 64, 64, 64, 1024, 1024, 1024} {
		job := int64(1024)
		if v >= 4 {
			job = 4096
		}
		forms = append(forms, legacyForm{fmt.Sprintf("2.0%d", v), metadata, job, 1328, 16, 16, false,
			layout{skip: 16, ints: ints(), floats: floats(), dropIf: -1}})
	}
	return forms
}

func combinedCounters() *counters {
	names := named("CP_", "INDEP_OPENS", "COLL_OPENS", "INDEP_READS", "INDEP_WRITES", "COLL_READS", "COLL_WRITES",
		"SPLIT_READS", "SPLIT_WRITES", "NB_READS", "NB_WRITES", "SYNCS", "POSIX_READS", "POSIX_WRITES", "POSIX_OPENS",
		"POSIX_SEEKS", "POSIX_STATS", "POSIX_MMAPS", "POSIX_FREADS", "POSIX_FWRITES", "POSIX_FOPENS", "POSIX_FSEEKS",
		"POSIX_FSYNCS", "POSIX_FDSYNCS", "INDEP_NC_OPENS", "COLL_NC_OPENS", "HDF5_OPENS", "COMBINER_NAMED",
		"COMBINER_DUP",
		"COMBINER_CONTIGUOUS", "COMBINER_VECTOR", "COMBINER_HVECTOR_INTEGER", "COMBINER_HVECTOR", "COMBINER_INDEXED",
		"COMBINER_HINDEXED_INTEGER", "COMBINER_HINDEXED", "COMBINER_INDEXED_BLOCK", "COMBINER_STRUCT_INTEGER",
		"COMBINER_STRUCT", "COMBINER_SUBARRAY", "COMBINER_DARRAY", "COMBINER_F90_REAL", "COMBINER_F90_COMPLEX",
		"COMBINER_F90_INTEGER", "COMBINER_RESIZED", "HINTS", "VIEWS", "MODE", "BYTES_READ", "BYTES_WRITTEN",
		"MAX_BYTE_READ", "MAX_BYTE_WRITTEN", "CONSEC_READS", "CONSEC_WRITES", "SEQ_READS", "SEQ_WRITES", "RW_SWITCHES",
		"MEM_NOT_ALIGNED", "MEM_ALIGNMENT", "FILE_NOT_ALIGNED", "FILE_ALIGNMENT", "MAX_READ_TIME_SIZE",
		"MAX_WRITE_TIME_SIZE", "SIZE_READ_*", "SIZE_WRITE_*", "SIZE_READ_AGG_*", "SIZE_WRITE_AGG_*", "EXTENT_READ_*",
		"EXTENT_WRITE_*", "STRIDE1_STRIDE", "STRIDE2_STRIDE", "STRIDE3_STRIDE", "STRIDE4_STRIDE", "STRIDE1_COUNT",
		"STRIDE2_COUNT", "STRIDE3_COUNT", "STRIDE4_COUNT", "ACCESS1_ACCESS", "ACCESS2_ACCESS", "ACCESS3_ACCESS",
		"ACCESS4_ACCESS", "ACCESS1_COUNT", "ACCESS2_COUNT", "ACCESS3_COUNT", "ACCESS4_COUNT", "DEVICE", "SIZE_AT_OPEN",
		"FASTEST_RANK", "FASTEST_RANK_BYTES", "SLOWEST_RANK", "SLOWEST_RANK_BYTES")
	return &counters{ints: names, floats: named("CP_F_", "OPEN_TIMESTAMP", "READ_START_TIMESTAMP",
		"WRITE_START_TIMESTAMP",
		"CLOSE_TIMESTAMP", "READ_END_TIMESTAMP", "WRITE_END_TIMESTAMP", "POSIX_READ_TIME", "POSIX_WRITE_TIME",
		"POSIX_META_TIME", "MPI_META_TIME", "MPI_READ_TIME", "MPI_WRITE_TIME", "MAX_READ_TIME", "MAX_WRITE_TIME",
		"FASTEST_RANK_TIME", "SLOWEST_RANK_TIME", "VARIANCE_RANK_TIME", "VARIANCE_RANK_BYTES")}
}

// errWrapped is a log of formats 3.x that somebody compressed once more.
var errWrapped = errors.New("compressed twice")

// maxWrapped bounds such a log, which has to be decompressed as a whole: its parts are read by offset.
const maxWrapped = 64 << 20

// unwrap replaces the input by what it decompresses to.
func (r *Reader) unwrap() error {
	r.buf.Reset(io.NewSectionReader(r.in, 0, r.size))
	var in io.Reader = bzip2.NewReader(r.buf)
	if r.head.Compression != Bzip2 {
		z, err := gzip.NewReader(r.buf)
		if err != nil {
			return err
		}
		in = z
	}
	b, err := io.ReadAll(io.LimitReader(in, maxWrapped+1))
	if err != nil {
		return err
	}
	if len(b) > maxWrapped {
		return fmt.Errorf("%w: a log compressed once more that has over %d bytes; decompress it first", ErrTooLarge,
			maxWrapped)
	}
	r.in, r.size, r.head = bytes.NewReader(b), int64(len(b)), Header{}
	return nil
}

// openLegacy recognises a file that is compressed as a whole; ok says that it is one of formats 1.x and 2.x.
func (r *Reader) openLegacy() (ok bool, err error) {
	b := make([]byte, 8)
	if n, _ := r.in.ReadAt(b, 0); n < len(b) {
		return false, nil
	}
	var in io.Reader
	counted := &countingReader{in: io.NewSectionReader(r.in, 0, r.size)}
	r.buf.Reset(counted)
	l := &legacyReader{counted: counted}
	switch {
	case b[0] == 0x1f && b[1] == 0x8b:
		z, err := gzip.NewReader(r.buf)
		if err != nil {
			return true, err
		}
		in = z
	case string(b[:3]) == "BZh":
		in = bzip2.NewReader(r.buf)
		r.head.Compression = Bzip2
	case isLegacy(versionText(b)): // decompressed by somebody
		in = r.buf
		r.head.Compression = None
	default:
		return false, nil
	}
	l.dec = decoder{in: bufio.NewReader(bounded(in, r.size)), rec: &r.record, order: binary.BigEndian}
	return true, l.readJob(r)
}

func isLegacy(version string) bool {
	return version < "3" && slices.ContainsFunc(legacyForms(), func(f legacyForm) bool { return f.version == version })
}

type countingReader struct {
	in io.Reader
	n  int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}

// readJob reads the job of a 1.x or 2.x log.
func (l *legacyReader) readJob(r *Reader) error {
	d := &l.dec
	b, err := d.read(56)
	if err != nil {
		return fmt.Errorf("%w: decompresses to %d bytes: %w", ErrNotDarshan, d.at, err)
	}
	version := versionText(b)
	forms := legacyForms()
	i := slices.IndexFunc(forms, func(f legacyForm) bool { return f.version == version })
	if i < 0 {
		if _, err := findShape(version); err != nil {
			return err
		}
		return errWrapped
	}
	l.form = &forms[i]
	r.head.Version = version
	head := bytes.Clone(b)
	rest, err := d.more(int(l.form.jobBytes) - len(head))
	if err != nil {
		return fmt.Errorf("job data: %w", err)
	}
	text := rest
	if l.form.old {
		text = append(head[28:], rest...)
		r.head.BigEndian = true
		v := func(at int) int64 { return int64(int32(d.order.Uint32(head[at:]))) }
		err = r.head.Job.setLegacy(v(12), v(24), 0, v(16), v(20))
	} else {
		if int64(binary.LittleEndian.Uint64(head[8:])) == magic {
			d.order = binary.LittleEndian
		} else if int64(binary.BigEndian.Uint64(head[8:])) != magic {
			return fmt.Errorf("%w: magic number %x at byte 8", ErrNotDarshan, head[8:16])
		}
		r.head.BigEndian = d.order == binary.BigEndian
		v := func(i int) int64 { return d.int(head[8*i:]) }
		err = r.head.Job.setLegacy(v(2), v(5), v(6), v(3), v(4))
		r.head.Job.setMetadata(rest[:l.form.metadata])
		text = rest[l.form.metadata:]
	}
	r.head.setText(text, 3)
	r.legacy = l
	r.head.Modules = []ModuleInfo{{Module: Combined, Length: r.size, Read: true}}
	c := fixed[Combined]
	d.rec.Module = Combined
	d.rec.Counters, d.rec.FCounters = make([]int64, len(c.ints)), make([]float64, len(c.floats))
	return err
}

// setLegacy takes a job's numbers, with times in whole seconds.
func (j *Job) setLegacy(uid, procs, id, start, end int64) error {
	j.UID, j.NProcs, j.JobID = uid, procs, id
	err := j.setTimes(start, 0, end, 0)
	j.RunSeconds = j.End.Sub(j.Start).Seconds() + 1
	return err
}

// deviceMount finds the file system with a device number.
func (h *Header) deviceMount(device int64) (Mount, bool) {
	text := strconv.FormatInt(device, 10)
	for _, m := range h.Mounts {
		if m.device == text {
			return m, true
		}
	}
	return Mount{}, false
}

// each reads the records to the end of the stream.
func (l *legacyReader) each(f func(*Record) error) error {
	d := &l.dec
	for {
		at := d.at
		b, err := d.read(l.form.recBytes)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return &Error{"records", l.counted.n, at, err}
		}
		d.rec.ID = d.order.Uint64(b)
		if l.form.old {
			d.rec.Rank = int64(int32(d.order.Uint32(b[8:])))
		} else {
			d.rec.Rank = d.int(b[8:])
		}
		suffix, _, _ := bytes.Cut(b[l.form.suffixAt:l.form.suffixAt+l.form.suffixLen], []byte{0})
		l.suffix = string(suffix)
		d.fill(&l.form.layout, b)
		if err := f(d.rec); err != nil {
			return err
		}
	}
}
