// Package daemon runs fairwayd for a demo or a measurement: its configuration file, its start and its end.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/BurntSushi/toml"

	"fairway/webui/client"
)

// Settings is the daemon's configuration file, as far as it has other values than the defaults.
type Settings map[string]any

// Table returns a table of the file, made if it is missing.
func (s Settings) Table(name string) Settings {
	t, ok := s[name].(Settings)
	if !ok {
		t = Settings{}
		s[name] = t
	}
	return t
}

// Daemon is a running fairwayd.
type Daemon struct {
	// Ended is closed when the process has ended.
	Ended chan struct{}

	log     string
	why     error // how it ended; valid once Ended is closed
	process *os.Process
}

const (
	// endWithin bounds how long the daemon may take to end.
	endWithin = 10 * time.Second
	// readyWithin bounds how long it may take to answer.
	readyWithin = time.Minute
)

// Start writes settings, whose socket is listen.socket, into a file in dir, and runs the program on it.
func Start(ctx context.Context, program, dir string, conf Settings) (*Daemon, error) {
	file := filepath.Join(dir, "fairwayd.toml")
	simulated := conf["simulated"] == true // no setting: screens show it
	delete(conf, "simulated")
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(toml.NewEncoder(f).Encode(conf), f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	c := exec.Command(program, "run", "--config", file)
	if simulated {
		c.Env = append(os.Environ(), "FAIRWAY_SIMULATED=1")
	}
	socket, _ := conf.Table("listen")["socket"].(string)
	return Run(ctx, c, socket, filepath.Join(dir, "fairwayd.log"))
}

// Run runs a daemon, whose output goes to the end of a file, and waits until it answers at its socket.
func Run(ctx context.Context, c *exec.Cmd, socket, file string) (*Daemon, error) {
	d := &Daemon{Ended: make(chan struct{}), log: file}
	log, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c.Stdout, c.Stderr = log, log
	// An interrupt of the terminal is the caller's; the daemon ends when the caller ends it, or dies.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	started := make(chan error, 1)
	go func() {
		// A parent's death is its thread's: this one lives as long as the daemon.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.Start()
		if started <- err; err == nil {
			d.why = c.Wait()
			close(d.Ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	d.process = c.Process
	if err := d.answers(ctx, socket); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// PID is the process's number.
func (d *Daemon) PID() int { return d.process.Pid }

// Close ends the daemon, by force if it takes too long.
func (d *Daemon) Close() error {
	_ = d.process.Signal(syscall.SIGTERM) // one that has ended does not mind
	select {
	case <-d.Ended:
	case <-time.After(endWithin):
		_ = d.process.Kill()
		<-d.Ended
	}
	return nil
}

// answers waits until the daemon answers on its socket.
func (d *Daemon) answers(ctx context.Context, socket string) error {
	c, err := client.New("unix:"+socket, "")
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		if _, err = c.Overview(ctx); err == nil {
			return nil
		}
		select {
		case <-d.Ended:
			return d.Err()
		case <-ctx.Done():
			return fmt.Errorf("fairwayd does not answer: %w", errors.Join(ctx.Err(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Err is the error of a daemon that ended by itself, with the end of its log.
func (d *Daemon) Err() error {
	text, _ := os.ReadFile(d.log)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Errorf("fairwayd ended by itself (%v):\n%s", d.why, strings.Join(lines[max(0, len(lines)-5):], "\n"))
}
