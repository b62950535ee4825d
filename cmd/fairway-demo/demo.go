package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"fairway/cmd/lab/daemon"
	"fairway/cmd/lab/leash"
	"fairway/cmd/lab/testbed"
	"fairway/cmd/program"
	"fairway/collector"
	"fairway/webui/client"
)

// options are the flags of the demo.
type options struct {
	forwarders, computeNodes int
	simulated, loopback      bool
	noConsole                bool
	http                     string
	slowAfter, slowFor       time.Duration
	layer                    string // of a testbed.Layer
	fault                    string // KIND@NODE; "" is the layer's own
	programs                 string // the folder of the other programs
	site                     *siteOptions
}

// demo is a daemon and what it watches. Its parts end in the reverse order of their start.
type demo struct {
	options
	conf     daemon.Settings
	dir      string           // of the daemon's files
	socket   string           // of the daemon
	token    string           // of the agents
	password string           // of demoPerson
	self     string           // this program: it is the jobs' too
	tb       *testbed.Testbed // nil for a simulated machine
	log      *slog.Logger
	tasks    sync.WaitGroup
	ends     []func() error
	// senses start, once the daemon listens, what sends frames and what keeps the machine busy.
	senses   []func(context.Context) error
	fairwayd *leash.Process
}

func newDemo(o options) (d *demo, err error) {
	d = &demo{options: o, conf: daemon.Settings{}}
	d.self, err = os.Executable()
	return d, err
}

// run is the demo's life: until the console is left or ctx ends.
func run(ctx context.Context, o options, out io.Writer) (err error) {
	begun := time.Now()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	d, err := newDemo(o)
	if err != nil {
		return err
	}
	defer func() {
		stop()
		fmt.Fprintln(out, "stopping")
		err = errors.Join(err, d.close())
	}()
	if err := d.findPrograms(); err != nil {
		return err
	}
	if d.layer == layerKNFS {
		return d.runKNFS(ctx, out)
	}
	start := d.startTestbed
	switch {
	case d.simulated:
		start = d.startSimulation
	case d.site != nil:
		start = d.startSite
	}
	fmt.Fprintln(out, "starting what is watched; a real layer takes half a minute")
	what, err := start(ctx)
	if err != nil {
		return interrupted(ctx, err)
	}
	fmt.Fprintf(out, "%s, after %.1f s\n", what, time.Since(begun).Seconds())
	if err := d.startDaemon(ctx); err != nil {
		return interrupted(ctx, err)
	}
	fmt.Fprintf(out, "browser: http://%s/  (to act there, sign in as %s with %s)\n", d.http, demoPerson, d.password)
	fmt.Fprintf(out, "commands: %s --addr unix:%s nodes\n", d.program("fairway"), d.socket)
	for _, begin := range d.senses {
		if err := begin(ctx); err != nil {
			return interrupted(ctx, err)
		}
	}
	if err := d.awaitFirstSecond(ctx); err != nil {
		return interrupted(ctx, err)
	}
	fmt.Fprintf(out, "first second shown after %.1f s\n", time.Since(begun).Seconds())
	if d.noConsole || !program.IsTerminal(os.Stdin) || !program.IsTerminal(os.Stdout) {
		select {
		case <-ctx.Done():
			return nil
		case <-d.fairwayd.Ended:
			return d.fairwayd.Err()
		}
	}
	return interrupted(ctx, d.runConsole(ctx))
}

func newLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// interrupted makes an interrupt the demo's orderly end.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// findPrograms checks that the other programs have been built.
func (d *demo) findPrograms() error {
	if d.programs == "" {
		d.programs = filepath.Dir(d.self)
	}
	var err error
	if d.programs, err = filepath.Abs(d.programs); err != nil {
		return err
	}
	for _, name := range []string{"fairwayd", "fairway", "fairway-agent", "fairway-mount", "fairway-queue"} {
		if _, err := os.Stat(d.program(name)); err != nil {
			return fmt.Errorf(
				"the demo needs %s beside fairway-demo: run make build (or name its folder by --programs): %w", name,
				err)
		}
	}
	return nil
}

func (d *demo) program(name string) string { return filepath.Join(d.programs, name) }

// atEnd has f called at the end, before what was given earlier.
func (d *demo) atEnd(f func() error) { d.ends = append(d.ends, f) }

// close ends the demo, whose context has been cancelled.
func (d *demo) close() error {
	d.tasks.Wait() // they end with the demo's context
	var errs []error
	for i := len(d.ends) - 1; i >= 0; i-- {
		errs = append(errs, d.ends[i]())
	}
	return errors.Join(errs...)
}

// firstSecondWithin is how long the agents may take to report.
const firstSecondWithin = 30 * time.Second

// awaitFirstSecond waits until every forwarder has been seen, by asking as a console would.
func (d *demo) awaitFirstSecond(ctx context.Context) error {
	c, err := client.New("unix:"+d.socket, "")
	if err != nil {
		return err
	}
	defer c.Close()
	first := collector.WriteBytes
	if d.site != nil && d.site.layer == "lnet" {
		first = collector.RoutedBytes // a router knows no writes
	}
	return d.fairwayd.AwaitReady(ctx, firstSecondWithin, func(ctx context.Context) error {
		o, err := c.Overview(ctx)
		seen := 0
		for _, f := range o.Forwarders {
			if f.Value(first) != nil {
				seen++
			}
		}
		if err == nil && (seen == 0 || seen < d.forwarders) {
			err = fmt.Errorf("%d of %d forwarders reported", seen, d.forwarders)
		}
		return err
	})
}

// runConsole runs the operator's console on this terminal until it is left.
func (d *demo) runConsole(ctx context.Context) error {
	c := exec.CommandContext(ctx, d.program("fairway"), "--addr", "unix:"+d.socket, "top", "--demo",
		fmt.Sprintf("browser: http://%s/ sign in as %s with %s", d.http, demoPerson, d.password))
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) } // it puts the terminal back
	c.WaitDelay = 3 * time.Second
	if err := c.Run(); err != nil {
		return fmt.Errorf("the console: %w", err)
	}
	return nil
}
