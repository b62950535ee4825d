package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"fairway/cmd/fairwayd/config"
	"fairway/cmd/fairwayd/listen"
	"fairway/cmd/fairwayd/view"
	"fairway/cmd/program"
	"fairway/remap/cluster"
	"fairway/remap/desk"
	"fairway/remap/dispatch"
	"fairway/tsdb/history"
	"fairway/webui/access"
	"fairway/webui/api"
)

// openCluster makes this daemon's part in a cluster; joinCluster takes part. It does nothing where it is alone.
func (d *daemon) openCluster() error {
	c := &d.conf.Cluster
	if !c.On() {
		return nil
	}
	secret, err := config.ReadSecret(c.SecretFile)
	if err != nil {
		return fmt.Errorf("%w: cluster.secret_file: %w", program.ErrSettings, err)
	}
	conf := cluster.Config{Settings: *c, Dir: filepath.Join(d.conf.StateDir, "cluster"), Secret: secret, Log: d.log}
	if conf.Listener, err = listen.TCP(c.Addr()); err != nil {
		return fmt.Errorf("[[cluster.daemon]] %s: addr = %q: %w", c.Name, c.Addr(), err)
	}
	d.cluster, err = cluster.New(conf)
	return err
}

// together is the log that the desk's journal is kept by; nil where this daemon is alone.
func (d *daemon) together() desk.Together {
	if d.cluster == nil {
		return nil
	}
	return d.cluster
}

// joinCluster takes part, once everything is open that the other daemons' records change.
func (d *daemon) joinCluster(crowd *access.Crowd) error {
	if d.cluster == nil {
		return nil
	}
	d.cluster.Serve(d.web.HTTP(access.Peer), crowd.Bound)
	return d.cluster.Start(d.desk, jobNotes{d.jobs, d.history})
}

// whileLeading runs act while this daemon decides and acts, until ctx ends; act returns when its own context ends.
func (d *daemon) whileLeading(ctx context.Context, act func(context.Context)) {
	if d.cluster == nil {
		act(ctx)
		return
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		if term := d.cluster.Term(); term > 0 {
			span, stop := context.WithCancel(ctx)
			ended := make(chan struct{})
			go func() { defer close(ended); act(span) }()
			for d.cluster.Term() == term && ctx.Err() == nil {
				select {
				case <-ctx.Done():
				case <-tick.C:
				}
			}
			stop()
			<-ended
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// term is the term of this daemon's lead; 0: it is alone, or does not lead.
func (d *daemon) term() uint64 {
	if d.cluster == nil {
		return 0
	}
	return d.cluster.Term()
}

// leads says whether this daemon decides and acts.
func (d *daemon) leads() bool { return !d.conf.View && (d.cluster == nil || d.cluster.Term() > 0) }

// notice is what every screen says of this daemon.
func (d *daemon) notice() string {
	if d.conf.View {
		return view.Notice
	}
	if d.cluster == nil {
		return ""
	}
	s := d.cluster.Status()
	return s.Notice(time.Now())
}

// checks are what the doctor asks besides.
func (d *daemon) checks() []func(context.Context) api.Check {
	all := []func(context.Context) api.Check{d.listeners.Check}
	if d.cluster != nil {
		all = append(all, d.clusterCheck)
	}
	return all
}

// clusterCheck says how the daemons of the cluster stand.
func (d *daemon) clusterCheck(ctx context.Context) api.Check {
	s, own := d.cluster.Status(), d.desk.Head().Records
	c := api.Check{Name: "cluster", Level: api.CheckOK}
	words := []string{fmt.Sprintf("%s leads in term %d; the journal of %s has %d records", s.Leader, s.Term, s.Name,
		own)}
	if s.Leader == "" || s.Fatal != nil {
		c.Level, words[0] = api.CheckFailed, s.Notice(time.Now())
		c.Fix = "start the daemons that do not answer, or mend the network between them (docs/cluster.md)"
	}
	for _, o := range d.cluster.Others(ctx) {
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

// leader passes a request on to the daemon that leads.
func (d *daemon) leader() func(http.ResponseWriter, *http.Request, access.Caller) (bool, error) {
	if d.conf.View {
		return view.Refuse
	}
	if d.cluster == nil {
		return nil
	}
	return func(w http.ResponseWriter, r *http.Request, by access.Caller) (done bool, err error) {
		to := d.cluster.Leader()
		if to == d.conf.Cluster.Name || to == "" && r.Method == http.MethodGet {
			return false, nil // as this daemon has it
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPassedOn))
		if err != nil {
			return true, fmt.Errorf("%w: %w", api.ErrInvalid, err)
		}
		self, err := d.cluster.AtLeader(r.Context(), func(to string) error {
			r.Body = io.NopCloser(bytes.NewReader(body))
			return d.cluster.Forward(w, r, to, func(q *http.Request) { access.PassOn(q, by) })
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

// runs keeps the jobs' starts and ends; nil: the history alone does.
func (d *daemon) runs() dispatch.Runs {
	if d.cluster == nil {
		return nil
	}
	return sharedRuns{d.cluster}
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
