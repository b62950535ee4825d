// Package webui serves the HTTP API and the browser's pages: one handler file a noun, a table of routes behind the
// gate of webui/access, and the live feed, which carries the newest snapshot to every client.
package webui

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/rootcause"
	"fairway/collector/ingest"
	"fairway/remap"
	"fairway/remap/alert"
	"fairway/remap/desk"
	"fairway/remap/dispatch"
	"fairway/remap/policy/evacuate"
	"fairway/remap/queue/tables"
	"fairway/tsdb"
	"fairway/tsdb/history"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/live"
)

// Config is what a server works with. Every part is required but those of Options.
type Config struct {
	Access  access.Config
	Picture *live.Picture
	Store   tsdb.Store
	Desk    *desk.Desk
	Ingest  *ingest.Hub
	Jobs    *dispatch.Dispatcher
	// Review lets persons judge findings by these Findings rules.
	Review   *desk.Review
	Findings anomaly.Settings
	// Rules looks after running jobs.
	Rules *evacuate.Policy
	// Gathering is what queues share now; false where they get no global shares.
	Gathering func() (tables.Gathering, bool)
	// PromQL answers Prometheus's HTTP API, from its path /api/v1 on.
	PromQL http.Handler
	Options
}

// Addresses are where browsers reach this daemon and others.
type Addresses struct {
	// Hosts are further names under which browsers may reach the TCP listener (localhost and loopback
	// addresses always count).
	Hosts []string
	// BrowserURL is where browsers reach the TCP listener, for the links that sign in; "" without one.
	BrowserURL string
	// Sites are the consoles of a site's machines, for the switcher of the browser.
	Sites []api.Site
}

// Options are the parts that a daemon may lack.
type Options struct {
	Addresses
	// Mounts join the paths of I/O logs with file systems and forwarders.
	Mounts rootcause.Mounts
	// Priority is a running job's for policies that divide by it; nil: it is not known.
	Priority func(*remap.Job) float64
	// Driver asks compute nodes where they are, for the checks; nil: remaps cannot be applied.
	Driver  live.Observer
	Archive Archive // nil: no I/O-log archive
	// Canaries sends canary probes; nil: without a way to forwarders.
	Canaries *desk.Canaries
	// Runs shows every ended run of the history, for reports; nil without a history.
	Runs func(visit func(history.Run) error) error
	// Effect returns what a plan under measurement has brought so far, else nil; nil: nobody measures.
	Effect func(plan string) *remap.Effect
	// Alerts calls people; nil: nobody is called.
	Alerts *alert.Sender
	// Checks are what the doctor asks of the daemon besides: what is in clear text, how its cluster stands.
	Checks []func(context.Context) api.Check
	// Leader is access.Site.Leader.
	Leader func(w http.ResponseWriter, r *http.Request, by access.Caller) (done bool, err error)
	// Metrics write further counters to /metrics.
	Metrics []MetricsWriter
	Version string
	Log     *slog.Logger // nil: discard
}

// Server answers requests on its listeners while Run makes the snapshots.
type Server struct {
	log     *slog.Logger
	gate    *access.Gate
	signIn  *access.SignIn
	site    access.Site
	nouns   *handlers
	feed    *feed
	picture *live.Picture
	desk    *desk.Desk
	stats   *serverStats
	meters  []MetricsWriter
	files   *staticFiles
	version string
	archive bool // there is one
}

// handlers are the nouns of the API.
type handlers struct {
	health     health
	agents     agents
	layer      layer
	forwarders forwarders
	replay     replay
	series     series
	findings   *findings
	exclusions exclusions
	jobs       *jobs
	domains    domains
	archives   archives
	whatif     whatif
	plans      plans
	standing   standing
	audits     audits
}

// New checks cfg; an error names the setting of Access that is wrong.
func New(cfg Config) (*Server, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Picture == nil || cfg.Store == nil || cfg.Desk == nil || cfg.Ingest == nil || cfg.Jobs == nil ||
		cfg.Review == nil || cfg.Rules == nil || cfg.Gathering == nil || cfg.PromQL == nil {
		return nil, errors.New("webui: BUG: a part of the server is missing")
	}
	files, err := loadStatic()
	if err != nil {
		return nil, err
	}
	gate, err := access.NewGate(cfg.Access, append([]string{"localhost", "127.0.0.1", "[::1]"}, cfg.Hosts...))
	if err != nil {
		return nil, err
	}
	stats := newServerStats()
	grids := live.NewGrids(cfg.Picture)
	s := &Server{log: cfg.Log, gate: gate, picture: cfg.Picture, desk: cfg.Desk, stats: stats, files: files,
		meters:  append([]MetricsWriter{cfg.Ingest.WriteMetrics, gate.Budget.WriteMetrics}, cfg.Metrics...),
		version: cfg.Version,
		archive: cfg.Archive != nil,
		feed: &feed{hub: newHub(), picture: cfg.Picture, desk: cfg.Desk, grids: grids, open: gate.HasSession,
			took: stats.publish, log: cfg.Log}}
	s.signIn = &access.SignIn{Gate: gate, Machine: func() string { return cfg.Picture.Snapshot().Machine.Name },
		Version: cfg.Version, BrowserURL: cfg.BrowserURL, Sites: cfg.Sites, Ended: s.feed.ended, Log: cfg.Log}
	gate.OnEnded(s.feed.ended)
	s.nouns = newHandlers(&cfg, gate, grids)
	s.site = access.Site{Routes: s.routes(s.nouns), Pages: files.serve, Leader: cfg.Leader,
		Answered: stats.answered, Panicked: stats.panicked(cfg.Alerts), Log: cfg.Log,
		Late: func() float64 { return cfg.Picture.Snapshot().Overview.LateSeconds }}
	return s, nil
}

func newHandlers(cfg *Config, gate *access.Gate, grids *live.Grids) *handlers {
	jobs := &jobs{known: cfg.Jobs, picture: cfg.Picture, desk: cfg.Desk, records: cfg.Desk.History,
		store: cfg.Store}
	found := &findings{picture: cfg.Picture, records: cfg.Desk.History, review: cfg.Review}
	found.incidents = incidents{finding: found.finding, picture: cfg.Picture, store: cfg.Store, desk: cfg.Desk,
		effect: cfg.Effect, version: cfg.Version}
	return &handlers{
		health: health{picture: cfg.Picture, driver: cfg.Driver, ingest: cfg.Ingest, desk: cfg.Desk,
			alerts: alerts{cfg.Alerts}, further: cfg.Checks},
		agents: agents{ingest: cfg.Ingest, gate: gate, desk: cfg.Desk, log: cfg.Log, enrolled: map[string]int{}},
		layer:  layer{cfg.Picture, cfg.Ingest},
		forwarders: forwarders{picture: cfg.Picture, ingest: cfg.Ingest, desk: cfg.Desk, rules: cfg.Findings,
			canaries: cfg.Canaries},
		replay:     replay{picture: cfg.Picture, grids: grids, jobs: cfg.Jobs},
		series:     series{picture: cfg.Picture, store: cfg.Store, promQL: cfg.PromQL},
		findings:   found,
		exclusions: exclusions{cfg.Desk},
		jobs:       jobs,
		domains:    domains{archive: cfg.Archive, jobs: jobs},
		archives:   archives{archive: cfg.Archive, jobs: jobs, records: cfg.Desk.History, mounts: cfg.Mounts},
		whatif: whatif{picture: cfg.Picture, jobs: cfg.Jobs, priority: cfg.Priority,
			gathering: cfg.Gathering},
		plans:    plans{cfg.Desk, cfg.Effect, cfg.Picture},
		standing: standing{cfg.Desk, rules{cfg.Rules, cfg.Desk.History}},
		audits: audits{records: cfg.Desk.History, undo: undo{cfg.Desk.History, cfg.Desk, cfg.Review},
			report: reports{picture: cfg.Picture, store: cfg.Store, desk: cfg.Desk, runs: cfg.Runs,
				version: cfg.Version}},
	}
}

// archived answers what only an archive knows.
func (s *Server) archived(h access.Handler) access.Handler {
	if s.archive {
		return h
	}
	return func(http.ResponseWriter, *http.Request, access.Caller) error {
		return fmt.Errorf("%w: this daemon keeps no I/O-log archive", api.ErrUnreachable)
	}
}

// HTTP returns the HTTP server for listeners of one kind. The caller serves and shuts it down;
// websockets end with Run, so that Shutdown need not wait for them.
func (s *Server) HTTP(kind access.Listener) *http.Server {
	return &http.Server{
		Handler: s.gate.Handler(kind, &s.site),
		// A body that trickles in is not waited for for ever; the gate bounds the answer's side.
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
		ConnContext:    access.WithPeer,
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// Crowd bounds the connections of all listeners together.
func (s *Server) Crowd(all int) *access.Crowd { return s.gate.Crowd(all, s.log) }

// SignInPath is an address that signs a person in, once.
func (s *Server) SignInPath(name string, role remap.Role) (string, error) {
	return s.gate.SignInPath(name, role)
}

// Run makes the snapshots and feeds them to the consoles until ctx ends. It returns when every
// goroutine of it has ended and the live feeds are closed.
func (s *Server) Run(ctx context.Context) {
	var wait sync.WaitGroup
	wait.Go(func() { s.feed.run(ctx) })
	wait.Go(func() { s.picture.Run(ctx, s.desk, s.feed.publish) })
	wait.Wait()
}
