package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/BurntSushi/toml"

	"fairway/webui/access"
	"fairway/webui/client"
)

// settings is the daemon's configuration file, as far as the demo has other values than the defaults.
type settings map[string]any

// table returns a table of the file, made if it is missing.
func (s settings) table(name string) settings {
	t, ok := s[name].(settings)
	if !ok {
		t = settings{}
		s[name] = t
	}
	return t
}

// demoPerson may act in the browser.
const demoPerson = "demo"

// prepare sets what every demo's daemon has, with its files in dir.
func (d *demo) prepare(dir string) error {
	log, err := os.OpenFile(filepath.Join(dir, "demo.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	d.atEnd(log.Close)
	d.log = newLog(log)
	d.dir, d.socket, d.token = dir, filepath.Join(dir, "fairwayd.sock"), rand.Text()
	d.password = strings.ToLower(rand.Text()[:10])
	d.conf["state_dir"] = filepath.Join(dir, "state")
	d.conf.table("listen")["socket"] = d.socket
	d.conf.table("access")["anonymous"] = "viewer" // whoever can reach this host's loopback may look at the demo
	d.conf.table("access")["token"] = []settings{
		{"name": "demo-agents", "role": access.RoleAgent, "sha256": access.HashToken(d.token)}}
	d.conf.table("access")["account"] = []settings{
		{"name": demoPerson, "role": "operator", "hash": access.HashPassword(d.password)}}
	// One person tries everything out here.
	d.conf.table("desk")["self_approval"], d.conf.table("desk")["two_persons"] = true, false
	return nil
}

// freeAddr is addr, or where that is in use another port of its host.
func freeAddr(addr string) (string, error) {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		host, _, _ := net.SplitHostPort(addr)
		l, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// startDaemon runs fairwayd on the demo's configuration and waits until it answers.
func (d *demo) startDaemon(ctx context.Context) (err error) {
	if d.http, err = freeAddr(d.http); err != nil {
		return err
	}
	d.conf.table("listen")["http"] = d.http
	file := filepath.Join(d.dir, "fairwayd.toml")
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(toml.NewEncoder(f).Encode(d.conf), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	log, err := os.OpenFile(filepath.Join(d.dir, "fairwayd.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	c := exec.Command(d.program("fairwayd"), "run", "--config", file)
	c.Stdout, c.Stderr = log, log
	// An interrupt of the terminal is the demo's; the daemon ends when the demo ends it, or dies.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	started := make(chan error, 1)
	go func() {
		// A parent's death is its thread's: this one lives as long as the daemon.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.Start()
		if err == nil {
			d.pid = c.Process.Pid
		}
		if started <- err; err == nil {
			d.whyFailed = c.Wait()
			close(d.failed)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	d.atEnd(func() error {
		_ = c.Process.Signal(syscall.SIGTERM) // one that has ended does not mind
		select {
		case <-d.failed:
		case <-time.After(endWithin):
			_ = c.Process.Kill()
			<-d.failed
		}
		return nil
	})
	return d.awaitDaemon(ctx)
}

const (
	// endWithin bounds how long the daemon may take to end.
	endWithin = 10 * time.Second
	// readyWithin bounds how long it may take to answer.
	readyWithin = 30 * time.Second
)

// awaitDaemon waits until the daemon answers on its socket.
func (d *demo) awaitDaemon(ctx context.Context) error {
	c, err := client.New("unix:"+d.socket, "")
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
		case <-d.failed:
			return d.daemonEnded()
		case <-ctx.Done():
			return fmt.Errorf("fairwayd does not answer: %w", errors.Join(ctx.Err(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// daemonEnded is the error of a daemon that ended by itself, with the end of its log.
func (d *demo) daemonEnded() error {
	text, _ := os.ReadFile(filepath.Join(d.dir, "fairwayd.log"))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Errorf("fairwayd ended by itself (%v):\n%s", d.whyFailed,
		strings.Join(lines[max(0, len(lines)-5):], "\n"))
}
