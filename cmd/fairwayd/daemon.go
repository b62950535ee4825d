package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"fairway/collector/observed"
	"fairway/remap"
	"fairway/remap/driver"
	"fairway/remap/driver/fwdmount"
	"fairway/tsdb"
)

// daemon is the running whole. open starts its parts in the order in which they need each other,
// and Close ends them in reverse.
type daemon struct {
	conf    *Config
	log     *slog.Logger
	store   *tsdb.DB
	board   *observed.Board
	picture *picture
	desk    *remap.Desk
	door    *door
	servers []*http.Server
	socket  net.Listener
	tcp     net.Listener

	stop   context.CancelFunc
	tasks  sync.WaitGroup
	failed chan error // a server that ended by itself
}

// openDaemon starts everything; on an error what was started is ended again.
func openDaemon(conf *Config, log *slog.Logger) (d *daemon, err error) {
	ctx, stop := context.WithCancel(context.Background())
	d = &daemon{conf: conf, log: log, stop: stop, failed: make(chan error, 2)}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	// The addresses come first: a second daemon must fail before it touches a file.
	if err := d.listen(); err != nil {
		return d, err
	}
	if err := os.MkdirAll(conf.StateDir, 0o750); err != nil {
		return d, fmt.Errorf("state_dir: %w", err)
	}
	// The store holds the lock on the directory, so everything else in it is ours from here.
	d.store, err = tsdb.Open(filepath.Join(conf.StateDir, "store"), tsdb.Options{SyncInterval: conf.Store.Sync, Log: log})
	if err != nil {
		return d, err
	}
	d.board = observed.NewBoard(conf.Observe.StaleAfter)
	d.picture = &picture{conf: conf.machine(), peak: conf.Forwarder.PeakBytesPerSec, board: d.board, store: d.store, log: log}
	// The door knows the agents, which the desk's driver needs; it opens last.
	if d.door, err = newDoor(d); err != nil {
		return d, err
	}
	if err := d.openDesk(); err != nil {
		return d, err
	}
	d.tasks.Go(func() { d.picture.keepOccupancy(ctx) })
	d.serve()
	return d, nil
}

func (d *daemon) openDesk() error {
	path := filepath.Join(d.conf.StateDir, "journal")
	desk, sum, err := remap.OpenDesk(remap.Config{
		Settings: d.conf.Desk, Path: path, Driver: d.driver(), Situation: d.picture.Situation, Log: d.log,
	})
	if err != nil {
		return err
	}
	d.desk = desk
	if sum.TornBytes > 0 {
		d.log.Warn("the journal ended in an unfinished record, which was cut off; it had not been answered", "file", path, "bytes", sum.TornBytes, "after_record", sum.Records)
	}
	d.log.Info("journal replayed", "file", path, "records", sum.Records)
	d.picture.setDesk(desk)
	return nil
}

func (d *daemon) driver() remap.Driver {
	if d.conf.Driver.Kind != driverFwdmount {
		return driver.Unassigned{}
	}
	c := d.conf.Driver
	return fwdmount.New(d.door.agents(), forwarderAddrs(d.conf.Nodes),
		driver.Fan{Parallel: c.Parallel, Tries: c.Tries, Backoff: c.Backoff, Timeout: c.Timeout})
}

// listen takes the addresses, so that a wrong one is known at once.
func (d *daemon) listen() (err error) {
	if addr := d.conf.Listen.HTTP; addr != "" {
		if d.tcp, err = net.Listen("tcp", addr); err != nil {
			if errors.Is(err, syscall.EADDRINUSE) {
				return fmt.Errorf("listen.http: %s is in use; is another fairwayd running? (%w)", addr, err)
			}
			return fmt.Errorf("listen.http = %q: %w", addr, err)
		}
	}
	if path := d.conf.Listen.Socket; path != "" {
		if d.socket, err = listenSocket(path); err != nil {
			return fmt.Errorf("listen.socket = %q: %w", path, err)
		}
	}
	return nil
}

// listenSocket takes a unix socket; one left behind by a killed daemon is removed, one that
// somebody answers on is not.
func listenSocket(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		c.Close()
		return nil, errors.New("another fairwayd answers there")
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, errors.New("there is a file that is not a socket")
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	// Everybody may connect: who asks is known from the kernel and decides what is answered.
	if err := os.Chmod(path, 0o666); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// serve answers on every address that was taken.
func (d *daemon) serve() {
	for _, l := range []net.Listener{d.socket, d.tcp} {
		if l == nil {
			continue
		}
		srv := d.door.server(l == d.socket)
		d.servers = append(d.servers, srv)
		d.tasks.Go(func() {
			if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				d.failed <- fmt.Errorf("serving %s: %w", l.Addr(), err)
			}
		})
		d.log.Info("listening", "addr", l.Addr().String())
	}
}

// shutdownWithin bounds how long open requests are waited for.
const shutdownWithin = 5 * time.Second

// Close ends the parts in the reverse order of their start.
func (d *daemon) Close() error {
	var errs []error
	ctx, cancel := context.WithTimeout(context.Background(), shutdownWithin)
	defer cancel()
	for _, l := range []net.Listener{d.socket, d.tcp} {
		if l != nil {
			_ = l.Close() // the servers close theirs a second time
		}
	}
	// The desk goes before the agents: an order that is cut off then stays open, and the next start
	// takes it up, instead of counting as failed.
	if d.desk != nil {
		errs = append(errs, d.desk.Close())
	}
	if d.door != nil {
		d.door.Close()
	}
	for _, s := range d.servers {
		if err := s.Shutdown(ctx); err != nil {
			d.log.Warn("open requests were cut off", "err", err)
			_ = s.Close()
		}
	}
	d.stop()
	d.tasks.Wait()
	if d.store != nil {
		errs = append(errs, d.store.Close())
	}
	return errors.Join(errs...)
}
