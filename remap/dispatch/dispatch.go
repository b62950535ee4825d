// Package dispatch stands between the batch system and the desk: when a job is about to start it
// predicts, lets a policy decide, and puts the plan on the desk; when the job has ended it takes the
// mapping back, builds the job's profile and writes prediction and measurement side by side.
package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/remap/policy/dfra"
	"fairway/tsdb/history"
	"fairway/tsdb/history/iolog"
)

// Config is what a dispatcher works with.
type Config struct {
	Desk    *desk.Desk
	History *history.Store
	// Runs keeps the jobs' starts and ends; nil: History does.
	Runs Runs
	// Situation returns the present situation.
	Situation func() *remap.Situation
	// Frames shows the newest frame of every node; a frame is valid only during the call.
	Frames func(visit func(*collector.Frame))
	// Seconds reads what was collected, for profiles.
	Seconds history.Selector
	// Name is the policy's, in plans and their audit.
	Name   string
	Policy Policy
	Limits dfra.Config
	// LiveAfter is how long a neighbour must have been watched before its live data override its history.
	LiveAfter time.Duration
	// Lend says whether a forwarder that serves nodes without a job by default may be granted to another one.
	Lend bool
	// Windows says whether jobs of periodic applications get windows for their I/O.
	Windows bool
	// Shares is the policy by which forwarders are shared; empty: they are not.
	Shares string
	// Logs reads the I/O logs of a run; nil: there are none.
	Logs func(context.Context, history.Run) ([]iolog.Log, error)
	Log  *slog.Logger // nil: discard
}

// situation returns the present situation with what the desk has promised in this moment: a job that has just ended
// has its nodes on their way home.
func (c *Config) situation() *remap.Situation {
	s := *c.Situation()
	s.Promised = c.Desk.Promises()
	return &s
}

// Runs keeps when jobs start and end, by every daemon that must know.
type Runs interface {
	Begin(history.Run) error
	Stop(history.Run) error
}

// Request is a job that is about to start.
type Request struct {
	Job     topology.JobID    `json:"job"`
	User    string            `json:"user"`
	App     string            `json:"app"`
	Project string            `json:"project,omitempty"`
	Nodes   []topology.NodeID `json:"nodes"`
	// Hints says that its user wants ROMIO hints for it.
	Hints bool `json:"hints,omitempty"`
}

// Answer is what was decided for a job.
type Answer struct {
	Job      topology.JobID `json:"job"`
	Policy   string         `json:"policy"`
	Decision dfra.Decision  `json:"decision"`
	// Prediction is absent for a job without history.
	Prediction *history.Prediction `json:"prediction,omitempty"`
	// Plan is empty where nothing is to be moved; Refused says why a wanted plan was not made.
	Plan    string          `json:"plan,omitempty"`
	State   remap.PlanState `json:"state,omitempty"`
	Refused string          `json:"refused,omitempty"`
	// Window is when it may do its I/O, of a periodic application where the site gives windows.
	Window *IOWindow `json:"window,omitempty"`
	// Windows are those of the other running jobs, made anew because this one begins; empty: none. Absent: the site
	// gives none.
	Windows map[topology.JobID]string `json:"windows,omitzero"`
	// Hints are those of a job whose user asked for them.
	Hints *ROMIOHints `json:"hints,omitempty"`
	// Given says in words what its environment gets, and why it does not get what was asked for.
	Given []string `json:"given,omitempty"`
	// Levels are what the site's own runs say is loud and quiet, used where it has set none; absent: too few runs.
	Levels      *Levels `json:"levels,omitempty"`
	TookSeconds float64 `json:"took_seconds"`
}

// Dispatcher knows the running jobs. All methods may be called concurrently.
type Dispatcher struct {
	contenders
	cfg Config
	log *slog.Logger
	due chan struct{} // a profile is due

	deciding sync.Mutex // one job at a time: two must not be promised the same forwarder
	windows  windows

	again   map[topology.JobID]again // Reconcile's own
	learned time.Time                // the profiler's own: when levels were learned
	levels  atomic.Pointer[Levels]   // nil: too few runs are known

	mu   sync.RWMutex // guards everything that follows
	jobs map[topology.JobID]*job
	at   map[topology.NodeID]topology.JobID // the running job of a node
	// ended are the jobs whose last seconds may still come in, until their profile is made.
	ended map[topology.JobID]*job
}

// job is a running job as the dispatcher sees it.
type job struct {
	run   history.Run
	past  *dfra.Run // its prediction
	live  dfra.Live // peak so far
	since time.Time // of the first second that was watched; zero before it
	// watched is when it was last watched, meter what was seen then and before; nil before the first second.
	watched time.Time
	meter   *history.Meter
	on      []topology.ForwarderID
	files   map[topology.NodeID]nodeFiles // of the nodes that reported them
	opens   opens
	served  float64 // operation-seconds in service of the servers behind gateways
	locks   callbacks
	answer  *Answer // nil after a restart
	// asks is the plan that waits until others have moved its nodes; nil: none does.
	asks *remap.Request

	rhythm   rhythm
	standing Standing // as the batch system listed it last
}

// New returns a dispatcher that knows the jobs that ran when the history was opened.
func New(cfg Config) *Dispatcher {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	d := &Dispatcher{cfg: cfg, log: cfg.Log, due: make(chan struct{}, 1), jobs: map[topology.JobID]*job{},
		at: map[topology.NodeID]topology.JobID{}, ended: map[topology.JobID]*job{},
		contenders: contenders{arrived: map[topology.JobID]*Request{}}}
	if cfg.Runs == nil {
		d.cfg.Runs = cfg.History
	}
	for _, r := range cfg.History.Running() {
		d.add(newJob(cfg.History, r))
	}
	return d
}

// newJob is a run as a running job.
func newJob(h *history.Store, r history.Run) *job {
	j := &job{run: r}
	if p, ok := h.Predict(r.Key()); ok {
		j.past = Past(&p.Run)
	}
	return j
}

// add makes a job a running one; d.mu is held.
func (d *Dispatcher) add(j *job) {
	d.jobs[j.run.Job] = j
	for _, n := range j.run.NodeList {
		d.at[n] = j.run.Job
	}
}

// remove forgets a running job; d.mu is held.
func (d *Dispatcher) remove(j *job) {
	delete(d.jobs, j.run.Job)
	for _, n := range j.run.NodeList {
		if d.at[n] == j.run.Job {
			delete(d.at, n)
		}
	}
}

// Running returns the running jobs by their start.
func (d *Dispatcher) Running() []remap.Job {
	d.mu.RLock()
	defer d.mu.RUnlock()
	out := make([]remap.Job, 0, len(d.jobs))
	for _, j := range d.jobs {
		r := &j.run
		out = append(out, remap.Job{ID: r.Job, User: r.User, App: r.App, Project: r.Project, Nodes: r.NodeList,
			Start: r.Start, QOS: j.standing.QOS, Priority: j.standing.Priority})
	}
	slices.SortFunc(out, func(a, b remap.Job) int { return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.ID, b.ID)) })
	return out
}

// Job returns a job that runs or has ended; ok is false for an unknown one.
func (d *Dispatcher) Job(id topology.JobID) (history.Run, bool, error) { return d.cfg.History.Job(id) }

// Decided returns what the policy answered at a running job's start; nil where it was not asked
// since this process began.
func (d *Dispatcher) Decided(id topology.JobID) *Answer {
	d.mu.RLock()
	defer d.mu.RUnlock()
	j := d.jobs[id]
	if j == nil || j.answer == nil {
		return nil
	}
	return new(j.answered())
}

// SoFar returns what a running job has done since it is watched, and since when that is; nil where it
// is not, or not yet. Its I/O mode is known only where the files of most of its nodes are known, or what
// it created and opened at the metadata servers.
func (d *Dispatcher) SoFar(id topology.JobID) (*history.Profile, time.Time) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	j := d.jobs[id]
	if j == nil || j.meter == nil {
		return nil, time.Time{}
	}
	p := j.meter.Profile()
	asked := *p
	asked.IONodes = j.run.Nodes
	p.Mode = j.mode(&asked)
	return p, j.meter.Since()
}

// Like returns the newest ended runs of the same user, application, project and size as a run: those
// that its prediction is from. all is how many there are.
func (d *Dispatcher) Like(r *history.Run, limit int) (runs []history.Run, all int, err error) {
	return d.cfg.History.Like(r.Key(), limit)
}

// Ended returns the newest ended runs, the newest first.
func (d *Dispatcher) Ended(limit int) ([]history.Run, error) { return d.cfg.History.Recent(limit) }

// maxNodes bounds a request: no machine has more compute nodes.
const maxNodes = 1 << 20

// maxText bounds the names of a request, bytes.
const maxText = 400

// key is what runs like it have in common.
func (r *Request) key() history.Key {
	return history.Key{User: r.User, App: r.App, Project: r.Project, Nodes: len(r.Nodes)}
}

func (r *Request) check(s *remap.Situation) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: job %q: %s", remap.ErrInvalid, r.Job, fmt.Sprintf(format, args...))
	}
	switch {
	case r.Job == "":
		return fmt.Errorf("%w: job: it has no number", remap.ErrInvalid)
	case !topology.CleanName(string(r.Job)):
		return fmt.Errorf("%w: job: %q has control characters", remap.ErrInvalid, r.Job)
	case len(r.Nodes) == 0:
		return bad("nodes: a job has at least one compute node")
	case len(r.Nodes) > maxNodes:
		return bad("nodes: %d, at most %d", len(r.Nodes), maxNodes)
	case len(r.Job)+len(r.User)+len(r.App)+len(r.Project) > maxText:
		return bad("job, user, app and project together are longer than %d bytes", maxText)
	}
	seen := make(map[topology.NodeID]bool, len(r.Nodes))
	for _, n := range r.Nodes {
		if seen[n] {
			return bad("nodes: %q is listed twice", n)
		}
		seen[n] = true
		if _, known := s.Default[n]; known {
			continue
		}
		if _, known := s.Routes[n]; !known {
			return bad("nodes: %q is not a compute node of %s", n, s.Machine.Name)
		}
	}
	return nil
}

// Dispatch decides for a job that is about to start and puts the plan, if there is one, on the desk.
// The same job again gets the same answer. A plan that the desk refuses is not an error: the job
// starts on its default mapping, and the answer says why. Errors: remap.ErrInvalid, and those of the
// disk; then nothing was done.
func (d *Dispatcher) Dispatch(ctx context.Context, r Request) (Answer, error) {
	begun := time.Now()
	s := d.cfg.situation()
	if err := r.check(s); err != nil {
		return Answer{}, err
	}
	// Users choose these: a job that is named so still starts.
	r.User, r.App, r.Project = topology.Clean(r.User), topology.Clean(r.App), topology.Clean(r.Project)
	defer d.arrive(&r)()
	var hints *ROMIOHints
	if _, again := d.same(&r); r.Hints && !again { // reads logs: no other job waits for that
		hints = hintsFor(ctx, &d.cfg, s, &r)
	}
	d.deciding.Lock()
	defer d.deciding.Unlock()
	if a, again := d.same(&r); again {
		return d.newest(ctx, a)
	}
	if err := d.endOverlapping(ctx, &r); err != nil {
		return Answer{}, err
	}
	s = d.cfg.situation() // other jobs were decided on, and may have ended, while this one waited
	j := &job{run: history.Run{Job: r.Job, User: r.User, App: r.App, Project: r.Project, Nodes: len(r.Nodes),
		NodeList: slices.Clone(r.Nodes), Start: begun.UTC()}}
	j.on = s.Forwarders(r.Nodes)
	j.run.Forwarders = j.on
	p, known := profiler{d}.predict(ctx, j.run.Key())
	if known {
		j.past = Past(&p.Run)
	}
	a := Answer{Job: r.Job, Policy: d.cfg.Name, Levels: d.levels.Load(), Hints: hints,
		Decision: decide(&d.cfg, s, d.caseOf(s, j, &p))}
	if known {
		p.Run.Profile.Phases = nil // shown with the job, not with each decision
		a.Prediction = &p
	}
	moves := assign(s, r.Nodes, &a.Decision, d.cfg.Desk.Claims(), r.Job)
	if len(moves) > 0 {
		j.run.Forwarders = a.Decision.Forwarders
	}
	if d.cfg.Windows {
		a.Windows = d.windows.renew(d, s, j, begun)
	}
	if w := j.rhythm.given; w.Text != "" {
		a.Window = &w
		j.run.Given = append(j.run.Given, history.GivenWindow)
		a.Given = append(a.Given, w.words())
	}
	if hints != nil {
		if len(hints.Hints) > 0 {
			hints.pair(s, r.Nodes, moves)
			j.run.Given = append(j.run.Given, history.GivenHints)
		}
		a.Given = append(a.Given, hints.words())
	}
	if d.cfg.Shares != "" {
		j.run.Given = append(j.run.Given, history.GivenShares+d.cfg.Shares)
	}
	if err := d.cfg.Runs.Begin(j.run); err != nil {
		return Answer{}, err
	}
	if len(moves) > 0 {
		proposer{d}.propose(ctx, &r, j, moves, &p, &a)
	}
	a.TookSeconds = time.Since(begun).Seconds()
	j.answer = &a
	d.mu.Lock()
	defer d.mu.Unlock()
	d.add(j)
	return a, nil
}

// same returns the answer that the very same job got; a job of the same number with other nodes is
// another job.
func (d *Dispatcher) same(r *Request) (Answer, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	j := d.jobs[r.Job]
	if j == nil || j.answer == nil || !slices.Equal(j.run.NodeList, r.Nodes) {
		return Answer{}, false
	}
	a := j.answered()
	if d.cfg.Windows {
		a.Windows = windowTexts(d)
	}
	return a, true
}

// newest brings an answer's plan up to date.
func (d *Dispatcher) newest(ctx context.Context, a Answer) (Answer, error) {
	if a.Plan == "" {
		return a, nil
	}
	p, err := d.cfg.Desk.Plan(ctx, a.Plan)
	a.State = p.State
	return a, err
}

// endOverlapping ends the jobs whose nodes start another one: nobody reported their end.
func (d *Dispatcher) endOverlapping(ctx context.Context, r *Request) error {
	var over []topology.JobID
	d.mu.RLock()
	if d.jobs[r.Job] != nil {
		over = append(over, r.Job)
	}
	for _, n := range r.Nodes {
		if id, ok := d.at[n]; ok && !slices.Contains(over, id) {
			over = append(over, id)
		}
	}
	d.mu.RUnlock()
	for _, id := range over {
		d.log.Warn("a job's end was never reported; it ends now, because its nodes start another", "job", id, "starts",
			r.Job)
		if _, err := d.End(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// Ended says what the end of a job set in motion.
type Ended struct {
	Job topology.JobID `json:"job"`
	// Known is false for a job that was never dispatched, or has ended already.
	Known bool `json:"known"`
	// Windows are those of the jobs that still run, made anew; empty: none.
	Windows map[topology.JobID]string `json:"windows,omitzero"`
	// Plans are being taken back, or were withdrawn.
	Plans []string `json:"plans"`
	// Failed says of a plan why it could not be taken back.
	Failed []string `json:"failed,omitempty"`
}

// End takes a job's plans back and has its profile built. It is safe to repeat. A plan that cannot be
// taken back is named in the answer. Errors are those of the disk.
func (d *Dispatcher) End(ctx context.Context, id topology.JobID) (Ended, error) {
	return d.endAt(ctx, id, time.Now().UTC())
}

func (d *Dispatcher) endAt(ctx context.Context, id topology.JobID, at time.Time) (Ended, error) {
	e := Ended{Job: id, Plans: []string{}}
	d.mu.RLock()
	j := d.jobs[id]
	d.mu.RUnlock()
	if j != nil {
		run := j.run
		run.End = at
		run.Kept = j.keptWindows(d)
		if err := d.cfg.Runs.Stop(run); err != nil {
			return e, err
		}
		d.mu.Lock()
		d.remove(j)
		d.ended[id] = j
		d.mu.Unlock()
		e.Known = true
		if d.cfg.Windows {
			e.Windows = d.windows.renew(d, d.cfg.Situation(), nil, at)
		}
		poke(d.due)
	}
	plans, err := d.cfg.Desk.OfJob(ctx, id)
	if err != nil {
		return e, err
	}
	by := remap.PolicyPerson(d.cfg.Name)
	for i := range plans {
		undo := takeBack(&plans[i])
		if undo == nil {
			continue
		}
		if _, err := undo(d.cfg.Desk, ctx, by, plans[i].ID,
			remap.Answer{Reason: "job " + string(id) + " has ended"}); err != nil {
			if !errors.Is(err, remap.ErrState) {
				return e, err
			}
			e.Failed = append(e.Failed, err.Error())
			continue
		}
		e.Plans = append(e.Plans, plans[i].ID)
	}
	return e, nil
}

// poke has the profiler look for profiles that are due.
func poke(due chan<- struct{}) {
	select {
	case due <- struct{}{}:
	default:
	}
}

// takeBack is what ends a plan at its job's end; nil: nothing is to be done.
func takeBack(p *remap.Plan) func(*desk.Desk, context.Context, remap.Person, string, remap.Answer) (remap.Plan, error) {
	if p.Back != nil {
		return nil
	}
	switch p.State {
	case remap.Proposed, remap.Approved:
		return (*desk.Desk).Withdraw
	case remap.Applying, remap.Applied, remap.Verified, remap.Partial, remap.Failed:
		return (*desk.Desk).Restore
	}
	return nil
}
