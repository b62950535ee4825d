package knfs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/remap"
	"fairway/webui/client"
)

// load is what the machine has to do beside the site, for the record of a figure.
func machineLoad() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// live starts a site with load and fairway.
func live(t *testing.T, clients, gateways int) (*Site, *Fairway) {
	t.Helper()
	s := startSite(t, clients, gateways)
	f, err := s.StartFairway(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartLoad(t.Context(), 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	return s, f
}

// awaitFinding waits for a confirmed finding about a node, and says what it took and whoever else was accused.
func awaitFinding(t *testing.T, f *Fairway, node string, within time.Duration) (found *anomaly.Finding,
	others []string) {
	t.Helper()
	c, err := f.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for {
		all, _ := c.Findings(ctx)
		others = nil
		for i, one := range all {
			if one.State != anomaly.Confirmed && one.State != anomaly.Excluded {
				continue
			}
			if string(one.Node) == node {
				found = &all[i]
			} else {
				others = append(others, fmt.Sprintf("%s: %s", one.Node, one.Sentence))
			}
		}
		if found != nil || ctx.Err() != nil {
			return found, others
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// A node is moved and taken back under load: verified both times, and mounted again as it was, byte for byte. Then a
// frozen gateway is found and a client forced off it: the plan names the programs that stay behind and is partial, and
// once they have ended it is completed and verified.
func TestAFrozenGatewayIsLeft(t *testing.T) {
	s, f := live(t, 2, 3)
	moveAndBack(t, s, f, "cn2", "gw3")
	accept(t, s, f)
	begun := time.Now()
	if err := s.Break(t.Context(), "frozen", "gw1"); err != nil {
		t.Fatal(err)
	}
	found, others := awaitFinding(t, f, "gw1", time.Minute)
	t.Logf("load %s: found after %.0f s; others: %q", machineLoad(), time.Since(begun).Seconds(), others)
	if found == nil || len(others) > 0 {
		t.Errorf("the frozen gateway: %+v, others %q", found, others)
	}
	p, err := f.Move(t.Context(), "cn1", "gw3", true)
	if err != nil {
		t.Fatal(err)
	}
	if at, err := s.Mounted(t.Context(), "cn1"); err != nil || !strings.HasPrefix(at, "10.31.0.13:/ ") {
		t.Errorf("%v: mounted: %s", err, at)
	}
	// The load's processes wait in the old mount.
	if p.State != remap.Partial || !strings.Contains(p.Error, "programs go on with what it was moved from") {
		t.Errorf("plan: %s, %q, %+v", p.State, p.Error, p.Results)
	}
	if err := s.mend(t.Context(), "gw1"); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); p.State != remap.Verified && time.Now().Before(end); {
		time.Sleep(time.Second)
		if p, err = f.Decide(t.Context(), p.ID, (*client.Client).Complete); err != nil {
			t.Fatal(err)
		}
	}
	if p.State != remap.Verified {
		t.Errorf("completed: %s, %q", p.State, p.Error)
	}
}

// accept walks through a site's acceptance; whether the bytes are near enough is logged, not judged.
func accept(t *testing.T, s *Site, f *Fairway) {
	t.Helper()
	on := filepath.Join(s.inst.Dir, "on")
	script := "#!/bin/sh\n"
	for _, g := range s.guests {
		addr, _, _ := strings.Cut(g.addrs[0], "/")
		script += fmt.Sprintf("[ $NODE != %s ] || exec %s inside ask http://%s:%d/run \"$1\"\n", g.name, s.cfg.Guest[0],
			addr, commandPort)
	}
	if err := os.WriteFile(on, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := f.Run(t.Context(), "accept", "--on", on, "--for", "15s")
	t.Logf("load %s: %v\n%s", machineLoad(), err, out)
	for _, want := range []string{"- held   agents:", " bytes of gw1:", " bytes of gw2:"} {
		if !strings.Contains(out, want) {
			t.Errorf("the acceptance (%v) has no %q:\n%s", err, want, out)
		}
	}
}

// moveAndBack moves a client and takes the plan back.
func moveAndBack(t *testing.T, s *Site, f *Fairway, node, to string) {
	t.Helper()
	was, err := s.Mounted(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Move(t.Context(), node, to, false)
	if err != nil {
		t.Fatal(err)
	}
	at, _ := s.Mounted(t.Context(), node)
	if p.State != remap.Verified || !strings.Contains(at, "addr=10.31.0.13 ") {
		t.Errorf("%s -> %s: %s, %q; mounted %s", node, to, p.State, p.Error, at)
	}
	// mountd has a port of its choice for each of its protocols.
	port := regexp.MustCompile("mountport=[0-9]+")
	p, err = f.Decide(t.Context(), p.ID, (*client.Client).RollBack)
	if at, _ := s.Mounted(t.Context(), node); err != nil || p.State != remap.RolledBack ||
		port.ReplaceAllString(at, "") != port.ReplaceAllString(was, "") {
		t.Errorf("back: %v, %s: mounted\n%swas\n%s", err, p.State, at, was)
	}
}

// calm is how long nothing happens; FAIRWAY_CALM says more.
func calm(d time.Duration) time.Duration {
	if more, err := time.ParseDuration(os.Getenv("FAIRWAY_CALM")); err == nil {
		return more
	}
	return d
}

// Each fault at a gateway or the back end is confirmed in time, and nobody else is. FAIRWAY_LONG names the faults as
// KIND@NODE, with commas between them; 1 stands for all of them.
func TestFaults(t *testing.T) {
	which := os.Getenv("FAIRWAY_LONG")
	if which == "" {
		t.Skip("skipped: takes minutes a fault: FAIRWAY_LONG=1 or FAIRWAY_LONG=cpu@gw1")
	}
	if which == "1" {
		which = "cpu@gw1,rate@gw1,delay@gw1,loss@gw1,one-thread@gw1,frozen@gw1,dead@gw2,back-delay@be1," +
			"agent-mute@gw1,clock@cn1"
	}
	for fault := range strings.SplitSeq(which, ",") {
		kind, node, _ := strings.Cut(fault, "@")
		t.Run(fault, func(t *testing.T) {
			s, f := live(t, 4, 3)
			if found, others := awaitFinding(t, f, node, calm(45*time.Second)); found != nil || len(others) > 0 {
				t.Errorf("before the fault: %v, %q", found, others)
			}
			begun := time.Now()
			if err := s.Break(t.Context(), kind, node); err != nil {
				t.Fatal(err)
			}
			if kind == "clock" { // it accuses nobody
				node = ""
			}
			found, others := awaitFinding(t, f, node, 75*time.Second)
			took := time.Since(begun)
			if found != nil {
				t.Logf("load %s: %s found after %.0f s: %s (others: %q)", machineLoad(), fault, took.Seconds(),
					found.Sentence, others)
			}
			if found == nil && node != "" || len(others) > 0 {
				t.Errorf("load %s: %s: not found within %.0f s; others: %q", machineLoad(), fault, took.Seconds(),
					others)
			}
			for _, n := range []string{"cn1", "cn2"} {
				t.Logf("what %s's load saw: %s", n, sawIn(filepath.Join(s.inst.Dir, n, "load.log"), begun, time.Now()))
			}
			if dir := os.Getenv("FAIRWAY_KEEP"); dir != "" {
				keep(t, s, f, filepath.Join(dir, fault))
			}
		})
	}
}

// keep copies what a run left for eyes.
func keep(t *testing.T, s *Site, f *Fairway, dir string) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"findings"}, {"nodes"}, {"--json", "nodes"}, {"--json", "findings"}, {"doctor"}} {
		out, _ := f.Run(t.Context(), args...)
		_ = os.WriteFile(filepath.Join(dir, strings.Join(args, "")+".txt"), []byte(out), 0o644)
	}
	logs, _ := filepath.Glob(filepath.Join(s.inst.Dir, "*", "load.log"))
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		_ = os.WriteFile(filepath.Join(dir, filepath.Base(filepath.Dir(log))+".load"), text, 0o644)
	}
}

// sawIn sums up what a load's processes saw between two moments: mean milliseconds and operations a kind.
func sawIn(log string, from, to time.Time) string {
	text, _ := os.ReadFile(log)
	n, sum := map[string]float64{}, map[string]float64{}
	for line := range strings.Lines(string(text)) {
		w := strings.Fields(line)
		if len(w) != 6 {
			continue
		}
		at, _ := strconv.ParseInt(w[0], 10, 64)
		count, _ := strconv.ParseFloat(w[2], 64)
		mean, _ := strconv.ParseFloat(w[3], 64)
		if at >= from.Unix() && at <= to.Unix() {
			n[w[1]], sum[w[1]] = n[w[1]]+count, sum[w[1]]+count*mean
		}
	}
	var words []string
	for kind := range n {
		words = append(words, fmt.Sprintf("%s %.0f x %.0f ms", kind, n[kind], sum[kind]/max(n[kind], 1)))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// mend ends the fault of a node.
func (s *Site) mend(ctx context.Context, node string) error {
	s.mu.Lock()
	mend := s.mends[node]
	delete(s.mends, node)
	s.mu.Unlock()
	if mend == nil {
		return fmt.Errorf("mend %s: it has no fault", node)
	}
	return mend(ctx)
}
