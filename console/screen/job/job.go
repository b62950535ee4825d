// Package job shows jobs: the list, one with its load, why its I/O took so long, the runs like it, its file
// domains, and jobs of low bandwidth.
package job

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
	"fairway/remap/dispatch"
	"fairway/tsdb/history"
	"fairway/webui/api"
)

// Screen is one job: its load, its forwarders, what was decided for it and what it did.
type Screen struct {
	screen.Place
	id     topology.JobID
	job    screen.Load[api.JobView]
	runs   screen.Load[api.JobRuns]
	cursor int // in the forwarders
}

// jobEvery is how often the page asks: the server counts all bytes of the layer for it.
const jobEvery = 2 * time.Second

func New(a screen.Address) *Screen {
	id := topology.JobID(a.ID)
	return &Screen{Place: screen.Place{On: screen.OnJob, At: screen.AtJob(id, "")}, id: id,
		job: screen.Load[api.JobView]{Again: jobEvery}}
}

func (p *Screen) Refresh(s *screen.State) tea.Cmd {
	return tea.Batch(askRuns(&p.runs, s, p.id),
		p.job.Refresh(s, "job "+string(p.id), screen.With(s.Server.Job, p.id)))
}

func (p *Screen) Answer(s *screen.State, msg tea.Msg) tea.Cmd {
	p.runs.Take(msg)
	p.job.Take(msg)
	p.cursor = max(0, min(p.cursor, len(p.job.Value.Forwarders)-1))
	return nil
}

// Answered is the answer to the job's ticket; empty before it is known.
func (p *Screen) Answered() string { return chart.Clean(p.job.Value.Answer) }

func (p *Screen) forwarders() []topology.ForwarderID {
	return slices.Sorted(maps.Keys(p.job.Value.Forwarders))
}

func (p *Screen) Act(s *screen.State, a screen.Action) tea.Cmd {
	on := p.forwarders()
	switch a {
	case screen.ActOpen:
		if p.cursor < len(on) {
			return s.Host.Open(screen.AtForwarder(on[p.cursor]))
		}
		s.Note = "no forwarder of this job is observed"
	case screen.ActWhy:
		return s.Host.Open(screen.AtJob(p.id, screen.PartWhy))
	case screen.ActDomains:
		return s.Host.Open(screen.AtJob(p.id, screen.PartDomains))
	case screen.ActRuns:
		return s.Host.Open(screen.AtJob(p.id, screen.PartRuns))
	case screen.ActPropose:
		if p.cursor >= len(on) {
			s.Note = "no forwarder of this job is observed: there would be no way back"
			return nil
		}
		return s.Host.Propose(on[p.cursor], p.id, p.job.Value.Nodes)
	default:
		p.cursor = a.Moved(p.cursor, len(on))
	}
	return nil
}

func (p *Screen) Title(s *screen.State, _ int) string {
	title := " job " + chart.Clean(string(p.id))
	if !p.job.Have {
		return title
	}
	j := &p.job.Value
	title += fmt.Sprintf("  %s  user %s  %s", chart.OrMissing(j.App), chart.OrMissing(j.User),
		anomaly.Counted(j.NodeCount, "node"))
	if j.End.IsZero() {
		return title + "  running " + chart.Age(s.Now.Sub(j.Start))
	}
	return title + fmt.Sprintf("  ended %s after %s", chart.Moment(j.End, s.Now), chart.Age(j.End.Sub(j.Start)))
}

func (p *Screen) Body(s *screen.State, w, h int) []string {
	if !p.job.Have {
		return p.job.MissingOf(s, "job "+chart.Clean(string(p.id)), screen.ActJobs, w)
	}
	j := &p.job.Value
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, chart.Clip(fmt.Sprintf(format, args...), w)) }
	for _, l := range chart.Wrap(p.Answered(), w-2) {
		lines = append(lines, s.Bold(" "+l))
	}
	if j.RunTime != "" {
		lines = append(lines, chart.Labelled("RUN TIME", chart.Clean(j.RunTime), w)...)
	}
	if j.End.IsZero() {
		add(" NOW       read %s MB/s   write %s MB/s   md ops %s/s", chart.Mega(j.ReadBytesPerSec),
			chart.Mega(j.WriteBytesPerSec),
			chart.Count(j.MetaOpsPerSec))
	}
	lines = append(lines, p.did(s, w)...)
	lines = append(lines, waitLines(s, j.Waits, w)...)
	lines = append(lines, p.like(w)...)
	if j.End.IsZero() {
		lines = append(append(lines, neighbourLines(j.Neighbours, w)...), screen.SharedLines(j.Shared, w)...)
	}
	if j.Decision != nil || j.End.IsZero() { // an ended job's is in the audit
		decided := decisionLines(s, j.Decision, w)
		if room := max(2, h-len(lines)-roomForWhere); len(decided) > room {
			more := len(decided) - room + 1
			decided = append(decided[:room-1],
				chart.Clip(fmt.Sprintf("           : %s; a higher terminal or 'fairway job %s' shows all",
					anomaly.Counted(more, "more line"), chart.Clean(string(j.ID))), w))
		}
		lines = append(lines, decided...)
	}
	if len(j.Plans) > 0 {
		add(" PLANS     %s", chart.Clean(strings.Join(j.Plans, " ")))
	}
	if j.End.IsZero() {
		lines = append(lines, s.Palette.Rule(w))
		return append(lines, p.where(s, w, h-len(lines))...)
	}
	return append(lines, chart.Labelled("ON", "served by "+chart.OrMissing(chart.Names(j.Served)), w)...)
}

// roomForWhere is how many lines are kept for the forwarders of a running job and the plans above.
const roomForWhere = 5

// like is where the job stands among the runs like it, and what it waited for.
func (p *Screen) like(w int) []string {
	v := &p.runs.Value
	switch {
	case !p.runs.Have && p.runs.Err != nil:
		return []string{chart.Clip(" LIKE IT   could not be read: "+chart.Clean(p.runs.Err.Error()), w)}
	case !p.runs.Have:
		return nil
	case len(v.Runs) == 0:
		return chart.Labelled("LIKE IT", "no other ended run of it by this user on as many nodes is in the history yet",
			w)
	}
	return comparison(v, w)
}

// waited is what a run's nodes waited for.
func waited(f *history.Profile, w int) []string {
	if len(f.Waits) == 0 {
		return chart.Labelled("WAITED", "not known: its nodes did not report how long operations took", w)
	}
	var parts []string
	few := f.Waits[:min(4, len(f.Waits))]
	for i, one := range few {
		if i > 0 && one.Share < 0.005 {
			break
		}
		parts = append(parts, fmt.Sprintf("%s %s %%", chart.Clean(string(one.Forwarder)), chart.Ratio(&one.Share)))
	}
	text := "for " + strings.Join(parts, ", ") + " of its nodes' time"
	if more := len(f.Waits) - 4; more > 0 {
		text += fmt.Sprintf("; less for %d more", more)
	}
	return chart.Labelled("WAITED", text, w)
}

// neighbourLines are the jobs that share its forwarders, with what a move would mean for them.
func neighbourLines(list []api.Neighbour, w int) (lines []string) {
	label := "NEIGHBOUR"
	for i := range list[:min(len(list), mostNeighbours)] {
		n := &list[i]
		on := forwardersText(n.On[:min(1, len(n.On))])
		if more := len(n.On) - 1; more > 0 {
			on += fmt.Sprintf(" and %d more", more)
		}
		bytes := n.ReadBytesPerSec + n.WriteBytesPerSec
		text := strings.TrimSpace(chart.Clean(string(n.Job))+" "+chart.Clean(n.App)) + fmt.Sprintf(" on %s: %s MB/s",
			on,
			chart.Mega(&bytes))
		if n.Takes != nil {
			text += ", " + chart.Ratio(n.Takes) + " % of the bytes there"
		}
		if n.Finding != "" {
			text += ", blamed by " + chart.Clean(n.Finding)
		}
		switch {
		case n.Relief == nil || *n.Relief < 0.005:
			text += ". If this job moves: no effect on it"
		default:
			text += ". If this job moves: better for it, " + chart.Ratio(n.Relief) + " % of the load there goes"
		}
		lines = append(lines, chart.Labelled(label, text, w)...)
		label = ""
	}
	if more := len(list) - mostNeighbours; more > 0 {
		lines = append(lines, chart.Clip("           : "+anomaly.Counted(more, "more job")+" with bytes there", w))
	}
	return lines
}

// mostNeighbours is how many neighbours are shown.
const mostNeighbours = 3

// phases is the strip of a run's phases and what they were.
func phases(f *history.Profile, ran time.Duration, w int) string {
	note := fmt.Sprintf("%d with I/O", len(f.Phases))
	strip := phaseStrip(f.Phases, ran, max(1, min(80, w-14-len(note))))
	return chart.Clip(" PHASES    "+strip+"  "+note, w)
}

// soFar is what a running job has done since it is watched.
func (p *Screen) soFar(s *screen.State, w int) []string {
	j := &p.job.Value
	f := j.SoFar
	if f == nil {
		return chart.Labelled("SO FAR", "not known: none of its nodes has reported yet", w)
	}
	text := fmt.Sprintf("read %s, wrote %s, %s metadata operations; mode %s", anomaly.Size(f.ReadBytes),
		anomaly.Size(f.WriteBytes),
		chart.Number(f.MetaOps), chart.OrMissing(string(f.Mode)))
	if late := j.WatchedSince.Sub(j.Start); late > time.Minute {
		text = "since " + chart.Moment(j.WatchedSince, s.Now) + " only: " + text
	}
	lines := chart.Labelled("SO FAR", text, w)
	if ran := s.Now.Sub(j.Start); len(f.Phases) > 0 && ran > 0 {
		lines = append(lines, phases(f, ran, w))
	}
	return append(lines, waited(f, w)...)
}

// did is the profile of a run that has ended, and of one that runs what it has done so far.
func (p *Screen) did(s *screen.State, w int) []string {
	j := &p.job.Value
	switch {
	case j.End.IsZero():
		return p.soFar(s, w)
	case j.Pending:
		return []string{" DID       its profile is being made"}
	case j.Profile == nil:
		return []string{chart.Clip(" DID       nothing is known of its I/O: none of its nodes reported bytes", w)}
	}
	f := j.Profile
	queue := "not known: nobody timed its operations"
	if f.MetaQueue != nil {
		queue = chart.Number(*f.MetaQueue)
	}
	text := fmt.Sprintf(
		"read %s, wrote %s, %s metadata operations; mode %s, %s did I/O; peak %s MB/s, %s MB/s on one node, "+
			"%s ops/s; md queue %s; "+
			"%.0f %% of node-seconds reported, by %s", anomaly.Size(f.ReadBytes), anomaly.Size(f.WriteBytes),
		chart.Number(f.MetaOps),
		chart.OrMissing(string(f.Mode)), anomaly.Counted(f.IONodes, "node"),
		chart.Mega(&f.PeakBytesPerSec),
		chart.Mega(&f.PeakNodeBytesPerSec),
		chart.Number(f.PeakOpsPerSec), queue, 100*f.Coverage, chart.Clean(f.From))
	lines := chart.Labelled("DID", text, w)
	if len(f.Phases) > 0 {
		lines = append(lines, phases(f, j.End.Sub(j.Start), w))
	}
	return append(lines, waited(f, w)...)
}

// phaseStrip draws a run from its start to its end: W writes, R reads, B both, m metadata only.
func phaseStrip(phases []history.Phase, ran time.Duration, w int) string {
	strip := []byte(strings.Repeat(".", w))
	if ran <= 0 {
		return string(strip)
	}
	column := func(sec float64) int { return max(0, min(w-1, int(sec/ran.Seconds()*float64(w)))) }
	for i := range phases {
		ph := &phases[i]
		mark := byte('m')
		switch total := ph.ReadBytes + ph.WriteBytes; {
		case total > 0 && ph.ReadBytes > 0.1*total && ph.WriteBytes > 0.1*total:
			mark = 'B'
		case ph.WriteBytes > ph.ReadBytes:
			mark = 'W'
		case total > 0:
			mark = 'R'
		}
		for c := column(ph.AtSeconds); c <= column(ph.AtSeconds+ph.Seconds); c++ {
			strip[c] = mark
		}
	}
	return string(strip)
}

// decisionLines is what the policy decided at the job's start, every rule it tried.
func decisionLines(s *screen.State, a *dispatch.Answer, w int) []string {
	if a == nil {
		return []string{chart.Clip(" DECISION  not known: no policy was asked for this job since the daemon's start",
			w)}
	}
	d := &a.Decision
	head := fmt.Sprintf("%s by policy %s", d.Action, chart.Clean(a.Policy))
	if d.Remap {
		head += fmt.Sprintf(": %s, %d wanted", anomaly.Counted(d.Count, "forwarder"), d.Wanted)
	}
	switch {
	case a.Refused != "":
		head += "; not proposed: " + chart.Clean(a.Refused)
	case a.Plan != "":
		head += fmt.Sprintf("; plan %s is %s", chart.Clean(a.Plan), chart.Clean(string(a.State)))
	}
	lines := screen.Labelled(s, "DECISION", head, w)
	for i := range d.Reasons {
		mark := "ok  "
		if r := &d.Reasons[i]; !r.Passed {
			mark = "no  "
		}
		lines = append(lines, chart.Labelled("", mark+chart.Clean(d.Reasons[i].Text), w)...)
	}
	for i := range d.Interference {
		n := &d.Interference[i]
		lines = append(lines, chart.Labelled("", fmt.Sprintf("!!  job %s would disturb it: %s",
			chart.Clean(string(n.Job)),
			chart.Clean(strings.Join(n.Why, ", "))), w)...)
	}
	for _, words := range a.Given {
		lines = append(lines, chart.Labelled("GIVEN", chart.Clean(words), w)...)
	}
	if q := a.Prediction; q != nil {
		text := fmt.Sprintf("from the newest of %s", anomaly.Counted(q.Depth, "earlier run"))
		if share, ok := q.Own.Share(); ok {
			text += fmt.Sprintf("; its runs did as the ones before %.0f %% of %s", 100*share,
				anomaly.Counted(q.Own.Predicted, "time"))
		}
		lines = append(lines, chart.Labelled("", text, w)...)
	}
	return lines
}

// where lists the forwarders that the job's nodes are observed on.
func (p *Screen) where(s *screen.State, w, h int) []string {
	on := p.forwarders()
	if len(on) == 0 {
		return []string{chart.Clip(" No forwarder of its nodes is observed.", w)}
	}
	head := " FORWARDER     STATE       NODES   READ  WRITE  QUEUE   MDms   (MB/s, ms; all of its load)"
	lines := []string{s.Bold(chart.Clip(head, w))}
	return append(lines, table.Lines(s.Palette, len(on), p.cursor, w, max(1, h-1), "", func(i int) string {
		line := " " + chart.Left(chart.Clean(string(on[i])), 13)
		if r := s.Forwarder(on[i]); r != nil {
			value := func(m collector.Metric) *float64 { return s.Value(r, r.Value(m)) }
			line += " " + chart.Row([]int{-10, 7, 7, 7, 7, 7}, s.StandingText(r),
				strconv.Itoa(p.job.Value.Forwarders[on[i]]), chart.Mega(value(collector.ReadBytes)),
				chart.Mega(value(collector.WriteBytes)), chart.Count(value(collector.QueueLen)),
				chart.Millis(value(collector.MetaWait)))
		}
		return line
	})...)
}

// waitLines are what a running job waited for in the last quarter of an hour, a line for each cause that it waited for.
func waitLines(s *screen.State, waits *api.JobWaits, w int) (lines []string) {
	if waits == nil {
		return nil
	}
	label := "WAITS FOR"
	for i := range waits.Causes {
		c := &waits.Causes[i]
		if chart.Most(c.Waits) < 0.005 {
			continue
		}
		graph := s.Palette.Graph(c.Waits, 1, min(45, max(10, w-60)), 1)[0]
		lines = append(lines, chart.Clip(fmt.Sprintf(" %-9s %-11s %s %5s %% now, 15 min", label, chart.Clean(c.Cause),
			graph, chart.Ratio(c.Now)), w))
		label = ""
	}
	if lines == nil {
		return chart.Labelled(label,
			"nothing: its operations take as long as those of the jobs beside it (last 15 min)",
			w)
	}
	return lines
}
