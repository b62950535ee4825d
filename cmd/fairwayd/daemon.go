package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"fairway/anomaly/watch"
	"fairway/cmd/fairwayd/config"
	"fairway/cmd/fairwayd/enrol"
	"fairway/cmd/fairwayd/host"
	"fairway/cmd/fairwayd/iologs"
	"fairway/cmd/fairwayd/listen"
	"fairway/cmd/fairwayd/member"
	"fairway/cmd/fairwayd/state"
	"fairway/cmd/fairwayd/stores"
	"fairway/cmd/fairwayd/view"
	"fairway/cmd/program"
	"fairway/collector"
	"fairway/collector/ingest"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/alert"
	"fairway/remap/desk"
	"fairway/remap/dispatch"
	"fairway/remap/driver/drain"
	"fairway/remap/journal"
	"fairway/remap/queue/tables"
	"fairway/remap/situation"
	"fairway/tsdb"
	"fairway/tsdb/window"
	"fairway/webui"
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
	member    *member.Member
	desk      *desk.Desk
	jobs      jobs
	judges    judges
	sharing   *tables.Sender
	listeners *listen.Listeners

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
		return d, fmt.Errorf("%w: %w", program.ErrSettings, err)
	}
	var older enrol.Older
	people.Enrolment = enrol.Tokens(conf.Access.Enrolment.SecretFile, func(n topology.NodeID) time.Time {
		until := d.desk.RevokedUntil(n)
		if before := older.Until(n); before.After(until) {
			return before
		}
		return until
	}, log)
	// The addresses come before the files: most often it is there that a second daemon is noticed.
	if d.listeners, err = listen.Open(&conf.Listen, log); err != nil {
		return d, err
	}
	people.SecureCookie = people.SecureCookie || d.listeners.Encrypted()
	if err := state.CheckFormat(conf.StateDir, version); err != nil {
		return d, err
	}
	if d.member, err = member.Open(conf, log); err != nil {
		return d, err
	}
	if err := older.Read(conf.StateDir); err != nil {
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
		Simulated: os.Getenv("FAIRWAY_SIMULATED") != "", Notice: d.notice, Lateness: &d.judges.late,
		Journal: d.audit, JobsAt: d.jobsAt, Canary: d.judges.canary,
		// The view is made before the history is opened; nobody can ask before that.
		JobsKnown: func() bool { return d.jobs.history != nil && d.jobs.history.Known() },
		Detectors: func() *watch.Detectors { return d.judges.ready.Load() }, Log: log,
		Effect: func(plan string) *remap.Effect { return d.jobs.effects.Newest(plan) }})
	d.agents = ingest.New(ingest.Config{Store: d.store, Log: log, Role: d.situation.Role, Roles: conf.Roles(),
		Oldest: ingest.DefaultOldest, Term: d.member.Term,
		Observe: func(frames []collector.Frame, now time.Time) {
			d.board.Take(frames, now)
			shown.Arrived()
		}})
	if conf.View {
		d.agents.Close()
	}
	d.sharing = tables.New(tables.Config{Settings: conf.Queue, Situation: d.situation.Situation, Order: d.agents.Order,
		Rates:  func(at time.Time) map[topology.JobID]float64 { return d.jobs.dispatch.Windows().Rates(at) },
		Limits: func() remap.Limits { return d.desk.Limits() }, Log: log})
	drains := d.newDrains()
	moves, err := d.newDriver()
	if err != nil {
		return d, err
	}
	if err := d.openDesk(people.RoleNow, drains, moves); err != nil {
		return d, err
	}
	if err := d.openJobs(); err != nil {
		return d, err
	}
	if err := d.openFindings(ctx); err != nil {
		return d, err
	}
	meters := []webui.MetricsWriter{d.desk.WriteMetrics, d.judges.findings.WriteMetrics, func(w io.Writer) {
		metrics.WriteGaugeFloat64(w, "fairway_late_seconds", d.judges.late.Within(time.Now()).Seconds())
	}, d.member.WriteMetrics}
	if conf.Queue.Policy != "" {
		meters = append(meters, d.sharing.WriteMetrics)
	}
	if d.judges.canaries != nil {
		meters = append(meters, d.judges.canaries.WriteMetrics)
	}
	if store.WriteMetrics != nil {
		meters = append(meters, store.WriteMetrics)
	}
	calls, err := alert.New(alert.Config{Settings: conf.Alert, Journal: d.desk, Site: conf.Name,
		Path: filepath.Join(conf.StateDir, "alerts"), BaseURL: d.browserURL(), User: d.userOf, Acting: d.leads,
		Late: d.judges.late.Within, Log: log})
	if err != nil {
		return d, fmt.Errorf("%w: %w", program.ErrSettings, err)
	}
	meters = append(meters, calls.WriteMetrics)
	web, err := d.openWeb(ctx, people, shown, moves, calls, meters)
	if err != nil {
		return d, fmt.Errorf("%w: %w", program.ErrSettings, err)
	}
	d.tasks.Go(func() { d.situation.KeepOccupancy(ctx, store.SetPeaks) })
	if conf.View {
		d.tasks.Go(func() { view.Keep(ctx, d.store, d.board, shown.Arrived, log) })
	} else {
		d.tasks.Go(func() { d.jobs.dispatch.Run(ctx) })
		d.tasks.Go(func() { d.member.WhileLeading(ctx, d.jobs.effects.Run) })
		d.tasks.Go(func() { d.member.WhileLeading(ctx, d.jobs.evacuate.Run) })
		d.runFindings(ctx)
		d.tasks.Go(func() { calls.Run(ctx) })
		d.tasks.Go(func() { iologs.KeepForwarders(ctx, conf.StateDir, d.store, log) })
		d.tasks.Go(func() { iologs.KeepHistory(ctx, conf, d.jobs.history, log) })
	}
	d.tasks.Go(func() { d.member.WhileLeading(ctx, d.sharing.Run) })
	if drains != nil {
		d.tasks.Go(func() { d.member.WhileLeading(ctx, drains.Run) })
	}
	if !conf.View {
		d.tasks.Go(func() { iologs.ForgetOld(ctx, conf.StateDir, conf.Keep.Archive, log) })
		old := state.Old{Keep: &conf.Keep, History: d.jobs.history, Log: log}
		if d.member.Alone() {
			old.Desk = d.desk
		}
		d.tasks.Go(func() { old.Run(ctx) })
	}
	batch := dispatch.Batch{Jobs: d.jobs.dispatch, Command: conf.Slurm.Jobs, Every: conf.Slurm.Every, Log: log}
	d.tasks.Go(func() { d.member.WhileLeading(ctx, batch.Run) })
	d.tasks.Go(func() { web.Run(ctx) })
	crowd := web.Crowd(connections)
	if err := d.member.Join(web.HTTP, crowd, d.desk, d.jobs.dispatch, d.jobs.history); err != nil {
		return d, err
	}
	d.listeners.Serve(web.HTTP, crowd)
	d.tasks.Go(func() { older.Record(ctx, conf.Listen.Socket, log) })
	if !conf.Access.AnyOperator() {
		log.Info(
			"only root and the daemon's user may act. To make the first operator, map a unix group in the "+
				"configuration: "+
				`[access.groups] GROUP = "operator"; 'fairway sign-in-link' then lets its members act in browsers too`,
			"socket", conf.Listen.Socket, "browser", d.browserURL())
	}
	return d, nil
}

func (d *daemon) openDesk(roleOf func(name, via string) (remap.Role, bool), drains *drain.Drains,
	moves remap.Driver) error {
	path := d.journal()
	desk, sum, err := desk.Open(desk.Config{
		Settings: d.conf.Desk, Path: path, Driver: moves, Situation: d.situation.Situation, RoleOf: roleOf,
		Drain: drainOf(drains), Queues: d.sharing, Together: d.member.Together(), Log: d.log,
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

// leads says whether this daemon decides and acts.
func (d *daemon) leads() bool { return !d.conf.View && d.member.Leads() }

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
	if d.member != nil {
		errs = append(errs, d.member.Close())
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
	if d.jobs.history != nil {
		errs = append(errs, d.jobs.history.Close())
	}
	if d.store != nil {
		errs = append(errs, d.store.Close())
	}
	return errors.Join(errs...)
}
