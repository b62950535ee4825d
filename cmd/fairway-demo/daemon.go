package main

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"fairway/cmd/lab/daemon"
	"fairway/cmd/lab/leash"
	"fairway/webui/access"
)

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
	if err := os.Mkdir(d.logs(), 0o700); err != nil {
		return err
	}
	d.conf["state_dir"] = filepath.Join(dir, "state")
	d.conf.Table("listen")["socket"] = d.socket
	d.conf.Table("access")["anonymous"] = "viewer" // whoever can reach this host's loopback may look at the demo
	d.conf.Table("access")["token"] = []daemon.Settings{
		{"name": "demo-agents", "role": access.RoleAgent, "sha256": access.HashToken(d.token)}}
	d.conf.Table("access")["account"] = []daemon.Settings{
		{"name": demoPerson, "role": "operator", "hash": access.HashPassword(d.password)}}
	// One person tries everything out here.
	d.conf.Table("desk")["self_approval"], d.conf.Table("desk")["two_persons"] = true, false
	return nil
}

// freeAddr is addr, or where that is in use another port of its host.
func freeAddr(addr string) (string, error) {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		host, _, _ := net.SplitHostPort(addr)
		return leash.FreeAddr(host)
	}
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// startDaemon runs fairwayd on the demo's configuration and waits until it answers.
func (d *demo) startDaemon(ctx context.Context) (err error) {
	if d.http, err = freeAddr(d.http); err != nil {
		return err
	}
	d.conf.Table("listen")["http"] = d.http
	if d.fairwayd, err = daemon.Start(ctx, d.program("fairwayd"), d.dir, d.conf); err != nil {
		return err
	}
	d.atEnd(d.fairwayd.Terminate)
	return nil
}
