package tbf

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// lctl stands in for the program: a service with its rules, one CPU partition.
type lctl struct {
	mu    sync.Mutex
	tbf   bool
	other string // another policy that the site has put in force
	old   bool   // it writes as Lustre 2.12 does, else as 2.18
	rules map[string]Rule
	calls int
	fail  int            // the call that fails; 0: none
	did   map[string]int // requests by job id
}

func (l *lctl) run(_ context.Context, argv ...string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls++; l.calls == l.fail {
		return nil, errors.New("lctl: no such device")
	}
	if slices.Equal(argv, []string{"lctl", "get_param", "-n", "obdfilter.*.job_stats"}) {
		out := "job_stats:\n"
		for _, id := range slices.Sorted(maps.Keys(l.did)) {
			out += fmt.Sprintf(
				"- job_id:          %s\n  snapshot_time:   1537070542\n  read_bytes:      { samples: %d, unit: bytes, "+
					"min: 4096, max: 4096, sum: 0 }\n  write_bytes:     { samples: 0, unit: bytes, min: 0, max: 0, "+
					"sum: 0 }\n",
				id, l.did[id])
		}
		return []byte(out + "job_stats:\n"), nil
	}
	if len(argv) != 3 || argv[0] != "lctl" {
		return nil, fmt.Errorf("argv %q", argv)
	}
	param, value, _ := strings.Cut(argv[2], "=")
	switch param = strings.TrimPrefix(param, "ost.OSS.ost_io."); {
	case argv[1] == "get_param" && param == "nrs_policies":
		state := map[bool]string{true: "started", false: "stopped"}
		return fmt.Appendf(nil,
			"regular_requests:\n  - name: fifo\n    state: started\n    fallback: yes\n\n  - name: tbf\n    state: "+
				"%s\n    fallback: no\n%shigh_priority_requests:\n  - name: tbf\n    state: %s\n", state[l.tbf],
			l.other, state[!l.tbf]), nil
	case argv[1] == "get_param":
		out := "regular_requests:\nCPT 0:\n"
		for _, name := range slices.Sorted(maps.Keys(l.rules)) {
			out += l.line(name)
		}
		return []byte(out + "high_priority_requests:\n"), nil
	case param == "nrs_policies":
		if l.tbf = value == "tbf jobid"; l.tbf {
			l.rules = map[string]Rule{"default": {"*", 10000}}
		}
		return nil, nil
	}
	return nil, l.change(strings.Fields(value))
}

// line is how a rule is listed.
func (l *lctl) line(name string) string {
	switch r := l.rules[name]; {
	case l.old:
		return fmt.Sprintf("%s {%s} %d\n", name, r.JobID, r.Rate)
	case name == "default":
		return fmt.Sprintf("%s * %d, ref 3\n", name, r.Rate)
	case strings.Contains(r.JobID, "="):
		return fmt.Sprintf("%s %s %d, ref 0\n", name, r.JobID, r.Rate)
	default:
		return fmt.Sprintf("%s jobid={%s} %d, ref 1\n", name, r.JobID, r.Rate)
	}
}

// change carries out start NAME jobid={ID} rate=N, change NAME rate=N and stop NAME, as Lustre does.
func (l *lctl) change(words []string) error {
	name := words[1]
	old, there := l.rules[name]
	if !l.tbf || there == (words[0] == "start") {
		return fmt.Errorf("%v: refused", words)
	}
	switch words[0] {
	case "stop":
		delete(l.rules, name)
		return nil
	case "start":
		old.JobID = strings.TrimSuffix(strings.TrimPrefix(words[2], "jobid={"), "}")
	}
	if _, err := fmt.Sscanf(words[len(words)-1], "rate=%d", &old.Rate); err != nil {
		return err
	}
	l.rules[name] = old
	return nil
}

func TestRunner(t *testing.T) {
	for _, old := range []bool{false, true} {
		testRunner(t, &lctl{old: old})
	}
}

func testRunner(t *testing.T, l *lctl) {
	r := Runner{Server: Server{RPCsPerSec: 1000}, Run: l.run}
	apply := func(commands int, shares map[string]float64, want map[string]Rule) {
		t.Helper()
		before := fmt.Sprint(l.tbf, l.rules)
		preview, err := r.Preview(t.Context(), shares)
		if err != nil || len(preview) != commands || fmt.Sprint(l.tbf, l.rules) != before {
			t.Errorf("preview %q, %v; it left %v", preview, err, l.rules)
		}
		done, err := r.Apply(t.Context(), shares)
		if err != nil || fmt.Sprint(done) != fmt.Sprint(preview) {
			t.Errorf("ran %q, %v, previewed %q", done, err, preview)
		}
		if l.tbf && !maps.Equal(l.rules, want) || l.tbf != (want != nil) {
			t.Errorf("in force %v %v, want %v", l.tbf, l.rules, want)
		}
	}
	def := Rule{"*", 10000}
	apply(0, nil, nil)
	two := map[string]float64{"1000": .8, "1001": .2}
	apply(3, two, map[string]Rule{"default": def, "fw_1000": {"1000", 800}, "fw_1001": {"1001", 200}})
	apply(0, two, l.rules)
	apply(3, map[string]float64{"1000": .5, "1002": .5}, map[string]Rule{"default": def, "fw_1000": {"1000", 500},
		"fw_1002": {"1002", 500}})
	// The site's own rule keeps the filter on when ours go.
	l.rules["site"] = Rule{"cp.*", 5}
	apply(2, nil, map[string]Rule{"default": def, "site": {"cp.*", 5}})
	delete(l.rules, "site")
	apply(1, nil, nil)
}

// TestWhatIsTheSitesStays: a keeper that begins and ends beside a site's own rules, its own filter or another policy
// takes away what has our names alone, also where an earlier agent of ours has left it.
func TestWhatIsTheSitesStays(t *testing.T) {
	def := Rule{"*", 10000}
	site := map[string]Rule{"default": def, "site": {"4713", 50}, "nodes": {"nid={10.7.0.[1-9]@tcp}&jobid={a b}", 7}}
	for name, c := range map[string]struct {
		l    *lctl
		want map[string]Rule
	}{
		"rules":            {&lctl{tbf: true, rules: maps.Clone(site)}, site},
		"rules and ours":   {&lctl{tbf: true, rules: maps.Clone(site)}, site},
		"a filter alone":   {&lctl{tbf: true, rules: map[string]Rule{"default": def}}, map[string]Rule{"default": def}},
		"rules of 2.12":    {&lctl{tbf: true, old: true, rules: map[string]Rule{"default": def, "s": {"4", 5}}}, nil},
		"another policy":   {&lctl{other: "  - name: crrn\n    state: started\n"}, nil},
		"rules by address": {&lctl{other: "  - name: tbf nid\n    state: started\n"}, nil},
	} {
		if c.want == nil {
			c.want = maps.Clone(c.l.rules)
		}
		if name == "rules and ours" {
			c.l.rules["fw_7"] = Rule{"7", 5}
		}
		on := c.l.tbf
		r := Runner{Server: Server{RPCsPerSec: 1000}, Run: c.l.run, Journal: filepath.Join(t.TempDir(), "on")}
		_, err := r.Apply(t.Context(), nil)
		if !maps.Equal(c.l.rules, c.want) || c.l.tbf != on {
			t.Errorf("%s: the filter is on: %t, with %v, %v", name, c.l.tbf, c.l.rules, err)
		}
		_, err = r.Apply(t.Context(), map[string]float64{"9": .5})
		if _, ours := c.l.rules["fw_9"]; ours != (c.l.other == "") || (err == nil) != ours {
			t.Errorf("%s: a share: %v, %v", name, c.l.rules, err)
		}
		if _, err = r.Apply(t.Context(), nil); !maps.Equal(c.l.rules, c.want) || c.l.tbf != on {
			t.Errorf("%s: in the end the filter is on: %t, with %v, %v", name, c.l.tbf, c.l.rules, err)
		}
	}
	// What another agent of ours has switched on, this one switches off: the journal says so.
	l, journal := &lctl{}, filepath.Join(t.TempDir(), "state", "on")
	for _, shares := range []map[string]float64{{"1": 1}, nil} {
		r := Runner{Server: Server{RPCsPerSec: 1000}, Run: l.run, Journal: journal}
		if _, err := r.Apply(t.Context(), shares); err != nil || l.tbf != (shares != nil) {
			t.Errorf("shares %v: %t, %v", shares, l.tbf, err)
		}
	}
	if _, err := os.Stat(journal); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the journal is left: %v", err)
	}
}

// TestNothingUnderstood: a list in which no line is a rule stops everything.
func TestNothingUnderstood(t *testing.T) {
	for _, text := range []string{"",
		"regular_requests:\nCPT 0:\nhigh_priority_requests:\nCPT 0:\ndefault * 1, ref 0\n",
		"regular_requests:\nCPT 0:\nrule fw_1 is jobid 1 at rate one\n"} {
		if rules, err := Rules(text); err == nil {
			t.Errorf("%q gave %v", text, rules)
		}
	}
}

// Cut off between any two commands, it ends where it was to end when it is run again.
func TestRunnerGoesOnAfterACrash(t *testing.T) {
	for fail := 1; fail <= 5; fail++ {
		l := &lctl{fail: fail}
		r := Runner{Server: Server{RPCsPerSec: 1000}, Run: l.run}
		shares := map[string]float64{"1": .5, "2": .3, "3": .2}
		done, err := r.Apply(t.Context(), shares)
		if err == nil || len(done) > fail-1 {
			t.Fatalf("call %d failed: %q, %v", fail, done, err)
		}
		if _, err := r.Apply(t.Context(), shares); err != nil {
			t.Fatal(err)
		}
		if len(l.rules) != 4 || l.rules["fw_3"].Rate != 200 {
			t.Errorf("after a failure at call %d: %v", fail, l.rules)
		}
	}
}

// A program that hangs is ended, and one that is missing is named.
func TestRunnerWithARealProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	r := Runner{Server: Server{RPCsPerSec: 10}, Timeout: 200 * time.Millisecond}
	if _, err := r.Apply(t.Context(), map[string]float64{"1": 1}); err == nil ||
		!strings.Contains(err.Error(), "lctl") {
		t.Errorf("no lctl here: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "lctl"), []byte("#!/bin/sh\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Preview(t.Context(), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an lctl that hangs: %v", err)
	}
}
