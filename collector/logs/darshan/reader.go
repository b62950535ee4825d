package darshan

import (
	"bufio"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zlib"

	"fairway/collector"
)

// Bounds of what one log may make this package hold or do.
const (
	maxNames     = 1 << 20  // names of one log
	maxNameBytes = 96 << 20 // all of them together
	maxPath      = 64 << 10 // one of them
	bufferBytes  = 64 << 10
	// No real record compresses better: deflate itself stops at 1:1032. It bounds the work that a
	// hostile region can ask for.
	maxRatio   = 1100
	freeExpand = 4 << 20
)

// Reader reads one log.
type Reader struct {
	in    io.ReaderAt
	size  int64
	head  Header
	shape *shape
	order binary.ByteOrder
	names section
	job   section
	bad   []error // regions of the header that cannot be read

	buf    *bufio.Reader
	zlib   io.ReadCloser
	table  *nameTable
	record Record
	block  []byte
	legacy *legacyReader
}

// NewReader reads the header and the job of a log of size bytes; Each then reads the records. Job data that
// cannot be read are an error of Each. A compressed log of formats 1.x and 2.x is read from its start to its end by
// Each, and only once.
func NewReader(in io.ReaderAt, size int64) (*Reader, error) {
	r := &Reader{in: in, size: size, buf: bufio.NewReaderSize(nil, bufferBytes)}
	ok, err := r.openLegacy()
	if errors.Is(err, errWrapped) {
		ok, err = false, r.unwrap()
	}
	if err != nil {
		return nil, &Error{"header", 0, -1, err}
	}
	if ok {
		return r, nil
	}
	if err := r.readHeader(); err != nil {
		return nil, &Error{"header", 0, -1, err}
	}
	if err := r.readJob(); err != nil {
		r.bad = append(r.bad, &Error{"job data", r.job.off, -1, err})
	}
	return r, nil
}

// Header returns the log's header. It is valid as long as the Reader.
func (r *Reader) Header() *Header { return &r.head }

// open returns the decompressed bytes of a region. Only one region is open at a time.
func (r *Reader) open(s section) io.Reader {
	r.buf.Reset(io.NewSectionReader(r.in, s.off, s.length))
	var in io.Reader
	switch r.head.Compression {
	case None:
		return r.buf
	case Bzip2:
		in = bzip2.NewReader(r.buf)
	default:
		in = &streams{r: r}
	}
	return bounded(in, s.length)
}

// streams reads the zlib streams of a region one after the other.
type streams struct {
	r    *Reader
	open bool
}

func (s *streams) Read(p []byte) (int, error) {
	for {
		if !s.open {
			if _, err := s.r.buf.Peek(1); err != nil {
				return 0, err
			}
			if err := s.next(); err != nil {
				return 0, unexpected(err)
			}
		}
		n, err := s.r.zlib.Read(p)
		if err == io.EOF {
			s.open, err = false, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

func (s *streams) next() (err error) {
	if s.r.zlib == nil {
		s.r.zlib, err = zlib.NewReader(s.r.buf)
	} else {
		err = s.r.zlib.(zlib.Resetter).Reset(s.r.buf, nil)
	}
	s.open = err == nil
	return err
}

// bounded stops what decompresses to more than any record could.
func bounded(in io.Reader, size int64) io.Reader {
	return &collector.Bounded{In: in, Left: max(size*maxRatio, freeExpand),
		Err: fmt.Errorf("%w: decompresses to over %d times its size", ErrTooLarge, maxRatio)}
}

// Name returns the path of a record, once Each has begun; ok is false for one that has no name. The
// path of formats 1.x and 2.x is its last characters only.
func (r *Reader) Name(id uint64) (name string, ok bool) {
	if r.legacy != nil {
		return "..." + r.legacy.suffix, true
	}
	if r.table == nil {
		return "", false
	}
	return r.table.name(id)
}

// Each calls f for every record of the modules that this package reads, module after module in the
// order of their numbers, records in the order of the log. The record and what it points to are valid
// until f returns. An error of f ends the walk and is returned as it is. A damaged region ends that
// region only: all such errors are joined and returned at the end.
func (r *Reader) Each(f func(*Record) error) error {
	if r.legacy != nil {
		return r.legacy.each(f)
	}
	bad := slices.Clone(r.bad)
	if err := r.readNames(); err != nil {
		bad = append(bad, err)
	}
	for i := range r.head.Modules {
		m := &r.head.Modules[i]
		if !m.Read {
			continue
		}
		stop, err := r.eachOf(m, f)
		if stop {
			return err
		}
		if err != nil {
			bad = append(bad, err)
		}
	}
	return errors.Join(bad...)
}

// eachOf reads the records of one module; stop says that err is f's own.
func (r *Reader) eachOf(m *ModuleInfo, f func(*Record) error) (stop bool, err error) {
	d := decoder{in: r.open(section{m.Offset, m.Length}), order: r.order, version: m.Version, rec: &r.record,
		block: r.block}
	r.record = Record{Module: m.Module}
	read := decoders(m.Module, m.Version)
	for {
		at := d.at
		ok, err := read(&d)
		if err != nil {
			r.block = d.block
			return false, &Error{m.Module.String(), m.Offset, at, err}
		}
		if !ok {
			r.block = d.block
			return false, nil
		}
		if d.skip {
			continue
		}
		if err := f(d.rec); err != nil {
			return true, err
		}
	}
}
