package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway-demo/testbed"
	"fairway/remap"
	"fairway/webui"
	"fairway/webui/client"
)

// demoOptions are the flags of the demo.
type demoOptions struct {
	forwarders, computeNodes int
	simulated, loopback      bool
	noConsole                bool
	http                     string
	slowAfter                time.Duration
	programs                 string // the folder of fairway, fairway-agent and fairway-mount
}

func newDemo() *cobra.Command {
	var o demoOptions
	c := &cobra.Command{
		Use:   "demo",
		Short: "Start a forwarding layer on this machine, watch it, and open the console; leaves nothing behind",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			// A closed terminal must end the demo as an interrupt does.
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGHUP)
			defer stop()
			return runDemo(ctx, o, c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.IntVar(&o.forwarders, "forwarders", 8, "forwarding nodes")
	f.IntVar(&o.computeNodes, "nodes", 16, "compute nodes")
	f.BoolVar(&o.simulated, "sim", false, "a simulated machine of TaihuLight's size instead of a real forwarding layer")
	f.BoolVar(&o.loopback, "loopback", false, "as without root: forwarders on ports of 127.0.0.1, no compute nodes")
	f.BoolVar(&o.noConsole, "no-console", false, "do not open the terminal console; run until interrupted")
	f.StringVar(&o.http, "http", "127.0.0.1:7117",
		"where browsers reach the demo; another port is taken if this one is in use")
	f.DurationVar(&o.slowAfter, "slow-after", time.Minute,
		"when one forwarder becomes slow, a minute or more after the start for it to be found; 0: never")
	f.StringVar(&o.programs, "programs", "", "folder of fairway's other programs (default: that of this one)")
	return c
}

// demo is a daemon and what it watches. Its parts end in the reverse order of their start.
type demo struct {
	demoOptions
	conf   Config
	token  string // of the agents
	daemon *daemon
	tb     *testbed.Testbed // nil for a simulated machine
	self   string           // this program: it is the jobs' too
	log    *slog.Logger
	tasks  sync.WaitGroup
	ends   []func() error
	// senses start, once the daemon listens, what sends frames and what keeps the machine busy.
	senses []func(context.Context) error
}

// runDemo is the demo's life: until the console is left or ctx ends.
func runDemo(ctx context.Context, o demoOptions, out io.Writer) (err error) {
	begun := time.Now()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	d := &demo{demoOptions: o, conf: defaultConfig(), token: rand.Text()}
	if d.self, err = os.Executable(); err != nil {
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
	start := d.startTestbed
	if d.simulated {
		start = d.startSimulation
	}
	what, err := start(ctx)
	if err != nil {
		return interrupted(ctx, err)
	}
	fmt.Fprintf(out, "%s, after %.1f s\n", what, time.Since(begun).Seconds())
	password := d.addPerson()
	if err := d.startDaemon(); err != nil {
		return err
	}
	fmt.Fprintf(out, "browser: http://%s/  (to act there, sign in as %s with %s)\n", d.daemon.addr(webui.DoorTCP),
		demoPerson, password)
	fmt.Fprintf(out, "commands: %s --addr unix:%s nodes\n", filepath.Join(d.programs, "fairway"), d.conf.Listen.Socket)
	for _, begin := range d.senses {
		if err := begin(ctx); err != nil {
			return interrupted(ctx, err)
		}
	}
	if err := d.awaitFirstSecond(ctx); err != nil {
		return interrupted(ctx, err)
	}
	fmt.Fprintf(out, "first second shown after %.1f s\n", time.Since(begun).Seconds())
	if d.noConsole || !isTerminal(os.Stdin) || !isTerminal(os.Stdout) {
		select {
		case <-ctx.Done():
			return nil
		case err := <-d.daemon.failed:
			return err
		}
	}
	return interrupted(ctx, d.runConsole(ctx))
}

// interrupted makes an interrupt the demo's orderly end.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func isTerminal(f *os.File) bool {
	fi, err := f.Stat()
	return err == nil && fi.Mode()&os.ModeCharDevice != 0
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
	for _, name := range []string{"fairway", "fairway-agent", "fairway-mount"} {
		if _, err := os.Stat(d.program(name)); err != nil {
			return fmt.Errorf(
				"the demo needs %s beside fairwayd: run make build (or name their folder by --programs): %w", name, err)
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

// demoPerson may act in the browser.
const demoPerson = "demo"

// addPerson makes the demo's account, with a password of its own.
func (d *demo) addPerson() (password string) {
	password = strings.ToLower(rand.Text()[:10])
	d.conf.Access.Accounts = []Account{{Name: demoPerson, Role: remap.Operator, Hash: webui.HashPassword(password)}}
	return password
}

// prepare sets what every demo's daemon has, with its files in dir.
func (d *demo) prepare(dir string) error {
	out, err := os.OpenFile(filepath.Join(dir, "fairwayd.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	d.atEnd(out.Close)
	d.log = slog.New(slog.NewTextHandler(out, nil))
	d.conf.StateDir = filepath.Join(dir, "state")
	d.conf.Listen.Socket = filepath.Join(dir, "fairwayd.sock")
	d.conf.Listen.HTTP = d.http
	d.conf.Access.Tokens = []Token{{Name: "demo-agents", Role: webui.RoleAgent, SHA256: webui.HashToken(d.token)}}
	// One person tries everything out here.
	d.conf.Desk.SelfApproval, d.conf.Desk.TwoPersons = true, false
	return nil
}

// startDaemon starts the daemon in this process, on another port if the wanted one is in use.
func (d *demo) startDaemon() error {
	if err := d.conf.validate(); err != nil {
		return fmt.Errorf("BUG: the demo's configuration: %w", err)
	}
	var err error
	d.daemon, err = openDaemon(&d.conf, d.log)
	if errors.Is(err, syscall.EADDRINUSE) {
		host, _, splitErr := net.SplitHostPort(d.http)
		if splitErr != nil {
			return errors.Join(err, splitErr)
		}
		d.conf.Listen.HTTP = net.JoinHostPort(host, "0")
		d.daemon, err = openDaemon(&d.conf, d.log)
	}
	if err != nil {
		return err
	}
	d.atEnd(d.daemon.Close)
	return nil
}

// firstSecondWithin is how long the agents may take to be heard.
const firstSecondWithin = 30 * time.Second

// awaitFirstSecond waits until every forwarder has been seen, by asking as a console would.
func (d *demo) awaitFirstSecond(ctx context.Context) error {
	c, err := client.New("unix:"+d.conf.Listen.Socket, "")
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, firstSecondWithin)
	defer cancel()
	for {
		o, err := c.Overview(ctx)
		seen := 0
		for _, f := range o.Forwarders {
			if f.WriteBytesPerSec != nil {
				seen++
			}
		}
		if err == nil && seen > 0 && seen >= d.forwarders {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d forwarders were heard in %s: %w", seen, d.forwarders, firstSecondWithin,
				errors.Join(ctx.Err(), err))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// runConsole runs the operator's console on this terminal until it is left.
func (d *demo) runConsole(ctx context.Context) error {
	c := exec.CommandContext(ctx, d.program("fairway"), "--addr", "unix:"+d.conf.Listen.Socket, "top")
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) } // it puts the terminal back
	c.WaitDelay = 3 * time.Second
	if err := c.Run(); err != nil {
		return fmt.Errorf("the console: %w", err)
	}
	return nil
}
