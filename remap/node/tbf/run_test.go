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
				"%s\n    fallback: no\nhigh_priority_requests:\n  - name: tbf\n    state: %s\n", state[l.tbf],
			state[!l.tbf]), nil
	case argv[1] == "get_param":
		out := "regular_requests:\nCPT 0:\n"
		for _, name := range slices.Sorted(maps.Keys(l.rules)) {
			out += fmt.Sprintf("%s {%s} %d, ref 0\n", name, l.rules[name].JobID, l.rules[name].Rate)
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
	l := &lctl{}
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
