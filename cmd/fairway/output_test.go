package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"fairway/cmd/program"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// hostile is a name that moves the cursor, sets the title, and begins a sequence by one character.
const hostile = "x\x1b[2J\x1b]0;owned\a\u009b31my"

// Texts from outside reach no terminal as they are, whichever command prints them, and JSON is not changed.
func TestOutputIsHarmlessToATerminal(t *testing.T) {
	answer := func(path string) (any, int) {
		switch {
		case strings.HasSuffix(path, "/jobs"):
			return []api.JobRow{{Job: remap.Job{ID: hostile, App: hostile, User: hostile}}}, http.StatusOK
		case strings.HasSuffix(path, "/jobs/1"):
			return api.JobView{JobRow: api.JobRow{Job: remap.Job{ID: hostile, App: hostile}}, Plans: []string{hostile},
				Forwarders: map[topology.ForwarderID]int{hostile: 2}}, http.StatusOK
		case strings.HasSuffix(path, "/runs"):
			return api.JobRuns{}, http.StatusOK
		case strings.HasSuffix(path, "/nodes"):
			return []api.NodeRow{{ID: hostile, Forwarder: hostile}}, http.StatusOK
		case strings.HasSuffix(path, "/nodes/1"):
			return api.NodeView{NodeRow: api.NodeRow{ID: hostile},
				Sources: []collector.SourceStatus{{Name: hostile, Err: hostile}}}, http.StatusOK
		}
		return map[string]any{"title": "not found", "detail": hostile, "status": 404}, http.StatusNotFound
	}
	path := filepath.Join(t.TempDir(), "d.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, code := answer(r.URL.Path)
		if code != http.StatusOK {
			w.Header().Set("Content-Type", "application/problem+json")
		}
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(v)
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	for _, c := range []string{"jobs", "job 1", "nodes", "node 1", "plans", "plan show 1", "findings"} {
		var out bytes.Buffer
		err := program.Run(context.Background(), newRootOn(&out, &out), append([]string{"--addr", "unix:" + path},
			strings.Fields(c)...))
		if i := strings.IndexFunc(out.String(), func(r rune) bool {
			return r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0)
		}); i >= 0 {
			t.Errorf("%s (%v) writes a control character: %q", c, err, out.String())
		}
		if !strings.Contains(out.String(), "owned") {
			t.Errorf("%s (%v) does not print what the daemon says: %q", c, err, out.String())
		}
	}
	var out bytes.Buffer
	var jobs []api.JobRow
	err = program.Run(context.Background(), newRootOn(&out, &out), []string{"--addr", "unix:" + path, "--json", "jobs"})
	if err != nil || json.Unmarshal(out.Bytes(), &jobs) != nil || len(jobs) != 1 || jobs[0].ID != hostile {
		t.Errorf("JSON was changed: %v, %q", err, out.String())
	}
}
