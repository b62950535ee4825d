package darshan

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	magic         = 6567223
	smallHeader   = 360  // formats before 3.41
	largeHeader   = 1328 // format 3.41
	maxJobBytes   = 4096
	maxModVersion = 16
)

// section is the place of one compressed region in the file.
type section struct{ off, length int64 }

// shape is what depends on the log's format version.
type shape struct {
	version            string
	header             int64
	partial            int // offset of the flags of truncated modules
	names, mods, modVs int // offsets of the name region, the module regions and their versions
	slots              int
	nanos              bool // the job's times have nanoseconds
	lengthNames        bool // names are stored with a length instead of a final NUL
	absent             []Module
}

var shapes = [...]shape{
	{"3.00", smallHeader, 20, 24, 40, 296, 16, false, true, []Module{H5D, PnetCDFVar}},
	{"3.10", smallHeader, 20, 24, 40, 296, 16, false, false, []Module{H5D, PnetCDFVar}},
	{"3.20", smallHeader, 20, 24, 40, 296, 16, false, false, []Module{PnetCDFVar}},
	{"3.21", smallHeader, 20, 24, 40, 296, 16, false, false, []Module{PnetCDFVar}},
	{"3.41", largeHeader, 24, 32, 48, 1072, moduleCount, true, false, nil},
}

// module turns a log's own module number into the one of format 3.41: older formats lack some modules
// in the middle.
func (s *shape) module(slot int) Module {
	m := Module(slot)
	for _, missing := range s.absent {
		if m >= missing {
			m++
		}
	}
	return m
}

// versionText returns the NUL-padded format version at the start of a log.
func versionText(b []byte) string {
	v, _, _ := bytes.Cut(b[:8], []byte{0})
	return string(v)
}

// isVersion says that a text looks like a format version, so that its file is a log of some kind.
func isVersion(v string) bool {
	if len(v) < 3 || v[1] != '.' {
		return false
	}
	_, err := strconv.ParseFloat(v, 64)
	return err == nil
}

func findShape(version string) (*shape, error) {
	for i := range shapes {
		if shapes[i].version == version {
			return &shapes[i], nil
		}
	}
	if isVersion(version) {
		return nil, fmt.Errorf("%w %q: formats 1.21 to 2.06 and 3.00, 3.10, 3.20, 3.21 and 3.41 are read", ErrVersion,
			version)
	}
	return nil, fmt.Errorf("%w: it begins with %q, not with a format version", ErrNotDarshan, version)
}

// readHeader reads the part of a 3.x log that is never compressed.
func (r *Reader) readHeader() error {
	start := make([]byte, 24)
	if _, err := r.in.ReadAt(start, 0); err != nil {
		return fmt.Errorf("%w: only %d bytes long", ErrNotDarshan, r.size)
	}
	r.head.Version = versionText(start)
	var err error
	if r.shape, err = findShape(r.head.Version); err != nil {
		return err
	}
	b := make([]byte, r.shape.header)
	if n, err := r.in.ReadAt(b, 0); n < len(b) {
		return fmt.Errorf("ends after %d of %d bytes: %w", n, len(b), unexpected(err))
	}
	switch int64(magic) {
	case int64(binary.LittleEndian.Uint64(b[8:])):
		r.order = binary.LittleEndian
	case int64(binary.BigEndian.Uint64(b[8:])):
		r.order, r.head.BigEndian = binary.BigEndian, true
	default:
		return fmt.Errorf("%w: magic number %x at byte 8", ErrNotDarshan, b[8:16])
	}
	if b[16] > byte(None) {
		return fmt.Errorf("compression %d is not known (0 zlib, 1 bzip2, 2 none)", b[16])
	}
	r.head.Compression = Compression(b[16])
	r.readMap(b)
	return nil
}

// readMap reads where the regions lie. One that does not lie in the file costs itself.
func (r *Reader) readMap(b []byte) {
	s := r.shape
	var partial uint64
	if s.nanos {
		partial = r.order.Uint64(b[s.partial:])
	} else {
		partial = uint64(r.order.Uint32(b[s.partial:]))
	}
	names, err := r.section(b[s.names:])
	if err != nil {
		r.bad = append(r.bad, &Error{"record table", names.off, -1, err})
	} else {
		r.names = names
	}
	r.job = section{off: s.header, length: r.size - s.header}
	for slot := range s.slots {
		m := s.module(slot)
		at, err := r.section(b[s.mods+16*slot:])
		if err != nil {
			r.bad = append(r.bad, &Error{m.String(), at.off, -1, err})
			continue
		}
		if at.length == 0 {
			continue
		}
		info := ModuleInfo{Module: m, Version: r.order.Uint32(b[s.modVs+4*slot:]), Offset: at.off, Length: at.length,
			Partial: partial&(1<<slot) != 0}
		info.Read = readable(m, info.Version)
		r.head.Modules = append(r.head.Modules, info)
		r.job.length = min(r.job.length, at.off-s.header)
	}
	if r.names.off != 0 {
		r.job.length = min(r.job.length, r.names.off-s.header)
	}
	r.skipPadding()
}

// skipPadding moves the job region behind the zeros that some runtimes leave before it. No compressed stream
// begins with a zero.
func (r *Reader) skipPadding() {
	if r.head.Compression == None {
		return
	}
	in := bufio.NewReader(io.NewSectionReader(r.in, r.job.off, max(0, r.job.length)))
	for r.job.length > 0 {
		if c, err := in.ReadByte(); err != nil || c != 0 {
			return
		}
		r.job.off, r.job.length = r.job.off+1, r.job.length-1
	}
}

// section reads one offset and length, and checks that they lie in the file.
func (r *Reader) section(b []byte) (section, error) {
	off, length := r.order.Uint64(b), r.order.Uint64(b[8:])
	if length == 0 {
		return section{off: int64(min(off, uint64(r.size)))}, nil
	}
	if off < uint64(r.shape.header) || off > uint64(r.size) || length > uint64(r.size)-off {
		return section{off: int64(min(off, math.MaxInt64))}, fmt.Errorf("its %d bytes do not lie in the file of %d "+
			"bytes; the file is truncated or damaged", length, r.size)
	}
	return section{int64(off), int64(length)}, nil
}

// readJob reads the job region.
func (r *Reader) readJob() error {
	if r.job.length <= 0 {
		return errors.New("the job data is missing")
	}
	in := r.open(r.job)
	b := make([]byte, maxJobBytes)
	n, err := io.ReadFull(in, b)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	b = b[:n]
	fixed := 40
	if r.shape.nanos {
		fixed = 56
	}
	if n < fixed {
		return fmt.Errorf("ends after %d of %d bytes: %w", n, fixed, io.ErrUnexpectedEOF)
	}
	v := func(i int) int64 { return int64(r.order.Uint64(b[8*i:])) }
	j := &r.head.Job
	j.UID = v(0)
	if r.shape.nanos {
		j.NProcs, j.JobID = v(5), v(6)
		err = j.setTimes(v(1), v(2), v(3), v(4))
		j.RunSeconds = j.End.Sub(j.Start).Seconds()
	} else {
		err = j.setLegacy(v(0), v(3), v(4), v(1), v(2))
	}
	text := b[min(fixed, n):]
	notes := text[:min(1024, len(text))]
	j.setMetadata(notes)
	r.head.setText(text[len(notes):], 2)
	return err
}

// setTimes checks and sets the job's bounds; times outside year 0 to 9999 are no times.
func (j *Job) setTimes(startSec, startNano, endSec, endNano int64) error {
	const last = 253402300799
	for _, s := range []int64{startSec, endSec} {
		if s < -62135596800 || s > last {
			return fmt.Errorf("start_time %d, end_time %d: not a time in seconds", startSec, endSec)
		}
	}
	for _, n := range []int64{startNano, endNano} {
		if n < 0 || n >= 1e9 {
			return fmt.Errorf("start or end has %d nanoseconds", n)
		}
	}
	j.Start, j.End = time.Unix(startSec, startNano).UTC(), time.Unix(endSec, endNano).UTC()
	return nil
}

func (j *Job) setMetadata(b []byte) {
	text, _, _ := bytes.Cut(b, []byte{0})
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
			j.Metadata = append(j.Metadata, Note{key, value})
		}
	}
}

// setText reads the command line and the mounts that follow it, of so many fields: formats 1.x and 2.x have the
// device's number first.
func (h *Header) setText(b []byte, fields int) {
	text, _, _ := bytes.Cut(b, []byte{0})
	exe, rest, _ := strings.Cut(string(text), "\n")
	h.Job.Exe, h.Job.ExeTruncated = strings.CutSuffix(exe, "<TRUNCATED>")
	for line := range strings.Lines(rest) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", fields)
		if len(f) < fields || f[fields-1] == "" {
			continue
		}
		m := Mount{Path: f[fields-1], FS: f[fields-2]}
		if fields == 3 {
			m.device = f[0]
		}
		h.Mounts = append(h.Mounts, m)
	}
}

func unexpected(err error) error {
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
