// Package slurm reads what the batch system says of jobs: `sacct -P` with or without a header line,
// `sacct --json` and `squeue --json` of every data parser since 21.08, slurmrestd's answers, and
// `scontrol show job`.
package slurm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// Job is one job, or one step of a job where Step is not empty. A field that is not known is absent: zero,
// or nil where zero has a meaning.
type Job struct {
	// ID is the job as Slurm prints it without its step: "123", "123_4" (array), "123+1" (heterogeneous).
	ID topology.JobID `json:"job"`
	// RawID is the number of this task of an array; what a program sees as SLURM_JOB_ID.
	RawID int64 `json:"raw_id,omitempty"`
	// ArrayTask is the task's number, or the tasks still pending ("[1-3,7%2]").
	ArrayTask string `json:"array_task,omitempty"`
	Step      string `json:"step,omitempty"` // "batch", "extern", "0", ...

	Name      string `json:"name,omitempty"`
	Comment   string `json:"comment,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	Partition string `json:"partition,omitempty"`
	QOS       string `json:"qos,omitempty"`
	// Priority is the scheduler's; of a running job the one that it started with, or has now.
	Priority *int64 `json:"priority,omitempty"`
	Account  string `json:"account,omitempty"`
	User     string `json:"user,omitempty"`
	UID      *int64 `json:"uid,omitempty"`
	Group    string `json:"group,omitempty"`
	GID      *int64 `json:"gid,omitempty"`

	hetJob string // while scontrol's fields are read: the number of the heterogeneous job that it is a part of

	// State is the first word of the job's state: COMPLETED, CANCELLED, ...
	State string `json:"state,omitempty"`
	// CancelledBy is the user, by number or name, who cancelled the job.
	CancelledBy string `json:"cancelled_by,omitempty"`
	ExitCode    *int64 `json:"exit_code,omitempty"`
	Signal      *int64 `json:"signal,omitempty"`

	Submit   time.Time `json:"submit,omitzero"`
	Eligible time.Time `json:"eligible,omitzero"`
	// Start is of a pending job the one that Slurm expects.
	Start time.Time `json:"start,omitzero"`
	// End is absent while the job runs, also where Slurm prints the end that it expects.
	End            time.Time `json:"end,omitzero"`
	ElapsedSeconds *int64    `json:"elapsed_seconds,omitempty"`
	// LimitSeconds is the time limit, absent where it is unlimited or the partition's.
	LimitSeconds *int64 `json:"limit_seconds,omitempty"`

	// Nodes are the nodes of the job in the list's order. NodeList is the list as written; it alone is
	// there for a Blue Gene block, which names no nodes.
	Nodes     []topology.NodeID `json:"nodes,omitempty"`
	NodeList  string            `json:"node_list,omitempty"`
	NodeCount *int64            `json:"node_count,omitempty"`
	CPUs      *int64            `json:"cpus,omitempty"`
	ReqMem    *Memory           `json:"req_mem,omitempty"`
	// TRES are the resources allocated, by name, as written: "cpu": "12", "mem": "62.50G", "node": "8".
	TRES map[string]string `json:"tres,omitempty"`
}

// Memory is an amount of memory asked for; Per is "node", "cpu" or empty where Slurm no longer says.
type Memory struct {
	Bytes int64  `json:"bytes"`
	Per   string `json:"per,omitempty"`
}

// LineError says which part of the input could not be read.
type LineError struct {
	Line  int    // first line is 1; 0 in JSON
	Job   string // the job, where it is known
	Field string
	Err   error
}

func (e *LineError) Error() string {
	where := ""
	if e.Line > 0 {
		where = fmt.Sprintf("line %d: ", e.Line)
	}
	if e.Job != "" {
		where += "job " + e.Job + ": "
	}
	if e.Field != "" {
		where += e.Field + ": "
	}
	return where + e.Err.Error()
}

func (e *LineError) Unwrap() error { return e.Err }

// noJobs is what scontrol prints where there are none.
const noJobs = "No jobs in the system"

const maxLine = 16 << 20 // a node list of a million names

// Options are what the input itself does not say.
type Options struct {
	// Zone is where times without a zone are; nil is UTC. sacct prints the local time of the machine it
	// runs on, unless TZ is set.
	Zone *time.Location
}

func (o Options) zone() *time.Location {
	if o.Zone == nil {
		return time.UTC
	}
	return o.Zone
}

// Read calls each for every job and step of the input, whose format it finds out. A job with a field that
// cannot be read is still given, without the field. Such errors are joined, the first 20 of them, and
// returned at the end; an error of each ends the reading and is returned as it is.
func Read(in io.Reader, o Options, each func(*Job) error) error {
	b := bufio.NewReaderSize(in, 64<<10)
	start, err := skipSpace(b)
	if err != nil {
		return err
	}
	c := &collected{each: each}
	switch {
	case start == 0:
		return nil
	case start == '{':
		err = readJSON(b, o, c)
	case start == '[':
		err = errors.New(`a JSON list; want the object that sacct --json or squeue --json prints, with a list "jobs"`)
	default:
		head, _ := b.Peek(len(noJobs))
		switch text := string(head); {
		case text == noJobs:
			return nil
		case strings.HasPrefix(text, "JobId="):
			err = readScontrol(b, o, c)
		default:
			err = readSacct(b, o, c)
		}
	}
	if c.stopped != nil {
		return c.stopped
	}
	return errors.Join(c.All(), err)
}

// skipSpace returns the first byte that is not white space, unread; 0 at the end of the input.
func skipSpace(b *bufio.Reader) (byte, error) {
	for {
		c, err := b.ReadByte()
		if err == io.EOF {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' && c != 0xef && c != 0xbb && c != 0xbf {
			return c, b.UnreadByte()
		}
	}
}

// collected gives jobs away and keeps the first errors.
type collected struct {
	each    func(*Job) error
	stopped error
	given   int
	collector.Faults
}

// hopeless says that there were many errors and no job.
func (c *collected) hopeless() bool { return c.given == 0 && c.Kept() == collector.MostFaults }

// give hands a job on; it returns false where reading is to end.
func (c *collected) give(j *Job) bool {
	c.given++
	c.stopped = c.each(j)
	return c.stopped == nil
}

// lines calls f for each line; a line that is too long ends the input.
func lines(b *bufio.Reader, f func(n int, line string) bool) error {
	s := bufio.NewScanner(b)
	s.Buffer(make([]byte, 0, 64<<10), maxLine)
	for n := 1; s.Scan(); n++ {
		if !f(n, strings.TrimSuffix(s.Text(), "\r")) {
			return nil
		}
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("a line of over %d bytes", maxLine)
	}
	return s.Err()
}

var jobID = regexp.MustCompile(`^([0-9]+)(?:_([0-9]+|\[[^\]]*\]))?(\+[0-9]+)?(?:\.([A-Za-z0-9_+-]+))?$`)

// setID takes an identifier apart: "123_4.batch".
func (j *Job) setID(text string) error {
	m := jobID.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("%q is not a job ID", collector.Clip(text))
	}
	j.ArrayTask, j.Step = m[2], m[4]
	if j.Step != "" {
		text = strings.TrimSuffix(text, "."+j.Step)
	}
	j.ID = topology.JobID(text)
	return nil
}

// setState takes a state apart: "CANCELLED by 1000".
func (j *Job) setState(text string) {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	j.State = strings.TrimSuffix(word, "+")
	if by, ok := strings.CutPrefix(rest, "by "); ok {
		j.CancelledBy = by
	}
}

// settleTimes takes back an end that is a plan, and picks the hour of a time that clocks showed twice, once
// all fields are known. A run that was requeued, and the part of one before it got other nodes, did end, where it
// lasted until then.
func (j *Job) settleTimes(zone *time.Location) {
	if j.ElapsedSeconds != nil && !j.Start.IsZero() && !j.End.IsZero() {
		j.pickHour(zone, time.Duration(*j.ElapsedSeconds)*time.Second)
	}
	lasted := j.ElapsedSeconds != nil && !j.Start.IsZero() &&
		j.End.Sub(j.Start) == time.Duration(*j.ElapsedSeconds)*time.Second
	if !j.ended() && !((j.State == "REQUEUED" || j.State == "RESIZING") && lasted) {
		j.End = time.Time{}
	}
}

// pickHour chooses among the two times that a clock's reading may stand for when it was set back by an hour: those that
// lie as far apart as the job lasted, or, where it was suspended meanwhile, the least longer.
func (j *Job) pickHour(zone *time.Location, lasted time.Duration) {
	least := time.Duration(math.MaxInt64)
	starts, ends := readings(j.Start, zone), readings(j.End, zone)
	for _, start := range starts {
		for _, end := range ends {
			if over := end.Sub(start) - lasted; over >= 0 && over < least {
				least, j.Start, j.End = over, start, end
			}
		}
	}
}

// readings are the times at which clocks of a zone show the same, t first.
func readings(t time.Time, zone *time.Location) []time.Time {
	out := []time.Time{t}
	shown := t.In(zone).Format(time.DateTime)
	for _, other := range []time.Time{t.Add(-time.Hour), t.Add(time.Hour)} {
		if other.In(zone).Format(time.DateTime) == shown {
			out = append(out, other)
		}
	}
	return out
}

// ended says that the state is one in which End is a fact and no plan.
func (j *Job) ended() bool {
	switch j.State {
	case "PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "REQUEUED", "RESIZING", "STAGE_OUT", "STOPPED",
		"SIGNALING", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD":
		return false
	}
	return true
}

// BetweenWords says what separates the words of a job's comment.
func BetweenWords(c rune) bool { return c == ' ' || c == ',' || c == ';' }

// Application is what a job is called in a site's history: its name, or what "app=NAME" in its comment
// says, which a job_submit plug-in can set.
func Application(name, comment string) string {
	for word := range strings.FieldsFuncSeq(comment, BetweenWords) {
		if app, ok := strings.CutPrefix(word, "app="); ok {
			name = app
		}
	}
	return name
}

var block = regexp.MustCompile(`\[[0-9]+x[0-9]+\]`)

// setNodes expands a node list.
func (j *Job) setNodes(text string) error {
	switch text = strings.TrimSpace(text); text {
	case "", "(null)", "None", "None assigned", "Unknown", "N/A":
		return nil
	}
	j.NodeList = text
	if block.MatchString(text) {
		return nil
	}
	var err error
	j.Nodes, err = topology.ParseHostList(text)
	return err
}
