package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"fairway/remap"
	"fairway/remap/journal"
)

// Config is what a node works with.
type Config struct {
	Settings
	Dir    string // of Raft's own files
	Secret string
	// Listener takes the other daemons' connections; the node closes it.
	Listener net.Listener
	Log      *slog.Logger
	Now      func() time.Time // nil: time.Now
}

func (c *Config) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

// Desk is the desk of this daemon.
type Desk interface {
	Journal
	Leads() bool
	Lead(ctx context.Context) error
	Follow(ctx context.Context) error
}

// Node is this daemon's part in the cluster. Its methods may be called concurrently.
type Node struct {
	cfg     Config
	peers   *peers
	http    httpSide
	journal Journal
	desk    Desk
	notes   Notes
	raft    *raft.Raft
	store   *raftboltdb.BoltStore
	ready   atomic.Bool // raft is there
	founded atomic.Bool
	lead    leadership
	trouble trouble
	stop    context.CancelFunc
	tasks   sync.WaitGroup
}

// leadership is whether this daemon leads.
type leadership struct {
	term    atomic.Uint64 // in which it does; 0: it does not
	leaving atomic.Bool
	poke    chan struct{} // look again

	mu      sync.Mutex    // guards changed
	changed chan struct{} // closed and made anew when it begins or ends
}

func (l *leadership) kick() {
	select {
	case l.poke <- struct{}{}:
	default:
	}
}

// wake wakes those who wait for a leader.
func (l *leadership) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *leadership) awaited() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// The times after which a daemon that does not answer is not waited for. An election takes one to two of them.
const (
	heartbeat = time.Second
	lease     = 500 * time.Millisecond
)

const (
	dialTimeout     = 2 * time.Second
	barrierTimeout  = 10 * time.Second
	lookEvery       = 100 * time.Millisecond
	keepEntries     = 16384 // for daemons that were away; who lacks more gets a snapshot
	snapshotEntries = 8192
)

// New makes a node; it takes part from Start on.
func New(cfg Config) (*Node, error) {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	id, err := newIdentity(cfg.Secret, cfg.Name)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	n := &Node{cfg: cfg, lead: leadership{poke: make(chan struct{}, 1), changed: make(chan struct{})},
		trouble: trouble{refused: map[string]string{}, alone: time.Now(), log: cfg.Log}}
	n.peers = &peers{listener: cfg.Listener, log: cfg.Log, identity: id, self: n.hello, nameAt: cfg.nameAt,
		known: func(name string) bool { return name != cfg.Name && cfg.of(name).Name != "" },
		fits:  n.fits,
		noted: n.trouble.noted, raft: make(chan net.Conn), http: make(chan net.Conn), done: make(chan struct{})}
	return n, nil
}

// Start takes part with a desk that was opened with this node.
func (n *Node) Start(d Desk, notes Notes) (err error) {
	n.journal, n.desk, n.notes = d, d, notes
	if err := os.MkdirAll(n.cfg.Dir, 0o700); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("cluster: %w", err), n.Close())
		}
	}()
	if n.store, err = raftboltdb.New(raftboltdb.Options{Path: filepath.Join(n.cfg.Dir, "log"),
		MsgpackUseNewTimeFormat: true}); err != nil {
		return fmt.Errorf("%s: %w", n.cfg.Dir, err)
	}
	if b, err := n.store.Get(foundedKey); err == nil && len(b) > 0 {
		n.founded.Store(true)
	}
	logger := hclog.New(&hclog.LoggerOptions{Name: "raft", Level: hclog.Warn, Output: logWriter{n.cfg.Log},
		DisableTime: true})
	snaps, err := raft.NewFileSnapshotStoreWithLogger(n.cfg.Dir, 1, logger)
	if err != nil {
		return err
	}
	transport := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{Stream: n.peers, MaxPool: 3,
		Timeout: dialTimeout, Logger: logger, ServerAddressProvider: addresses{&n.cfg.Settings}})
	conf := raft.DefaultConfig()
	conf.LocalID, conf.Logger = raft.ServerID(n.cfg.Name), logger
	conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = heartbeat, heartbeat, lease
	conf.TrailingLogs, conf.SnapshotThreshold, conf.NoLegacyTelemetry = keepEntries, snapshotEntries, true
	started, err := raft.HasExistingState(n.store, n.store, snaps)
	if err != nil {
		return err
	}
	if !started && n.cfg.founder() {
		if err := raft.BootstrapCluster(conf, n.store, n.store, snaps, transport, n.cfg.servers()); err != nil {
			return err
		}
	}
	n.peers.wait.Go(n.peers.run)
	if n.raft, err = raft.NewRaft(conf, machine{n}, n.store, n.store, snaps, transport); err != nil {
		return errors.Join(err, n.trouble.dead())
	}
	n.ready.Store(true)
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	n.tasks.Go(func() { n.run(ctx) })
	return nil
}

// addresses gives each daemon's address as this daemon's own file has it.
type addresses struct{ *Settings }

func (a addresses) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	if d := a.of(string(id)); d.Name != "" {
		return raft.ServerAddress(d.Addr), nil
	}
	return "", fmt.Errorf("daemon %q is not in the list of daemons", id)
}

// logWriter hands Raft's own log lines on.
type logWriter struct{ log *slog.Logger }

func (w logWriter) Write(b []byte) (int, error) {
	w.log.Debug("raft", "text", strings.TrimSpace(string(b)))
	return len(b), nil
}

// run leads and follows as Raft says.
func (n *Node) run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		n.look(ctx)
		select {
		case <-ctx.Done():
			n.follow()
			return
		case <-n.lead.poke:
		case <-n.raft.LeaderCh():
		case <-tick.C:
		}
	}
}

// look compares what this daemon does with what Raft says.
func (n *Node) look(ctx context.Context) {
	term := n.lead.term.Load()
	leader := n.raft.State() == raft.Leader && n.trouble.dead() == nil && !n.lead.leaving.Load()
	if term > 0 && (!leader || n.raft.CurrentTerm() != term || !n.desk.Leads()) {
		n.follow()
		term = 0
	}
	n.trouble.noteLeader(n.Leader())
	if leader && term == 0 && ctx.Err() == nil {
		if err := n.takeLead(ctx); err != nil {
			n.cfg.Log.Warn("this daemon was elected and does not lead yet", "err", err)
		}
	}
}

// takeLead has the desk act once everything is applied that earlier leaders recorded.
func (n *Node) takeLead(ctx context.Context) error {
	term := n.raft.CurrentTerm()
	if err := n.raft.Barrier(barrierTimeout).Error(); err != nil {
		return err
	}
	if err := n.trouble.dead(); err != nil {
		return err
	}
	if !n.founded.Load() {
		if !n.cfg.founder() {
			first := n.cfg.Daemons[0]
			n.cfg.Log.Info("the cluster's journal begins with another daemon's: the lead is handed over", "to",
				first.Name)
			return n.raft.LeadershipTransferToServer(raft.ServerID(first.Name), raft.ServerAddress(first.Addr)).Error()
		}
		if err := n.begin(); err != nil {
			return err
		}
	}
	if n.raft.State() != raft.Leader || n.raft.CurrentTerm() != term {
		return errors.New("another one was elected meanwhile")
	}
	n.lead.term.Store(term)
	if err := n.desk.Lead(ctx); err != nil {
		n.lead.term.Store(0)
		return err
	}
	n.cfg.Log.Info("this daemon leads", "daemon", n.cfg.Name, "term", term)
	n.lead.wake()
	return nil
}

func (n *Node) follow() {
	if n.lead.term.Swap(0) == 0 {
		return
	}
	if err := n.desk.Follow(context.Background()); err != nil && !errors.Is(err, remap.ErrClosed) {
		n.cfg.Log.Error("BUG: the desk does not follow", "err", err)
	}
	n.cfg.Log.Info("this daemon follows", "daemon", n.cfg.Name)
	n.lead.wake()
}

// basePiece is how many bytes of the founder's journal go into one entry.
const basePiece = 1 << 20

// begin makes the founder's journal the cluster's.
func (n *Node) begin() error {
	head := n.journal.Head()
	lines, err := n.journal.Lines(head.Records)
	if err != nil {
		return err
	}
	if err := journal.Batches(lines, basePiece, func(b []byte) error { return n.apply(entryLines, b) }); err != nil {
		return err
	}
	return n.apply(entryFounded, nil)
}

var foundedKey = []byte("fairway founded")

func (n *Node) found([]byte) error {
	n.founded.Store(true)
	return n.store.Set(foundedKey, []byte{1})
}

// apply has most daemons take an entry, and this one.
func (n *Node) apply(kind byte, data []byte) error {
	f := n.raft.Apply(append([]byte{kind}, data...), 0)
	if err := f.Error(); err != nil {
		return err
	}
	if err, ok := f.Response().(error); ok {
		return err
	}
	return nil
}

// Propose implements desk.Together.
func (n *Node) Propose(lines []byte) <-chan error {
	done := make(chan error, 1)
	f := n.raft.Apply(append([]byte{entryLines}, lines...), 0)
	n.tasks.Go(func() {
		err := f.Error()
		if err == nil {
			err, _ = f.Response().(error)
		}
		done <- err
		if err != nil {
			n.lead.kick()
		}
	})
	return done
}

// Note has every daemon take a note. An error says that it is not known whether they will.
func (n *Node) Note(b []byte) error {
	if n.lead.term.Load() == 0 {
		return remap.ErrNotLeading
	}
	if err := n.apply(entryNote, b); err != nil {
		return fmt.Errorf("%w: %w", remap.ErrNotLeading, err)
	}
	return nil
}

// die ends this daemon's part; it goes on at the next start.
func (n *Node) die(err error) {
	if !n.trouble.set(err) {
		return
	}
	n.lead.kick()
	go func() { // Raft waits for its state machine, which has called this
		if n.ready.Load() {
			n.raft.Shutdown()
		}
	}()
}

// hello is what this daemon says of itself.
func (n *Node) hello() hello {
	return hello{Name: n.cfg.Name, Head: n.journal.Head(), At: n.cfg.now(), Founded: n.founded.Load(),
		Founder: n.cfg.founder()}
}

// fits says why another daemon's journal does not fit this one.
func (n *Node) fits(h *hello) error {
	mine := n.hello()
	shorter, longer, name := mine, *h, h.Name
	if h.Head.Records < mine.Head.Records {
		shorter, longer = *h, mine
		hash, err := n.journal.HashAt(h.Head.Records)
		if err != nil {
			return err
		}
		if hash != h.Head.Hash {
			return fmt.Errorf("%s has %w: record %d has hash %.12s there and %.12s here", name,
				journal.ErrOtherHistory, h.Head.Records, h.Head.Hash, hash)
		}
	}
	if shorter.Head.Records == longer.Head.Records && shorter.Head.Hash != longer.Head.Hash {
		return fmt.Errorf("%s has %w: record %d has hash %.12s there and %.12s here", name, journal.ErrOtherHistory,
			shorter.Head.Records, h.Head.Hash, mine.Head.Hash)
	}
	if !longer.Founded && !longer.Founder && longer.Head.Records > shorter.Head.Records {
		return fmt.Errorf("%s has %w: %d records that are not the cluster's; the daemon listed first begins it, the "+
			"others begin without a journal", longer.Name, journal.ErrOtherHistory, longer.Head.Records)
	}
	return nil
}

// Term is the term in which this daemon leads; 0: it does not.
func (n *Node) Term() uint64 { return n.lead.term.Load() }

// Leader is the daemon that leads, as far as this one knows; empty: none is known.
func (n *Node) Leader() string {
	if n.lead.term.Load() > 0 {
		return n.cfg.Name
	}
	if !n.ready.Load() || n.trouble.dead() != nil {
		return ""
	}
	_, id := n.raft.LeaderWithID()
	if string(id) == n.cfg.Name {
		return "" // it is elected and does not lead yet
	}
	return string(id)
}

// Status returns this daemon's part as it is now.
func (n *Node) Status() Status {
	s := Status{Name: n.cfg.Name, Leader: n.Leader(), Daemons: len(n.cfg.Daemons)}
	if n.ready.Load() {
		s.Term = n.raft.CurrentTerm()
	}
	n.trouble.show(&s)
	return s
}

// WriteMetrics writes this daemon's part in Prometheus text format.
func (n *Node) WriteMetrics(w io.Writer) {
	s, leads := n.Status(), 0
	if s.Leader == s.Name {
		leads = 1
	}
	fmt.Fprintf(w, "fairway_cluster_leads %d\n", leads)
	fmt.Fprintf(w, "fairway_cluster_term %d\n", s.Term)
	fmt.Fprintf(w, "fairway_cluster_refused_daemons %d\n", len(s.Refused))
}

// Leave hands the lead over, if this daemon has it: a planned end costs no election. The desk is still open.
func (n *Node) Leave() {
	n.lead.leaving.Store(true)
	if n.lead.term.Load() == 0 {
		return
	}
	n.follow()
	if err := n.raft.LeadershipTransfer().Error(); err != nil {
		n.cfg.Log.Info("the lead was not handed over; the others elect", "err", err)
	}
}

// Close ends this daemon's part.
func (n *Node) Close() error {
	var errs []error
	if n.stop != nil {
		n.stop()
	}
	if n.raft != nil {
		errs = append(errs, n.raft.Shutdown().Error())
	}
	n.tasks.Wait()
	errs = append(errs, n.http.close(), n.peers.Close())
	if n.store != nil {
		errs = append(errs, n.store.Close())
	}
	return errors.Join(errs...)
}
