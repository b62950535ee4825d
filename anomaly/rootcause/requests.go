package rootcause

import (
	"cmp"
	"fmt"

	"fairway/anomaly"
)

// finding is a way of making requests that some critical files have.
type finding struct {
	mean    Known   // of the critical files that know it, by exclusive time
	seconds float64 // of those beyond the limit
	worst   *File   // that has most of these
}

// find weighs a figure over the critical files.
func find(j *Job, a *Answer, limit float64, figure func(*File) Known) (out finding) {
	var m mean
	most := -1.
	for _, c := range a.Critical {
		f := &j.Files[c.File]
		if f.Calls == nil || f.Calls.Metadata {
			continue
		}
		v := figure(f)
		m.add(v, c.Exclusive)
		if float64(v) <= limit || !v.OK() {
			continue
		}
		out.seconds += c.Exclusive
		if c.Exclusive > most {
			most, out.worst = c.Exclusive, f
		}
	}
	out.mean = m.value()
	return out
}

// requests judges how the requests of the critical files were made, beyond their size: each clause is there where its
// limit is passed for a part of the I/O time that is worth a word.
func requests(j *Job, a *Answer, lim Limits) (out []Clause) {
	p := lim.Pattern
	amiss := a.Factors.Small > Known(lim.Small)
	for _, k := range []struct {
		rule   string
		limit  float64
		figure func(*File) Known
		gain   func(f finding) float64
		text   func(f finding) string
	}{
		{"unaligned", p.Unaligned, func(f *File) Known { return misaligned(f, p) }, nil, unaligned},
		{"random", p.Random, func(f *File) Known { return ofMany(f, p, f.Calls.Random) }, nil, func(f finding) string {
			return fmt.Sprintf("%s of the requests began at or below the process' one before (random), the most on "+
				"%s (%d "+
				"requests, %s each on average).", percent(float64(f.mean)), f.worst.Name, f.worst.Calls.Requests,
				anomaly.Size(requestSize(f.worst)))
		}},
		{"independent", p.Independent, func(f *File) Known {
			if !amiss || !(f.Procs > 1) {
				return Unknown()
			}
			return ofMany(f, p, f.Calls.Independent)
		}, nil, independent},
		{"sieving", p.Redundant, func(f *File) Known {
			return ofMany(f, p, Known(f.Bytes)/Known(f.Calls.Above.MPIIOBytes))
		}, func(f finding) float64 { return 1 - f.worst.Calls.Above.MPIIOBytes/f.worst.Bytes }, func(f finding) string {
			return fmt.Sprintf("MPI-IO moved %s of %s where it was asked for %s: it reads whole blocks, changes "+
				"pieces of them and writes them back (data sieving).", anomaly.Size(f.worst.Bytes), f.worst.Name,
				anomaly.Size(f.worst.Calls.Above.MPIIOBytes))
		}},
		{"inflated", p.Redundant, func(f *File) Known { return inflated(f, p) },
			func(f finding) float64 { return 1 - 1/float64(inflated(f.worst, p)) }, func(f finding) string {
				u := &f.worst.Calls.Above
				return fmt.Sprintf("%s moved %s of %s for accesses of %s: fill values that data replace, or chunks "+
					"that are moved for a part of them.", u.Library, anomaly.Size(cmp.Or(u.MPIIOBytes, f.worst.Bytes)),
					f.worst.Name, anomaly.Size(u.Bytes))
			}},
		{"split", p.Split, func(f *File) Known { return split(f, p) },
			nil, func(f finding) string {
				u := &f.worst.Calls.Above
				return fmt.Sprintf("%s made %d requests, %s each on average, of %d accesses of the program to %s, %s "+
					"each.", u.Library, f.worst.Calls.Requests, anomaly.Size(requestSize(f.worst)), u.Accesses,
					f.worst.Name, anomaly.Size(u.Bytes/float64(u.Accesses)))
			}},
		{"blocking", p.Independent, func(f *File) Known { return blocking(f, p) }, nil, func(f finding) string {
			u := &f.worst.Calls.Above
			return fmt.Sprintf("%s of the %d accesses to variables of %s, %s each, were blocking calls, which cannot "+
				"be put together.", percent(float64(f.mean)), u.Accesses, f.worst.Name,
				anomaly.Size(u.Bytes/float64(u.Accesses)))
		}},
		{"redundant", p.Redundant, func(f *File) Known { return again(f, p, false) }, saved, func(f finding) string {
			return fmt.Sprintf("Each byte of %s was read %s times (%s read).", f.worst.Name,
				short(float64(f.worst.Calls.Again)), anomaly.Size(f.worst.Bytes))
		}},
		{"rewritten", p.Redundant, func(f *File) Known { return again(f, p, true) }, saved, func(f finding) string {
			return fmt.Sprintf("Each byte of %s was written %s times (%s written).", f.worst.Name,
				short(float64(f.worst.Calls.Again)), anomaly.Size(f.worst.Bytes))
		}},
		{"imbalance", 0, func(f *File) Known { return fewOf(f, lim) }, nil, func(f finding) string {
			return fmt.Sprintf("For %s of the I/O time few did the work: %s of the %d that opened %s moved its bytes.",
				percent(f.seconds/a.IOTime), processes(float64(f.worst.Procs)), f.worst.Calls.Opened, f.worst.Name)
		}},
	} {
		f := find(j, a, k.limit, k.figure)
		if f.worst == nil || f.seconds < lim.Shadow*a.IOTime || float64(f.mean) <= k.limit {
			continue
		}
		amiss = amiss || k.rule == "unaligned" || k.rule == "random"
		c := Clause{Rule: k.rule, Value: f.mean, Limit: Known(k.limit), Cause: true, GainSeconds: f.seconds,
			Text: k.text(f)}
		if k.rule == "imbalance" {
			c.Value, c.Limit = Known(f.seconds/a.IOTime), Known(lim.Shadow)
		}
		if k.gain != nil {
			c.GainSeconds *= k.gain(f)
		}
		out = append(out, c)
	}
	m := &j.Metadata
	if opens := float64(m.Reopens) / float64(max(1, m.Requests)); opens >= p.Reopens && m.Reopens >= 100 &&
		m.Seconds > lim.Shadow*(m.Seconds+m.DataSeconds) {
		out = append(out, Clause{Rule: "open-close", Value: Known(opens), Limit: Known(p.Reopens), Cause: true,
			Text: fmt.Sprintf("Files were opened %d times more than once a process, for %d reads and writes: open "+
				"and close "+
				"go with each.", m.Reopens, m.Requests)})
	}
	return out
}

func independent(f finding) string {
	text := fmt.Sprintf("%s of the MPI-IO calls were independent though %s used one file, %s: collective ones would "+
		"merge and align them", percent(float64(f.mean)), processes(float64(f.worst.Procs)), f.worst.Name)
	if u := &f.worst.Calls.Above; u.Collective.OK() {
		text += fmt.Sprintf("; %s of the accesses were to be collective in %s", percent(float64(u.Collective)),
			u.Library)
	}
	return text + "."
}

// inflated is how many bytes a library moved for each that it was asked for.
func inflated(f *File, p PatternLimits) Known {
	u := &f.Calls.Above
	return ofMany(f, p, Known(cmp.Or(u.MPIIOBytes, f.Bytes))/Known(u.Bytes))
}

// split is how many small requests a library makes of each access.
func split(f *File, p PatternLimits) Known {
	const small = 1 << 20
	u := &f.Calls.Above
	if u.Accesses == 0 || requestSize(f) >= small {
		return Unknown()
	}
	return ofMany(f, p, Known(f.Calls.Requests)/Known(u.Accesses))
}

// blocking is the share of PnetCDF's accesses that were not gathered, where they are many and small.
func blocking(f *File, p PatternLimits) Known {
	const small = 1 << 20
	u := &f.Calls.Above
	if u.Library != "PnetCDF" || u.Accesses < p.Requests || u.Bytes >= small*float64(u.Accesses) {
		return Unknown()
	}
	return 1 - u.Nonblocking
}

func unaligned(f finding) string {
	c := f.worst.Calls
	return fmt.Sprintf("%s of the requests did not begin at a multiple of %s, the unit of the file system, and so "+
		"share its "+
		"blocks and locks with others; the most on %s: %d requests of %s on average.", percent(float64(f.mean)),
		unit(c.Alignment), f.worst.Name, c.Requests, anomaly.Size(requestSize(f.worst)))
}

// unit is a size that is a power of two, as a rule.
func unit(bytes int64) string {
	switch {
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// again is how often each byte of a file was moved, where its requests are many and of that direction.
func again(f *File, p PatternLimits, written bool) Known {
	if f.Written != written {
		return Unknown()
	}
	return ofMany(f, p, f.Calls.Again)
}

// saved is the part of the time that goes to bytes moved before.
func saved(f finding) float64 { return 1 - 1/float64(f.worst.Calls.Again) }

// ofMany is a figure of a file with so many requests that they are a pattern.
func ofMany(f *File, p PatternLimits, v Known) Known {
	if f.Calls.Requests < p.Requests {
		return Unknown()
	}
	return v
}

// fewOf is the share of the processes that left a file that they opened to others, each working by itself: collective
// I/O leaves it to several on purpose, but to one only where nobody set more. Unknown where many worked.
func fewOf(f *File, lim Limits) Known {
	few := float64(f.Procs) < lim.Dominant*float64(f.Calls.Opened)
	if !few || f.Collective > 0 && f.Procs > 1 {
		return Unknown()
	}
	return 1 - f.Procs/Known(f.Calls.Opened)
}

// misaligned is the share of a file's requests that were not aligned, where they are not so large that
// it costs nothing.
func misaligned(f *File, p PatternLimits) Known {
	const large = 16 // units of the file system
	if f.Calls.Requests < p.Requests || requestSize(f) > large*float64(f.Calls.Alignment) {
		return Unknown()
	}
	return f.Calls.Unaligned
}

// requestSize is the mean request, bytes.
func requestSize(f *File) float64 { return f.Bytes / float64(max(1, f.Calls.Requests)) }

// tiny is the mean size of the critical requests where they are many, so small that each call's own cost shows though
// they follow on each other, and what a process moved in a second of calls; 0 where they are not.
func tiny(j *Job, a *Answer, lim Limits) (size, rate float64) {
	var bytes, requests, seconds float64
	for _, c := range a.Critical {
		if f := &j.Files[c.File]; f.Calls != nil && !f.Calls.Metadata {
			bytes += f.Bytes
			requests += float64(f.Calls.Requests)
			seconds += f.Calls.AllSeconds
		}
	}
	if requests < float64(lim.Pattern.Requests) || !(seconds > 0) || bytes/requests >= lim.Pattern.TinyBytes ||
		bytes/seconds >= lim.LowBytesPerSec {
		return 0, 0
	}
	return bytes / requests, bytes / seconds
}
