package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"fairway/anomaly/watch"
	"fairway/cmd/fairwayd/config"
	"fairway/cmd/fairwayd/enrol"
	"fairway/cmd/fairwayd/host"
	"fairway/cmd/fairwayd/iologs"
	"fairway/cmd/fairwayd/listen"
	"fairway/cmd/fairwayd/state"
	"fairway/cmd/fairwayd/stores"
	"fairway/cmd/fairwayd/view"
	"fairway/cmd/program"
	"fairway/collector"
	"fairway/collector/ingest"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/alert"
	"fairway/remap/cluster"
	"fairway/remap/desk"
	"fairway/remap/dispatch"
	"fairway/remap/driver/drain"
	"fairway/remap/effect"
	"fairway/remap/journal"
	"fairway/remap/policy/evacuate"
	"fairway/remap/queue/tables"
	"fairway/remap/situation"
	"fairway/tsdb"
	"fairway/tsdb/history"
	"fairway/tsdb/promapi"
	"fairway/tsdb/window"
	"fairway/webui"
	"fairway/webui/access/budget"
	"fairway/webui/live"
)

// daemon is the running whole. openDaemon starts its parts in the order in which they need each
// other, and Close ends them in reverse.
type daemon struct {
	conf      *config.Config
	log       *slog.Logger
	store     tsdb.Store
	board     *window.Board
	situation *situation.Builder
	agents    *ingest.Hub
	driver    remap.Driver
	cluster   *cluster.Node // nil: this daemon is alone
	desk      *desk.Desk
	history   *history.Store
	jobs      *dispatch.Dispatcher
	effects   *effect.Meter
	evacuate  *evacuate.Policy
	detectors *watch.Detectors
	judging   atomic.Pointer[watch.Detectors] // the same, for readers that are there before
	findings  *watch.Loop
	sharing   *tables.Sender
	late      watch.Lateness  // this daemon's own
	canaries  *watch.Canaries // nil without a way to any forwarder
	web       *webui.Server
	listeners *listen.Listeners
	older     enrol.Older

	stop  context.CancelFunc
	tasks sync.WaitGroup
}

// openDaemon starts everything; on an error what was started is ended again.
func openDaemon(conf *config.Config, log *slog.Logger) (d *daemon, err error) {
	ctx, stop := context.WithCancel(context.Background())
	d = &daemon{conf: conf, log: log, stop: stop}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	connections := host.RaiseOpenFiles(log)
	people, err := conf.Access.ForWeb()
	if err != nil {
		return d, err
	}
	people.Enrolment = enrol.Tokens(conf.Access.Enrolment.SecretFile, d.revokedUntil, log)
	// The addresses come before the files: most often it is there that a second daemon is noticed.
	if d.listeners, err = listen.Open(&conf.Listen, log); err != nil {
		return d, err
	}
	people.SecureCookie = people.SecureCookie || d.listeners.Encrypted()
	if err := state.CheckFormat(conf.StateDir, version); err != nil {
		return d, err
	}
	if err := d.openCluster(); err != nil {
		return d, err
	}
	if err := d.older.Read(conf.StateDir); err != nil {
		return d, err
	}
	store, err := stores.Open(conf, conf.Store.Kind, log)
	if err != nil {
		return d, err
	}
	d.store = store.Source
	if conf.View {
		d.store = view.Store{Source: store.Source}
	}
	d.board = window.NewBoard(0)
	d.situation = situation.New(situation.Config{Machine: conf.Machine(),
		PeakBytesPerSec: conf.Forwarder.PeakBytesPerSec,
		Board:           d.board, Store: d.store, Log: log})
	shown := live.New(live.Config{Board: d.board, Situation: d.situation.Fresh, Store: d.store,
		Simulated: os.Getenv("FAIRWAY_SIMULATED") != "", Notice: d.notice, Lateness: &d.late,
		Journal: d.audit, JobsKnown: d.jobsKnown, JobsAt: d.jobsAt, Canary: d.canary,
		Detectors: func() *watch.Detectors { return d.judging.Load() }, Log: log,
		Effect: func(plan string) *remap.Effect { return d.effects.Newest(plan) }})
	d.agents = ingest.New(ingest.Config{Store: d.store, Log: log, Role: d.situation.Role, Roles: conf.Roles(),
		Oldest: ingest.DefaultOldest, Term: d.term,
		Observe: func(frames []collector.Frame, now time.Time) {
			d.board.Take(frames, now)
			shown.Arrived()
		}})
	if conf.View {
		d.agents.Close()
	}
	d.sharing = tables.New(tables.Config{Settings: conf.Queue, Situation: d.situation.Situation, Order: d.agents.Order,
		Rates:  func(at time.Time) map[topology.JobID]float64 { return d.jobs.Windows().Rates(at) },
		Limits: func() remap.Limits { return d.desk.Limits() }, Log: log})
	drains := d.newDrains()
	if err := d.openDesk(people.RoleNow, drains); err != nil {
		return d, err
	}
	if err := d.openJobs(); err != nil {
		return d, err
	}
	if err := d.openFindings(ctx); err != nil {
		return d, err
	}
	meters := []webui.MetricsWriter{d.desk.WriteMetrics, d.findings.WriteMetrics, func(w io.Writer) {
		metrics.WriteGaugeFloat64(w, "fairway_late_seconds", d.late.Within(time.Now()).Seconds())
	}}
	if d.cluster != nil {
		meters = append(meters, d.cluster.WriteMetrics)
	}
	if conf.Queue.Policy != "" {
		meters = append(meters, d.sharing.WriteMetrics)
	}
	if d.canaries != nil {
		meters = append(meters, d.canaries.WriteMetrics)
	}
	if store.WriteMetrics != nil {
		meters = append(meters, store.WriteMetrics)
	}
	calls, err := alert.New(alert.Config{Settings: conf.Alert, Journal: d.desk, Site: conf.Name,
		Path: filepath.Join(conf.StateDir, "alerts"), BaseURL: d.browserURL(), User: d.userOf, Acting: d.leads,
		Late: d.late.Within, Log: log})
	if err != nil {
		return d, fmt.Errorf("%w: %w", program.ErrSettings, err)
	}
	meters = append(meters, calls.WriteMetrics)
	limits := budget.Defaults()
	d.web, err = webui.New(webui.Config{Access: people, Picture: shown, Store: d.store, Desk: d.desk, Ingest: d.agents,
		Jobs: d.jobs, Review: desk.NewReview(d.desk, d.findings), Findings: d.findings.Settings(),
		Rules:     d.evacuate,
		Gathering: d.sharing.Gathering, PromQL: promapi.New(promapi.Config{Store: d.store, Log: log,
			MaxSamples: limits.QuerySamples / limits.Queries, MaxBytes: limits.AnswerBytes,
			Racks: d.situation.Racks, Peaks: d.situation.Peaks}),
		Options: webui.Options{Addresses: webui.Addresses{Hosts: conf.Listen.Hosts, BrowserURL: d.browserURL(),
			Sites: view.Consoles(log)},
			Mounts:   conf.Mounts,
			Priority: conf.Priority(), Driver: d.observer(), Archive: iologs.Open(conf.StateDir, self),
			Canaries: d.asked(), Checks: d.checks(), Effect: d.effects.Newest,
			Shared: view.AskOthers(ctx, conf, d.browserURL(), shown, d.tasks.Go, log),
			Alerts: calls, Runs: d.history.Each, Leader: d.leader(),
			Metrics: meters, Version: version, Log: log}})
	if err != nil {
		return d, fmt.Errorf("%w: %w", program.ErrSettings, err)
	}
	d.tasks.Go(func() { d.situation.KeepOccupancy(ctx, store.SetPeaks) })
	if conf.View {
		d.tasks.Go(func() { view.Keep(ctx, d.store, d.board, shown.Arrived, log) })
	} else {
		d.tasks.Go(func() { d.jobs.Run(ctx) })
		d.tasks.Go(func() { d.whileLeading(ctx, d.effects.Run) })
		d.tasks.Go(func() { d.whileLeading(ctx, d.evacuate.Run) })
		d.runFindings(ctx)
		d.tasks.Go(func() { calls.Run(ctx) })
		d.tasks.Go(func() { iologs.KeepForwarders(ctx, conf.StateDir, d.store, log) })
		d.tasks.Go(func() { iologs.KeepHistory(ctx, conf, d.history, log) })
	}
	d.tasks.Go(func() { d.whileLeading(ctx, d.sharing.Run) })
	if drains != nil {
		d.tasks.Go(func() { d.whileLeading(ctx, drains.Run) })
	}
	if !conf.View {
		d.tasks.Go(func() { iologs.ForgetOld(ctx, conf.StateDir, conf.Keep.Archive, log) })
		old := state.Old{Keep: &conf.Keep, History: d.history, Log: log}
		if d.cluster == nil {
			old.Desk = d.desk
		}
		d.tasks.Go(func() { old.Run(ctx) })
	}
	batch := dispatch.Batch{Jobs: d.jobs, Command: conf.Slurm.Jobs, Every: conf.Slurm.Every, Log: log}
	d.tasks.Go(func() { d.whileLeading(ctx, batch.Run) })
	d.tasks.Go(func() { d.web.Run(ctx) })
	crowd := d.web.Crowd(connections)
	if err := d.joinCluster(crowd); err != nil {
		return d, err
	}
	d.listeners.Serve(d.web.HTTP, crowd)
	d.tasks.Go(func() { d.older.Record(ctx, conf.Listen.Socket, log) })
	if !conf.Access.AnyOperator() {
		log.Info(
			"only root and the daemon's user may act. To make the first operator, map a unix group in the "+
				"configuration: "+
				`[access.groups] GROUP = "operator"; 'fairway sign-in-link' then lets its members act in browsers too`,
			"socket", conf.Listen.Socket, "browser", d.browserURL())
	}
	return d, nil
}

func (d *daemon) openDesk(roleOf func(name, via string) (remap.Role, bool), drains *drain.Drains) (err error) {
	if d.driver, err = d.newDriver(); err != nil {
		return err
	}
	path := d.journal()
	desk, sum, err := desk.Open(desk.Config{
		Settings: d.conf.Desk, Path: path, Driver: d.driver, Situation: d.situation.Situation, RoleOf: roleOf,
		Drain: drainOf(drains), Queues: d.sharing, Together: d.together(), Log: d.log,
	})
	if err != nil {
		return err
	}
	d.desk = desk
	if sum.TornBytes > 0 {
		d.log.Warn("the journal ended in unfinished records, which were cut off; they had not been answered",
			"file", path, "bytes", sum.TornBytes, "after_record", sum.Records, "why", sum.Torn, "kept", sum.Kept)
	}
	d.log.Info("journal replayed", "file", path, "records", sum.Records)
	d.situation.SetDesk(desk)
	return nil
}

// browserURL is where a browser reaches the daemon, as far as it knows; "" where it cannot.
func (d *daemon) browserURL() string {
	if at := d.conf.Access.OIDC.URL; at != "" {
		return strings.TrimSuffix(at, "/")
	}
	return d.listeners.BrowserURL()
}

// revokedUntil is up to when a node's tokens are refused here.
func (d *daemon) revokedUntil(n topology.NodeID) time.Time {
	until := d.desk.RevokedUntil(n)
	if older := d.older.Until(n); older.After(until) {
		return older
	}
	return until
}

func (d *daemon) journal() string { return filepath.Join(d.conf.StateDir, "journal") }

// audit shows every record to visit, from the file: what is on disk is what counts.
func (d *daemon) audit(after uint64, visit func(*journal.Record) error) (uint64, error) {
	return d.desk.Since(after, visit) // the desk is opened before anybody can ask
}

// Close ends the parts in the reverse order of their start.
func (d *daemon) Close() error {
	var errs []error
	if d.listeners != nil {
		d.listeners.Close()
	}
	if d.cluster != nil {
		d.cluster.Leave()
		errs = append(errs, d.cluster.Close())
	}
	// The desk goes before the agents: an order that is cut off then stays open, and the next start
	// takes it up, instead of counting as failed.
	if d.desk != nil {
		errs = append(errs, d.desk.Close())
	}
	d.stop() // the live feeds
	if d.agents != nil {
		d.agents.Close()
	}
	if d.listeners != nil {
		d.listeners.Shutdown()
	}
	d.tasks.Wait()
	if d.history != nil {
		errs = append(errs, d.history.Close())
	}
	if d.store != nil {
		errs = append(errs, d.store.Close())
	}
	return errors.Join(errs...)
}
