package console

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"fairway/collector/topology"
	"fairway/webui/api"
)

// jobLoad is what one job's nodes do here.
type jobLoad struct {
	job               topology.JobID
	nodes             int
	read, write, meta *float64
}

func (l *jobLoad) moved() float64 {
	if v := Sum(l.read, l.write); v != nil {
		return *v
	}
	return 0
}

// jobsHere adds the clients up by job, the most bytes first; total is all of their bytes.
func (p *forwarderPage) jobsHere() (all []*jobLoad, total float64) {
	for i := range p.detail.Value.ClientNodes {
		c := &p.detail.Value.ClientNodes[i]
		at := slices.IndexFunc(all, func(l *jobLoad) bool { return l.job == c.Job })
		if at < 0 {
			at = len(all)
			all = append(all, &jobLoad{job: c.Job})
		}
		l := all[at]
		l.nodes++
		l.read, l.write, l.meta = Sum(l.read, c.ReadBytesPerSec), Sum(l.write, c.WriteBytesPerSec),
			Sum(l.meta, c.MetaOpsPerSec)
		if v := Sum(c.ReadBytesPerSec, c.WriteBytesPerSec); v != nil {
			total += *v
		}
	}
	slices.SortStableFunc(all, func(a, b *jobLoad) int { return cmp.Compare(b.moved(), a.moved()) })
	return all, total
}

// jobAt is the cursor's row; 0 until it is moved, and when its job is gone.
func (p *forwarderPage) jobAt(rows []*jobLoad) int {
	if !p.chose {
		return 0
	}
	return max(0, slices.IndexFunc(rows, func(l *jobLoad) bool { return l.job == p.job }))
}

// How many rows the page shows of jobs and of storage above its clients, and from which width they stand
// side by side.
const (
	shownBehind = 4
	wideBehind  = 110
	leftBehind  = 56
)

// behind is jobs and storage in short, above the clients: side by side where there is room, else only
// what the height leaves.
func (p *forwarderPage) behind(s *State, w, room int) []string {
	if s.Stale() {
		return nil
	}
	if w >= wideBehind {
		jobs, storage := p.jobs(s, leftBehind, shownBehind+1, false), p.storage(s, w-leftBehind-2, shownBehind+1, false)
		lines := make([]string, max(len(jobs), len(storage)))
		for i := range lines {
			var a, b string
			if i < len(jobs) {
				a = jobs[i]
			}
			if i < len(storage) {
				b = storage[i]
			}
			lines[i] = left(a, leftBehind) + " |" + b
		}
		return append(lines, rule(w))
	}
	short := 2 // a heading and the first row
	if room >= 14 {
		short = 3
	}
	lines := p.storage(s, w, short, false)
	if all, _ := p.jobsHere(); len(all) > 1 && room >= 12 { // of one job the clients say it
		lines = append(p.jobs(s, w, short, false), lines...)
	}
	return append(lines, rule(w))
}

// jobs lists the jobs here in h lines; with the cursor it is the list that has the keys.
func (p *forwarderPage) jobs(s *State, w, h int, cursor bool) []string {
	head := " JOB HERE          READ   WRITE    MD/s  NODES  SHARE%"
	all, total := p.jobsHere()
	if len(all) == 0 {
		return []string{clip(head, w), clip(" No compute node is seen to use it.", w)}
	}
	line := func(i int) string {
		l := *all[i]
		share := Part(Sum(l.read, l.write), total)
		if s.Stale() {
			l.read, l.write, l.meta, share = nil, nil, nil, nil
		}
		return " " + left(orMissing(string(l.job)), 14) + right(mega(l.read), 8) + right(mega(l.write), 8) +
			right(count(l.meta), 8) + right(strconv.Itoa(l.nodes), 7) + right(ratio(share), 8)
	}
	return listed(s, head, len(all), p.jobAt(all), w, h, cursor, actJobsHere, line)
}

// storage lists what the forwarder asks of storage in h lines; with the cursor it is the list that has the
// keys.
func (p *forwarderPage) storage(s *State, w, h int, cursor bool) []string {
	v := &p.detail.Value.Storage
	if len(v.Rows) == 0 {
		return []string{clip(" BACKEND   "+orMissing(v.Unknown), w)}
	}
	name, req := "BACKEND", "rpc/s"
	if v.By == api.StorageByServers {
		name = "BACKEND (servers)"
	}
	head := " " + left(name, 22) + right(req, 7) + right("MB/s", 8) + right("LATms", 8) + right("peers", 8)
	line := func(i int) string {
		r := v.Rows[i]
		if s.Stale() {
			r = api.StorageRow{Target: r.Target}
		}
		moved := mega(Sum(r.ReadBytesPerSec, r.WriteBytesPerSec))
		if r.Estimated && moved != missing {
			moved = "~" + moved
		}
		return " " + left(clean(r.Target), 22) + right(count(r.RequestsPerSec), 7) + right(moved, 8) +
			right(millis(r.LatencySeconds), 8) + right(millis(r.PeersLatency), 8)
	}
	p.target = min(p.target, len(v.Rows)-1)
	return listed(s, head, len(v.Rows), p.target, w, h, cursor, actStorage, line)
}

// listed draws a list with its heading in h lines: with the cursor all that there is to scroll, else its
// first rows and which key shows the others, on a line of its own or, where there is none, in the heading.
func listed(s *State, head string, n, at, w, h int, cursor bool, more Action, line func(int) string) []string {
	bold := func(head string) []string { return []string{s.Bold(clip(head, w))} }
	if cursor {
		return append(bold(head), Lines(s.Palette, n, at, w, h-1, "; "+s.Key(more)+" goes back", line)...)
	}
	rows, left := n, ""
	if n > h-1 {
		if rows = h - 1; rows > 2 {
			rows--
		}
		left = fmt.Sprintf(" : %d more (%s)", n-rows, s.Key(more))
	}
	if rows <= 2 {
		head, left = head+left, ""
	}
	lines := bold(head)
	for i := range rows {
		lines = append(lines, clip(line(i), w))
	}
	if left != "" {
		lines = append(lines, clip(left, w))
	}
	return lines
}

// clients lists the compute nodes with their rates.
func (p *forwarderPage) clients(s *State, w, h int) []string {
	all := p.detail.Value.ClientNodes
	heading := " CLIENT            READ   WRITE    MD/s  LATms  JOB"
	lines := []string{s.Bold(clip(heading, w))}
	if len(all) == 0 {
		if s.Replays() {
			return append(lines, clip(" No compute node is known to have used it then; "+s.Key(actHelp)+
				" says what is not kept.", w))
		}
		return append(lines, clip(" No compute node is seen to use this forwarder.", w))
	}
	at, old := p.client(), s.Stale()
	hide := func(v *float64) *float64 {
		if old {
			return nil
		}
		return v
	}
	return append(lines, Lines(s.Palette, len(all), at, w, h-1, "", func(i int) string {
		c := &all[i]
		return " " + left(clean(string(c.ID)), 14) + right(mega(hide(c.ReadBytesPerSec)), 8) +
			right(mega(hide(c.WriteBytesPerSec)), 8) +
			right(count(hide(c.MetaOpsPerSec)), 8) + right(millis(hide(c.LatencySeconds)), 7) + "  " +
			orMissing(string(c.Job))
	})...)
}
