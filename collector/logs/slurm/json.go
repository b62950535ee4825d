package slurm

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"fairway/collector"
)

// jobJSON holds the fields of jobs: those of both, and those that slurmctld (squeue) and slurmdbd (sacct) have by names
// of their own.
type jobJSON struct {
	JobID     num     `json:"job_id"`
	Name      string  `json:"name"`
	Comment   comment `json:"comment"`
	Cluster   string  `json:"cluster"`
	Partition string  `json:"partition"`
	QOS       first   `json:"qos"`
	Priority  num     `json:"priority"`
	Account   string  `json:"account"`
	Nodes     hosts   `json:"nodes"`
	CPUs      num     `json:"cpus"`
	ExitCode  exit    `json:"exit_code"`
	ctldJSON
	dbdJSON
}

type ctldJSON struct {
	ArrayJobID  num    `json:"array_job_id"`
	ArrayTaskID num    `json:"array_task_id"`
	ArrayTasks  string `json:"array_task_string"`
	HetJobID    num    `json:"het_job_id"`
	HetOffset   num    `json:"het_job_offset"`
	UserName    string `json:"user_name"`
	UserID      num    `json:"user_id"`
	GroupName   string `json:"group_name"`
	GroupID     num    `json:"group_id"`
	NodeCount   num    `json:"node_count"`
	JobState    state  `json:"job_state"`
	TRESAlloc   string `json:"tres_alloc_str"`
	ctldTimes
}

type ctldTimes struct {
	Submit   num `json:"submit_time"`
	Eligible num `json:"eligible_time"`
	Start    num `json:"start_time"`
	End      num `json:"end_time"`
	Limit    num `json:"time_limit"` // minutes
}

type dbdJSON struct {
	Array struct {
		JobID  num    `json:"job_id"`
		TaskID num    `json:"task_id"`
		Task   string `json:"task"`
	} `json:"array"`
	Het struct {
		JobID  num `json:"job_id"`
		Offset num `json:"job_offset"`
	} `json:"het"`
	User   string `json:"user"`
	Group  string `json:"group"`
	AllocN num    `json:"allocation_nodes"`
	State  state  `json:"state"`
	Killer string `json:"kill_request_user"`
	Time   struct {
		Submit   num `json:"submission"`
		Eligible num `json:"eligible"`
		Start    num `json:"start"`
		End      num `json:"end"`
		Elapsed  num `json:"elapsed"`
		Limit    num `json:"limit"`
	} `json:"time"`
	TRES  tresJSON   `json:"tres"`
	Steps []stepJSON `json:"steps"`
}

type tresJSON struct {
	Allocated []struct {
		Type  string `json:"type"`
		Name  string `json:"name"`
		Count num    `json:"count"`
	} `json:"allocated"`
}

type stepJSON struct {
	Step struct {
		ID   json.RawMessage `json:"id"`
		Name string          `json:"name"`
	} `json:"step"`
	State    state    `json:"state"`
	Nodes    hosts    `json:"nodes"`
	ExitCode exit     `json:"exit_code"`
	TRES     tresJSON `json:"tres"`
	Time     struct {
		Start   num `json:"start"`
		End     num `json:"end"`
		Elapsed num `json:"elapsed"`
	} `json:"time"`
}

// noLimit is the least of what some versions print for the partition's limit and for none, minutes.
const noLimit = 1<<32 - 2

// readJSON reads an object with a list of jobs, one job at a time.
func readJSON(b *bufio.Reader, o Options, c *collected) error {
	// The decoder holds each value as a whole.
	in := &collector.Bounded{In: b, Left: maxLine, Err: fmt.Errorf("a value of over %d bytes", maxLine)}
	d := json.NewDecoder(in)
	if _, err := d.Token(); err != nil {
		return jsonError(d, err)
	}
	jobs := false
	for d.More() {
		in.Left = maxLine
		key, err := d.Token()
		if err != nil {
			return jsonError(d, err)
		}
		if key == "jobs" {
			jobs = true
			if err := c.jobs(d, in); err != nil || c.stopped != nil {
				return jsonError(d, err)
			}
			continue
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return jsonError(d, err)
		}
		if key == "errors" {
			c.refused(v)
			continue
		}
		if c.cached(v, o) {
			jobs = true
		}
		if c.stopped != nil {
			return nil
		}
	}
	if !jobs {
		return errors.New(`JSON without a list "jobs": want the output of sacct --json or squeue --json`)
	}
	_, err := d.Token()
	return jsonError(d, err)
}

func jsonError(d *json.Decoder, err error) error {
	if err == nil {
		return nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("JSON at byte %d: %w", d.InputOffset(), err)
}

// jobs reads the list.
func (c *collected) jobs(d *json.Decoder, in *collector.Bounded) error {
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return errors.Join(err, fmt.Errorf("jobs is not a list"))
	}
	for n := 0; d.More(); n++ {
		in.Left = maxLine
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return err
		}
		var j jobJSON
		if err := json.Unmarshal(v, &j); err != nil {
			// Unmarshal goes on after a field of the wrong type, so the job is still good for the rest.
			c.Add(&LineError{Job: strconv.FormatInt(j.JobID.v, 10), Field: fmt.Sprintf("jobs[%d]", n), Err: err})
		}
		if !j.JobID.ok {
			c.Add(&LineError{Field: fmt.Sprintf("jobs[%d]", n), Err: errNoID})
			if c.hopeless() {
				return errNoID
			}
		} else if !c.job(&j) {
			return nil
		}
	}
	_, err := d.Token()
	return err
}

// errNoID is the error of an entry that is not a job of Slurm's, such as those of flux jobs --json. A list of them is
// not a list without jobs.
var errNoID = errors.New("no job_id; want the output of sacct --json or squeue --json")

// refused takes what Slurm's programs put beside a list that they could not get, or not whole, some without failing
// themselves. That nothing was found is an answer.
func (c *collected) refused(v json.RawMessage) {
	const nothingFound = 9003
	var all []struct {
		Description string `json:"description"`
		Error       string `json:"error"`
		Number      num    `json:"error_number"`
	}
	if err := json.Unmarshal(v, &all); err != nil {
		c.Add(&LineError{Field: "errors", Err: err})
	}
	for i := range all {
		if e := &all[i]; e.Number.v != nothingFound {
			c.Add(&LineError{Field: "errors", Err: fmt.Errorf("the list is not whole: %s (%s)",
				collector.Clip(e.Description), collector.Clip(e.Error))})
		}
	}
}

// or takes the second number where the first is not known or zero.
func or(a, b num) num {
	if a.ok && a.v != 0 {
		return a
	}
	if b.ok {
		return b
	}
	return a
}

func (c *collected) job(v *jobJSON) bool {
	id := strconv.FormatInt(v.JobID.v, 10)
	j := &Job{RawID: v.JobID.v, Name: v.Name, Comment: string(v.Comment), Cluster: v.Cluster, Partition: v.Partition,
		QOS: string(v.QOS), Priority: v.Priority.pointer(), Account: v.Account,
		User: v.UserName + v.User, Group: v.GroupName + v.Group, UID: v.UserID.pointer(), GID: v.GroupID.pointer(),
		NodeCount: or(v.NodeCount, v.AllocN).pointer(), CPUs: v.CPUs.pointer(),
		ElapsedSeconds: v.Time.Elapsed.pointer(),
		CancelledBy:    v.Killer, TRES: parseTRES(v.TRESAlloc)}
	bad := func(field string, err error) {
		if err != nil {
			c.Add(&LineError{Job: id, Field: field, Err: err})
		}
	}
	bad("job_id", j.setID(v.fullID()))
	var err error
	for _, t := range []struct {
		field string
		to    *time.Time
		from  num
	}{{"submit_time", &j.Submit, or(v.Submit, v.Time.Submit)},
		{"eligible_time", &j.Eligible, or(v.Eligible, v.Time.Eligible)},
		{"start_time", &j.Start, or(v.Start, v.Time.Start)}, {"end_time", &j.End, or(v.End, v.Time.End)}} {
		*t.to, err = epoch(t.from.v)
		bad(t.field, err)
	}
	if limit := or(v.Limit, v.Time.Limit); limit.ok && limit.v > 0 && limit.v < noLimit {
		seconds := 60 * limit.v
		j.LimitSeconds = &seconds
	}
	j.setState(string(v.JobState + v.State))
	j.settleTimes(time.UTC)
	j.setExit(&v.ExitCode)
	bad("nodes", j.setNodes(string(v.Nodes)))
	j.setTRES(&v.TRES)
	if !c.give(j) {
		return false
	}
	for i := range v.Steps {
		if !c.step(j, &v.Steps[i]) {
			return false
		}
	}
	return true
}

// fullID writes the job's identifier as sacct prints it.
func (v *jobJSON) fullID() string {
	id := strconv.FormatInt(v.JobID.v, 10)
	array := or(v.ArrayJobID, v.Array.JobID)
	het, offset := or(v.HetJobID, v.Het.JobID), or(v.HetOffset, v.Het.Offset)
	switch task := or(v.ArrayTaskID, v.Array.TaskID); {
	case array.v != 0 && task.ok:
		return fmt.Sprintf("%d_%d", array.v, task.v)
	case array.v != 0 && v.ArrayTasks+v.Array.Task != "":
		return fmt.Sprintf("%d_[%s]", array.v, strings.Trim(v.ArrayTasks+v.Array.Task, "[]"))
	case het.v != 0 && offset.ok:
		return fmt.Sprintf("%d+%d", het.v, offset.v)
	}
	return id
}

func (j *Job) setExit(e *exit) {
	j.ExitCode = e.code.pointer()
	if e.signal.ok && e.signal.v != 0 {
		j.Signal = e.signal.pointer()
	}
}

// setTRES takes the allocated resources of slurmdbd's jobs; -2 is its word for not known.
func (j *Job) setTRES(t *tresJSON) {
	for _, r := range t.Allocated {
		if !r.Count.ok || r.Count.v < 0 {
			continue
		}
		if j.TRES == nil {
			j.TRES = map[string]string{}
		}
		name := r.Type
		if r.Name != "" {
			name += "/" + r.Name
		}
		value := strconv.FormatInt(r.Count.v, 10)
		switch r.Type {
		case "mem":
			value += "M"
		case "cpu":
			if j.CPUs == nil {
				j.CPUs = r.Count.pointer()
			}
		}
		j.TRES[name] = value
	}
}

// step gives one step of a job.
func (c *collected) step(of *Job, v *stepJSON) bool {
	j := &Job{ID: of.ID, RawID: of.RawID, ArrayTask: of.ArrayTask, Step: v.id(), Name: v.Step.Name, Cluster: of.Cluster,
		Account: of.Account, User: of.User, ElapsedSeconds: v.Time.Elapsed.pointer()}
	var err1, err2 error
	j.Start, err1 = epoch(v.Time.Start.v)
	j.End, err2 = epoch(v.Time.End.v)
	if err := errors.Join(err1, err2, j.setNodes(string(v.Nodes))); err != nil {
		c.Add(&LineError{Job: string(j.ID) + "." + j.Step, Err: err})
	}
	j.setState(string(v.State))
	j.settleTimes(time.UTC)
	j.setExit(&v.ExitCode)
	j.setTRES(&v.TRES)
	return c.give(j)
}

// id is the step's name: "649718.batch", or an object with step_id.
func (v *stepJSON) id() string {
	var s string
	if json.Unmarshal(v.Step.ID, &s) == nil {
		if _, step, ok := strings.Cut(s, "."); ok {
			return step
		}
		return s
	}
	var o struct {
		StepID json.RawMessage `json:"step_id"`
	}
	if json.Unmarshal(v.Step.ID, &o) != nil || len(o.StepID) == 0 {
		return "?"
	}
	var n num // as a number that may not be set
	if o.StepID[0] == '{' {
		if json.Unmarshal(o.StepID, &n) != nil || !n.ok {
			return "?"
		}
		return strconv.FormatInt(n.v, 10)
	}
	return strings.Trim(string(o.StepID), `"`)
}

// cached reads a member of a pytokio cache: a job or step by name, with sacct's fields in lower case; ok: v is one.
func (c *collected) cached(v json.RawMessage, o Options) (ok bool) {
	var one struct {
		RawID string `json:"jobidraw"`
		Start string `json:"start"`
		End   string `json:"end"`
		Nodes hosts  `json:"nodelist"`
	}
	if len(v) == 0 || v[0] != '{' || json.Unmarshal(v, &one) != nil || one.RawID == "" {
		return false
	}
	j := &Job{}
	err := setRawID(j, one.RawID, nil)
	if err == nil {
		j.Start, err = parseTime(one.Start, o.zone())
	}
	if err == nil {
		j.End, err = parseTime(one.End, o.zone())
	}
	if err == nil {
		err = j.setNodes(string(one.Nodes))
	}
	if err != nil {
		c.Add(&LineError{Job: collector.Clip(one.RawID), Err: err})
	}
	if j.ID != "" {
		c.give(j)
	}
	return true
}
