package attack

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/cmd/lab/leash"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// TestAttackStarved takes the processor from the daemon while all nodes report on time: it says itself late, first of
// all, and accuses nobody.
func TestAttackStarved(t *testing.T) {
	s := newSite(t, "")
	nodes := map[topology.NodeID]*agent{}
	for i := range 4 {
		f, c := topology.NodeID(fmt.Sprint("fwd", i+1)), topology.NodeID(fmt.Sprint("cn", i+1))
		nodes[f], nodes[c] = s.agent(t, manySecret, f, topology.Forwarder), s.agent(t, manySecret, c, topology.Compute)
	}
	done, ended := make(chan struct{}), make(chan struct{})
	stop := func() { close(done); <-ended }
	go func() { // all nodes report each second, whether or not the daemon answers
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Until(time.Now().Truncate(time.Second).Add(time.Second))):
			}
			at := time.Now().Add(-time.Second).Truncate(time.Second).UnixMilli()
			for n, a := range nodes {
				role := topology.Compute
				if strings.HasPrefix(string(n), "fwd") {
					role = topology.Forwarder
				}
				f := frames(n, role, at)
				f[0].Samples = append(f[0].Samples, collector.Sample{Metric: collector.ReadOps, Value: 10})
				_ = a.write(f)
			}
		}
	}()
	if long {
		s.fullMachine(t, done)
	}
	time.Sleep(6 * time.Second)
	shares := []float64{0.05}
	if long {
		shares = []float64{0.02, 0.05, 0.1}
	}
	late := 0
	for _, share := range shares {
		late += s.starve(share, map[bool]time.Duration{false: 14 * time.Second, true: time.Minute}[long])
	}
	stop()
	var found []anomaly.Finding
	if a := s.askLocal("GET", "/api/v1/findings", ""); a.code == 200 {
		if err := json.Unmarshal([]byte(a.body), &found); err != nil {
			t.Error(err)
		}
	}
	for _, f := range found {
		if wrong(f.Kind) {
			t.Errorf("a daemon that was starved found: %s", f.Sentence)
		}
	}
	t.Logf("a daemon with %v of a processor | its lateness is in %d answers, nobody accused", shares, late)
	if late == 0 {
		t.Error("no answer has that the daemon was late")
	}
}

// wrong is whether a starved daemon may not find this: jobs of the machine of full size are heavy, which may be found.
func wrong(k anomaly.Kind) bool { return !long || k.Accuses() }

// hold gives the daemon a share of a processor until off is called: the small one, which needs less than a control
// group can be given, by stopping it most of the time.
func (s *site) hold(share float64) (off func()) {
	pid := int(s.pid.Load())
	if long {
		off, err := leash.Starve(filepath.Base(s.dir), "daemon", share, pid)
		if err != nil {
			s.t.Skip("not root, or no cpu control groups: ", err)
		}
		return func() {
			if err := off(); err != nil {
				s.t.Error(err)
			}
		}
	}
	const period = 4 * time.Second
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for runs := false; ; runs = !runs {
			signal, wait := syscall.SIGSTOP, period-time.Duration(share*float64(period))
			if runs {
				signal, wait = syscall.SIGCONT, period-wait
			}
			_ = syscall.Kill(pid, signal)
			select {
			case <-done:
				_ = syscall.Kill(pid, syscall.SIGCONT)
				return
			case <-time.After(wait):
			}
		}
	}()
	return func() { close(done); <-ended }
}

// starve leaves the daemon a share of a processor, and looks at what its surfaces say meanwhile and just after.
func (s *site) starve(share float64, during time.Duration) (late int) {
	feed := sync.OnceFunc(s.hold(share))
	defer feed()
	s.local.Timeout = 20 * time.Second
	for end := time.Now().Add(during + 10*time.Second); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		if time.Until(end) < 10*time.Second {
			feed()
		}
		var o api.Overview
		a := s.askLocal("GET", "/api/v1/overview", "")
		if a.code != 200 || json.Unmarshal([]byte(a.body), &o) != nil {
			continue
		}
		var checks []api.Check
		_ = json.Unmarshal([]byte(s.askLocal("GET", "/api/v1/checks", "").body), &checks)
		if o.LateSeconds > 0 {
			late++
			if !strings.HasPrefix(o.Notice, "fairway's own daemon was") || strings.Contains(o.Calm, "compared") {
				s.t.Errorf("a late daemon says first %q, and %q", o.Notice, o.Calm)
			}
		}
		for _, r := range o.Forwarders {
			if o.LateSeconds > 0 && r.State == remap.ForwarderStale {
				s.t.Errorf("late by %.1f s the daemon calls %s silent", o.LateSeconds, r.ID)
				break
			}
		}
		for _, f := range o.Findings {
			if wrong(f.Kind) {
				s.t.Errorf("with %.0f %% of a processor: %s", 100*share, f.Sentence)
			}
		}
		for _, c := range checks {
			if c.Name == "clocks" && strings.Contains(c.Text, "the clocks of") {
				s.t.Errorf("with %.0f %% of a processor: %s", 100*share, c.Text)
			}
		}
	}
	return late
}
