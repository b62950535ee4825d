package rootcause

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Program is one of a batch job's programs, as its own log has it.
type Program struct {
	Job        Job
	Start, End time.Time
}

// overlaps says that two programs ran at the same time.
func (p *Program) overlaps(o *Program) bool { return p.Start.Before(o.End) && o.Start.Before(p.End) }

// Together is the job that several programs are: its I/O time is that of those which ran one after another, and of
// those at the same time that of the one with most, for programs work in phases as their processes do.
func Together(programs []Program) Job {
	out := Job{Procs: 0, RunSeconds: Unknown()}
	if len(programs) == 0 {
		return out
	}
	paths := make([][]Critical, len(programs))
	order := make([]int, len(programs))
	seconds := make([]float64, len(programs))
	first, last := programs[0].Start, programs[0].End
	for i := range programs {
		p := &programs[i]
		paths[i], order[i] = criticalPath(&p.Job), i
		for _, c := range paths[i] {
			seconds[i] += c.Exclusive
		}
		if p.Start.Before(first) {
			first = p.Start
		}
		if p.End.After(last) {
			last = p.End
		}
		out.Procs = max(out.Procs, procsBeside(programs, i))
		out.Metadata.join(&p.Job.Metadata)
		for _, n := range p.Job.Notes {
			if !slices.Contains(out.Notes, n) {
				out.Notes = append(out.Notes, n)
			}
		}
	}
	out.RunSeconds = Known(last.Sub(first).Seconds())
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(seconds[b], seconds[a]) })
	var kept []int
	for _, i := range order {
		beside := slices.ContainsFunc(kept, func(k int) bool { return programs[k].overlaps(&programs[i]) })
		if !beside {
			kept = append(kept, i)
		}
		out.take(&programs[i], paths[i], programs[i].Start.Sub(first).Seconds(), !beside)
	}
	return out
}

// procsBeside are the processes of the programs that ran when one began.
func procsBeside(programs []Program, i int) (sum Known) {
	at := programs[i].Start
	for k := range programs {
		p := &programs[k]
		if k == i || !p.Start.After(at) && p.End.After(at) {
			sum += Known(p.Job.Procs.or0())
		}
	}
	return sum
}

// join adds another program's metadata.
func (m *Metadata) join(o *Metadata) {
	m.Seconds, m.DataSeconds = m.Seconds+o.Seconds, m.DataSeconds+o.DataSeconds
	m.SlowestSeconds = max(m.SlowestSeconds, o.SlowestSeconds)
	m.Opens, m.Files = m.Opens+o.Opens, m.Files+o.Files
	m.Reopens, m.Requests = m.Reopens+o.Reopens, m.Requests+o.Requests
}

// take adds a program's files on the job's clock. One process stands for all that were critical in
// programs which count.
func (j *Job) take(p *Program, path []Critical, shift float64, counts bool) {
	critical := map[int]float64{}
	for _, c := range path {
		critical[c.File] += c.Exclusive
	}
	for i := range p.Job.Files {
		f := p.Job.Files[i]
		f.Start, f.End = f.Start+shift, f.End+shift
		if f.Calls == nil {
			if counts {
				j.Files = append(j.Files, f)
			}
			continue
		}
		calls := *f.Calls
		calls.Rank = AllRanks - 1 - int64(len(j.Files))
		if s := critical[i]; counts && s > 0 {
			calls.Rank, calls.Seconds = 0, math.Min(calls.Seconds, s)
		}
		if shift != 0 {
			calls.Heat = nil // is on its program's clock
		}
		calls.Trace = slices.Clone(calls.Trace)
		for k := range calls.Trace {
			calls.Trace[k] += shift
		}
		f.Calls = &calls
		j.Files = append(j.Files, f)
	}
}
