package incident_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/cmd/lab/simsite"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/client"
	"fairway/webui/incident"
)

// TestIncidentOfASlowForwarder: what accuses is on the page before all else, the file opens alone, and the one with
// stand-ins names nobody.
func TestIncidentOfASlowForwarder(t *testing.T) {
	s, slow := simsite.NewSlow(t, simsite.Options{})
	s.Tick(s.Situation().At)
	c := client.Over(s.Dial, simsite.OperatorSecret)
	defer c.Close()
	list, err := c.Findings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var id string
	for _, f := range list {
		if f.Node == slow.Node() && f.Kind == anomaly.FailSlow {
			id = f.ID
		}
	}
	if id == "" {
		t.Fatalf("no finding about %s in %+v", slow, list)
	}
	inc, err := c.Incident(t.Context(), id, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(inc.Series.Charts) == 0 || inc.Series.Charts[0].Ratio == nil || *inc.Series.Charts[0].Ratio < 3 {
		t.Fatalf("what accuses most is %+v", inc.Series.Charts)
	}
	if label := inc.Series.Charts[0].Label; label == inc.Series.Charts[0].Metric || strings.Contains(label, "_") {
		t.Errorf("a chart is called %q", label)
	}
	if len(inc.Victims) == 0 || len(inc.Life) == 0 || len(inc.Series.Peers) < 3 ||
		inc.Series.Peers[0].Node != inc.Node {
		t.Errorf("victims %d, life %d, peers %d", len(inc.Victims), len(inc.Life), len(inc.Series.Peers))
	}
	clock := regexp.MustCompile(`\d\d:\d\d`)
	for _, text := range []string{inc.Sentence, inc.Victims[0].Text, inc.Action.Text} {
		if clock.MatchString(text) {
			t.Errorf("a sentence has a time of day: %q", text)
		}
	}
	var file bytes.Buffer
	if err := inc.HTML(&file); err != nil {
		t.Fatal(err)
	}
	if file.Len() > 500_000 {
		t.Errorf("the file has %d bytes", file.Len())
	}
	for _, bad := range []string{"http://", "https://", "src=", "href=", "@import", "url("} {
		if strings.Contains(file.String(), bad) {
			t.Errorf("the file asks the network by %q", bad)
		}
	}
	for _, text := range []string{inc.Sentence, string(slow), "<svg", "Replay"} {
		if !strings.Contains(file.String(), text) {
			t.Errorf("the file does not have %q", text)
		}
	}
	if to := os.Getenv("FAIRWAY_SCREENSHOTS"); to != "" { // to look at
		_ = os.WriteFile(filepath.Join(to, "incident.html"), file.Bytes(), 0o644)
	}
	hidden, err := c.Incident(t.Context(), id, true)
	if err != nil {
		t.Fatal(err)
	}
	file.Reset()
	if err := hidden.HTML(&file); err != nil {
		t.Fatal(err)
	}
	if hidden.Sentence == inc.Sentence || !strings.Contains(hidden.Sentence, "forwarder-1") {
		t.Errorf("with stand-ins it says %q", hidden.Sentence)
	}
	noNames(t, file.String(), s.Situation(), inc.Site)
}

// noNames looks for the names of a machine in a text.
func noNames(t *testing.T, text string, sit *remap.Situation, site string) {
	t.Helper()
	has := func(name string) bool {
		return name != "" && regexp.MustCompile(`(^|[^A-Za-z0-9_-])`+regexp.QuoteMeta(name)+
			`($|[^A-Za-z0-9_-])`).MatchString(text)
	}
	if has(site) {
		t.Errorf("it names the site %q", site)
	}
	for _, n := range sit.Machine.ByRole(topology.Forwarder) {
		if has(string(n.ID)) {
			t.Errorf("it names %s", n.ID)
		}
	}
	for i := range sit.Jobs {
		j := &sit.Jobs[i]
		if has("job "+string(j.ID)) || has(j.User) || has(j.App) {
			t.Errorf("it names job %s, %s or %s", j.ID, j.User, j.App)
		}
		for _, n := range j.Nodes {
			if has(string(n)) {
				t.Errorf("it names %s", n)
				return
			}
		}
	}
}

// TestIncidentOfAnotherTime: what is asked for is what the charts cover, at most a day and not past now.
func TestIncidentOfAnotherTime(t *testing.T) {
	s, slow := simsite.NewSlow(t, simsite.Options{})
	s.Tick(s.Situation().At)
	now := s.Situation().At
	for _, c := range []struct {
		from, to   time.Duration // from now
		first, end time.Duration
	}{
		{-3 * time.Minute, -time.Minute, -3 * time.Minute, -time.Minute},
		{-3 * time.Minute, time.Hour, -3 * time.Minute, 0},
		{-90 * time.Hour, -time.Minute, -24*time.Hour - time.Minute, -time.Minute},
	} {
		got, err := incident.Read(t.Context(), s.Store, incident.Compared{Node: slow.Node(), Now: now,
			Accused: incident.Span{From: now.Add(-time.Hour), To: now},
			Shown:   incident.Span{From: now.Add(c.from), To: now.Add(c.to)},
			Clients: map[topology.NodeID][]topology.NodeID{slow.Node(): nil}})
		if err != nil {
			t.Fatal(err)
		}
		step := time.Duration(got.StepSeconds) * time.Second
		if f, e := got.From.Sub(now.Add(c.first)).Abs(), got.To.Sub(now.Add(c.end)).Abs(); f > step || e > step {
			t.Errorf("asked for %s to %s, got %s to %s", c.from, c.to, got.From.Sub(now), got.To.Sub(now))
		}
	}
}
