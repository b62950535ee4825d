package logread

import (
	"math"
	"slices"

	"fairway/collector/logs/darshan"
	"fairway/tsdb/history/iolog"
)

// layer is one view of a file: what reached the file system, or what the program asked of MPI-IO.
type layer struct {
	name string
	io   []*darshan.IO
}

// The layers' names in the archive's columns.
const (
	layerFS    = "FS"
	layerMPIIO = "MPI-IO"
	layerDXT   = "DXT"
)

func layerOf(name string, interfaces ...*darshan.IO) layer {
	return layer{name, slices.DeleteFunc(interfaces, func(o *darshan.IO) bool { return o == nil })}
}

// tracedLayer counts a file's calls from their trace, where the log has no counters of it.
func tracedLayer(f *darshan.File) layer {
	a := f.DXTPOSIX
	if a == nil {
		a = f.DXTMPIIO
	}
	if a == nil {
		return layer{name: layerFS}
	}
	o := &darshan.IO{Ranks: a.Ranks, Movers: a.Ranks, Opens: darshan.NotRecorded,
		Reads: a.Reads, Writes: a.Writes, BytesRead: a.BytesRead, BytesWritten: a.BytesWritten,
		FileNotAligned: darshan.NotRecorded, ReadSeconds: secondsOf(a.Read), WriteSeconds: secondsOf(a.Write)}
	o.SlowestRank = darshan.SlowestRank{Slowest: darshan.NotRecorded, SlowestRead: o.ReadSeconds,
		SlowestWrite: o.WriteSeconds}
	for i := range o.SizeRead {
		o.SizeRead[i], o.SizeWrite[i] = darshan.NotRecorded, darshan.NotRecorded
	}
	if n := len(a.Read); n > 0 {
		o.Read = darshan.Span{Start: a.Read[0].Start, End: a.Read[n-1].End}
	}
	if n := len(a.Write); n > 0 {
		o.Write = darshan.Span{Start: a.Write[0].Start, End: a.Write[n-1].End}
	}
	return layer{layerDXT, []*darshan.IO{o}}
}

// sum adds one figure of the layer's interfaces.
func (l layer) sum(figure func(*darshan.IO) float64) (sum float64) {
	for _, o := range l.io {
		if v := figure(o); v > 0 && v <= math.MaxFloat64 {
			sum += v
		}
	}
	return sum
}

func (l layer) count(figure func(*darshan.IO) int64) (sum int64) {
	for _, o := range l.io {
		sum += known(figure(o))
	}
	return sum
}

func (l layer) seconds() float64 {
	return l.sum(func(o *darshan.IO) float64 { return o.ReadSeconds }) +
		l.sum(func(o *darshan.IO) float64 { return o.WriteSeconds }) +
		l.sum(func(o *darshan.IO) float64 { return o.MetaSeconds })
}

// addTimes takes the seconds of the layer that took longer: the outer one contains the inner one's.
func addTimes(row *iolog.JobFile, fs, mpi layer, c clock) {
	l := fs
	if mpi.seconds() > fs.seconds() {
		l = mpi
	}
	row.TimedBy = l.name
	for _, f := range []struct {
		to     *float64
		figure func(*darshan.IO) float64
	}{
		{&row.ReadSeconds, func(o *darshan.IO) float64 { return o.ReadSeconds }},
		{&row.WriteSeconds, func(o *darshan.IO) float64 { return o.WriteSeconds }},
		{&row.MetaSeconds, func(o *darshan.IO) float64 { return o.MetaSeconds }},
		{&row.SlowestReadSeconds, func(o *darshan.IO) float64 { return o.SlowestRead }},
		{&row.SlowestWriteSeconds, func(o *darshan.IO) float64 { return o.SlowestWrite }},
		{&row.SlowestMetaSeconds, func(o *darshan.IO) float64 { return o.SlowestMeta }},
	} {
		*f.to = l.sum(f.figure)
	}
	longest := -1.
	for _, o := range l.io {
		if o.SlowestSeconds > longest {
			longest, row.SlowestRank = o.SlowestSeconds, max(o.Slowest, -1)
		}
		for _, at := range []float64{o.Open.Start, o.Open.End, o.Close.Start, o.Close.End} {
			if at > 0 { // many versions have the first open and the last close alone
				widen(&row.OpenStart, &row.CloseEnd, darshan.Span{Start: at, End: at}, c)
			}
		}
	}
}

// direction is what one direction of a layer's I/O has.
type direction struct {
	bytes, requests, small, seq, consec func(*darshan.IO) int64
	span                                func(*darshan.IO) darshan.Span
	sizes                               func(*darshan.IO) *[10]int64
}

func readsAndWrites() [2]direction {
	return [2]direction{{
		func(o *darshan.IO) int64 { return o.BytesRead }, func(o *darshan.IO) int64 { return o.Reads },
		(*darshan.IO).SmallReads, func(o *darshan.IO) int64 { return o.SeqReads },
		func(o *darshan.IO) int64 { return o.ConsecReads }, func(o *darshan.IO) darshan.Span { return o.Read },
		func(o *darshan.IO) *[10]int64 { return &o.SizeRead },
	}, {
		func(o *darshan.IO) int64 { return o.BytesWritten }, func(o *darshan.IO) int64 { return o.Writes },
		(*darshan.IO).SmallWrites, func(o *darshan.IO) int64 { return o.SeqWrites },
		func(o *darshan.IO) int64 { return o.ConsecWrites }, func(o *darshan.IO) darshan.Span { return o.Write },
		func(o *darshan.IO) *[10]int64 { return &o.SizeWrite },
	}}
}

// addCounts takes the bytes and requests of each direction from the layer that saw more bytes.
func addCounts(row *iolog.JobFile, j *iolog.Job, fs, mpi layer, c clock) {
	to := [2]struct {
		bytes, requests, posix, small, seq, consec *int64
		start, end                                 *float64
		sizes                                      []int64
	}{
		{&row.BytesRead, &row.Reads, &row.PosixReads, &row.SmallReads, &row.SeqReads, &row.ConsecReads, &row.ReadStart,
			&row.ReadEnd, j.SizeReads},
		{&row.BytesWritten, &row.Writes, &row.PosixWrites, &row.SmallWrites, &row.SeqWrites, &row.ConsecWrites,
			&row.WriteStart, &row.WriteEnd, j.SizeWrites},
	}
	var most int64 = -1
	counted := fs
	for i, d := range readsAndWrites() {
		l := fs
		if mpi.count(d.bytes) > fs.count(d.bytes) || len(fs.io) == 0 {
			l = mpi
		}
		t := &to[i]
		*t.bytes, *t.requests = l.count(d.bytes), l.count(d.requests)
		if *t.bytes > most {
			most, counted = *t.bytes, l
		}
		for _, o := range l.io {
			if s := d.span(o); d.requests(o) > 0 || d.bytes(o) > 0 || s.Known() {
				widen(t.start, t.end, s, c)
			}
			for bin, n := range d.sizes(o) {
				t.sizes[bin] += known(n)
			}
			*t.small += known(d.small(o))
		}
		if p := posixOf(fs, row); p != nil {
			*t.posix, *t.seq, *t.consec = known(d.requests(p)), known(d.seq(p)), known(d.consec(p))
		}
	}
	row.CountedBy = counted.name
	addUse(row, j, fs, mpi, counted)
}

// posixOf is the layer's POSIX interface, nil without one: only that knows the order of requests.
func posixOf(l layer, row *iolog.JobFile) *darshan.IO {
	if l.name == layerFS && row.UsesPosix && len(l.io) > 0 {
		return l.io[0]
	}
	return nil
}

// addUse says how many processes used the file, how often it was opened, and where its requests began.
func addUse(row *iolog.JobFile, j *iolog.Job, fs, mpi, counted layer) {
	for _, l := range []layer{fs, mpi} {
		for _, o := range l.io {
			row.Procs = max(row.Procs, o.Ranks)
		}
	}
	for _, o := range counted.io {
		if o.Movers >= 0 && (row.Movers == nil || o.Movers > *row.Movers) {
			row.Movers = &o.Movers
		}
		if o.BytesRead > 0 {
			row.ReadExtent = max(row.ReadExtent, o.MaxByteRead+1)
		}
		// A file that was opened again may have been appended to: the runtime counts from 0 each time.
		if o.BytesWritten > 0 && o.Opens <= 2*o.Ranks {
			row.WrittenExtent = max(row.WrittenExtent, o.MaxByteWritten+1)
		}
	}
	opens := func(o *darshan.IO) int64 { return o.Opens }
	outer := fs
	if fs.count(opens) == 0 {
		outer = mpi
	}
	row.Opens = outer.count(opens)
	j.MetaOps += row.Opens + outer.count(func(o *darshan.IO) int64 { return o.Stats }) +
		outer.count(func(o *darshan.IO) int64 { return o.Syncs })
	if p := posixOf(counted, row); p != nil && p.FileNotAligned >= 0 && p.FileAlignment > 0 {
		row.Unaligned, row.Alignment = &p.FileNotAligned, &p.FileAlignment
	}
}

func widen(start, end *float64, s darshan.Span, c clock) {
	from, to := c.bound(s)
	if math.IsNaN(*start) {
		*start, *end = from, to
		return
	}
	*start, *end = min(*start, from), max(*end, to)
}

// maxTraced is how many times in calls are kept of a file and direction.
const maxTraced = 128

// addTrace keeps when calls were, where all of them were traced in the layer that is timed.
func addTrace(row *iolog.JobFile, f *darshan.File, c clock) {
	a, o := f.DXTPOSIX, f.POSIX
	if row.TimedBy == layerMPIIO {
		a, o = f.DXTMPIIO, f.MPIIO
	}
	if a == nil || row.TimedBy == layerFS && row.UsesStdio || o != nil && (a.Reads < o.Reads || a.Writes < o.Writes) {
		return
	}
	row.ReadTrace, row.TracedRead = traced(a.Read, c)
	row.WriteTrace, row.TracedWrite = traced(a.Write, c)
}

// traced are the starts and ends of intervals, of which the shortest pauses are closed until few are left.
func traced(in []darshan.Interval, c clock) (out []float64, seconds float64) {
	if len(in) == 0 {
		return nil, 0
	}
	seconds = secondsOf(in)
	pauses := make([]float64, 0, len(in))
	for i := range in[1:] {
		pauses = append(pauses, in[i+1].Start-in[i].End)
	}
	slices.Sort(pauses)
	closed := -1.
	if n := len(pauses) - (maxTraced - 1); n > 0 {
		closed = pauses[n-1]
	}
	for _, i := range in {
		start, end := c.bound(darshan.Span(i))
		if last := len(out) - 1; last > 0 && start-out[last] <= closed {
			out[last] = max(out[last], end)
			continue
		}
		out = append(out, start, end)
	}
	return out, seconds
}

func secondsOf(in []darshan.Interval) (sum float64) {
	for _, i := range in {
		sum += i.End - i.Start
	}
	return sum
}

// addHeat sums the heat maps of the ranks of the layer that moved more. Some runtimes give each rank bins of a width of
// its own, doubled as often as its time did not fit: the widest has place for all.
func addHeat(j *iolog.Job, maps []darshan.RankBins) {
	most, wide := math.MaxFloat64, 0.0
	if j.RunSeconds > 0 {
		most = j.RunSeconds + graceSeconds
	}
	usable := func(width float64) bool { return width > 0 && width <= most }
	for i := range maps {
		if w := maps[i].WidthSeconds; usable(w) && w > wide {
			wide, j.HeatSeconds = w, w
		}
	}
	var best int64 = -1
	for _, l := range []func(api string) bool{
		func(api string) bool { return api != "MPIIO" }, func(api string) bool { return api == "MPIIO" },
	} {
		var read, write []int64
		var bytes int64
		for i := range maps {
			if m := &maps[i]; l(m.API) && usable(m.WidthSeconds) {
				part := m.WidthSeconds / wide
				bytes += addBins(&read, m.Read, part) + addBins(&write, m.Write, part)
			}
		}
		if read != nil && bytes > best {
			best, j.HeatRead, j.HeatWrite = bytes, read, write
		}
	}
}

// addBins adds bins to others of which each has a part of theirs.
func addBins(to *[]int64, bins []int64, part float64) (bytes int64) {
	at := func(i int) int { return int(math.Floor(float64(i)*part + 1e-9)) }
	if more := at(len(bins)-1) + 1 - len(*to); more > 0 {
		*to = append(*to, make([]int64, more)...)
	}
	for i, n := range bins {
		(*to)[at(i)] += known(n)
		bytes += known(n)
	}
	return bytes
}
