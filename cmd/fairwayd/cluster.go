package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"fairway/cmd/program"
	"fairway/remap/cluster"
	"fairway/remap/desk"
	"fairway/remap/dispatch"
	"fairway/tsdb/history"
	"fairway/webui/access"
	"fairway/webui/api"
)

// validateCluster says what is wrong with the list of daemons.
func (c *Config) validateCluster() error {
	if err := c.Cluster.Validate(); err != nil {
		return err
	}
	if addr := c.Cluster.Addr(); addr != "" && c.Listen.TLS.Certificate == "" && !local(addr) && !c.Listen.ClearText {
		return fmt.Errorf("[[cluster.daemon]] %s: addr = %q leads beyond this host without TLS: set [listen.tls], or "+
			"listen.clear_text = true on a network that is trusted", c.Cluster.Name, addr)
	}
	return nil
}

// openCluster makes this daemon's part in a cluster; joinCluster takes part. It does nothing where it is alone.
func (d *daemon) openCluster() error {
	c := &d.conf.Cluster
	if !c.On() {
		return nil
	}
	secret, err := readSecret(c.SecretFile)
	if err != nil {
		return fmt.Errorf("%w: cluster.secret_file: %w", program.ErrSettings, err)
	}
	conf := cluster.Config{Settings: *c, Dir: filepath.Join(d.conf.StateDir, "cluster"), Secret: secret, Log: d.log}
	if d.keys != nil {
		conf.Server = serverTLS(d.keys)
		conf.Client = &tls.Config{MinVersion: tls.VersionTLS12}
		if c.CAFile != "" {
			pem, err := os.ReadFile(c.CAFile)
			if err != nil {
				return fmt.Errorf("%w: cluster.ca_file: %w", program.ErrSettings, err)
			}
			conf.Client.RootCAs = x509.NewCertPool()
			if !conf.Client.RootCAs.AppendCertsFromPEM(pem) {
				return fmt.Errorf("%w: cluster.ca_file: %s holds no certificate", program.ErrSettings, c.CAFile)
			}
		}
	}
	if conf.Listener, err = listenTCP(c.Addr()); err != nil {
		return fmt.Errorf("[[cluster.daemon]] %s: addr = %q: %w", c.Name, c.Addr(), err)
	}
	d.cluster = cluster.New(conf)
	return nil
}

// together is the log that the desk's journal is kept by; nil where this daemon is alone.
func (d *daemon) together() desk.Together {
	if d.cluster == nil {
		return nil
	}
	return d.cluster
}

// joinCluster takes part, once everything is open that the other daemons' records change.
func (d *daemon) joinCluster() error {
	if d.cluster == nil {
		return nil
	}
	d.cluster.Serve(d.web.HTTP(access.Peer))
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
func (d *daemon) leads() bool { return d.cluster == nil || d.cluster.Term() > 0 }

// notice is what every screen says of this daemon.
func (d *daemon) notice() string {
	if d.cluster == nil {
		return ""
	}
	s := d.cluster.Status()
	return s.Notice(time.Now())
}

// leader passes a request on to the daemon that leads.
func (d *daemon) leader() func(http.ResponseWriter, *http.Request, access.Caller) (bool, error) {
	if d.cluster == nil {
		return nil
	}
	return func(w http.ResponseWriter, r *http.Request, by access.Caller) (done bool, err error) {
		to := d.cluster.Leader()
		switch {
		case to == d.conf.Cluster.Name, to == "" && r.Method == http.MethodGet:
			return false, nil // as this daemon has it
		case to == "":
			var self bool
			if to, self, err = d.cluster.AwaitLeader(r.Context()); self {
				return false, nil
			}
		}
		if err == nil {
			err = d.cluster.Forward(w, r, to, func(q *http.Request) { access.PassOn(q, by) })
		}
		if err != nil {
			err = fmt.Errorf("%w: %w", api.ErrUnreachable, err)
		}
		return true, err
	}
}

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
