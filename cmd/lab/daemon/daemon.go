// Package daemon runs fairwayd for a demo or a measurement: its configuration file, its start and its end.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/BurntSushi/toml"

	"fairway/cmd/lab/leash"
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

// readyWithin bounds how long the daemon may take to answer.
const readyWithin = time.Minute

// Start writes settings, whose socket is listen.socket, into a file in dir, and runs the program on it.
func Start(ctx context.Context, program, dir string, conf Settings) (*leash.Process, error) {
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

// Run runs a daemon, whose output goes to the end of a file, and waits until it answers at its socket. It ends when the
// caller ends it, or dies.
func Run(ctx context.Context, c *exec.Cmd, socket, file string) (*leash.Process, error) {
	thread, err := leash.NewThread()
	if err != nil {
		return nil, err
	}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	p, err := leash.Launch("fairwayd", file, c, func() error { return thread.Start(c) })
	if err != nil {
		thread.Close()
		return nil, err
	}
	go func() { // ends with the daemon
		<-p.Ended
		thread.Close()
	}()
	api, err := client.New("unix:"+socket, "")
	if err == nil {
		defer api.Close()
		err = p.AwaitReady(ctx, readyWithin, func(ctx context.Context) error {
			_, err := api.Overview(ctx)
			return err
		})
	}
	if err != nil {
		return nil, errors.Join(err, p.Terminate())
	}
	return p, nil
}
