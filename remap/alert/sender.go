package alert

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"fairway/collector/appendlog"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

const (
	// sendTimeout bounds one try of one message.
	sendTimeout = 10 * time.Second
	// A receiver that fails is tried again after retryFirst, then after twice as long each time, up to retryMost.
	retryFirst = time.Second
	retryMost  = time.Minute
	// lookEvery bounds what a notice that was dropped costs.
	lookEvery = time.Second
)

// Journal is the record that alerts are made from.
type Journal interface {
	// Since shows the records after number n, the oldest first, and returns the number of the last one taken.
	Since(n uint64, visit func(*journal.Record) error) (uint64, error)
	Records() uint64
	// Watch sends when something has been recorded.
	Watch(buffer int) (changed <-chan string, stop func())
}

// Config is what a Sender works with.
type Config struct {
	Settings Settings
	Journal  Journal
	// Path is the file that remembers what each receiver has been given.
	Path string
	Site string
	// BaseURL is where the faces are, for links; empty: no links.
	BaseURL string
	// User returns the user of a job; empty: unknown. It may be called from any goroutine.
	User func(topology.JobID) string
	// Acting says whether this daemon calls people; nil: it does.
	Acting func() bool
	// Late is by how much the daemon itself is late; nil: it is on time.
	Late func(time.Time) time.Duration
	Log  *slog.Logger
}

// Sender delivers alerts. Its methods may be called concurrently.
type Sender struct {
	cfg     Config
	targets []*target

	mu     sync.Mutex // guards what follows
	status []Status
	drops  uint64
	open   int
	own    map[string]*Alert // by ID, the daemon's own that the loop has not taken yet
}

// Status is how delivery to one receiver goes.
type Status struct {
	Receiver string `json:"receiver"`
	Kind     string `json:"kind"`
	// Waiting counts the alerts that it has not taken yet, Sent those that it took since the daemon's start.
	Waiting int    `json:"waiting"`
	Sent    uint64 `json:"sent"`
	Failed  uint64 `json:"failed"` // tries
	// LastSent is when it last took a message; Error is why the newest try failed, empty when it did not.
	LastSent time.Time `json:"last_sent,omitzero"`
	Error    string    `json:"error,omitempty"`
	Retry    time.Time `json:"retry,omitzero"` // when it is tried again
}

// target is a receiver with its worker. Beside in and the channel all belongs to Run.
type target struct {
	*Receiver
	channel channel
	in      chan *message // to the worker; closed at the end

	busy      bool
	backoff   time.Duration
	next      time.Time // not before
	refreshed time.Time
	status    Status
}

type outcome struct {
	t   *target
	m   *message
	err error
	at  time.Time
}

// New makes a sender; nothing is sent before Run. Errors name the receiver and the secret that cannot be read.
func New(cfg Config) (*Sender, error) {
	s := &Sender{cfg: cfg, own: map[string]*Alert{}}
	for i := range cfg.Settings.Receivers {
		r := &cfg.Settings.Receivers[i]
		ch, err := newChannel(r)
		if err != nil {
			return nil, fmt.Errorf("alert.receiver %s: %w", r.Name, err)
		}
		s.targets = append(s.targets, &target{Receiver: r, channel: ch, in: make(chan *message, 1),
			status: Status{Receiver: r.Name, Kind: r.Kind}})
		s.status = append(s.status, Status{Receiver: r.Name, Kind: r.Kind})
	}
	return s, nil
}

// Run follows the journal and delivers until ctx ends. What is under way then counts as not delivered.
func (s *Sender) Run(ctx context.Context) {
	if len(s.targets) == 0 {
		return
	}
	t, err := loadTable(s.cfg.Path)
	if err != nil {
		s.cfg.Log.Warn("what has been delivered is unknown: receivers may be given open alerts a second time", "err",
			err)
	}
	if records := s.cfg.Journal.Records(); t.Journal > records {
		s.cfg.Log.Warn("the journal is an older one than alerts were made from: receivers may be given open alerts a "+
			"second time", "records", records, "read", t.Journal)
		t = newTable()
	}
	results := make(chan outcome, len(s.targets))
	var workers sync.WaitGroup
	for _, g := range s.targets {
		workers.Go(func() { work(ctx, g, results) })
	}
	l := loop{Sender: s, table: t, results: results}
	l.run(ctx)
	for _, g := range s.targets {
		close(g.in)
	}
	workers.Wait()
}

// work sends one message after the other, so that a slow receiver delays no other.
func work(ctx context.Context, g *target, results chan<- outcome) {
	for m := range g.in {
		try, cancel := context.WithTimeout(ctx, sendTimeout)
		err := g.channel.send(try, m)
		cancel()
		results <- outcome{t: g, m: m, err: err, at: time.Now()}
	}
}

// loop owns the table.
type loop struct {
	*Sender
	table   *table
	results chan outcome
	noSave  bool // the newest save failed
	noRead  bool
}

func (l *loop) run(ctx context.Context) {
	changed, stop := l.cfg.Journal.Watch(1)
	defer stop()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	l.follow()
	for {
		l.hand(time.Now())
		select {
		case <-ctx.Done():
			return
		case _, ok := <-changed:
			if !ok {
				changed = nil // the desk closes; ctx ends next
			}
			l.follow()
		case now := <-tick.C:
			l.follow()
			l.table.clean(l.cfg.Settings.Receivers, now)
		case o := <-l.results:
			l.result(&o)
		}
	}
}

// follow takes the new records of the journal in.
func (l *loop) follow() {
	l.takeOwn(time.Now())
	before := l.table.Journal
	last, err := l.cfg.Journal.Since(before, func(r *journal.Record) error {
		if l.table.take(r, l.cfg.User) {
			l.link(r)
		}
		return nil
	})
	if err != nil {
		if !l.noRead {
			l.cfg.Log.Error("the journal cannot be read: alerts are late", "after_record", before, "err", err)
		}
		l.noRead = true
		return
	}
	l.noRead = false
	l.table.Journal = last
	if before == 0 && last > 0 {
		l.settle(time.Now())
	}
	if last != before {
		l.save()
	}
}

// takeOwn makes one alert of all panics of handlers until none comes for an hour, and one of the daemon's lateness.
func (l *loop) takeOwn(now time.Time) {
	if l.cfg.Late != nil {
		if by := l.cfg.Late(now); by >= lateCalls {
			l.call("late", DaemonLate, Warning, now, "the daemon was %.0f s late: nobody is accused meanwhile; give "+
				"its host more processor time", by.Seconds())
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, a := range l.own {
		if had := l.table.Alerts[id]; had != nil && had.Ended.IsZero() {
			had.Due, had.Summary = a.Due, a.Summary
			continue
		}
		l.table.forgetGiven(id)
		l.table.Alerts[id] = a
	}
	clear(l.own)
}

// call makes an alert of the daemon's own. It never waits.
func (s *Sender) call(id, kind string, severity Severity, at time.Time, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own[id] = &Alert{ID: id, Kind: kind, Severity: severity, Since: at, Due: at,
		Summary: fmt.Sprintf(format, args...)}
}

// Panicked has people called because a handler panicked. It never waits.
func (s *Sender) Panicked(route, what string, at time.Time) {
	s.call("panic", DaemonPanicked, Critical, at,
		"the daemon has a fault: %s panicked (%s); its log has the stack, report it", route, what)
}

// settle forgets what had ended before the journal was read for the first time: nobody is called for it.
func (l *loop) settle(now time.Time) {
	for _, a := range l.table.Alerts {
		if !a.Ended.IsZero() && now.Sub(a.Ended) > time.Minute {
			l.table.drop(a)
		}
	}
}

func (l *loop) link(r *journal.Record) {
	a := l.table.Alerts[r.Plan]
	if r.Finding != nil {
		a = l.table.Alerts[r.Finding.Finding.ID]
	}
	if a == nil || l.cfg.BaseURL == "" {
		return
	}
	page := "/findings/"
	if r.Finding == nil {
		page = "/plans/"
	}
	a.URL = l.cfg.BaseURL + page + a.ID
}

// hand gives each idle receiver what is pending.
func (l *loop) hand(now time.Time) {
	acting := l.cfg.Acting == nil || l.cfg.Acting()
	if !acting {
		l.settle(now) // another daemon calls
	}
	status := make([]Status, 0, len(l.targets))
	for _, g := range l.targets {
		g.status.Waiting = len(l.table.news(g.Receiver, now))
		status = append(status, g.status)
		if !acting || g.busy || now.Before(g.next) {
			continue
		}
		m := l.table.next(g.Receiver, l.cfg.Site, now)
		switch {
		case m != nil:
			if l.table.Sending[g.Name] != m {
				l.table.Sending[g.Name] = m
				l.save() // a crash from here on sends the same message again
			}
		case g.refresh() > 0 && now.Sub(g.refreshed) >= g.refresh():
			m, g.refreshed = newMessage(l.cfg.Site, l.table.firing(g.Receiver, now), now), now
		}
		if m != nil {
			g.busy = true
			g.in <- m // empty, for the worker is idle
		}
	}
	open := 0
	for _, a := range l.table.Alerts {
		if a.Ended.IsZero() {
			open++
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status, l.drops, l.open = status, l.table.Dropped, open
}

func (l *loop) result(o *outcome) {
	g := o.t
	g.busy = false
	if o.err != nil {
		g.backoff = min(max(2*g.backoff, retryFirst), retryMost)
		g.next = o.at.Add(g.backoff)
		if g.status.Error == "" {
			l.cfg.Log.Warn("alerts were not delivered; they are tried again", "receiver", g.Name, "alerts",
				len(o.m.Alerts),
				"err", o.err)
		}
		g.status.Failed++
		g.status.Error, g.status.Retry = o.err.Error(), g.next
		return
	}
	if g.status.Error != "" {
		l.cfg.Log.Info("alerts are delivered again", "receiver", g.Name)
	}
	g.backoff, g.next, g.refreshed = 0, o.at.Add(g.every()), o.at
	g.status.Sent += uint64(len(o.m.Alerts))
	g.status.LastSent, g.status.Error, g.status.Retry = o.at, "", time.Time{}
	l.table.delivered(g.Name, o.m)
	l.save()
}

func (l *loop) save() {
	err := appendlog.WriteNote(l.cfg.Path, l.table, 0o600)
	if err != nil && !l.noSave {
		l.cfg.Log.Error("what receivers have been given was not saved; after a restart they may be given it again",
			"err", err)
	}
	l.noSave = err != nil
}

// ErrNoReceiver is wrapped by the refusal to test what is not configured.
var ErrNoReceiver = fmt.Errorf("%w: no receiver of alerts is configured: add [[alert.receiver]] to the daemon's "+
	"settings", remap.ErrState)

// Test sends a test alert to every receiver, whatever it wants otherwise. Errors: ErrNotAllowed, ErrNoReceiver.
func (s *Sender) Test(by remap.Person) error {
	if err := by.May(remap.Operator, "sending a test alert"); err != nil {
		return err
	}
	if len(s.targets) == 0 {
		return ErrNoReceiver
	}
	now := time.Now()
	s.call(fmt.Sprintf("test-%d", now.Unix()), Test, Critical, now, "a test that %s asked for: nothing is wrong",
		by.Name)
	return nil
}

// Status returns how delivery goes, in the order of the settings, and the number of alerts that are open.
func (s *Sender) Status() ([]Status, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Status(nil), s.status...), s.open
}

// WriteMetrics writes the counters in Prometheus text format.
func (s *Sender) WriteMetrics(w io.Writer) {
	status, open := s.Status()
	fmt.Fprintf(w, "fairway_alerts_open %d\n", open)
	for i := range status {
		failing := 0
		if status[i].Error != "" {
			failing = 1
		}
		fmt.Fprintf(w, "fairway_alerts_waiting{receiver=%q} %d\n", status[i].Receiver, status[i].Waiting)
		fmt.Fprintf(w, "fairway_alerts_sent_total{receiver=%q} %d\n", status[i].Receiver, status[i].Sent)
		fmt.Fprintf(w, "fairway_alert_failures_total{receiver=%q} %d\n", status[i].Receiver, status[i].Failed)
		fmt.Fprintf(w, "fairway_alert_receiver_failing{receiver=%q} %d\n", status[i].Receiver, failing)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(w, "fairway_alerts_dropped_total %d\n", s.drops)
}
