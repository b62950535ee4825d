// Package member is this daemon's part in a cluster.
package member

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"fairway/cmd/fairwayd/config"
	"fairway/cmd/fairwayd/listen"
	"fairway/cmd/program"
	"fairway/collector/pace"
	"fairway/remap/cluster"
	"fairway/remap/desk"
	"fairway/remap/dispatch"
	"fairway/tsdb/history"
	"fairway/webui/access"
	"fairway/webui/api"
)

// Member is this daemon's part in a cluster. A daemon that is alone has an empty one.
type Member struct {
	node *cluster.Node // nil: this daemon is alone
	name string
}

// Open makes the part that the settings describe; Join takes part.
func Open(conf *config.Config, log *slog.Logger) (*Member, error) {
	c := &conf.Cluster
	if !c.On() {
		return &Member{}, nil
	}
	secret, err := config.ReadSecret(c.SecretFile)
	if err != nil {
		return nil, fmt.Errorf("%w: cluster.secret_file: %w", program.ErrSettings, err)
	}
	of := cluster.Config{Settings: *c, Dir: filepath.Join(conf.StateDir, "cluster"), Secret: secret, Log: log}
	if of.Listener, err = listen.TCP(c.Addr()); err != nil {
		return nil, fmt.Errorf("[[cluster.daemon]] %s: addr = %q: %w", c.Name, c.Addr(), err)
	}
	node, err := cluster.New(of)
	if err != nil {
		return nil, err
	}
	return &Member{node, c.Name}, nil
}

// Alone says that the settings name no other daemon.
func (m *Member) Alone() bool { return m.node == nil }

// Together is the log that the desk's journal is kept by; nil where this daemon is alone.
func (m *Member) Together() desk.Together {
	if m.node == nil {
		return nil
	}
	return m.node
}

// Join takes part, once everything is open that the other daemons' records change.
func (m *Member) Join(server func(access.Listener) *http.Server, crowd *access.Crowd, d *desk.Desk,
	jobs *dispatch.Dispatcher, h *history.Store) error {
	if m.node == nil {
		return nil
	}
	m.node.Serve(server(access.Peer), crowd.Bound)
	return m.node.Start(d, jobNotes{jobs, h})
}

// Close leaves the cluster.
func (m *Member) Close() error {
	if m.node == nil {
		return nil
	}
	m.node.Leave()
	return m.node.Close()
}

// WhileLeading runs act while this daemon decides and acts, until ctx ends; act returns when its own context ends.
func (m *Member) WhileLeading(ctx context.Context, act func(context.Context)) {
	if m.node == nil {
		act(ctx)
		return
	}
	const look = 100 * time.Millisecond
	for ; ctx.Err() == nil; pace.Wait(ctx, look) {
		if term := m.node.Term(); term > 0 {
			span, stop := context.WithCancel(ctx)
			ended := make(chan struct{})
			go func() { defer close(ended); act(span) }()
			for m.node.Term() == term && pace.Wait(ctx, look) {
			}
			stop()
			<-ended
		}
	}
}

// Term is the term of this daemon's lead; 0: it is alone, or does not lead.
func (m *Member) Term() uint64 {
	if m.node == nil {
		return 0
	}
	return m.node.Term()
}

// Leads says whether this daemon decides and acts.
func (m *Member) Leads() bool { return m.node == nil || m.node.Term() > 0 }

// Notice is what every screen says of this daemon; "" where there is nothing to say.
func (m *Member) Notice() string {
	if m.node == nil {
		return ""
	}
	s := m.node.Status()
	return s.Notice(time.Now())
}

// WriteMetrics writes what the cluster counts.
func (m *Member) WriteMetrics(w io.Writer) {
	if m.node != nil {
		m.node.WriteMetrics(w)
	}
}

// Check says how the daemons of the cluster stand, where this one has so many records.
func (m *Member) Check(ctx context.Context, own uint64) api.Check {
	s := m.node.Status()
	c := api.Check{Name: "cluster", Level: api.CheckOK}
	words := []string{fmt.Sprintf("%s leads in term %d; the journal of %s has %d records", s.Leader, s.Term, s.Name,
		own)}
	if s.Leader == "" || s.Fatal != nil {
		c.Level, words[0] = api.CheckFailed, s.Notice(time.Now())
		c.Fix = "start the daemons that do not answer, or mend the network between them (docs/cluster.md)"
	}
	for _, o := range m.node.Others(ctx) {
		if o.Err == nil {
			words = append(words, fmt.Sprintf("%s has %d", o.Name, o.Records))
			if o.Ahead.Abs() >= clocksApart {
				words = append(words, clockWords(&o))
				if c.Level == api.CheckOK {
					c.Level, c.Fix = api.CheckWarned,
						"set the clocks of the daemons by NTP: leases and expiries go by them"
				}
			}
			continue
		}
		words = append(words, fmt.Sprintf("%s is not there: %v", o.Name, o.Err))
		if c.Level == api.CheckOK {
			c.Level, c.Fix = api.CheckWarned, "start "+o.Name+", or mend what it says (docs/cluster.md)"
		}
	}
	c.Text = strings.Join(words, "; ")
	return c
}

// clocksApart is from when on clocks of daemons that differ are a warning.
const clocksApart = 2 * time.Second

func clockWords(o *cluster.Other) string {
	side := "ahead of"
	if o.Ahead < 0 {
		side = "behind"
	}
	return fmt.Sprintf("the clock of %s is %s %s this daemon's", o.Name, o.Ahead.Abs().Round(time.Second), side)
}

// Leader is the name of the daemon that leads; "" where none is known.
func (m *Member) Leader() string { return m.node.Leader() }

// PassOn passes a request on to the daemon that leads; nil where this one is alone.
func (m *Member) PassOn() func(http.ResponseWriter, *http.Request, access.Caller) (bool, error) {
	if m.node == nil {
		return nil
	}
	return func(w http.ResponseWriter, r *http.Request, by access.Caller) (done bool, err error) {
		to := m.node.Leader()
		if to == m.name || to == "" && r.Method == http.MethodGet {
			return false, nil // as this daemon has it
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPassedOn))
		if err != nil {
			return true, fmt.Errorf("%w: %w", api.ErrInvalid, err)
		}
		self, err := m.node.AtLeader(r.Context(), func(to string) error {
			r.Body = io.NopCloser(bytes.NewReader(body))
			return m.node.Forward(w, r, to, func(q *http.Request) { access.PassOn(q, by) })
		})
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err != nil {
			err = fmt.Errorf("%w: %w", api.ErrUnreachable, err)
		}
		return !self, err
	}
}

// maxPassedOn bounds the body of a request that is passed on: a job or a plan of 41,000 nodes is a tenth of it.
const maxPassedOn = 16 << 20

// jobNotes are the jobs' starts and ends, which every daemon of a cluster knows.
type jobNotes struct {
	jobs    *dispatch.Dispatcher
	history *history.Store
}

// Take implements cluster.Notes.
func (j jobNotes) Take(note []byte) error {
	var r history.Run
	if err := json.Unmarshal(note, &r); err != nil {
		return fmt.Errorf("a job's start or end: %w", err)
	}
	return dispatch.Learn(j.jobs, r)
}

// Standing implements cluster.Notes.
func (j jobNotes) Standing() (out [][]byte) {
	for _, r := range j.history.Running() {
		if b, err := json.Marshal(r); err == nil {
			out = append(out, bytes.TrimSpace(b))
		}
	}
	return out
}

// sharedRuns have every daemon of the cluster know when jobs start and end.
type sharedRuns struct{ node *cluster.Node }

// Runs keeps the jobs' starts and ends; nil: the history alone does.
func (m *Member) Runs() dispatch.Runs {
	if m.node == nil {
		return nil
	}
	return sharedRuns{m.node}
}

func (s sharedRuns) Begin(r history.Run) error { return s.note(&r) }
func (s sharedRuns) Stop(r history.Run) error  { return s.note(&r) }

func (s sharedRuns) note(r *history.Run) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return s.node.Note(b)
}
