package sitefiles

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

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
	srv := &http.Server{Handler: handler(s), ReadHeaderTimeout: time.Second}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// call is a run of one of a node's programs.
type call struct {
	Node string   `json:"node"`
	Args []string `json:"args"` // the program first
}

// Truth is what the model knows and no file shows.
type Truth struct {
	Seconds float64                  `json:"seconds"`
	Routers map[string]RouterTruth   `json:"routers"`
	Nodes   map[string][]model.Route `json:"nodes"`
	Dropped uint64                   `json:"dropped"` // messages, of all nodes, since their starts
}

// RouterTruth is a router's part of it, since the site's start.
type RouterTruth struct {
	Messages     uint64            `json:"messages"`
	InsideMicros float64           `json:"inside_us"` // sum over them of the time inside
	Bytes        uint64            `json:"bytes"`
	ByClient     map[string]uint64 `json:"bytes_by_client"`
}

// Truth reads the model.
func (s *Site) Truth() Truth {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := Truth{Seconds: s.model.Now().Seconds(), Routers: map[string]RouterTruth{}, Nodes: map[string][]model.Route{}}
	for _, n := range s.model.Nodes {
		t.Dropped += uint64(n.LNet.Dropped)
		for _, r := range n.Table.Routes {
			t.Nodes[n.Name] = append(t.Nodes[n.Name], *r)
		}
		if n.Role != model.Router {
			continue
		}
		r := RouterTruth{Messages: n.Truth.Left, InsideMicros: float64(n.Truth.Inside) / 1e3,
			ByClient: map[string]uint64{}}
		for nid, b := range n.Truth.From {
			r.Bytes += b
			r.ByClient[nid] = b
		}
		t.Routers[n.Name] = r
	}
	return t
}

func handler(s Ordered) http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("POST /tool", func(w http.ResponseWriter, r *http.Request) {
		var c call
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a := s.Tool(c.Node, c.Args)
		if a.Hang {
			<-r.Context().Done()
			return
		}
		_ = json.NewEncoder(w).Encode(a)
	})
	m.HandleFunc("POST /fault", order(func(f model.Fault) error {
		return s.Do(func(m Breakable) error { return m.Break(f) })
	}))
	m.HandleFunc("POST /mend", order(func(f model.Fault) error {
		return s.Do(func(m Breakable) error { return m.Mend(f.Node) })
	}))
	m.HandleFunc("POST /trick", order(s.Trick))
	m.HandleFunc("POST /job", order(s.StartJob))
	m.HandleFunc("POST /end", order(s.StopJob))
	m.HandleFunc("GET /truth", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(s.Truth())
	})
	return m
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

// order reads a body, carries it out, and answers with what went wrong.
func order[T any](do func(T) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body T
		err := json.NewDecoder(r.Body).Decode(&body)
		if err == nil {
			err = do(body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}
}

// Asker speaks to a site at its socket.
type Asker struct{ client http.Client }

// NewAsker makes one for the site in a folder.
func NewAsker(dir string) *Asker {
	return &Asker{http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", Socket(dir))
		}}}}
}

// Ask posts an order, or gets where body is nil, and reads the answer into answer unless that is nil.
func (a *Asker) Ask(ctx context.Context, path string, body, answer any) error {
	method, text := http.MethodGet, []byte(nil)
	if body != nil {
		method = http.MethodPost
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://site"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	res, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("the site at %s: %s", path, bytes.TrimSpace(got))
	case answer == nil:
		return nil
	}
	return json.Unmarshal(got, answer)
}

// Tool runs a program of a node of the site.
func (a *Asker) Tool(ctx context.Context, node string, args []string) (Answer, error) {
	var out Answer
	err := a.Ask(ctx, "/tool", call{node, args}, &out)
	return out, err
}
