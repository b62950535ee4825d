package darshan

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Bounds of one record's variable parts.
const (
	maxComponents = 1 << 12
	maxStripes    = 1 << 20
	maxBins       = 1 << 20
	maxSegments   = 1 << 20
)

// Record is one record of a module: what one rank, or all ranks together, did with one file.
type Record struct {
	Module Module
	// ID is the hash of the file's path; records of all modules for one file have the same.
	ID uint64
	// Rank is the process, or -1 where all processes opened the file and their records were reduced
	// to one.
	Rank int64
	// Counters and FCounters are in the order of CounterNames, whatever the record's version; -1 is a
	// counter that its version does not have.
	Counters  []int64
	FCounters []float64

	Layout *Layout // Lustre
	Bins   *Bins   // Heatmap
	Trace  *Trace  // DXTPOSIX and DXTMPIIO
}

// Layout is where a file's bytes lie in a Lustre file system.
type Layout struct {
	Components []Component
}

// Component is one extent of a file with its own striping.
type Component struct {
	StripeSize, StripeCount, Pattern, Flags int64 // Pattern and Flags are -1 where not recorded
	ExtentStart, ExtentEnd                  int64 // ExtentEnd -1 is the end of the file
	MirrorID                                int64 // -1 where not recorded
	Pool                                    string
	// StripeOffset is the first target as it was asked for, -1 being the file system's choice; nil where
	// the record does not say (version 2).
	StripeOffset *int64
	// OSTs are the indices of the storage targets, decimal; Lustre's own names have them in
	// hexadecimal. A component that is not instantiated lists numbers that mean nothing.
	OSTs []int64
}

const flagInstantiated = 0x10

// Instantiated says that the component's OSTs are real. Versions that do not record flags only list
// such components.
func (c *Component) Instantiated() bool {
	// Plain layouts have no flags at all.
	return c.Flags <= 0 || c.Flags&flagInstantiated != 0
}

// Bins are the bytes that one rank moved through one interface, by time.
type Bins struct {
	// WidthSeconds is a bin's width; bin k covers [k*WidthSeconds, (k+1)*WidthSeconds) since job start.
	WidthSeconds float64
	Write, Read  []int64 // bytes
}

// Trace is every single read and write of one rank on one file.
type Trace struct {
	Writes, Reads []Segment
}

// Segment is one traced read or write.
type Segment struct {
	Offset, Length int64   // bytes; an offset of -1 was not recorded
	Start, End     float64 // seconds since job start
}

// decoder reads the records of one region.
type decoder struct {
	in      io.Reader
	order   binary.ByteOrder
	version uint32
	rec     *Record
	block   []byte
	at      int64
	skip    bool // the record just read is not to be shown

	layout *layout

	firstBins  int
	firstWidth float64
}

// decoders returns the function that reads one record of a module; ok is false at the end of the region.
func decoders(m Module, version uint32) func(*decoder) (ok bool, err error) {
	switch m {
	case Lustre:
		if version == 1 {
			return (*decoder).lustre1
		}
		return (*decoder).lustre2
	case Heatmap:
		return (*decoder).heatmap
	case DXTPOSIX, DXTMPIIO:
		return (*decoder).trace
	}
	return (*decoder).fixed
}

// readable says whether a module's records are known in this version.
func readable(m Module, version uint32) bool {
	switch m {
	case Lustre, DXTPOSIX:
		return version == 1 || version == 2
	case DXTMPIIO:
		return version >= 1 && version <= 3
	case Heatmap:
		return version == 1
	}
	c := fixed[m]
	return c != nil && m != Combined && version >= 1 && int64(version) <= int64(len(c.versions))
}

// read returns the next n bytes; the error is io.EOF only when there are none at all.
func (d *decoder) read(n int) ([]byte, error) {
	if cap(d.block) < n {
		d.block = make([]byte, n+n/4)
	}
	b := d.block[:n]
	k, err := io.ReadFull(d.in, b)
	d.at += int64(k)
	return b, err
}

// more is read inside a record, where the region must not end.
func (d *decoder) more(n int) ([]byte, error) {
	b, err := d.read(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

func (d *decoder) int(b []byte) int64 { return int64(d.order.Uint64(b)) }

func (d *decoder) float(b []byte) float64 { return math.Float64frombits(d.order.Uint64(b)) }

// begin reads a record's first n bytes and takes id and rank from them.
func (d *decoder) begin(n int) (b []byte, ok bool, err error) {
	d.skip = false
	b, err = d.read(n)
	if err == io.EOF {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	d.rec.ID, d.rec.Rank = d.order.Uint64(b), d.int(b[8:])
	return b, true, nil
}

func (d *decoder) fixed() (bool, error) {
	if d.layout == nil {
		names := fixed[d.rec.Module]
		d.layout = &names.versions[d.version-1]
		d.rec.Counters, d.rec.FCounters = make([]int64, len(names.ints)), make([]float64, len(names.floats))
	}
	l := d.layout
	b, ok, err := d.begin(l.size())
	if !ok {
		return false, err
	}
	d.rec.clear(l)
	d.fill(l, b)
	return true, nil
}

// fill takes a record's counters to their places.
func (d *decoder) fill(l *layout, b []byte) {
	b = b[16+l.skip:]
	for i, place := range l.ints {
		v := d.int(b[8*i:])
		switch {
		case i > 0 && place >= 0 && place == l.ints[i-1]:
			d.rec.Counters[place] += v
		case place >= 0:
			d.rec.Counters[place] = v
		case i == l.dropIf && v > 0:
			d.skip = true
		}
	}
	b = b[8*len(l.ints):]
	for i, place := range l.floats {
		d.rec.FCounters[place] = d.float(b[8*i:])
	}
}

// clear marks the counters that the record's version does not have.
func (r *Record) clear(l *layout) {
	if len(l.ints) != len(r.Counters) {
		for i := range r.Counters {
			r.Counters[i] = -1
			if isID(r.Module, i) {
				r.Counters[i] = 0
			}
		}
	}
	if len(l.floats) != len(r.FCounters) {
		for i := range r.FCounters {
			r.FCounters[i] = -1
		}
	}
}

// ints appends n integers, read in pieces so that a wrong n cannot ask for memory that the region does
// not fill.
func (d *decoder) ints(to []int64, n int64) ([]int64, error) {
	for n > 0 {
		k := min(n, 4096)
		b, err := d.more(int(8 * k))
		if err != nil {
			return to, err
		}
		for i := range k {
			to = append(to, d.int(b[8*i:]))
		}
		n -= k
	}
	return to, nil
}

func (d *decoder) lustre1() (bool, error) {
	b, ok, err := d.begin(56)
	if !ok {
		return false, err
	}
	offset, size, count := d.int(b[32:]), d.int(b[40:]), d.int(b[48:])
	if count < 0 || count > maxStripes {
		return false, fmt.Errorf("stripe count %d", count)
	}
	osts, err := d.ints(nil, count)
	d.rec.Layout = &Layout{Components: []Component{{StripeSize: size, StripeCount: count, Pattern: -1, Flags: -1,
		ExtentEnd: -1, MirrorID: -1, StripeOffset: &offset, OSTs: osts}}}
	return true, err
}

func (d *decoder) lustre2() (bool, error) {
	b, ok, err := d.begin(32)
	if !ok {
		return false, err
	}
	comps, stripes := d.int(b[16:]), d.int(b[24:])
	if comps < 0 || comps > maxComponents || stripes < 0 || stripes > maxStripes {
		return false, fmt.Errorf("%d components with %d stripes", comps, stripes)
	}
	l := &Layout{}
	unused := false
	for range comps {
		b, err := d.more(72)
		if err != nil {
			return false, err
		}
		c := Component{StripeSize: d.int(b), StripeCount: d.int(b[8:]), Pattern: d.int(b[16:]), Flags: d.int(b[24:]),
			ExtentStart: d.int(b[32:]), ExtentEnd: d.int(b[40:]), MirrorID: d.int(b[48:])}
		pool, _, _ := bytes.Cut(b[56:72], []byte{0})
		c.Pool = string(pool)
		// The runtime reserves room for more components than a file may have and marks the rest.
		unused = unused || c.StripeSize == -1
		if !unused {
			l.Components = append(l.Components, c)
		}
	}
	if comps == 0 {
		stripes = 0
	}
	osts, err := d.ints(nil, stripes)
	if err != nil {
		return false, err
	}
	for i := range l.Components {
		c := &l.Components[i]
		if c.StripeCount < 0 || c.StripeCount > int64(len(osts)) {
			return false, fmt.Errorf("component %d has %d stripes, the record %d", i+1, c.StripeCount, len(osts))
		}
		c.OSTs, osts = osts[:c.StripeCount:c.StripeCount], osts[c.StripeCount:]
	}
	d.rec.Layout = l
	return true, nil
}

func (d *decoder) heatmap() (bool, error) {
	b, ok, err := d.begin(48)
	if !ok {
		return false, err
	}
	width, n := d.float(b[16:]), d.int(b[24:])
	if n < 0 || n > maxBins {
		return false, fmt.Errorf("%d bins", n)
	}
	h := &Bins{WidthSeconds: width}
	if h.Write, err = d.ints(nil, n); err == nil {
		h.Read, err = d.ints(nil, n)
	}
	if err != nil {
		return false, err
	}
	if d.firstWidth == 0 {
		d.firstBins, d.firstWidth = int(n), width
	}
	// Runtimes 3.4.0 to 3.4.3 could end the ranks' maps one bin apart.
	if width == d.firstWidth && (int(n)-d.firstBins == 1 || d.firstBins-int(n) == 1) {
		h.Write, h.Read = fit(h.Write, d.firstBins), fit(h.Read, d.firstBins)
	}
	d.rec.Bins = h
	return true, nil
}

func fit(bins []int64, n int) []int64 {
	if len(bins) > n {
		return bins[:n]
	}
	return append(bins, 0)
}

func (d *decoder) trace() (bool, error) {
	b, ok, err := d.begin(104)
	if !ok {
		return false, err
	}
	t := &Trace{}
	writes, reads := d.int(b[88:]), d.int(b[96:])
	if writes < 0 || reads < 0 || writes > maxSegments || reads > maxSegments-writes {
		return false, fmt.Errorf("%d writes and %d reads", writes, reads)
	}
	if t.Writes, err = d.segments(writes); err == nil {
		t.Reads, err = d.segments(reads)
	}
	d.rec.Trace = t
	return true, err
}

func (d *decoder) segments(n int64) ([]Segment, error) {
	size := 32 // or with the thread's number behind it
	if d.rec.Module == DXTPOSIX && d.version == 2 || d.rec.Module == DXTMPIIO && d.version == 3 {
		size = 40
	}
	var out []Segment
	for n > 0 {
		k := int(min(n, 1024))
		b, err := d.more(k * size)
		if err != nil {
			return out, err
		}
		for ; len(b) > 0; b = b[size:] {
			s := Segment{Offset: d.int(b), Length: d.int(b[8:]), Start: d.float(b[16:]), End: d.float(b[24:])}
			if d.rec.Module == DXTMPIIO && d.version == 1 {
				s.Offset = -1
			}
			out = append(out, s)
		}
		n -= int64(k)
	}
	return out, nil
}
