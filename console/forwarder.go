package console

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/collector/topology"
	"fairway/remap"
)

// sparkSpan is the time a sparkline covers.
const sparkSpan = 5 * time.Minute

// forwarderPage is one forwarder: its load against its peers, its clients, its findings.
type forwarderPage struct {
	judging
	id     topology.ForwarderID
	detail ForwarderDetail
	have   bool
	err    error
	asking bool
	cursor topology.NodeID
	asked  question
	probe  bool // a canary is under way
}

func newForwarderPage(id string) *forwarderPage { return &forwarderPage{id: topology.ForwarderID(id)} }

func (p *forwarderPage) name() string           { return onForwarder }
func (p *forwarderPage) address(*State) Address { return Address{Page: "forwarders", ID: string(p.id)} }

func (p *forwarderPage) refresh(s *State, ask *asker) tea.Cmd {
	if p.asking {
		return nil
	}
	p.asking = true
	if s.replay != nil {
		return ask.forwarderAt(p.id, s.replay.at)
	}
	return ask.forwarder(p.id)
}

func (p *forwarderPage) answer(s *State, _ *asker, msg tea.Msg) tea.Cmd {
	if c, ok := msg.(answer[remap.Canary]); ok {
		p.probed(s, c)
		return nil
	}
	a, ok := msg.(answer[ForwarderDetail])
	if !ok {
		p.judging.answer(s, msg)
		return nil
	}
	p.asking = false
	if p.err = a.req.Err; p.err == nil && a.value.ID == p.id {
		p.detail, p.have = a.value, true
	}
	return nil
}

func (p *forwarderPage) act(s *State, ask *asker, a action) tea.Cmd {
	if a != p.asked.act {
		p.asked = question{}
	}
	clients := p.detail.ClientNodes
	at := slices.IndexFunc(clients, func(c ClientRow) bool { return c.ID == p.cursor })
	switch a {
	case actCanary:
		return p.askCanary(s, ask)
	case actExclude:
		row := s.forwarder(p.id)
		if row == nil {
			s.Note = "refused: " + clean(string(p.id)) + " is not in the picture"
			return nil
		}
		p.withhold(ask, row)
	case actPropose:
		if at < 0 {
			return s.open(ask, newProposePage(p.id, nil))
		}
		return s.open(ask, newProposePage(p.id, []topology.NodeID{p.cursor}))
	default:
		if steps[a] != 0 && len(clients) > 0 {
			// Above the first client nobody is selected: p then moves all of them.
			if next := min(at+steps[a], len(clients)-1); next < 0 {
				p.cursor = ""
			} else {
				p.cursor = clients[next].ID
			}
		}
	}
	return nil
}

func (p *forwarderPage) title(s *State, _ int) string {
	title := " " + clean(string(p.id))
	r := s.forwarder(p.id)
	if r == nil {
		return title
	}
	title += "   " + strings.ToUpper(string(s.standing(r)))
	if r.State == remap.ForwarderStale {
		title += " since " + clock(r.LastSeen)
	}
	if r.Rack != "" {
		title += "   rack " + clean(r.Rack)
	}
	return title + fmt.Sprintf("   serves %d compute nodes", r.Clients)
}

func (p *forwarderPage) body(s *State, w, h int) []string {
	if !p.have {
		if p.err != nil {
			return []string{"", clip(" "+clean(p.err.Error()), w), " " + s.adviceFor(p.err)}
		}
		return []string{"", " Asking for " + clean(string(p.id)) + "."}
	}
	lines := p.load(s, w)
	lines = append(lines, p.findings(s, w)...)
	lines = append(lines, p.canary(s, w)...)
	lines = append(lines, rule(w))
	if h >= roomForJobs {
		lines = append(lines, p.jobs(s, w)...)
	}
	return append(lines, p.clients(s, w, h-len(lines))...)
}

// adviceFor says what to do about an error of a read.
func (s *State) adviceFor(err error) string {
	switch {
	case errors.Is(err, ErrNotFound):
		return "It is not part of the machine as the server knows it; " + s.key(actGo) + " finds names."
	case errors.Is(err, ErrNotAllowed):
		return "Ask an admin of the site for the viewer role, or sign in with --token-file."
	case errors.Is(err, ErrUnreachable):
		return "Asking again with the next second."
	}
	return s.key(actRequests) + " shows the requests that were sent."
}

// load draws read and write as sparklines, then the numbers of this second against the peers'.
func (p *forwarderPage) load(s *State, w int) []string {
	d := &p.detail
	r := s.forwarder(p.id)
	if r == nil {
		r = &d.ForwarderRow
	}
	var lines []string
	for _, m := range []struct {
		label, metric string
		now           *float64
	}{{"READ ", "read_bytes", r.ReadBytesPerSec}, {"WRITE", "write_bytes", r.WriteBytesPerSec}} {
		points := d.Series[m.metric]
		top := largest(points, d.PeakBytesPerSec/100)
		head := fmt.Sprintf(" %s %s  ", m.label, right(mega(s.value(r, m.now))+" MB/s", 11))
		end := s.Shown.At.Add(time.Second)
		foot := fmt.Sprintf("  5 min, top %s%s", mega(&top), peers(mega(d.PeersMedian[m.metric])))
		lines = append(lines, clip(head+sparkline(points, end, sparkSpan, top, min(60, w-1-len(head)-len(foot)))+foot, w))
	}
	ops := fmt.Sprintf(" queue %s%s   md wait %s ms%s   md ops %s/s   in server %s ms%s   errors %s/s   occupancy %s%%",
		count(s.value(r, r.QueueLen)), peers(count(d.PeersMedian["queue_len"])), millis(s.value(r, r.MetaWaitSeconds)), peers(millis(d.PeersMedian["meta_wait"])),
		count(s.value(r, r.MetaOpsPerSec)), millis(s.value(r, r.ServerTime)), peers(millis(d.PeersMedian["server_time"])),
		count(s.value(r, r.ErrorsPerSec)), ratio(s.value(r, r.Occupancy)))
	if busy, all := latest(d.Series["threads_busy"]), latest(d.Series["threads"]); all != nil && s.standing(r) != remap.ForwarderStale {
		ops += fmt.Sprintf("   threads %s/%s busy", count(busy), count(all))
	}
	for _, l := range wrap(ops, w-1) {
		lines = append(lines, " "+strings.TrimSpace(l))
	}
	return lines
}

// latest is a series' newest value; nil without one.
func latest(points []Point) *float64 {
	if len(points) == 0 {
		return nil
	}
	return &points[len(points)-1].Value
}

// peers says what the median of the other forwarders is, where it is known.
func peers(median string) string {
	if median == missing {
		return ""
	}
	return " (peers " + median + ")"
}

// largest is the largest value of a series, at least floor.
func largest(points []Point, floor float64) float64 {
	top := max(floor, 1)
	for _, p := range points {
		top = max(top, p.Value)
	}
	return top
}

// findings are the open ones of this node with their evidence, and the plan that touches it.
func (p *forwarderPage) findings(s *State, w int) []string {
	var lines []string
	for _, f := range openFindings(s.Shown.Findings) {
		if f.Node != p.id.Node() {
			continue
		}
		text := fmt.Sprintf("%s %s for %s, confidence %.2f: %s", f.ID, f.State, age(s.Now.Sub(f.Since)), f.Confidence, f.Sentence)
		for _, l := range wrap(clean(text), w-2) {
			lines = append(lines, " "+l)
		}
	}
	if r := s.forwarder(p.id); r != nil && r.Plan != "" {
		lines = append(lines, clip(" Plan "+clean(r.Plan)+" touches it ("+s.key(actPlans)+" lists the plans).", w))
	}
	return lines
}

// roomForJobs is the height from which the page also adds its clients up by job, shownJobs how many.
const (
	roomForJobs = 24
	shownJobs   = 4
)

// jobs adds the clients up by job, the largest first.
func (p *forwarderPage) jobs(s *State, w int) []string {
	if s.stale() {
		return nil
	}
	type load struct {
		job               string
		nodes             int
		read, write, meta *float64
	}
	var all []*load
	total := 0.0
	for i := range p.detail.ClientNodes {
		c := &p.detail.ClientNodes[i]
		at := slices.IndexFunc(all, func(l *load) bool { return l.job == string(c.Job) })
		if at < 0 {
			at = len(all)
			all = append(all, &load{job: string(c.Job)})
		}
		l := all[at]
		l.nodes++
		l.read, l.write, l.meta = sum(l.read, c.ReadBytesPerSec), sum(l.write, c.WriteBytesPerSec), sum(l.meta, c.MetaOpsPerSec)
		if v := sum(c.ReadBytesPerSec, c.WriteBytesPerSec); v != nil {
			total += *v
		}
	}
	if len(all) < 2 {
		return nil // the clients say it
	}
	moved := func(l *load) float64 {
		if v := sum(l.read, l.write); v != nil {
			return *v
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b *load) int { return cmp.Compare(moved(b), moved(a)) })
	lines := []string{s.Palette.paint(s.Palette.bold, clip(" JOB HERE          READ   WRITE    MD/s  NODES  SHARE%", w))}
	for _, l := range all[:min(len(all), shownJobs)] {
		share := part(sum(l.read, l.write), total)
		lines = append(lines, clip(" "+left(orMissing(l.job), 14)+right(mega(l.read), 8)+right(mega(l.write), 8)+right(count(l.meta), 8)+right(strconv.Itoa(l.nodes), 7)+right(ratio(share), 8), w))
	}
	if more := len(all) - shownJobs; more > 0 {
		lines = append(lines, clip(fmt.Sprintf(" : %d more jobs", more), w))
	}
	return append(lines, rule(w))
}

// clients lists the compute nodes with their rates.
func (p *forwarderPage) clients(s *State, w, h int) []string {
	all := p.detail.ClientNodes
	heading := " CLIENT            READ   WRITE    MD/s  LATms  JOB"
	lines := []string{s.Palette.paint(s.Palette.bold, clip(heading, w))}
	if len(all) == 0 {
		if s.replay != nil {
			return append(lines, clip(" No compute node is known to have used it then; "+s.key(actHelp)+" says what is not kept.", w))
		}
		return append(lines, clip(" No compute node is seen to use this forwarder.", w))
	}
	at := slices.IndexFunc(all, func(c ClientRow) bool { return c.ID == p.cursor })
	old := s.stale()
	hide := func(v *float64) *float64 {
		if old {
			return nil
		}
		return v
	}
	return append(lines, s.scrolled(len(all), at, w, h-1, "", func(i int) string {
		c := &all[i]
		return " " + left(clean(string(c.ID)), 14) + right(mega(hide(c.ReadBytesPerSec)), 8) + right(mega(hide(c.WriteBytesPerSec)), 8) +
			right(count(hide(c.MetaOpsPerSec)), 8) + right(millis(hide(c.LatencySeconds)), 7) + "  " + orMissing(string(c.Job))
	})...)
}
