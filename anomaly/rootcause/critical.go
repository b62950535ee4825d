package rootcause

import (
	"cmp"
	"slices"

	"fairway/collector/topology"
)

// criticalFiles covers the union of the files' intervals with as few files as possible, and gives each
// the piece that the ones before it leave. Among the files that have begun when the cover so far ends,
// the one that ends last is taken: no other choice can reach further, so the count is the minimum.
// (IOMiner's Algorithm 2 leaves open which file its heap yields, and some readings use more.) Intervals
// that touch cover together; one without length covers nothing. Equal ends go to the lower index.
func criticalFiles(files []File) []Critical {
	order := make([]int, 0, len(files))
	for i := range files {
		if files[i].End > files[i].Start {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(files[a].Start, files[b].Start), cmp.Compare(a, b))
	})
	out := []Critical{}
	for next := 0; next < len(order); {
		reached := files[order[next]].Start // a gap in the I/O, or the beginning
		for {
			best := -1
			for ; next < len(order) && files[order[next]].Start <= reached; next++ {
				i := order[next]
				if files[i].End > reached && (best < 0 || files[i].End > files[best].End) {
					best = i
				}
			}
			if best < 0 {
				break
			}
			f := &files[best]
			out = append(out, Critical{
				Name: f.Name, Start: reached, End: f.End, Exclusive: f.End - reached, FileStart: f.Start,
				File: best, apart: true,
			})
			reached = f.End
		}
	}
	return out
}

// span is the time from the first start to the last end; files without length count.
func span(files []File) float64 {
	if len(files) == 0 {
		return 0
	}
	first, last := files[0].Start, files[0].End
	for i := range files {
		first, last = min(first, files[i].Start), max(last, files[i].End)
	}
	return last - first
}

// mean is a mean by exclusive time.
type mean struct{ sum, weight float64 }

func (m *mean) add(v Known, seconds float64) {
	if v.OK() {
		m.sum += float64(v) * seconds
		m.weight += seconds
	}
}

func (m *mean) value() Known {
	if m.weight == 0 {
		return Unknown()
	}
	return Known(m.sum / m.weight)
}

// weigh averages the factors over the critical files by exclusive time (IOMiner equation 2). A file
// that does not know a factor has no part in its mean. Each file is looked at once: they lie far apart.
func weigh(files []File, critical []Critical) Factors {
	var small, nonconsec, collective, osts, crowd mean
	for i := range critical {
		c := &critical[i]
		f := &files[c.File]
		small.add(f.Small, c.Exclusive)
		nonconsec.add(f.Nonconsec, c.Exclusive)
		collective.add(f.Collective, c.Exclusive)
		osts.add(f.OSTs, c.Exclusive)
		crowd.add(procsPerOST(f), c.Exclusive)
	}
	return Factors{
		Small: small.value(), Nonconsec: nonconsec.value(), Collective: collective.value(), OSTs: osts.value(),
		ProcsPerOST: crowd.value(),
	}
}

// procsPerOST is the processes using a file over its stripe count, the paper's contention level. A file
// on no target (its data lie on the metadata server) has none.
func procsPerOST(f *File) Known {
	if !f.Procs.OK() || !f.OSTs.OK() || f.OSTs == 0 {
		return Unknown()
	}
	return f.Procs / f.OSTs
}

func distinctTargets(files []File) Known {
	seen := map[topology.TargetID]struct{}{}
	for i := range files {
		for _, t := range files[i].Targets {
			seen[t] = struct{}{}
		}
	}
	if len(seen) == 0 {
		return Unknown()
	}
	return Known(len(seen))
}

// filesInIO returns the mean number of files that are in I/O while a critical one is. Where only the time of calls is
// known, and not when they were, those of other processes count as made at the same time: programs work in phases.
func filesInIO(files []File) func(c Critical) float64 {
	starts, ends := make([]change, 0, len(files)), make([]change, 0, len(files))
	add := func(f *File) {
		d := f.density()
		starts, ends = append(starts, change{f.Start, d}), append(ends, change{f.End, d})
	}
	rank := slowestRank(files)
	for i := range files {
		if c := files[i].Calls; c == nil || c.Rank != rank && c.Rank != AllRanks {
			add(&files[i])
		}
	}
	begun, ended := sumsUpTo(starts), sumsUpTo(ends)
	return func(c Critical) float64 {
		seconds := begun(c.End) - ended(c.End) - begun(c.Start) + ended(c.Start)
		if files[c.File].Calls == nil {
			return seconds / (c.End - c.Start)
		}
		return 1 + seconds/c.Exclusive
	}
}

// change is a time at which some files more, or fewer, are in I/O.
type change struct{ at, files float64 }

// sumsUpTo returns the time that has passed at t since each of the changes before it, summed. It sorts them.
func sumsUpTo(changes []change) func(t float64) float64 {
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	sums := make([]change, len(changes)+1)
	for i, c := range changes {
		sums[i+1] = change{sums[i].at + c.files*c.at, sums[i].files + c.files}
	}
	return func(t float64) float64 {
		n, _ := slices.BinarySearchFunc(changes, t, func(c change, t float64) int { return cmp.Compare(c.at, t) })
		return sums[n].files*t - sums[n].at
	}
}
