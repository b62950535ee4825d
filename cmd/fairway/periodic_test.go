package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"fairway/cmd/program"
	"fairway/remap/policy/cycles"
	"fairway/remap/policy/periodic"
	"fairway/tsdb/history"
	"fairway/webui/api"
)

// What the daemon's history holds is planned; what is not periodic is named, and a history without any is
// an error of its own.
func TestPeriodicFromHistory(t *testing.T) {
	found := []cycles.Cycle{}
	asked := ""
	d := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		v := api.CyclesView{Cycles: found}
		set, left, err := cycles.Set(found, cycles.Machine{Nodes: 16, NodeBytesPerSec: 1e9, BytesPerSec: 4e9})
		if v.LeftOut = left; err != nil {
			v.Problem = err.Error()
		} else {
			v.Set = &set
		}
		json.NewEncoder(w).Encode(v)
	}))
	defer d.Close()
	out, code := command(t, "--addr", d.URL, "periodic", "--from-history")
	if code != program.NotFound || !strings.Contains(out, "no run with a profile yet") {
		t.Errorf("an empty history: %d %s", code, out)
	}
	var runs []history.Run
	for i, app := range []string{"ocean", "ice", "rare"} {
		r := history.Run{Job: "1", App: app, User: "wei", Nodes: 4, Start: time.Unix(0, 0),
			End: time.Unix(int64(1000+i), 0), Profile: &history.Profile{}}
		for k := range 8 - 3*i {
			r.Profile.Phases = append(r.Profile.Phases, history.Phase{AtSeconds: float64(100 * k), Seconds: 20,
				WriteBytes: 40e9})
		}
		runs = append(runs, r)
	}
	found = cycles.Of(runs, cycles.Defaults())
	out, code = command(t, "--addr", d.URL, "periodic", "--from-history", "--io-bandwidth", "5")
	var got struct {
		periodic.Pattern
		Windows []cycles.Window `json:"windows"`
	}
	if err := json.Unmarshal([]byte(out), &got); code != program.Done || err != nil || len(got.Windows) != 2 ||
		len(got.Apps) != 2 || got.Windows[0].App != got.Apps[0].Name {
		t.Errorf("%d %v %s", code, err, out)
	}
	if asked != "/api/v1/cycles?B=5" {
		t.Errorf("asked %s", asked)
	}
	for _, c := range []struct {
		says string
		args []string
	}{
		{"want SET.json, --from-history or --table4", []string{"periodic"}},
		{"takes nothing else", []string{"periodic", "--table4", "set.json"}},
		{`there can be no "set.json"`, []string{"periodic", "--from-history", "set.json"}},
		{"go with --from-history", []string{"periodic", "--io-bandwidth", "5", "set.json"}},
		{"--io-bandwidth", []string{"periodic", "--from-history", "--io-bandwidth", "x"}},
		{"want GB/s above 0", []string{"periodic", "--from-history", "--node-bandwidth", "-1"}},
		{"want one of them", []string{"periodic", "--json", "--chart", "-"}},
	} {
		if out, code := command(t, c.args...); code != program.Usage || !strings.Contains(out, c.says) {
			t.Errorf("%v: %d %s", c.args, code, out)
		}
	}
}

// The paper's table is printed with ours beside it, and the same as JSON.
func TestPeriodicTable4(t *testing.T) {
	out, code := command(t, "periodic", "--table4")
	if code != program.Done || !strings.Contains(out, "\n  2 0.2900 0.2898 ") || strings.Count(out, "\n") != 16 {
		t.Errorf("%d\n%s", code, out)
	}
	out, code = command(t, "periodic", "--table4", "--json")
	var rows []table4Row
	if err := json.Unmarshal([]byte(out), &rows); code != program.Done || err != nil || len(rows) != 10 ||
		rows[9].Online.Paper.Dilation != 1.015 || rows[9].Both.Dilation < 1 {
		t.Errorf("%d %v %s", code, err, out)
	}
}
