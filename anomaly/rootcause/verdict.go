package rootcause

import (
	"fmt"
	"slices"
	"strconv"

	"fairway/anomaly"
)

// judge says the verdict clause by clause: time and bandwidth, where the time went, how the critical
// files were used, and what was the matter on the way.
func judge(j *Job, a *Answer, lim Limits) []Clause {
	var out []Clause
	add := func(c Clause, holds bool) {
		if holds {
			out = append(out, c)
		}
	}
	if a.IOTime == 0 {
		text := "No I/O time: no file was read or written."
		if n := len(j.Files); n > 0 {
			text = fmt.Sprintf("No I/O time: none of %s was in I/O for any length of time.", anomaly.Counted(n, "file"))
		} else if len(j.Notes) > 0 {
			text = "How long I/O took is not known: the log has no times of it."
		}
		add(Clause{Rule: "io-time", Value: 0, Limit: Unknown(), Text: text}, true)
		add(metadata(j, lim))
		return append(out, notes(j)...)
	}
	out = append(out, ioTime(j, a, lim), bandwidth(a, lim))
	out = append(out, notes(j)...)
	add(ofTheRun(j, a, lim))
	add(busiestFile(j))
	add(oneFile(j, a, lim))
	add(oneProcess(j, a, lim))
	add(sharedFile(j, a, lim))
	add(serial(j, a, lim))
	add(metadata(j, lim))
	out = append(out, pattern(j, a, lim)...)
	single := slices.ContainsFunc(out, func(c Clause) bool { return c.Rule == "one-process" })
	for _, c := range requests(j, a, lim) {
		add(c, !single || c.Rule != "imbalance")
	}
	add(contention(a, lim))
	advise(j, a, out)
	out = append(out, onTheWay(j, a, lim)...)
	out = append(out, onTargets(j, a, lim)...)
	for _, c := range out {
		if c.Cause {
			return out
		}
	}
	return append(out, Clause{Rule: "none", Value: Known(len(a.Critical)), Limit: Unknown(),
		Text: fmt.Sprintf(
			"No factor passes its limit and nothing is recorded of the forwarders and targets: look at the %s "+
				"themselves.",
			anomaly.Counted(len(a.Critical), "critical file"))})
}

// notes are what the log lacks.
func notes(j *Job) (out []Clause) {
	for _, n := range j.Notes {
		out = append(out, Clause{Rule: "log", Value: Unknown(), Limit: Unknown(), Text: n})
	}
	return out
}

// OfTheRun says that I/O is so small a part of a run that nothing is to be won; ok is false where it is more.
func OfTheRun(ioSeconds, runSeconds float64, lim Limits) (text string, ok bool) {
	share := ioSeconds / runSeconds
	return fmt.Sprintf("I/O is %s of the run time (%s of %s): do not bother.", percent(share), secs(ioSeconds),
		secs(runSeconds)), runSeconds > 0 && share < lim.Bother
}

// ofTheRun is the clause of it.
func ofTheRun(j *Job, a *Answer, lim Limits) (Clause, bool) {
	text, ok := OfTheRun(a.IOTime, float64(j.RunSeconds), lim)
	return Clause{Rule: "of-the-run", Value: Known(a.IOTime / float64(j.RunSeconds)), Limit: Known(lim.Bother),
		Text: text}, ok
}

// busiestFile names the file whose calls took longest.
func busiestFile(j *Job) (Clause, bool) {
	f, all := busiest(j.Files)
	if f == nil || !(all > 0) {
		return Clause{}, false
	}
	share := f.Calls.AllSeconds / all
	c := Clause{Rule: "busiest", Value: Known(share), Limit: Unknown()}
	c.Text = fmt.Sprintf("The calls on %s took longest: %s of the %s of all processes (%s)", f.Name,
		secs(f.Calls.AllSeconds), secs(all), percent(share))
	switch {
	case f.Calls.Trace != nil:
		c.Text += fmt.Sprintf(", with some process in a call for %s, as traced", secs(f.Calls.Seconds))
	case j.Procs > 1:
		c.Text += fmt.Sprintf(", at most %s of one process", secs(f.Calls.Seconds))
	}
	if f.Calls.Layer == mpiio {
		c.Text += "; in MPI-IO, which waits for the calls below it"
	}
	c.Text += "."
	return c, true
}

func ioTime(j *Job, a *Answer, lim Limits) Clause {
	idle := max(0, a.Span-a.IOTime)
	c := Clause{Rule: "io-time", Value: Known(idle / a.Span), Limit: Known(lim.Idle)}
	c.Text = fmt.Sprintf("I/O took %s of a span of %s (%s)", secs(a.IOTime), secs(a.Span), percent(a.IOTime/a.Span))
	switch {
	case idle/a.Span <= lim.Idle:
	case a.bounded(j):
		c.Text += "; when in that span is not traced"
		if longest(a).active != nil {
			c.Text += " but is taken from the heat map"
		}
	default:
		c.Text += fmt.Sprintf("; for %s nothing was read or written", secs(idle))
	}
	c.Text += "."
	return c
}

func bandwidth(a *Answer, lim Limits) Clause {
	word := "not below"
	if float64(a.Bandwidth) < lim.LowBytesPerSec {
		word = "below"
	}
	return Clause{Rule: "bandwidth", Value: a.Bandwidth, Limit: Known(lim.LowBytesPerSec),
		Text: fmt.Sprintf("%s moved in that time is %s/s, %s the %s/s that counts as slow.",
			anomaly.Size(a.Bytes), anomaly.Size(float64(a.Bandwidth)), word, anomaly.Size(lim.LowBytesPerSec))}
}

// bounded says that the I/O time is the slowest process' time in calls, which lie somewhere in their files' spans.
func (a *Answer) bounded(j *Job) bool {
	return slices.ContainsFunc(a.Critical, func(c Critical) bool {
		calls := j.Files[c.File].Calls
		return calls != nil && calls.Trace == nil
	})
}

// longest returns the critical file with most exclusive time; a has at least one.
func longest(a *Answer) Critical {
	best := a.Critical[0]
	for _, c := range a.Critical[1:] {
		if c.Exclusive > best.Exclusive {
			best = c
		}
	}
	return best
}

// oneFile is a cause only where the file is in I/O alone: of files that all processes use at the same time, one that
// lasts a little longer than the others covers them all.
func oneFile(j *Job, a *Answer, lim Limits) (Clause, bool) {
	top := longest(a)
	share := top.Exclusive / a.IOTime
	c := Clause{Rule: "one-file", Value: Known(share), Limit: Known(lim.Dominant)}
	files := anomaly.Counted(len(j.Files), "file")
	if j.knowsCalls() {
		files = anomaly.Counted(len(j.Files), "use") + " of files"
	}
	c.Text = fmt.Sprintf("The critical path takes %d of %s; %s is %s of it (%s)", len(a.Critical), files, top.Name,
		percent(share), secs(top.Exclusive))
	if share > lim.Dominant {
		meanwhile := filesInIO(j.Files)(top)
		calls := j.Files[top.File].Calls
		c.Cause = meanwhile < lim.Overlap && (calls == nil || !calls.Metadata)
		if meanwhile >= lim.Overlap {
			c.Text += fmt.Sprintf(", with %s files in I/O at a time", short(meanwhile))
		}
	}
	if f := &j.Files[top.File]; c.Cause && f.Procs.OK() && f.OSTs.OK() {
		c.Text += fmt.Sprintf(": %s on %s", processes(float64(f.Procs)), anomaly.Counted(int(f.OSTs), "OST"))
	}
	c.Text += "."
	return c, true
}

// oneProcess is IOMiner's Physics1.2 and Chemistry1: the root process moves what all could.
func oneProcess(j *Job, a *Answer, lim Limits) (Clause, bool) {
	if !(j.Procs > 1) {
		return Clause{}, false
	}
	var single float64
	inIO := filesInIO(j.Files)
	for _, c := range a.Critical {
		if j.Files[c.File].Procs == 1 && inIO(c) < lim.Overlap {
			single += c.Exclusive
		}
	}
	share := single / a.IOTime
	return Clause{Rule: "one-process", Value: Known(share), Limit: Known(lim.Dominant), Cause: true,
		Text: fmt.Sprintf("For %s of the I/O time the critical file was used by one process alone, of the job's %.0f.",
			percent(share), float64(j.Procs)),
	}, share > lim.Dominant
}

// sharedFile is N-1: several processes write one file, each by itself. Where the file system takes locks on stripes
// they wait for each other's; a log does not show whether they did: the clause names a pattern, and no time lost by it.
// Collective I/O leaves the writing to few.
func sharedFile(j *Job, a *Answer, lim Limits) (Clause, bool) {
	var shared float64
	top := Critical{}
	for _, c := range a.Critical {
		if f := &j.Files[c.File]; f.Written && f.Procs > 1 && !(f.Collective > 0) {
			if shared += c.Exclusive; c.Exclusive > top.Exclusive {
				top = c
			}
		}
	}
	share := shared / a.IOTime
	if !(share > lim.Dominant) {
		return Clause{}, false
	}
	return Clause{Rule: "shared-file", Value: Known(share), Limit: Known(lim.Dominant), Cause: true,
		Text: fmt.Sprintf(
			"For %s of the I/O time %s wrote one shared file without collective I/O (N-1), the longest %s.",
			percent(share), processes(float64(j.Files[top.File].Procs)), top.Name)}, true
}

// metadata compares what the processes spent on opening, closing and looking at files with what they spent on bytes.
func metadata(j *Job, lim Limits) (Clause, bool) {
	m := &j.Metadata
	all := m.Seconds + m.DataSeconds
	if !(all > 0) {
		return Clause{}, false
	}
	share := m.Seconds / all
	long := m.SlowestSeconds > lim.Pattern.MetaSeconds && share > lim.Shadow
	c := Clause{Rule: "metadata", Value: Known(share), Limit: Known(lim.Dominant), Cause: share > lim.Dominant || long}
	c.Text = fmt.Sprintf("Of the time that the processes spent in calls on files %s was metadata (%s)", percent(share),
		secs(m.Seconds))
	if c.Cause {
		c.Text += fmt.Sprintf(": %s of %s", anomaly.Counted(int(m.Opens), "open"),
			anomaly.Counted(int(m.Files), "file"))
	}
	if long {
		c.Text += fmt.Sprintf("; one process spent %s so on one file", secs(m.SlowestSeconds))
	}
	c.Text += "."
	return c, true
}

// serial is IOMiner's App1: files used now and then, their times hardly overlapping.
func serial(j *Job, a *Answer, lim Limits) (Clause, bool) {
	var total, ioTime, squares float64
	for i := range j.Files {
		if c := j.Files[i].Calls; c == nil || !c.Metadata {
			total += j.Files[i].seconds()
		}
	}
	n := 0
	for _, p := range a.Critical {
		if c := j.Files[p.File].Calls; c == nil || !c.Metadata {
			n++
			ioTime, squares = ioTime+p.Exclusive, squares+p.Exclusive*p.Exclusive
		}
	}
	overlap := total / ioTime
	// A hundred files beside two that take all the time are not many.
	many := n >= lim.SerialFiles && (!j.knowsCalls() || ioTime*ioTime/squares >= float64(lim.SerialFiles))
	return Clause{Rule: "serial", Value: Known(overlap), Limit: Known(lim.Overlap), Cause: true,
		Text: fmt.Sprintf(
			"The files were used one after another: %.1f at a time on average, %s in turn on the critical path.",
			overlap, anomaly.Counted(n, "file")),
	}, many && overlap < lim.Overlap
}

// pattern judges small and non-consecutive requests together: small requests that follow on each other
// are merged on their way and are no cause (IOMiner section III-F).
func pattern(j *Job, a *Answer, lim Limits) []Clause {
	f := a.Factors
	small, scattered := float64(f.Small) > lim.Small, float64(f.Nonconsec) > lim.Nonconsec
	var out []Clause
	if f.Small.OK() {
		size, rate := tiny(j, a, lim)
		c := Clause{Rule: "small", Value: f.Small, Limit: Known(lim.Small), Cause: small &&
			(scattered || !f.Nonconsec.OK() || size > 0)}
		c.Text = fmt.Sprintf("%s of the requests were small", percent(float64(f.Small)))
		switch {
		case small && !c.Cause:
			c.Text += ", but they follow on each other and can be merged: not the cause"
		case small && !scattered && size > 0:
			c.Text += fmt.Sprintf(": they follow on each other, but at %s a call a process moved %s/s",
				anomaly.Size(size),
				anomaly.Size(rate))
		}
		c.Text += "."
		out = append(out, c)
	}
	if f.Nonconsec.OK() {
		out = append(out, Clause{Rule: "nonconsec", Value: f.Nonconsec, Limit: Known(lim.Nonconsec), Cause: scattered,
			Text: fmt.Sprintf("%s of the requests did not start where the one before ended.",
				percent(float64(f.Nonconsec)))})
	}
	if f.Collective.OK() {
		c := Clause{Rule: "collective", Value: f.Collective, Limit: Unknown()}
		c.Text = fmt.Sprintf("Collective I/O covers %s of the I/O time", percent(float64(f.Collective)))
		if f.Collective == 0 {
			c.Text = "Collective I/O was not used"
		}
		if f.Collective < 0.5 && small && scattered {
			c.Cause = true
			c.Text += "; it would merge the small scattered requests"
		}
		c.Text += "."
		out = append(out, c)
	}
	return out
}

func contention(a *Answer, lim Limits) (Clause, bool) {
	v := float64(a.Factors.ProcsPerOST)
	c := Clause{Rule: "procs-per-ost", Value: a.Factors.ProcsPerOST, Limit: Known(lim.ProcsPerOST),
		Cause: v > lim.ProcsPerOST}
	c.Text = fmt.Sprintf("The critical files had %s for each OST (mean stripe count %s)", processes(v),
		short(float64(a.Factors.OSTs)))
	if c.Cause {
		c.Text += fmt.Sprintf(", more than %s: the targets are crowded, a wider stripe would spread them",
			short(lim.ProcsPerOST))
	}
	c.Text += "."
	return c, a.Factors.ProcsPerOST.OK()
}

func secs(v float64) string    { return short(v) + " s" }
func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

// short prints a number with three digits that matter; large ones in full.
func short(v float64) string {
	if v >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// processes is a mean number of them.
func processes(v float64) string {
	if text := short(v); text != "1" {
		return text + " processes"
	}
	return "1 process"
}
