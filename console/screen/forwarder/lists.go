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
		storage = append(storage, make([]string, max(0, len(jobs)-len(storage)))...)
		for i := range storage {
			storage[i] = " |" + storage[i]
		}
		lines := chart.Beside(jobs, leftBehind, storage)
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
		return " " + chart.Row([]int{-14, 8, 8, 8, 7, 8}, name, chart.Mega(l.read), chart.Mega(l.write),
			chart.Count(l.meta), strconv.Itoa(l.nodes), chart.Ratio(share))
	}
	return listed(s, head, len(all), p.jobAt(all), w, h, cursor, screen.ActJobsHere, line)
}

// storage lists what the forwarder asks of storage in h lines; with the cursor it is the list that has the keys.
func (p *Screen) storage(s *screen.State, w, h int, cursor bool) []string {
	v := &p.detail.Value.Storage
	if len(v.Rows) == 0 {
		return []string{chart.Clip(" BACKEND   "+chart.OrMissing(v.Unknown), w)}
	}
	name := "BACKEND"
	if v.By == api.StorageByServers {
		name = "BACKEND (servers)"
	}
	widths := []int{-22, 7, 8, 8, 8}
	head := " " + chart.Row(widths, name, "rpc/s", "MB/s", "LATms", "peers")
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
		text := " " + chart.Row(widths, chart.Clean(r.Target), chart.Count(r.RequestsPerSec), moved,
			chart.Millis(r.LatencySeconds), chart.Millis(r.PeersLatency))
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

// clients lists the compute nodes with their rates.
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
	var why []string
	if text := p.detail.Value.ClientsUnreported; text != "" && !s.Stale() {
		why = chart.Paragraphs(w, "No bytes or times from them: "+chart.Clean(text)+".")
	}
	lines = append(lines, table.Lines(s.Palette, len(all), p.client(), w, h-1-len(why), "", func(i int) string {
		c, mark := all[i], " "
		if p.marked[c.ID] {
			mark = "*"
		}
		if s.Stale() {
			c.ReadBytesPerSec, c.WriteBytesPerSec, c.MetaOpsPerSec, c.LatencySeconds = nil, nil, nil, nil
		}
		return mark + chart.Row([]int{-14, 8, 8, 8, 7}, chart.Clean(string(c.ID)), chart.Mega(c.ReadBytesPerSec),
			chart.Mega(c.WriteBytesPerSec), chart.Count(c.MetaOpsPerSec), chart.Millis(c.LatencySeconds)) + "  " +
			chart.OrMissing(string(c.Job)) + shareText(&c) + wayText(&c)
	})...)
	return append(lines, why...)
}
