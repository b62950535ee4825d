package sitefiles

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/rpc"
	"os"
	"path/filepath"

	"fairway/cmd/lab/sitefiles/model"
)

// Socket is where a site in a folder takes orders.
func Socket(dir string) string { return filepath.Join(dir, "site.sock") }

// Ordered is a site that takes orders.
type Ordered interface {
	// Do calls f with the site's model while it stands still.
	Do(f func(Breakable) error) error
	Trick(Trick) error
	StartJob(JobOrder) error
	StopJob(JobOrder) error
	Tool(node string, args []string) Answer
	Truth() Truth
}

// Breakable is a model whose nodes can have faults.
type Breakable interface {
	Break(model.Fault) error
	Mend(node string) error
}

// ServeAt takes the orders of a site in a folder, at its socket, until ctx ends.
func ServeAt(ctx context.Context, dir string, s Ordered) error {
	name := Socket(dir)
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := net.Listen("unix", name)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	srv := rpc.NewServer()
	if err := srv.RegisterName("Site", &orders{s}); err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go srv.ServeConn(c) // ends with the connection
	}
}

// orders are a site's, in the shape of net/rpc.
type orders struct{ Ordered }

func (o *orders) Fault(f model.Fault, _ *struct{}) error {
	return o.Do(func(m Breakable) error { return m.Break(f) })
}

func (o *orders) Mend(node string, _ *struct{}) error {
	return o.Do(func(m Breakable) error { return m.Mend(node) })
}

func (o *orders) Trick(t Trick, _ *struct{}) error { return o.Ordered.Trick(t) }

func (o *orders) Job(j JobOrder, _ *struct{}) error { return o.StartJob(j) }

func (o *orders) End(j JobOrder, _ *struct{}) error { return o.StopJob(j) }

func (o *orders) Truth(_ struct{}, t *Truth) error {
	*t = o.Ordered.Truth()
	return nil
}

func (o *orders) Tool(c Call, a *Answer) error {
	*a = o.Ordered.Tool(c.Node, c.Args)
	return nil
}

// Call is a run of one of a node's programs.
type Call struct {
	Node string
	Args []string // the program first
}

// Truth is what the model knows and no file shows.
type Truth struct {
	Seconds float64                `json:"seconds"`
	Routers map[string]RouterTruth `json:"routers"`
	Dropped uint64                 `json:"dropped"` // messages, of all nodes, since their starts
}

// RouterTruth is a router's or gateway's part of it, since the site's start.
type RouterTruth struct {
	Bytes    uint64            `json:"bytes"`
	ByClient map[string]uint64 `json:"bytes_by_client"`
}

// NewRouterTruth is that of a router that has moved so many bytes for each client.
func NewRouterTruth(by map[string]uint64) RouterTruth {
	r := RouterTruth{ByClient: maps.Clone(by)}
	for _, b := range by {
		r.Bytes += b
	}
	return r
}

// Truth reads the model.
func (s *Site) Truth() Truth {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := Truth{Seconds: s.model.Now().Seconds(), Routers: map[string]RouterTruth{}}
	for _, n := range s.model.Nodes {
		t.Dropped += uint64(n.LNet.Dropped)
		if n.Role == model.Router {
			t.Routers[n.Name] = NewRouterTruth(n.Truth.From)
		}
	}
	return t
}

// Tool runs a program of a node, which has lnetctl alone.
func (s *Site) Tool(node string, args []string) Answer {
	if len(args) == 0 || args[0] != "lnetctl" {
		return Answer{Err: fmt.Sprintf("%s has no program %q\n", node, args), Code: 1}
	}
	return s.Lnetctl(node, args[1:])
}

// JobOrder starts a job by its name, as its batch system does.
type JobOrder struct {
	ID    string        `json:"id"`
	Nodes []string      `json:"nodes"`
	Files model.Sharing `json:"files"`
	// Load is how much it asks for, as a share of what its nodes' part of the routers would pass.
	Load float64 `json:"load"`
}

// StartJob starts a job.
func (s *Site) StartJob(o JobOrder) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := model.Job{ID: o.ID, Files: o.Files, Mix: model.Mixes()[1]}
	for _, name := range o.Nodes {
		n := s.model.Node(name)
		if n == nil || n.Role != model.Client {
			return fmt.Errorf("job %s: %q is not a client of this site", o.ID, name)
		}
		j.Clients = append(j.Clients, n.Index)
	}
	if o.Load <= 0 || o.Load > 1 {
		return fmt.Errorf("job %s: load %g: want more than 0, up to 1", o.ID, o.Load)
	}
	j.Mix.Think = s.model.Think(j.Mix, o.Load)
	return s.model.Start(j)
}

// StopJob ends a job.
func (s *Site) StopJob(o JobOrder) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Stop(o.ID)
}

// Ask gives an order to the site in a folder, and reads its answer into answer.
func Ask(ctx context.Context, dir, order string, what, answer any) error {
	c, err := rpc.Dial("unix", Socket(dir))
	if err != nil {
		return err
	}
	defer c.Close()
	call := c.Go("Site."+order, what, answer, nil)
	select {
	case <-call.Done:
		return call.Error
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Tool runs a program of a node of the site in a folder.
func Tool(ctx context.Context, dir, node string, args []string) (a Answer, err error) {
	if err = Ask(ctx, dir, "Tool", Call{node, args}, &a); err == nil && a.Hang {
		<-ctx.Done()
		err = ctx.Err()
	}
	return a, err
}
