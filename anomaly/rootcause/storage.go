package rootcause

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/tsdb/history/iolog"
)

// Storage is what the storage servers' own record (LMT) says of the time in which a job ran.
type Storage struct {
	// Loads are of every target of the file system: what a job's targets moved says little without the others.
	Loads []Load `json:"loads"`
	// Peak is the most that a target of the file system was seen to move over a longer time, bytes/s. Without
	// it (0) nothing is called saturated: a steady job would be its own peak.
	Peak float64 `json:"peak_bytes_per_sec"`
	// Neighbours are other jobs' files on the same targets at that time.
	Neighbours []Neighbour `json:"neighbours"`
	// Begun is when the job's own clock was 0; zero where that is not known.
	Begun time.Time `json:"begun,omitzero"`
	// Unjoined says why there are no loads though there is a record.
	Unjoined string `json:"unjoined,omitempty"`
}

// Load is what a target moved in one interval, for everybody.
type Load struct {
	// Target is its name as the job's files give it.
	Target topology.TargetID `json:"target"`
	Start  float64           `json:"start"` // seconds on the job's own clock
	End    float64           `json:"end"`
	Bytes  float64           `json:"bytes"` // read and written
}

// Neighbour is what another job moved to and from one target.
type Neighbour struct {
	Job    topology.JobID    `json:"job"`
	App    string            `json:"app"`
	Target topology.TargetID `json:"target"`
	Bytes  float64           `json:"bytes"`
}

func (s *Storage) check() error {
	for i, l := range s.Loads {
		if !(math.Abs(l.Start) <= maxSeconds && l.End > l.Start && l.End <= maxSeconds && l.Bytes >= 0 &&
			l.Bytes <= maxCount) {
			return fmt.Errorf("storage.loads[%d] %q: start %v, end %v and bytes %v, want an interval and 0 or more", i,
				l.Target, l.Start, l.End, l.Bytes)
		}
	}
	if !(s.Peak >= 0 && s.Peak <= maxCount) {
		return fmt.Errorf("storage.peak_bytes_per_sec is %v, want bytes/s", s.Peak)
	}
	return nil
}

// FromAround joins a job of a log with what is recorded of the storage targets at that time. A Darshan log
// names its targets by number within a mounted file system, the servers by file system and number: the mount
// with most of the job's bytes counts, and j.Mounts says which file system it is. Where they cannot be joined
// j.Storage says why.
func (j *Job) FromAround(l *iolog.Log, a iolog.Around) {
	mount, recorded := busiestMount(l), fileSystems(a.OSTs)
	if len(recorded) == 0 {
		return
	}
	fs := j.Mounts.fileSystem(mount, recorded)
	switch all := strings.Join(recorded, ", "); {
	case mount == "":
		j.Storage.Unjoined = "the log does not name the storage targets of its files (it has no records of Lustre)"
		return
	case fs == "":
		j.Storage.Unjoined = fmt.Sprintf(
			"the job's files lie below %s, and which of %s is mounted there is not set", mount, all)
		return
	case !slices.Contains(recorded, fs):
		j.Storage.Unjoined = fmt.Sprintf("the job's files lie below %s on %s, and the record is of %s", mount, fs, all)
		return
	}
	for i := range j.Files {
		if f := &j.Files[i]; under(f.Name, mount) {
			for k, t := range f.Targets {
				f.Targets[k] = topology.TargetID(fs) + "-" + t
			}
		}
	}
	at := func(t time.Time) float64 { return t.Sub(l.Jobs[0].Start).Seconds() }
	j.Storage = Storage{Peak: a.PeakBytesPerSec[fs], Begun: l.Jobs[0].Start}
	for _, o := range a.OSTs {
		if read, written := Known(o.BytesRead), Known(o.BytesWritten); o.FS == fs && o.Seconds > 0 &&
			(read.OK() || written.OK()) {
			j.Storage.Loads = append(j.Storage.Loads, Load{Target: topology.TargetID(o.Target), Start: at(o.Time),
				End: at(o.Time) + o.Seconds, Bytes: read.or0() + written.or0()})
		}
	}
	for _, n := range a.Neighbours {
		if n.Mount == mount {
			j.Storage.Neighbours = append(j.Storage.Neighbours, Neighbour{Job: topology.JobID(n.JobID), App: n.App,
				Target: topology.TargetID(fs) + "-" + TargetOf(n.OST), Bytes: n.Bytes})
		}
	}
}

// or0 is the number as a term of a sum of which another is known.
func (k Known) or0() float64 {
	if k.OK() {
		return float64(k)
	}
	return 0
}

// busiestMount is where most bytes of files with named targets lie.
func busiestMount(l *iolog.Log) (mount string) {
	mounts, bytes := map[int64]string{}, map[string]int64{}
	for _, f := range l.Files {
		mounts[f.ID] = f.Mount
	}
	most := int64(-1)
	for _, f := range l.JobFiles {
		m := mounts[f.File]
		if m == "" || len(f.OSTs) == 0 {
			continue
		}
		bytes[m] += f.BytesRead + f.BytesWritten
		if b := bytes[m]; b > most || b == most && m < mount {
			mount, most = m, b
		}
	}
	return mount
}

// fileSystems are those that rows are of.
func fileSystems(rows []iolog.OST) (all []string) {
	for _, o := range rows {
		if len(all) == 0 || all[len(all)-1] != o.FS && !slices.Contains(all, o.FS) {
			all = append(all, o.FS)
		}
	}
	return all
}

// use is what one of the job's targets did in the I/O time of the files on it.
type use struct {
	target topology.TargetID
	bytes  float64 // moved, for everybody
	// rate is bytes/s at which the target's average byte moved: idle intervals do not count.
	rate      float64
	own       float64 // bytes of this job's files
	saturated float64 // seconds
	hot       float64 // seconds
	times     float64 // the mean of the file system, while hot
	seconds   float64 // of its loads
	lost      float64 // seconds in which it still worked at what its peers had done
	whole     *use    // of a slow one, the same target in the I/O time of all the job's files
	from, to  float64 // when it moved anything, seconds on the job's clock
}

// onTargets says of the targets under the critical files whether they were saturated, hot or slow. Each
// kind is one clause about the target that had it longest.
func onTargets(j *Job, a *Answer, lim Limits) []Clause {
	uses := targetUses(j, a, lim)
	if len(uses) == 0 && j.Storage.Unjoined != "" {
		return []Clause{{Rule: "osts", Value: Unknown(), Limit: Unknown(), Text: "The servers' record is not joined: " +
			j.Storage.Unjoined + "."}}
	}
	if len(uses) == 0 {
		return nil
	}
	t := &targets{job: j, ioTime: a.IOTime, lim: lim, peak: j.Storage.Peak, uses: uses, work: stragglers(j, uses, lim)}
	var out []Clause
	for _, k := range []struct {
		rule    string
		seconds func(*use) float64
		text    func(*use) string
	}{
		{"ost-saturated", func(u *use) float64 { return u.saturated }, t.saturated},
		{"ost-hot", func(u *use) float64 { return u.hot }, t.hot},
		{"ost-slow", func(u *use) float64 { return u.lost }, t.slow},
	} {
		worst := slices.MaxFunc(uses, func(a, b *use) int { return cmp.Compare(k.seconds(a), k.seconds(b)) })
		if s := k.seconds(worst); s > 0 {
			out = append(out, Clause{Rule: k.rule, Value: Known(s / a.IOTime), Limit: Known(lim.Shadow),
				Cause: s/a.IOTime >= lim.Shadow, outside: true,
				Text: k.text(worst) + t.alike(k.seconds) + "."})
		}
	}
	return append(out, t.summary())
}

// targets words the clauses.
type targets struct {
	job          *Job
	ioTime, peak float64 // seconds, bytes/s
	lim          Limits
	uses         []*use // under the critical files
	work         []*use // under all files
}

// when is a time on the job's clock, in words, and by the calendar where that is known.
func (s *Storage) when(from, to float64) string {
	if s.Begun.IsZero() {
		return fmt.Sprintf("from %s to %s of the job", secs(from), secs(to))
	}
	at := func(seconds float64) time.Time { return s.Begun.Add(time.Duration(seconds * 1e9)).UTC() }
	return fmt.Sprintf("from %s to %s UTC", at(from).Format(time.DateTime), at(to).Format(time.TimeOnly))
}

func (t *targets) saturated(u *use) string {
	return fmt.Sprintf(
		"Storage target %s was saturated for %s of the I/O time (%s): at least %s of %s/s, the most seen of a target "+
			"there; %s",
		u.target, secs(u.saturated), percent(u.saturated/t.ioTime), percent(t.lim.Saturated), anomaly.Size(t.peak),
		t.whose(u))
}

func (t *targets) hot(u *use) string {
	return fmt.Sprintf(
		"Storage target %s was hot for %s of the I/O time (%s): it moved %s times as much as the file system's "+
			"targets on average; %s",
		u.target, secs(u.hot), percent(u.hot/t.ioTime), short(u.times), t.whose(u))
}

func (t *targets) slow(u *use) string {
	w := u.whole
	return fmt.Sprintf(
		"Storage target %s was slow for everybody %s: it moved %s at %s/s, the job's other targets as much at %s/s "+
			"(median), and worked %s longer (%s of the I/O time); %s of it was this job's own",
		u.target, t.job.Storage.when(w.from, w.to), anomaly.Size(w.bytes), anomaly.Size(w.rate),
		anomaly.Size(median(t.work, func(u *use) float64 { return u.rate })), secs(u.lost), percent(u.lost/t.ioTime),
		percent(min(1, w.own/w.bytes)))
}

// whose says who moved the bytes of a target: this job, a job known by name, or somebody.
func (t *targets) whose(u *use) string {
	own := min(1, u.own/u.bytes)
	text := percent(own) + " of it was this job's own"
	if own >= t.lim.Dominant {
		return text + ", which a wider stripe would spread"
	}
	var most *Neighbour
	for i := range t.job.Storage.Neighbours {
		if n := &t.job.Storage.Neighbours[i]; n.Target == u.target && (most == nil || n.Bytes > most.Bytes) {
			most = n
		}
	}
	if most == nil {
		return text + ", and no log shows whose the rest was"
	}
	return fmt.Sprintf("%s, job %s (%s) moved %s there", text, most.Job, most.App, anomaly.Size(most.Bytes))
}

// alike counts the other targets that had it for long enough.
func (t *targets) alike(seconds func(*use) float64) string {
	n := -1
	for _, u := range t.uses {
		if seconds(u)/t.ioTime >= t.lim.Shadow {
			n++
		}
	}
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("; also %d more of the job's %d targets", n, len(t.uses))
}

func (t *targets) summary() Clause {
	busiest := slices.MaxFunc(t.uses, func(a, b *use) int { return cmp.Compare(a.rate, b.rate) })
	c := Clause{Rule: "osts", Value: Unknown(), Limit: Known(t.lim.Saturated)}
	c.Text = fmt.Sprintf("The servers' record knows %s of the job; the busiest, %s, moved its bytes at %s/s on average",
		anomaly.Counted(len(t.uses), "storage target"), busiest.target, anomaly.Size(busiest.rate))
	if t.peak > 0 {
		c.Value = Known(busiest.rate / t.peak)
		c.Text += fmt.Sprintf(", %s of the most seen", percent(busiest.rate/t.peak))
	}
	c.Text += "."
	return c
}

// minRate is the share of the largest load below which a target is idle whatever its neighbours do; ours.
const minRate = 0.1

// targetUses weighs every load of the job's targets by the part of it that lies in the I/O time of the
// critical files on that target.
func targetUses(j *Job, a *Answer, lim Limits) []*use {
	if len(j.Storage.Loads) == 0 {
		return nil
	}
	pieces := map[topology.TargetID][]Critical{}
	for _, c := range a.Critical {
		for _, t := range j.Files[c.File].Targets {
			// an overstriped file lists a target twice
			if n := len(pieces[t]); n == 0 || pieces[t][n-1].File != c.File {
				pieces[t] = append(pieces[t], c)
			}
		}
	}
	most, means := j.Storage.Peak, meanRates(j.Storage.Loads)
	for _, l := range j.Storage.Loads {
		most = max(most, l.Bytes/(l.End-l.Start))
	}
	uses := j.uses(pieces, func(u *use, start, rate, seconds float64) {
		if j.Storage.Peak > 0 && rate >= lim.Saturated*j.Storage.Peak {
			u.saturated += seconds
		}
		if mean := means[start]; rate > 0 && rate >= lim.Hot*mean && rate >= minRate*most {
			u.hot += seconds
			u.times += rate / mean * seconds
		}
	})
	for _, u := range uses {
		if u.hot > 0 {
			u.times /= u.hot
		}
	}
	return uses
}

// uses sums up what each target did within its pieces, by name; also is called for each load with the seconds of it
// that lie there.
func (j *Job) uses(pieces map[topology.TargetID][]Critical, also func(u *use, start, rate, seconds float64)) []*use {
	own := map[topology.TargetID]float64{}
	for i := range j.Files {
		for _, t := range j.Files[i].Targets {
			own[t] += j.Files[i].Bytes / float64(len(j.Files[i].Targets))
		}
	}
	found := map[topology.TargetID]*use{}
	var order []*use
	for _, l := range j.Storage.Loads {
		seconds := within(pieces[l.Target], l.Start, l.End)
		if seconds == 0 {
			continue
		}
		u := found[l.Target]
		if u == nil {
			u = &use{target: l.Target, own: own[l.Target]}
			found[l.Target], order = u, append(order, u)
		}
		if l.Bytes > 0 {
			if u.bytes == 0 || l.Start < u.from {
				u.from = l.Start
			}
			u.to = max(u.to, l.End)
		}
		rate := l.Bytes / (l.End - l.Start)
		u.seconds += seconds
		u.bytes += rate * seconds
		u.rate += rate * rate * seconds
		also(u, l.Start, rate, seconds)
	}
	for _, u := range order {
		if u.bytes > 0 {
			u.rate /= u.bytes
		}
	}
	slices.SortFunc(order, func(a, b *use) int { return cmp.Compare(a.target, b.target) })
	return order
}

// inIO are the times in which any of the job's files on a target was in I/O, as pieces that do not overlap.
func inIO(files []File) map[topology.TargetID][]Critical {
	out := map[topology.TargetID][]Critical{}
	order := make([]*File, len(files))
	for i := range files {
		order[i] = &files[i]
	}
	slices.SortFunc(order, func(a, b *File) int { return cmp.Compare(a.Start, b.Start) })
	for _, f := range order {
		for _, t := range f.Targets {
			if n := len(out[t]); n > 0 && f.Start <= out[t][n-1].End {
				p := &out[t][n-1]
				p.End = max(p.End, f.End)
				p.Exclusive = p.End - p.Start
			} else {
				out[t] = append(out[t], Critical{Start: f.Start, End: f.End, Exclusive: f.End - f.Start, apart: true})
			}
		}
	}
	return out
}

// meanRates is what the targets moved on average, bytes/s, by the start of the interval.
func meanRates(loads []Load) map[float64]float64 {
	sum, n := map[float64]float64{}, map[float64]float64{}
	for _, l := range loads {
		sum[l.Start] += l.Bytes / (l.End - l.Start)
		n[l.Start]++
	}
	for at := range sum {
		sum[at] /= n[at]
	}
	return sum
}

// Targets that a job spreads its files over get equal work. minPeers of them show what is usual; one that did at
// least sameWork of the usual at no more than lim.Slow of the usual rate was slow. Both are ours.
const (
	minPeers = 4
	sameWork = 0.8
)

// stragglers compares all of the job's targets in the I/O time of all its files, and marks the slow ones among
// those under the critical files: the seconds of the critical path in which they still worked.
func stragglers(j *Job, critical []*use, lim Limits) (work []*use) {
	work = j.uses(inIO(j.Files), func(*use, float64, float64, float64) {})
	if len(work) < minPeers {
		return work
	}
	usual := median(work, func(u *use) float64 { return u.bytes })
	rate := median(work, func(u *use) float64 { return u.rate })
	for _, u := range critical {
		i, found := slices.BinarySearchFunc(work, u.target,
			func(w *use, t topology.TargetID) int { return cmp.Compare(w.target, t) })
		if !found {
			continue
		}
		if w := work[i]; w.rate > 0 && w.bytes >= sameWork*usual && w.rate <= lim.Slow*rate {
			u.lost, u.whole = min(w.bytes/w.rate-usual/rate, u.seconds), w
		}
	}
	return work
}

func median(uses []*use, of func(*use) float64) float64 {
	values := make([]float64, len(uses))
	for i, u := range uses {
		values[i] = of(u)
	}
	return anomaly.Median(values)
}
