package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/remap/cluster"
	"fairway/webui/api"
	"fairway/webui/client"
)

// TestThreeDaemonsOverTLS: what a person does at a daemon that follows is done by the one that leads, in that person's
// name, and every daemon shows and records it; the doctor says how they stand.
func TestThreeDaemonsOverTLS(t *testing.T) {
	t.Parallel() // it mostly waits
	dir := certificates(t)
	secret := filepath.Join(dir, "secret")
	write(t, secret, "a-secret-of-three-daemons-in-a-test\n")
	var list []cluster.Daemon
	var free []net.Listener
	for _, name := range []string{"a", "b", "c"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		free = append(free, l)
		list = append(list, cluster.Daemon{Name: name, Addr: l.Addr().String()})
	}
	var all []*daemon
	var faces []*client.Client
	for i, one := range list {
		c := encrypted(t, dir)
		c.Cluster = cluster.Settings{Name: one.Name, SecretFile: secret, Daemons: list}
		c.Nodes = []topology.Node{{ID: "fwd1", Role: topology.Forwarder}, {ID: "fwd2", Role: topology.Forwarder}}
		c.Desk.HealthyFloor = 0
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		free[i].Close()
		d := start(t, c)
		defer d.Close()
		f, err := client.New("unix:"+c.Listen.Socket, "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		all, faces = append(all, d), append(faces, f)
	}
	waits := func(what string, so func() error) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			err := so()
			if err == nil {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	at := 0
	waits("one leads", func() error {
		for i, d := range all {
			if leads := d.member.Leader(); leads != "" && leads != d.conf.Cluster.Name {
				at = i
				return nil
			}
		}
		return errors.New("nobody follows")
	})
	const why = "it is slow, and a test says so"
	waits("the follower passes an exclusion on", func() error {
		_, err := faces[at].Exclude(t.Context(), "fwd1", time.Hour, why)
		return err
	})
	for i, f := range faces {
		waits("every daemon has the exclusion", func() error {
			feed, err := f.Exclusions(t.Context())
			if err != nil || len(feed.Exclusions) != 1 || feed.Exclusions[0].Reason != why {
				return fmt.Errorf("daemon %d: %+v, %w", i, feed, err)
			}
			return nil
		})
		entries, err := f.Audit(t.Context(), api.AuditQuery{})
		if text := fmt.Sprintf("%+v", entries); err != nil || !strings.Contains(text, "From:unix") {
			t.Errorf("the audit of daemon %d does not say who asked: %s, %v", i, text, err)
		}
	}
	waits("a follower's screens and doctor say who leads", func() (err error) {
		for i, f := range faces {
			o, oerr := f.Overview(t.Context())
			checks, cerr := f.Checks(t.Context())
			text := fmt.Sprintf("%+v", checks)
			if oerr == nil && cerr == nil && strings.Contains(o.Notice, all[i].conf.Cluster.Name+" follows ") &&
				strings.Contains(text, "leads in term") && !strings.Contains(text, "is not there") {
				return nil
			}
			err = errors.Join(err, fmt.Errorf("%q, %s, %w, %w", o.Notice, text, oerr, cerr))
		}
		return err
	})
}

// TestADaemonThatIsAlone: without a list of daemons nothing of a cluster is there.
func TestADaemonThatIsAlone(t *testing.T) {
	c := testConf(t)
	d, err := openDaemon(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := os.Stat(filepath.Join(c.StateDir, "cluster")); err == nil || !d.member.Alone() {
		t.Error("a daemon that is alone has a cluster's files")
	}
}
