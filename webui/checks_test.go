package webui_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/webui/api"
)

func checks(t *testing.T, s *simsite.Site) map[string]api.Check {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.TCP+"/api/v1/checks", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+simsite.OperatorSecret)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var list []api.Check
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil || res.StatusCode != 200 {
		t.Fatalf("%d, %v", res.StatusCode, err)
	}
	out := map[string]api.Check{}
	for _, c := range list {
		out[c.Name] = c
	}
	return out
}

func TestChecksNameWhatIsWrong(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Machine.Silent["fwd003"] = true
	s.Run(0)
	eventually(t, "routes are observed", func() bool { return len(s.Board.Routes(time.Now())) == 32 })
	now := time.Now()
	s.Board.Take([]collector.Frame{
		{Node: "fwd001", Role: topology.Forwarder, TimeMillis: now.Add(30 * time.Second).UnixMilli()},
		{Node: "c00001", Role: topology.Compute, TimeMillis: now.UnixMilli(),
			Sources: []collector.SourceStatus{{Name: "procfs", Err: "diskstats: line 3: 4 fields"},
				{Name: "routes", Err: "lnetctl peer show: exit status 234"}}},
	}, now)
	got := checks(t, s)
	for name, want := range map[string]struct {
		level api.CheckLevel
		text  string
	}{
		"agents":  {api.CheckWarned, "fwd003"},
		"clocks":  {api.CheckFailed, "ahead: fwd001"},
		"sources": {api.CheckWarned, "procfs: diskstats: line 3: 4 fields (c00001)"},
		"rights":  {api.CheckWarned, "routes: lnetctl peer show: exit status 234 (c00001)"},
		"peaks":   {api.CheckOK, "every"},
		"driver":  {api.CheckWarned, "none is configured"},
	} {
		if c := got[name]; c.Level != want.level || !strings.Contains(c.Text, want.text) ||
			(c.Level != api.CheckOK && c.Fix == "") {
			t.Errorf("%s: %+v, want %s with %q and what to do", name, c, want.level, want.text)
		}
	}
}

func TestChecksOfAnEmptySite(t *testing.T) {
	got := checks(t, simsite.New(t, simsite.Options{Empty: true}))
	if c := got["agents"]; c.Level != api.CheckFailed || !strings.Contains(c.Fix, "fairway-agent") {
		t.Errorf("agents: %+v", c)
	}
	for _, name := range []string{"clocks", "sources", "mapping"} {
		if c := got[name]; c.Level != api.CheckUnknown {
			t.Errorf("%s: %+v, want unknown: nothing was reported", name, c)
		}
	}
}

// A disk that takes nothing more is reported to the operator.
func TestChecksTellOfTheDisks(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	if c := checks(t, s)["disks"]; c.Level != api.CheckOK {
		t.Errorf("while all is well: %+v", c)
	}
	a := dialIngest(t, s, "fwd001")
	if err := s.Store.Close(); err != nil {
		t.Fatal(err)
	}
	a.send(second("fwd001", 1), 0)
	if m, err := a.next(); err == nil {
		t.Errorf("what was not stored is answered with %+v", m)
	}
	if c := checks(t, s)["disks"]; c.Level != api.CheckFailed || !strings.Contains(c.Text, "store does not keep") ||
		c.Fix == "" {
		t.Errorf("with a store that takes nothing: %+v", c)
	}
}
