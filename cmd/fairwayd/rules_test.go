package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/alert"
	"fairway/remap/journal"
)

// scraped are the series of a daemon's /metrics, each name with its labels' names.
func scraped(t *testing.T, d *daemon) map[string][]string {
	t.Helper()
	sock := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", d.conf.Listen.Socket)
	}}}
	defer sock.CloseIdleConnections()
	resp, err := sock.Get("http://unix/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	series := map[string][]string{}
	label := regexp.MustCompile(`(\w+)="`)
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, labels, _ := strings.Cut(name, "{")
		series[name] = []string{}
		for _, m := range label.FindAllStringSubmatch(labels+" "+rest, -1) {
			series[name] = append(series[name], m[1])
		}
	}
	return series
}

// constants are the values of a type's constants in a file.
func constants(t *testing.T, file, kind string) (values []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\s`+kind+`\s+= "(\w+)"`).FindAllSubmatch(text, -1) {
		values = append(values, string(m[1]))
	}
	if len(values) == 0 {
		t.Fatalf("%s has no %s", file, kind)
	}
	return values
}

// TestRulesForPrometheus: promtool takes the rules; a daemon with findings, plans and a receiver writes every series
// that they name, with the labels that they ask for; and every kind of finding is in a rule.
func TestRulesForPrometheus(t *testing.T) {
	const file = "../../docs/grafana/alerts.yml"
	rules, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := testConf(t)
	now := time.Now().UTC()
	found := anomaly.Finding{ID: "F-0001", Node: "fwd1", Kind: anomaly.ForwarderSilent, State: anomaly.Confirmed,
		Since: now}
	plan := &remap.Plan{ID: "P-000001", State: remap.Proposed, Created: now, Proposer: "olga",
		Moves: remap.MoveAll([]topology.NodeID{"cn1"}, "fwd2")}
	if err := os.MkdirAll(c.StateDir, 0o750); err != nil {
		t.Fatal(err)
	}
	j, _, err := journal.Open(filepath.Join(c.StateDir, "journal"), func(*journal.Record) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Append(&journal.Record{Kind: journal.StepFinding, At: now, Plan: found.ID,
		Finding: &anomaly.Change{Finding: found}}), j.Append(&journal.Record{Kind: journal.StepPropose, At: now,
		Plan: plan.ID, Proposed: plan, Actor: "olga"}), j.Close()); err != nil {
		t.Fatal(err)
	}
	c.Alert.Receivers = []alert.Receiver{{Name: "oncall", Kind: "command", Command: []string{"/bin/true"}}}
	d := start(t, c)
	series := scraped(t, d)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	values := map[string][]string{"kind": constants(t, "anomaly/anomaly.go", "Kind"),
		"state": append(constants(t, "anomaly/anomaly.go", "State"),
			constants(t, "remap/planstate.go", "PlanState")...)}
	var covered []string
	matcher := regexp.MustCompile(`(\w+)(=|=~|!=|!~)"([^"]*)"`)
	for _, m := range regexp.MustCompile(`(fairway_\w+)(\{[^}]*\})?`).FindAllStringSubmatch(string(rules), -1) {
		labels, written := series[m[1]]
		if !written {
			t.Errorf("%s: /metrics has no %s", file, m[0])
		}
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(labels, l[1]) {
				t.Errorf("%s: %s has the labels %q, not %s", file, m[1], labels, l[1])
			}
			for _, v := range strings.Split(l[3], "|") {
				if !slices.Contains(values[l[1]], v) {
					t.Errorf("%s: %s: no %s is %q", file, m[0], l[1], v)
				}
			}
			if matches := regexp.MustCompile("^(?:" + l[3] + ")$"); m[1] == "fairway_findings" && l[1] == "kind" {
				for _, k := range values["kind"] {
					if matches.MatchString(k) != strings.HasPrefix(l[2], "!") {
						covered = append(covered, k)
					}
				}
			}
		}
	}
	for _, k := range values["kind"] {
		if !slices.Contains(covered, k) {
			t.Errorf("%s: no rule is for findings of the kind %s", file, k)
		}
	}
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("skipped: promtool is not installed")
	}
	if out, err := exec.Command(tool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}
