// Package webui is the browser face and the HTTP API: one gate decides who may do what, the live
// feed carries the picture to both faces, and the static pages are served from the binary.
package webui

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/rootcause"
	"fairway/collector/ingest"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/remap/dispatch"
	"fairway/remap/journal"
	"fairway/remap/queue/tables"
	"fairway/tsdb"
	"fairway/webui/live"
)

// Config is what a server works with. Without any setting nobody can reach it.
type Config struct {
	// Hosts are further names under which browsers may reach the TCP door (localhost and loopback
	// addresses always count).
	Hosts  []string
	Access Access
	// BrowserURL is where browsers reach the TCP door, for the links that sign in; "": there is none.
	BrowserURL string

	Picture *live.Picture
	// Mounts join the paths of I/O logs with file systems and forwarders.
	Mounts rootcause.Mounts
	// Priority is a running job's for policies that divide by it; nil: it is not known.
	Priority func(*remap.Job) float64
	// Gathering is what queues share by now; nil, or false: they are told no global shares.
	Gathering func() (tables.Gathering, bool)
	Store     tsdb.Store
	Desk      *desk.Desk  // nil: no plans
	Ingest    *ingest.Hub // nil: no agents
	// Driver asks compute nodes where they are, for the checks; nil: remaps cannot be applied.
	Driver live.Observer
	// Jobs takes the batch system's word; nil: no jobs.
	Jobs    *dispatch.Dispatcher
	Archive Archive // nil: no I/O-log archive
	// Findings are the rules of a finding's life.
	Findings anomaly.Settings
	// Review lets persons judge findings; nil: they cannot be acknowledged or dismissed.
	Review *desk.Review
	// Canaries sends canary probes; nil: there is no way to any forwarder.
	Canaries *desk.Canaries
	// Audit shows the desk's records, the newest first; nil: no audit.
	Audit func(journal.Wanted) iter.Seq2[*journal.Record, error]
	// PromQL answers Prometheus's HTTP API, from its path /api/v1 on; nil: no PromQL.
	PromQL http.Handler
	// Metrics write further counters to /metrics.
	Metrics []MetricsWriter
	Version string
	Log     *slog.Logger // nil: discard
}

// Server answers requests through its doors while Run makes the picture.
type Server struct {
	cfg   Config
	log   *slog.Logger
	gate  *gate
	hub   *hub
	grids *live.Grids
	stats *serverStats
	files *staticFiles

	// Of the goroutine that publishes: which feed the listeners have, and until when that is enough.
	fedGeneration uint64
	feedAgain     time.Time
}

// New checks cfg; an error names the setting of Access that is wrong.
func New(cfg Config) (*Server, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Picture == nil || cfg.Store == nil {
		return nil, errors.New("webui: BUG: a server needs a picture and a store")
	}
	files, err := loadStatic()
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, log: cfg.Log, hub: newHub(), stats: newServerStats(), files: files,
		grids: live.NewGrids(cfg.Picture)}
	hosts := append([]string{"localhost", "127.0.0.1", "[::1]"}, cfg.Hosts...)
	if s.gate, err = newGate(cfg.Access, hosts, s.routes()); err != nil {
		return nil, err
	}
	return s, nil
}

// Door returns the HTTP server for listeners of one kind. The caller serves and shuts it down;
// websockets end with Run, so that Shutdown need not wait for them.
func (s *Server) Door(kind Door) *http.Server {
	return &http.Server{
		Handler: s.gate.handler(kind, s),
		// A body that trickles in is not waited for for ever; the answer's side is in statusRecorder.
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
		ConnContext:    withPeer,
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// signInPath returns the path of a page that signs its first visitor in, once, within codeLife.
func (s *Server) signInPath(name string, role remap.Role) string {
	return "/#signin=" + s.gate.sessions.oneTimeCode(name, role)
}

// Run makes the picture and feeds it to the consoles until ctx ends. It returns when every
// goroutine of it has ended and the live feeds are closed.
func (s *Server) Run(ctx context.Context) {
	var wait sync.WaitGroup
	wait.Go(func() { s.hub.run(ctx) })
	wait.Go(func() { s.cfg.Picture.Run(ctx, s.cfg.Desk, s.publish) })
	wait.Wait()
}

// securityHeaders go out with every answer. Nothing is loaded from elsewhere, nothing is framed.
func securityHeaders(h http.Header) {
	h.Set("Content-Security-Policy", strings.Join([]string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' blob: data:",
		"connect-src 'self'", "font-src 'self'", "manifest-src 'self'",
		"base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'",
	}, "; "))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
