package darshan

import (
	"bufio"
	"io"
	"math"
	"strconv"
)

// Printer writes a log's counters as darshan-parser prints them: a line per counter with module, rank,
// record id, counter, value, file name, mount point and file system, separated by tabs. Lines of
// formats 1.x and 2.x have no module, as that program's 2.x version prints them.
type Printer struct {
	out    *bufio.Writer // keeps its first error
	r      *Reader
	before []byte // module, rank and id of the record at hand
	after  []byte // file name, mount point and file system
}

// PrintCounters writes every counter of a log. DXT segments, which the upstream program does not print either, are
// left out. Damaged regions are returned as errors, after everything that can be read was written.
func PrintCounters(out io.Writer, r *Reader) error {
	p := &Printer{out: bufio.NewWriterSize(out, 64<<10), r: r}
	err := r.Each(p.record)
	if flushErr := p.out.Flush(); err == nil {
		err = flushErr
	}
	return err
}

func (p *Printer) record(rec *Record) error {
	if rec.Module == DXTPOSIX || rec.Module == DXTMPIIO {
		return nil
	}
	p.frame(rec)
	switch rec.Module {
	case Lustre:
		p.lustre(rec.Layout)
	case Heatmap:
		p.bins(rec.Bins)
	default:
		p.counters(rec)
	}
	_, err := p.out.Write(nil) // what failed before
	return err
}

func (p *Printer) counters(rec *Record) {
	c := fixed[rec.Module]
	for i, name := range c.ints {
		if namesFile(rec.Module) && i == len(c.ints)-1 {
			break
		}
		if isID(rec.Module, i) {
			p.text(name, strconv.FormatUint(uint64(rec.Counters[i]), 10))
		} else {
			p.int(name, rec.Counters[i])
		}
	}
	for i, name := range c.floats {
		p.float(name, rec.FCounters[i])
	}
	if last := len(c.ints) - 1; namesFile(rec.Module) {
		p.text(c.ints[last], strconv.FormatUint(uint64(rec.Counters[last]), 10))
	}
}

// frame prepares what all lines of a record have in common.
func (p *Printer) frame(rec *Record) {
	b := p.before[:0]
	if rec.Module != Combined {
		b = append(append(b, rec.Module.String()...), '\t')
	}
	b = append(strconv.AppendInt(b, rec.Rank, 10), '\t')
	p.before = append(strconv.AppendUint(b, rec.ID, 10), '\t')
	name, named := p.r.Name(rec.ID)
	m, ok := p.r.mountOf(rec, name)
	if !ok {
		m = Mount{Path: "UNKNOWN", FS: "UNKNOWN"}
	}
	switch {
	case named:
	case rec.Module == BGQ:
		name = "darshan-bgq-record"
	default:
		name = "(null)"
	}
	a := append(append(p.after[:0], '\t'), name...)
	a = append(append(a, '\t'), m.Path...)
	p.after = append(append(append(a, '\t'), m.FS...), '\n')
}

// mountOf finds the file system of a record.
func (r *Reader) mountOf(rec *Record, name string) (Mount, bool) {
	if rec.Module == Combined {
		return r.head.deviceMount(rec.Counters[combinedDevice])
	}
	return r.head.Mount(name)
}

// begin is a line up to its value, in the writer's own memory.
func (p *Printer) begin(name string) []byte {
	return append(append(append(p.out.AvailableBuffer(), p.before...), name...), '\t')
}

func (p *Printer) end(line []byte) { _, _ = p.out.Write(append(line, p.after...)) }

func (p *Printer) int(name string, v int64) { p.end(strconv.AppendInt(p.begin(name), v, 10)) }

func (p *Printer) text(name, v string) { p.end(append(p.begin(name), v...)) }

func (p *Printer) float(name string, v float64) { p.end(appendFixed6(p.begin(name), v)) }

func (p *Printer) lustre(l *Layout) {
	stripes := int64(0)
	for i := range l.Components {
		stripes += l.Components[i].StripeCount
	}
	p.int("LUSTRE_NUM_COMPONENTS", int64(len(l.Components)))
	p.int("LUSTRE_NUM_STRIPES", stripes)
	for i := range l.Components {
		c := &l.Components[i]
		comp := "LUSTRE_COMP" + strconv.Itoa(i+1)
		p.int(comp+"_STRIPE_SIZE", c.StripeSize)
		p.int(comp+"_STRIPE_COUNT", c.StripeCount)
		p.text(comp+"_STRIPE_PATTERN", c.PatternName())
		p.text(comp+"_FLAGS", c.FlagNames())
		p.int(comp+"_EXT_START", c.ExtentStart)
		p.int(comp+"_EXT_END", c.ExtentEnd)
		p.int(comp+"_MIRROR_ID", c.MirrorID)
		pool := c.Pool
		if pool == "" {
			pool = "N/A"
		}
		p.text(comp+"_POOL_NAME", pool)
		for k, id := range c.OSTs {
			p.int(comp+"_OST_ID_"+strconv.Itoa(k), id)
		}
	}
}

func (p *Printer) bins(h *Bins) {
	p.float("HEATMAP_F_BIN_WIDTH_SECONDS", h.WidthSeconds)
	for _, side := range []struct {
		name string
		bins []int64
	}{{"HEATMAP_READ_BIN_", h.Read}, {"HEATMAP_WRITE_BIN_", h.Write}} {
		for i, v := range side.bins {
			p.int(side.name+strconv.Itoa(i), v)
		}
	}
}

// PatternName returns the striping pattern's name, "N/A" where it is not recorded.
func (c *Component) PatternName() string {
	switch c.Pattern {
	case 0:
		return "raid0"
	case 2:
		return "mdt"
	case 4:
		return "raid0,overstriped"
	case 8:
		return "foreign"
	}
	return "N/A"
}

var flagNames = [...]string{"stale", "prefrd", "prefwr", "offline", "init", "nosync", "extension", "parity", "compress",
	"partial", "nocompr", "neg"}

// FlagNames returns the names of the component's flags, separated by commas; "0" for none, "N/A" where
// they are not recorded.
func (c *Component) FlagNames() string {
	if c.Flags == -1 {
		return "N/A"
	}
	out := ""
	for i, name := range flagNames {
		if c.Flags&(1<<i) == 0 {
			continue
		}
		if out != "" {
			out += ","
		}
		out += name
	}
	if out == "" {
		return "0"
	}
	return out
}

// appendFixed6 formats as C's %f does.
func appendFixed6(b []byte, f float64) []byte {
	name := ""
	switch {
	case math.IsNaN(f):
		name = "nan"
	case math.IsInf(f, 0):
		name = "inf"
	default:
		return strconv.AppendFloat(b, f, 'f', 6, 64)
	}
	if math.Signbit(f) {
		b = append(b, '-')
	}
	return append(b, name...)
}
