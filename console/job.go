package console

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/collector/topology"
	"fairway/remap/dispatch"
	"fairway/tsdb/history"
	"fairway/webui/api"
)

// jobPage is one job: its load, its forwarders, what was decided for it and what it did.
type jobPage struct {
	id     topology.JobID
	job    Load[api.JobView]
	runs   Load[api.JobRuns]
	cursor int // in the forwarders
}

// jobEvery is how often the page asks: the server counts all bytes of the layer for it.
const jobEvery = 2 * time.Second

func newJobPage(id string) *jobPage {
	return &jobPage{id: topology.JobID(id), job: Load[api.JobView]{Again: jobEvery}}
}

func (p *jobPage) Name() string           { return onJob }
func (p *jobPage) Address(*State) Address { return Address{Page: "jobs", ID: string(p.id)} }

func (p *jobPage) Refresh(s *State) tea.Cmd {
	return tea.Batch(askRuns(&p.runs, s, p.id), p.job.Refresh(s, "job "+string(p.id),
		func(ctx context.Context) (api.JobView, error) { return s.Server.Job(ctx, p.id) }))
}

func (p *jobPage) Answer(s *State, msg tea.Msg) tea.Cmd {
	p.runs.Take(msg)
	p.job.Take(msg)
	p.cursor = max(0, min(p.cursor, len(p.job.Value.Forwarders)-1))
	return nil
}

func (p *jobPage) forwarders() []topology.ForwarderID {
	return slices.Sorted(maps.Keys(p.job.Value.Forwarders))
}

func (p *jobPage) Act(s *State, a Action) tea.Cmd {
	on := p.forwarders()
	switch a {
	case actOpen:
		if p.cursor < len(on) {
			return s.Host.Open(AtForwarder(on[p.cursor]))
		}
		s.Note = "no forwarder of this job is observed"
	case actWhy:
		return s.Host.Open(AtJob(p.id, partWhy))
	case actDomains:
		return s.Host.Open(AtJob(p.id, partDomains))
	case actRuns:
		return s.Host.Open(AtJob(p.id, partRuns))
	case actPropose:
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

func (p *jobPage) Title(s *State, _ int) string {
	title := " job " + clean(string(p.id))
	if !p.job.Have {
		return title
	}
	j := &p.job.Value
	title += fmt.Sprintf("  %s  user %s  %s", orMissing(j.App), orMissing(j.User), api.Counted(j.NodeCount, "node"))
	if j.End.IsZero() {
		return title + "  running " + age(s.Now.Sub(j.Start))
	}
	return title + fmt.Sprintf("  ended %s after %s", moment(j.End, s.Now), age(j.End.Sub(j.Start)))
}

func (p *jobPage) Body(s *State, w, h int) []string {
	if !p.job.Have {
		return p.job.MissingOf(s, "job "+clean(string(p.id)), actJobs, w)
	}
	j := &p.job.Value
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, clip(fmt.Sprintf(format, args...), w)) }
	if j.End.IsZero() {
		add(" NOW       read %s MB/s   write %s MB/s   md ops %s/s", mega(j.ReadBytesPerSec), mega(j.WriteBytesPerSec),
			count(j.MetaOpsPerSec))
	}
	lines = append(lines, p.did(s, w)...)
	lines = append(lines, p.like(w)...)
	if j.End.IsZero() {
		lines = append(lines, neighbourLines(j.Neighbours, w)...)
	}
	if j.Decision != nil || j.End.IsZero() { // an ended job's is in the audit
		said := decisionLines(s, j.Decision, w)
		if room := max(2, h-len(lines)-roomForWhere); len(said) > room {
			more := len(said) - room + 1
			said = append(said[:room-1],
				clip(fmt.Sprintf("           : %s; a higher terminal or 'fairway job %s' shows all",
					api.Counted(more, "more line"), clean(string(j.ID))), w))
		}
		lines = append(lines, said...)
	}
	if len(j.Plans) > 0 {
		add(" PLANS     %s", clean(strings.Join(j.Plans, " ")))
	}
	if j.End.IsZero() {
		lines = append(lines, rule(w))
		return append(lines, p.where(s, w, h-len(lines))...)
	}
	served := make([]string, len(j.Served))
	for i, f := range j.Served {
		served[i] = clean(string(f))
	}
	return append(lines, labelled("ON", "served by "+orMissing(strings.Join(served, " ")), w)...)
}

// roomForWhere is how many lines are kept for the forwarders of a running job and the plans above.
const roomForWhere = 5

// like is where the job stands among the runs like it, and what it waited for.
func (p *jobPage) like(w int) []string {
	v := &p.runs.Value
	switch {
	case !p.runs.Have && p.runs.Err != nil:
		return []string{clip(" LIKE IT   could not be read: "+clean(p.runs.Err.Error()), w)}
	case !p.runs.Have:
		return nil
	case len(v.Runs) == 0:
		return labelled("LIKE IT", "no other ended run of it by this user on as many nodes is in the history yet", w)
	}
	return comparison(v, w)
}

// waited is what a run's nodes waited for.
func waited(f *history.Profile, w int) []string {
	if len(f.Waits) == 0 {
		return labelled("WAITED", "not known: its nodes did not tell how long operations took", w)
	}
	var parts []string
	few := f.Waits[:min(4, len(f.Waits))]
	for i, one := range few {
		if i > 0 && one.Share < 0.005 {
			break
		}
		parts = append(parts, fmt.Sprintf("%s %s %%", clean(string(one.Forwarder)), ratio(&one.Share)))
	}
	text := "for " + strings.Join(parts, ", ") + " of its nodes' time"
	if more := len(f.Waits) - 4; more > 0 {
		text += fmt.Sprintf("; less for %d more", more)
	}
	return labelled("WAITED", text, w)
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
		text := strings.TrimSpace(clean(string(n.Job))+" "+clean(n.App)) + fmt.Sprintf(" on %s: %s MB/s", on,
			mega(&bytes))
		if n.Takes != nil {
			text += ", " + ratio(n.Takes) + " % of the bytes there"
		}
		if n.Finding != "" {
			text += ", blamed by " + clean(n.Finding)
		}
		switch {
		case n.Relief == nil || *n.Relief < 0.005:
			text += ". If this job moves: no effect on it"
		default:
			text += ". If this job moves: better for it, " + ratio(n.Relief) + " % of the load there goes"
		}
		lines = append(lines, labelled(label, text, w)...)
		label = ""
	}
	if more := len(list) - mostNeighbours; more > 0 {
		lines = append(lines, clip("           : "+api.Counted(more, "more job")+" with bytes there", w))
	}
	return lines
}

// mostNeighbours is how many neighbours are shown.
const mostNeighbours = 3

// phases is the strip of a run's phases and what they were.
func phases(f *history.Profile, ran time.Duration, note string, w int) string {
	note = fmt.Sprintf("%d with I/O%s", len(f.Phases), note)
	strip := phaseStrip(f.Phases, ran, max(1, min(80, w-14-len(note))))
	return clip(" PHASES    "+strip+"  "+note, w)
}

// soFar is what a running job has done since it is watched.
func (p *jobPage) soFar(s *State, w int) []string {
	j := &p.job.Value
	f := j.SoFar
	if f == nil {
		return labelled("SO FAR", "not known: none of its nodes has been heard yet", w)
	}
	text := fmt.Sprintf("read %s, wrote %s, %s metadata operations; mode %s", volume(f.ReadBytes), volume(f.WriteBytes),
		number(f.MetaOps), orMissing(string(f.Mode)))
	if late := j.WatchedSince.Sub(j.Start); late > time.Minute {
		text = "since " + moment(j.WatchedSince, s.Now) + " only: " + text
	}
	lines := labelled("SO FAR", text, w)
	if ran, seen := s.Now.Sub(j.Start), s.Now.Sub(j.WatchedSince); len(f.Phases) > 0 && ran > 0 && seen > 0 {
		share := f.IOSeconds / seen.Seconds()
		lines = append(lines, phases(f, ran, fmt.Sprintf(", %s %% of the time", ratio(&share)), w))
	}
	return append(lines, waited(f, w)...)
}

// did is the profile of a run that has ended, and of one that runs what it has done so far.
func (p *jobPage) did(s *State, w int) []string {
	j := &p.job.Value
	switch {
	case j.End.IsZero():
		return p.soFar(s, w)
	case j.Pending:
		return []string{" DID       its profile is being made"}
	case j.Profile == nil:
		return []string{clip(" DID       nothing is known of its I/O: no collector saw its nodes", w)}
	}
	f := j.Profile
	queue := missing
	if f.MetaQueue != nil {
		queue = number(*f.MetaQueue)
	}
	text := fmt.Sprintf(
		"read %s, wrote %s, %s metadata operations; mode %s, %s did I/O for %s; peak %s MB/s, %s MB/s on one node, "+
			"%s ops/s; md queue %s; "+
			"%.0f %% of node-seconds reported, by %s", volume(f.ReadBytes), volume(f.WriteBytes), number(f.MetaOps),
		orMissing(string(f.Mode)), api.Counted(f.IONodes, "node"),
		age(time.Duration(f.IOSeconds*float64(time.Second))), mega(&f.PeakBytesPerSec), mega(&f.PeakNodeBytesPerSec),
		number(f.PeakOpsPerSec), queue, 100*f.Coverage, clean(f.From))
	lines := labelled("DID", text, w)
	if len(f.Phases) > 0 {
		lines = append(lines, phases(f, j.End.Sub(j.Start), "", w))
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

// decisionLines is what the policy said at the job's start, every rule it tried.
func decisionLines(s *State, a *dispatch.Answer, w int) []string {
	if a == nil {
		return []string{clip(" DECISION  not known: no policy was asked for this job since the daemon's start", w)}
	}
	d := &a.Decision
	head := fmt.Sprintf("%s by policy %s", d.Action, clean(a.Policy))
	if d.Remap {
		head += fmt.Sprintf(": %s, %d wanted", api.Counted(d.Count, "forwarder"), d.Wanted)
	}
	switch {
	case a.Refused != "":
		head += "; not proposed: " + clean(a.Refused)
	case a.Plan != "":
		head += fmt.Sprintf("; plan %s is %s", clean(a.Plan), clean(string(a.State)))
	}
	lines := labelled("DECISION", head, w)
	for i := range lines {
		lines[i] = s.Bold(lines[i])
	}
	for i := range d.Reasons {
		mark := "ok  "
		if r := &d.Reasons[i]; !r.Passed {
			mark = "no  "
		}
		lines = append(lines, labelled("", mark+clean(d.Reasons[i].Text), w)...)
	}
	for i := range d.Interference {
		n := &d.Interference[i]
		lines = append(lines, labelled("", fmt.Sprintf("!!  job %s would disturb it: %s", clean(string(n.Job)),
			clean(strings.Join(n.Why, ", "))), w)...)
	}
	if q := a.Prediction; q != nil {
		text := fmt.Sprintf("from the newest of %s", api.Counted(q.Depth, "earlier run"))
		if share, ok := q.Own.Share(); ok {
			text += fmt.Sprintf("; predictions for it were right %.0f %% of %s", 100*share,
				api.Counted(q.Own.Predicted, "time"))
		}
		lines = append(lines, labelled("", text, w)...)
	}
	return lines
}

// where lists the forwarders that the job's nodes are observed on.
func (p *jobPage) where(s *State, w, h int) []string {
	on := p.forwarders()
	if len(on) == 0 {
		return []string{clip(" No forwarder of its nodes is observed.", w)}
	}
	lines := []string{s.Palette.paint(s.Palette.bold,
		clip(" FORWARDER     STATE       NODES   READ  WRITE  QUEUE   MDms   (MB/s, ms; all of its load)", w))}
	return append(lines, Lines(s.Palette, len(on), p.cursor, w, max(1, h-1), "", func(i int) string {
		line := " " + left(clean(string(on[i])), 13)
		if r := s.Forwarder(on[i]); r != nil {
			line += " " + left(string(s.Standing(r)), 10) + right(strconv.Itoa(p.job.Value.Forwarders[on[i]]), 7) +
				right(mega(s.Value(r, r.ReadBytesPerSec)), 7) +
				right(mega(s.Value(r, r.WriteBytesPerSec)), 7) + right(count(s.Value(r, r.QueueLen)), 7) +
				right(millis(s.Value(r, r.MetaWaitSeconds)), 7)
		}
		return line
	})...)
}
