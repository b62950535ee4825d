package policies

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fairway/cmd/program"
	"fairway/remap/dispatch"
	"fairway/remap/policy/cycles"
	"fairway/remap/policy/periodic"
)

// The pattern of the running jobs is the daemon's, printed and drawn; none is an error of its own.
func TestPeriodicOfRunningJobs(t *testing.T) {
	v := dispatch.RunningPattern{Problem: "of the running jobs none is known to be periodic",
		Jobs: []dispatch.RunningJob{{Job: "7", App: "sort", User: "wei", Nodes: 1}}}
	d := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() != "/api/v1/windows" {
			t.Errorf("asked %s", r.URL)
		}
		json.NewEncoder(w).Encode(v)
	}))
	defer d.Close()
	_, errs, code := run(t, "", "--addr", d.URL, "periodic", "--running")
	if code != program.NotFound || !strings.Contains(errs, v.Problem) {
		t.Errorf("none is periodic: %d %s", code, errs)
	}
	set := periodic.PaperSets()[9].Set
	p, unplanned, err := schedule(set)
	if err != nil {
		t.Fatal(err)
	}
	v = dispatch.RunningPattern{InForce: true, Set: set, Pattern: &p, Unplanned: &unplanned,
		Jobs: []dispatch.RunningJob{{Job: "T1-1", App: "T1", User: "wei", Nodes: 512,
			Cycle: &cycles.Live{Rhythm: cycles.Rhythm{PeriodSeconds: 4523, Confidence: .9}, ComputeSeconds: 4480,
				VolumeBytes: 128e9, From: cycles.FromWatching}, Window: &dispatch.IOWindow{Words: "I/O window 43 s"}}}}
	out, _, code := run(t, "", "--addr", d.URL, "periodic", "--running", "--chart")
	if code != program.Done || !strings.Contains(out, "AP-1 |") {
		t.Errorf("%d %s", code, out)
	}
	out, _, code = run(t, "", "--addr", d.URL, "periodic", "--running")
	var got dispatch.RunningPattern
	if err := json.Unmarshal([]byte(out), &got); code != program.Done || err != nil || !got.InForce ||
		got.Pattern.T != p.T || got.Jobs[0].Window.Words != "I/O window 43 s" {
		t.Errorf("%d %v %s", code, err, out)
	}
	for _, c := range []struct {
		says string
		args []string
	}{
		{"want SET.json, --running or --table4", []string{"periodic"}},
		{"takes nothing else", []string{"periodic", "--table4", "set.json"}},
		{`there can be no "set.json"`, []string{"periodic", "--running", "set.json"}},
		{"want one of them", []string{"periodic", "--json", "--chart", "-"}},
	} {
		if _, errs, code := run(t, "", c.args...); code != program.Usage || !strings.Contains(errs, c.says) {
			t.Errorf("%v: %d %s", c.args, code, errs)
		}
	}
}

// The paper's table is printed with ours beside it, and the same as JSON.
func TestPeriodicTable4(t *testing.T) {
	out, _, code := run(t, "", "periodic", "--table4")
	if code != program.Done || !strings.Contains(out, "\n  2 0.2900 0.2898 ") || strings.Count(out, "\n") != 16 {
		t.Errorf("%d\n%s", code, out)
	}
	out, _, code = run(t, "", "periodic", "--table4", "--json")
	var rows []table4Row
	if err := json.Unmarshal([]byte(out), &rows); code != program.Done || err != nil || len(rows) != 10 ||
		rows[9].Online.Paper.Dilation != 1.015 || rows[9].Both.Dilation < 1 {
		t.Errorf("%d %v %s", code, err, out)
	}
}
