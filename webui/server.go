// Package webui serves the HTTP API and the browser's pages: a handler type a noun, a table of routes behind the
// gate of webui/access, and the live feed, which carries the newest snapshot to every client.
package webui

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"fairway/anomaly"
	"fairway/anomaly/rootcause"
	"fairway/collector/ingest"
	"fairway/collector/topology"
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
	"fairway/webui/sites"
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
	// Shared says who of this and other sites uses storage targets; nil: no other sites are known.
	Shared func(of []topology.NodeID) []api.SharedTarget
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
	rows    []row
	parts   *parts // nil: it shows several sites
	feed    *feed
	stats   *serverStats
	meters  []MetricsWriter
	files   *staticFiles
	version string
}

// parts are what the nouns of the API work with; each noun is a type over them.
type parts struct {
	*Config
	gate    *access.Gate
	grids   *live.Grids
	records records
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
	s, err := newServer(cfg.Access, &cfg.Addresses, cfg.Version, cfg.Log)
	if err != nil {
		return nil, err
	}
	grids := live.NewGrids(cfg.Picture)
	s.parts = &parts{&cfg, s.gate, grids, cfg.Desk.History}
	s.meters = append([]MetricsWriter{cfg.Ingest.WriteMetrics, s.gate.Budget.WriteMetrics}, cfg.Metrics...)
	s.feed = &feed{hub: newHub(), picture: cfg.Picture, desk: cfg.Desk, grids: grids, open: s.gate.HasSession,
		took: s.stats.publish, log: cfg.Log}
	s.signIn.Machine = func() string { return cfg.Picture.Snapshot().Machine.Name }
	s.signIn.Ended = s.feed.ended
	s.gate.OnEnded(s.feed.ended)
	s.site.Leader, s.site.Panicked = cfg.Leader, s.stats.panicked(cfg.Alerts)
	s.site.Late = func() float64 { return cfg.Picture.Snapshot().Overview.LateSeconds }
	s.serves(s.routes(s.parts))
	return s, nil
}

// newServer makes what every server has.
func newServer(a access.Config, at *Addresses, version string, log *slog.Logger) (*Server, error) {
	files, err := loadStatic()
	if err != nil {
		return nil, err
	}
	gate, err := access.NewGate(a, append([]string{"localhost", "127.0.0.1", "[::1]"}, at.Hosts...))
	if err != nil {
		return nil, err
	}
	stats := newServerStats()
	return &Server{log: log, gate: gate, stats: stats, files: files, version: version,
		signIn: &access.SignIn{Gate: gate, Version: version, BrowserURL: at.BrowserURL, Sites: at.Sites, Log: log},
		site:   access.Site{Pages: files.serve, Answered: stats.answered, Log: log}}, nil
}

// SitesConfig is what a server of several sites works with.
type SitesConfig struct {
	Access access.Config
	Addresses
	View    func() sites.View // what is known of them now
	Version string
	Log     *slog.Logger
}

// NewOfSites makes a server that shows several sites on one page and has no machine of its own. It is not run: it
// makes no snapshots.
func NewOfSites(cfg SitesConfig) (*Server, error) {
	s, err := newServer(cfg.Access, &cfg.Addresses, cfg.Version, cfg.Log)
	if err != nil {
		return nil, err
	}
	s.files = s.files.only(sitesPage)
	s.signIn.Machine, s.signIn.Ended = func() string { return "all machines" }, func(string) {}
	s.site.Pages, s.site.Panicked = s.files.serve, s.stats.panicked(nil)
	s.serves(append(s.commonRoutes(), route(http.MethodGet, "/api/v1/sites", viewer, every,
		answers(func(*http.Request, access.Caller) (sites.View, error) { return cfg.View(), nil }), 0,
		"several sites in one, of a view of sites")))
	return s, nil
}

// inArchive is an endpoint that only an archive knows the answer of.
func (p *parts) inArchive(e endpoint) endpoint {
	if p.Archive == nil {
		e.handle = func(http.ResponseWriter, *http.Request, access.Caller) error {
			return fmt.Errorf("%w: this daemon keeps no I/O-log archive", api.ErrUnreachable)
		}
	}
	return e
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
	wait.Go(func() { s.parts.Picture.Run(ctx, s.parts.Desk, s.feed.publish) })
	wait.Wait()
}

//go:embed static
var staticFS embed.FS

// staticFile is one file of the console, ready to be sent.
type staticFile struct {
	kind        string
	plain, gzip []byte
	etag        string
}

// staticFiles are the pages, read and compressed once. Names in the pages carry the hash of all
// files (?v=...), so that a browser keeps them for good and never mixes two versions.
type staticFiles struct {
	version string
	files   map[string]*staticFile
	pages   []string
}

// sitesPage is the address of the page of several sites.
const sitesPage = "sites"

// only are the files of a console that has one page alone.
func (s *staticFiles) only(page string) *staticFiles {
	out := &staticFiles{s.version, maps.Clone(s.files), []string{"", page}}
	const mark = `class="opening"`
	out.files["index.html"] = newStaticFile("index.html",
		bytes.Replace(s.files["index.html"].plain, []byte(mark), []byte(mark+` data-only="`+page+`"`), 1))
	return out
}

// versionMark stands in the sources where the hash goes.
const versionMark = "__V__"

// loadStatic reads and compresses them once: what is embedded never changes.
var loadStatic = sync.OnceValues(func() (*staticFiles, error) {
	s := &staticFiles{files: map[string]*staticFile{}, pages: pages}
	raw := map[string][]byte{}
	sum := sha256.New()
	err := fs.WalkDir(staticFS, "static", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := staticFS.ReadFile(p)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(p, "static/")
		raw[name] = b
		fmt.Fprintf(sum, "%s %d\n", name, len(b))
		sum.Write(b)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the embedded pages: %w", err)
	}
	s.version = hex.EncodeToString(sum.Sum(nil))[:12]
	for name, b := range raw {
		s.files[name] = newStaticFile(name, bytes.ReplaceAll(b, []byte(versionMark), []byte(s.version)))
	}
	return s, nil
})

func newStaticFile(name string, b []byte) *staticFile {
	f := &staticFile{plain: b, kind: mime.TypeByExtension(path.Ext(name))}
	switch path.Ext(name) { // not what this host's mime table happens to say
	case ".js":
		f.kind = "text/javascript; charset=utf-8"
	case ".css":
		f.kind = "text/css; charset=utf-8"
	case ".svg":
		f.kind = "image/svg+xml"
	case ".txt", ".sha256", "":
		f.kind = "text/plain; charset=utf-8"
	}
	var z bytes.Buffer
	w, _ := gzip.NewWriterLevel(&z, gzip.BestCompression) // there is this level, and memory takes what is written
	_, _ = w.Write(b)
	_ = w.Close()
	if z.Len() < len(b) {
		f.gzip = z.Bytes()
	}
	sum := sha256.Sum256(b)
	f.etag = `"` + hex.EncodeToString(sum[:8]) + `"`
	return f
}

// serve answers a file by its name, and every other address with the console's one page, which
// knows what to show there.
func (s *staticFiles) serve(w http.ResponseWriter, r *http.Request) {
	name, found := strings.CutPrefix(r.URL.Path, "/static/")
	f := s.files[name]
	h := w.Header()
	switch {
	case found && f == nil:
		http.Error(w, "no such file", http.StatusNotFound)
		return
	case found && r.URL.Query().Get("v") == s.version:
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	default:
		h.Set("Cache-Control", "no-cache")
	}
	if !found {
		f = s.files["index.html"]
	}
	h.Set("Content-Type", f.kind)
	h.Set("ETag", f.etag)
	h.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == f.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	status := http.StatusOK
	if !found && !s.hasPage(r.URL.Path) {
		status = http.StatusNotFound // the page says so, too
	}
	body := f.plain
	if f.gzip != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.gzip
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the reader is gone when this fails
}

// pages are the first words of the console's addresses, as app.js has them.
var pages = []string{"", "overview", "forwarders", "propose", "plans", "audit", "findings", "jobs", "logs", "whatif",
	"occupancy", "report", "history"}

func (s *staticFiles) hasPage(address string) bool {
	word, _, _ := strings.Cut(strings.Trim(path.Clean("/"+address), "/"), "/")
	return slices.Contains(s.pages, word)
}

// zip compresses JSON of a packet's size and more for who asks for that.
var zip = func() func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(1400), gzhttp.ContentTypes([]string{"application/json"}),
		gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return wrap
}()

// zipped lets a route's JSON be compressed. Answers with secrets must not be: their length says something about them.
func zipped(t *access.Route, next access.Handler) access.Handler {
	secret := t.Kind&(socket|long) != 0 || t.Method != http.MethodGet || strings.HasPrefix(t.Path, "/api/v1/session") ||
		!strings.Contains(t.Path, "/api/v1/")
	if secret {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request, by access.Caller) (err error) {
		zip(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { err = next(w, r, by) })).ServeHTTP(w, r)
		return err
	}
}
