package rootcause

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

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
		if !(math.Abs(l.Start) <= maxSeconds && l.End > l.Start && l.End <= maxSeconds && l.Bytes >= 0 && l.Bytes <= maxCount) {
			return fmt.Errorf("storage.loads[%d] %q: start %v, end %v and bytes %v, want an interval and 0 or more", i, l.Target, l.Start, l.End, l.Bytes)
		}
	}
	if !(s.Peak >= 0 && s.Peak <= maxCount) {
		return fmt.Errorf("storage.peak_bytes_per_sec is %v, want bytes/s", s.Peak)
	}
	return nil
}

// FromAround joins a job of a log with what the archive knows of the storage targets at that time. A
// Darshan log names its targets by number within a mounted file system, the servers by file system and
// number: the mount with most of the job's bytes is taken for the file system that has its name, or for
// the only one there is. Where neither tells, nothing is joined.
func (j *Job) FromAround(l *iolog.Log, a iolog.Around) {
	mount := busiestMount(l)
	fs := fileSystem(mount, a.OSTs)
	if mount == "" || fs == "" {
		return
	}
	for i := range j.Files {
		if f := &j.Files[i]; strings.HasPrefix(f.Name, strings.TrimSuffix(mount, "/")+"/") {
			for k, t := range f.Targets {
				f.Targets[k] = topology.TargetID(fs) + "-" + t
			}
		}
	}
	at := func(t time.Time) float64 { return t.Sub(l.Jobs[0].Start).Seconds() }
	j.Storage = Storage{Peak: a.PeakBytesPerSec[fs]}
	for _, o := range a.OSTs {
		if read, written := Known(o.BytesRead), Known(o.BytesWritten); o.FS == fs && o.Seconds > 0 && (read.OK() || written.OK()) {
			j.Storage.Loads = append(j.Storage.Loads, Load{Target: topology.TargetID(o.Target), Start: at(o.Time), End: at(o.Time) + o.Seconds, Bytes: read.or0() + written.or0()})
		}
	}
	for _, n := range a.Neighbours {
		if n.Mount == mount {
			j.Storage.Neighbours = append(j.Storage.Neighbours, Neighbour{Job: topology.JobID(n.JobID), App: n.App, Target: topology.TargetID(fs) + "-" + TargetOf(n.OST), Bytes: n.Bytes})
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

func fileSystem(mount string, rows []iolog.OST) string {
	var all []string
	for _, o := range rows {
		if len(all) == 0 || all[len(all)-1] != o.FS && !slices.Contains(all, o.FS) {
			all = append(all, o.FS)
		}
	}
	switch {
	case slices.Contains(all, path.Base(mount)):
		return path.Base(mount)
	case len(all) == 1:
		return all[0]
	}
	return ""
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
	lost      float64 // seconds in which it still worked at what its peers had done
}

// onTargets says of the targets under the critical files whether they were saturated, hot or slow. Each
// kind is one clause about the target that had it longest.
func onTargets(j *Job, a *Answer, lim Limits) []Clause {
	uses := targetUses(j, a, lim)
	if len(uses) == 0 {
		return nil
	}
	t := &targets{job: j, ioTime: a.IOTime, lim: lim, peak: j.Storage.Peak, uses: uses}
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
			out = append(out, Clause{Rule: k.rule, Value: Known(s / a.IOTime), Limit: Known(lim.Shadow), Cause: s/a.IOTime >= lim.Shadow,
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
	uses         []*use
}

func (t *targets) saturated(u *use) string {
	return fmt.Sprintf("Storage target %s was saturated for %s of the I/O time (%s): at least %s of %s/s, the most seen of a target there; %s",
		u.target, secs(u.saturated), percent(u.saturated/t.ioTime), percent(t.lim.Saturated), size(t.peak), t.whose(u))
}

func (t *targets) hot(u *use) string {
	return fmt.Sprintf("Storage target %s was hot for %s of the I/O time (%s): it moved %s times as much as the file system's targets on average; %s",
		u.target, secs(u.hot), percent(u.hot/t.ioTime), short(u.times), t.whose(u))
}

func (t *targets) slow(u *use) string {
	return fmt.Sprintf("Storage target %s was slow: it moved %s at %s/s, the job's other targets as much at %s/s (median), and worked %s longer (%s of the I/O time)",
		u.target, size(u.bytes), size(u.rate), size(median(t.uses, func(u *use) float64 { return u.rate })), secs(u.lost), percent(u.lost/t.ioTime))
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
		return text + ", and no log tells whose the rest was"
	}
	return fmt.Sprintf("%s, job %s (%s) moved %s there", text, most.Job, most.App, size(most.Bytes))
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
		count(len(t.uses), "storage target"), busiest.target, size(busiest.rate))
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
// files on that target.
func targetUses(j *Job, a *Answer, lim Limits) []*use {
	if len(j.Storage.Loads) == 0 {
		return nil
	}
	pieces, own := map[topology.TargetID][]Critical{}, map[topology.TargetID]float64{}
	for _, c := range a.Critical {
		for _, t := range j.Files[c.File].Targets {
			if n := len(pieces[t]); n == 0 || pieces[t][n-1].File != c.File { // an overstriped file lists a target twice
				pieces[t] = append(pieces[t], c)
			}
		}
	}
	for i := range j.Files {
		for _, t := range j.Files[i].Targets {
			own[t] += j.Files[i].Bytes / float64(len(j.Files[i].Targets))
		}
	}
	most, means := j.Storage.Peak, meanRates(j.Storage.Loads)
	for _, l := range j.Storage.Loads {
		most = max(most, l.Bytes/(l.End-l.Start))
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
		rate := l.Bytes / (l.End - l.Start)
		u.bytes += rate * seconds
		u.rate += rate * rate * seconds
		if j.Storage.Peak > 0 && rate >= lim.Saturated*j.Storage.Peak {
			u.saturated += seconds
		}
		if mean := means[l.Start]; rate > 0 && rate >= lim.Hot*mean && rate >= minRate*most {
			u.hot += seconds
			u.times += rate / mean * seconds
		}
	}
	for _, u := range order {
		if u.bytes > 0 {
			u.rate /= u.bytes
		}
		if u.hot > 0 {
			u.times /= u.hot
		}
	}
	stragglers(order, lim)
	slices.SortFunc(order, func(a, b *use) int { return cmp.Compare(a.target, b.target) })
	return order
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

// Targets that are striped over get equal work. minPeers of them tell what is usual; one that did at
// least sameWork of the usual at no more than lim.Slow of the usual rate was slow. Both are ours.
const (
	minPeers = 4
	sameWork = 0.8
)

func stragglers(uses []*use, lim Limits) {
	if len(uses) < minPeers {
		return
	}
	usual := median(uses, func(u *use) float64 { return u.bytes })
	rate := median(uses, func(u *use) float64 { return u.rate })
	for _, u := range uses {
		if u.rate > 0 && u.bytes >= sameWork*usual && u.rate <= lim.Slow*rate {
			u.lost = u.bytes/u.rate - usual/rate
		}
	}
}

func median(uses []*use, of func(*use) float64) float64 {
	values := make([]float64, len(uses))
	for i, u := range uses {
		values[i] = of(u)
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
