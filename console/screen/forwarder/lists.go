package forwarder

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
	"fairway/webui/api"
)

// jobLoad is what one job's nodes do here.
type jobLoad struct {
	job               topology.JobID
	nodes             int
	read, write, meta *float64
}

func (l *jobLoad) moved() float64 {
	if v := screen.Sum(l.read, l.write); v != nil {
		return *v
	}
	return 0
}

// jobsHere adds the clients up by job, the most bytes first; total is all of their bytes.
func (p *Screen) jobsHere() (all []*jobLoad, total float64) {
	for i := range p.detail.Value.ClientNodes {
		c := &p.detail.Value.ClientNodes[i]
		at := slices.IndexFunc(all, func(l *jobLoad) bool { return l.job == c.Job })
		if at < 0 {
			at = len(all)
			all = append(all, &jobLoad{job: c.Job})
		}
		l := all[at]
		l.nodes++
		l.read, l.write, l.meta = screen.Sum(l.read, c.ReadBytesPerSec), screen.Sum(l.write, c.WriteBytesPerSec),
			screen.Sum(l.meta, c.MetaOpsPerSec)
		if v := screen.Sum(c.ReadBytesPerSec, c.WriteBytesPerSec); v != nil {
			total += *v
		}
	}
	slices.SortStableFunc(all, func(a, b *jobLoad) int { return cmp.Compare(b.moved(), a.moved()) })
	return all, total
}

// jobAt is the cursor's row; 0 until it is moved, and when its job is gone.
func (p *Screen) jobAt(rows []*jobLoad) int {
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
func (p *Screen) behind(s *screen.State, w, room int) []string {
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
			lines[i] = chart.Left(a, leftBehind) + " |" + b
		}
		return append(lines, s.Palette.Rule(w))
	}
	short := 2 // a heading and the first row
	if room >= 14 {
		short = 3
	}
	lines := p.storage(s, w, short, false)
	if all, _ := p.jobsHere(); len(all) > 1 && room >= 12 { // of one job the clients say it
		lines = append(p.jobs(s, w, short, false), lines...)
	}
	return append(lines, s.Palette.Rule(w))
}

// jobs lists the jobs here in h lines; with the cursor it is the list that has the keys.
func (p *Screen) jobs(s *screen.State, w, h int, cursor bool) []string {
	head := " JOB HERE          READ   WRITE    MD/s  NODES  SHARE%"
	all, total := p.jobsHere()
	if len(all) == 0 {
		return []string{chart.Clip(head, w), chart.Clip(" No compute node is seen to use it.", w)}
	}
	line := func(i int) string {
		l := *all[i]
		share := screen.Part(screen.Sum(l.read, l.write), total)
		if s.Stale() {
			l.read, l.write, l.meta, share = nil, nil, nil, nil
		}
		name := "no job known"
		if l.job != "" {
			name = chart.Clean(string(l.job))
		}
		return " " + chart.Left(name, 14) + chart.Right(chart.Mega(l.read), 8) +
			chart.Right(chart.Mega(l.write), 8) +
			chart.Right(chart.Count(l.meta), 8) + chart.Right(strconv.Itoa(l.nodes), 7) +
			chart.Right(chart.Ratio(share), 8)
	}
	return listed(s, head, len(all), p.jobAt(all), w, h, cursor, screen.ActJobsHere, line)
}

// storage lists what the forwarder asks of storage in h lines; with the cursor it is the list that has the keys.
func (p *Screen) storage(s *screen.State, w, h int, cursor bool) []string {
	v := &p.detail.Value.Storage
	if len(v.Rows) == 0 {
		return []string{chart.Clip(" BACKEND   "+chart.OrMissing(v.Unknown), w)}
	}
	name, req := "BACKEND", "rpc/s"
	if v.By == api.StorageByServers {
		name = "BACKEND (servers)"
	}
	head := " " + chart.Left(name, 22) + chart.Right(req, 7) + chart.Right("MB/s", 8) + chart.Right("LATms", 8) +
		chart.Right("peers", 8)
	const most = 22 // who does most there
	names := w >= 54+most && slices.ContainsFunc(v.Rows, func(r api.StorageRow) bool { return r.Most != nil })
	if names {
		head += "  " + chart.Left("MOST BY", most)
	}
	line := func(i int) string {
		r := v.Rows[i]
		if s.Stale() {
			r = api.StorageRow{Target: r.Target}
		}
		moved := chart.Mega(screen.Sum(r.ReadBytesPerSec, r.WriteBytesPerSec))
		if r.Estimated && moved != chart.Missing {
			moved = "~" + moved
		}
		text := " " + chart.Left(chart.Clean(r.Target), 22) + chart.Right(chart.Count(r.RequestsPerSec), 7) +
			chart.Right(moved, 8) +
			chart.Right(chart.Millis(r.LatencySeconds), 8) + chart.Right(chart.Millis(r.PeersLatency), 8)
		if names && r.Most != nil {
			text += "  " + chart.Left(fmt.Sprintf("%s %.0f%%", chart.Clean(r.Most.Who), 100*r.Most.Part()), most)
		}
		return text
	}
	p.target = min(p.target, len(v.Rows)-1)
	return listed(s, head, len(v.Rows), p.target, w, h, cursor, screen.ActStorage, line)
}

// listed draws a list with its heading in h lines: with the cursor all that there is to scroll, else its
// first rows and which key shows the others, on a line of its own or, without one, in the heading.
func listed(s *screen.State, head string, n, at, w, h int, cursor bool, more screen.Action,
	line func(int) string) []string {
	bold := func(head string) []string { return []string{s.Bold(chart.Clip(head, w))} }
	if cursor {
		return append(bold(head), table.Lines(s.Palette, n, at, w, h-1, "; "+s.Key(more)+" goes back", line)...)
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
		lines = append(lines, chart.Clip(line(i), w))
	}
	if left != "" {
		lines = append(lines, chart.Clip(left, w))
	}
	return lines
}

// clients lists the compute nodes with their rates.
// shareText says which part of a node's traffic goes here, of one that uses several forwarders.
func shareText(c *api.ClientRow) string {
	switch {
	case c.Share == nil:
		return ""
	case c.ShareAssumed:
		return fmt.Sprintf("  (about %.0f %% of it here)", 100**c.Share)
	}
	return fmt.Sprintf("  (%.0f %% of it here)", 100**c.Share)
}

// wayText says that what a client reports comes late.
func wayText(c *api.ClientRow) string {
	switch way := c.Way; {
	case way == nil:
		return ""
	case way.LateSeconds > lateClient:
		return fmt.Sprintf("  %.1f s late", way.LateSeconds)
	}
	return ""
}

// lateClient is from where on it is worth the room that a client's seconds come late.
const lateClient = 5

func (p *Screen) clients(s *screen.State, w, h int) []string {
	all := p.detail.Value.ClientNodes
	heading := " CLIENT            READ   WRITE    MD/s  LATms  JOB"
	lines := []string{s.Bold(chart.Clip(heading, w))}
	if len(all) == 0 {
		if s.Replays() {
			return append(lines, chart.Clip(" No compute node is known to have used it then; "+s.Key(screen.ActHelp)+
				" says what is not kept.", w))
		}
		return append(lines, chart.Clip(" No compute node is seen to use this forwarder.", w))
	}
	at, old := p.client(), s.Stale()
	hide := func(v *float64) *float64 {
		if old {
			return nil
		}
		return v
	}
	var why []string
	if text := p.detail.Value.ClientsUnreported; text != "" && !old {
		why = chart.Paragraphs(w, "No bytes or times from them: "+chart.Clean(text)+".")
	}
	lines = append(lines, table.Lines(s.Palette, len(all), at, w, h-1-len(why), "", func(i int) string {
		c, mark := &all[i], " "
		if p.marked[c.ID] {
			mark = "*"
		}
		return mark + chart.Left(chart.Clean(string(c.ID)), 14) + chart.Right(chart.Mega(hide(c.ReadBytesPerSec)), 8) +
			chart.Right(chart.Mega(hide(c.WriteBytesPerSec)), 8) +
			chart.Right(chart.Count(hide(c.MetaOpsPerSec)), 8) + chart.Right(chart.Millis(hide(c.LatencySeconds)), 7) +
			"  " +
			chart.OrMissing(string(c.Job)) + shareText(c) + wayText(c)
	})...)
	return append(lines, why...)
}
