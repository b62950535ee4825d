package daemontest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/webui/api"
)

// TestRealAgentThroughAnOutage runs the agent's program against the daemon's, kills the daemon for a
// while, and wants every second of the agent's in the store. FAIRWAY_OUTAGE=60s makes it as long.
func TestRealAgentThroughAnOutage(t *testing.T) {
	t.Parallel() // it mostly waits
	outage := 6 * time.Second
	if text := os.Getenv("FAIRWAY_OUTAGE"); text != "" {
		var err error
		if outage, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	d := newRealDaemon(t, "")
	dir := t.TempDir()
	secret := filepath.Join(dir, "token")
	write(t, secret, agentSecret)
	conf := filepath.Join(dir, "agent.toml")
	write(t, conf,
		fmt.Sprintf(
			"node = \"cn1\"\nrole = \"compute\"\n[daemon]\nurl = \"ws://%s\"\ntoken_file = %q\n[spool]\ndir = %q\n",
			d.addr, secret, filepath.Join(dir, "spool")))
	log, err := os.Create(filepath.Join(dir, "agent.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	agent := exec.Command(binary(t, "fairway-agent"), "--config", conf)
	agent.Stderr = log
	first := time.Now()
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end := func() {
		if !ended {
			ended = true
			_ = agent.Process.Signal(syscall.SIGTERM)
			_ = agent.Wait()
		}
	}
	defer end()
	arrived := func(of time.Time) {
		t.Helper()
		wait(t, fmt.Sprintf("the agent's seconds after %s arrive", of.Format(time.TimeOnly)), func() bool {
			var rows []api.NodeRow
			return d.ask("/api/v1/nodes", "", nil, &rows) == nil && len(rows) == 1 && rows[0].LastSeen.After(of)
		})
	}
	arrived(first.Add(2 * time.Second))
	d.kill()
	time.Sleep(outage)
	d.start()
	arrived(time.Now().Add(time.Second))
	last := time.Now()
	end() // it drains its spool
	seconds, metric := storedSeconds(t, d, "cn1", first, last)
	t.Logf("outage %s: %d seconds of %s in %s", outage, len(seconds), metric, last.Sub(first).Round(time.Second))
	missing := 0
	for i, s := range seconds {
		if i > 0 && s != seconds[i-1]+1000 {
			missing += int(s-seconds[i-1])/1000 - 1
			t.Logf("missing between %d and %d", seconds[i-1], s)
		}
	}
	// A busy machine may keep the agent itself from ticks; an outage would take as many as it lasted.
	few := int(outage.Seconds() / 2)
	if want := int(last.Sub(first).Seconds()) - 3 - few; missing > few || len(seconds) < want {
		text, _ := os.ReadFile(log.Name())
		t.Errorf("%d seconds stored, at least %d wanted, %d missing in between; the agent says:\n%s", len(seconds),
			want, missing, text)
	}
}

// storedSeconds returns the seconds that the store has of the metric that the node always reports.
func storedSeconds(t *testing.T, d *realDaemon, node topology.NodeID, from, to time.Time) (seconds []int64,
	metric string) {
	t.Helper()
	var rows []api.NodeRow
	if err := d.ask("/api/v1/nodes", "", nil, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].ID != node || len(rows[0].Values) == 0 {
		t.Fatalf("nodes are %+v", rows)
	}
	for name := range rows[0].Values {
		var got api.SeriesAnswer
		path := fmt.Sprintf("/api/v1/series?node=%s&metric=%s&step=1s&from=%d&to=%d", node, name,
			from.Add(-5*time.Second).UnixMilli(), to.Add(5*time.Second).UnixMilli())
		if err := d.ask(path, "", nil, &got); err != nil {
			t.Fatal(err)
		}
		var times []int64
		for _, s := range got.Series {
			for _, p := range s.Points {
				if p.Value != nil {
					times = append(times, p.TimeMillis)
				}
			}
		}
		if len(times) > len(seconds) {
			seconds, metric = times, name
		}
	}
	return seconds, metric
}
