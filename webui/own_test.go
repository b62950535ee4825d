package webui_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"fairway/anomaly"
	"fairway/cmd/lab/simsite"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/webui/access"
	"fairway/webui/api"
)

// ownSite is a site where many people's jobs run, one of them behind a slow forwarder: that job, and all words that its
// user must not see.
func ownSite(t *testing.T) (s *simsite.Site, slow topology.ForwarderID, mine remap.Job, secret *regexp.Regexp) {
	s, slow = simsite.NewSlow(t, simsite.Options{Offline: true, Access: func(a *access.Config) { a.Anonymous = "" }})
	s.Run(0)
	s.TellJobs(100)
	var sit *remap.Situation
	eventually(t, "a job runs behind the slow forwarder", func() bool {
		sit = s.Picture.Snapshot().Situation
		i := slices.IndexFunc(sit.Jobs, func(j remap.Job) bool {
			return slices.ContainsFunc(j.Nodes, func(n topology.NodeID) bool { return sit.Observed[n] == slow })
		})
		if i >= 0 {
			mine = sit.Jobs[i]
		}
		return i >= 0
	})
	// a method, too
	known := map[string]bool{mine.User: true, mine.App: true, mine.Project: true, "": true, "POST": true}
	nodes, words := map[topology.NodeID]bool{}, []string{}
	for _, j := range sit.Jobs {
		if j.User == mine.User {
			known[j.App], known[j.Project] = true, true
			for _, n := range j.Nodes {
				nodes[n] = true
			}
		}
	}
	for _, j := range sit.Jobs {
		if j.User == mine.User {
			continue
		}
		words = append(words, regexp.QuoteMeta(string(j.ID)))
		for _, w := range []string{j.User, j.App, j.Project} {
			if !known[w] {
				words = append(words, regexp.QuoteMeta(w))
			}
		}
		for _, n := range j.Nodes {
			if !nodes[n] {
				words = append(words, regexp.QuoteMeta(string(n)))
			}
		}
	}
	if len(words) < 20 {
		t.Fatalf("the others have %v only", words)
	}
	return s, slow, mine, regexp.MustCompile(`\b(` + strings.Join(words, "|") + `)\b`)
}

// TestAUserSeesTheOwnAlone asks one site, because a site with a past takes seconds.
func TestAUserSeesTheOwnAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, slow, mine, secret := ownSite(t)
		callsOfAUser(t, s, slow, mine, secret)
		ownOfAUser(t, s, slow, mine)
		feedOfAUser(t, s, slow, mine, secret)
	})
}

// callsOfAUser makes every call of the table that reads, with every name that a path may have, as a user: no answer
// names another user's job, its user, application or nodes; and no call changes anything.
func callsOfAUser(t *testing.T, s *simsite.Site, slow topology.ForwarderID, mine remap.Job, secret *regexp.Regexp) {
	headers := signIn(s, mine.User, remap.User).headers(s)
	viewer := func(path string) []byte {
		_, b := s.Ask("GET", path, simsite.ViewerSecret, nil)
		return b
	}
	if len(secret.FindAll(viewer("/api/v1/overview"), -1)) == 0 || !secret.Match(viewer("/api/v1/jobs")) ||
		!secret.Match(viewer("/api/v1/forwarders/"+string(slow))) {
		t.Fatal("a viewer does not see the others either: nothing is compared")
	}
	snap := s.Picture.Snapshot()
	ids := []string{"P-000001", string(slow), "c00001", "low-bandwidth", "query", "heap", "F-0001"}
	for _, f := range snap.Overview.Findings {
		ids = append(ids, f.ID)
	}
	others := 0
	for i, j := range snap.Situation.Jobs {
		if others++; j.User != mine.User && others < 5 || j.ID == mine.ID {
			ids = append(ids, string(j.ID))
		}
		if i == 0 {
			ids = append(ids, string(j.Nodes[0]))
		}
	}
	seen := 0
	for _, route := range s.Server.Routes() {
		if route.Need == "" || strings.HasSuffix(route.Path, "/live") {
			continue // knows no job; the feed has a test of its own
		}
		paths := []string{route.Path}
		if strings.Contains(route.Path, "{") {
			paths = nil
			for _, id := range ids {
				paths = append(paths, wildcard.ReplaceAllString(route.Path, id))
			}
		}
		for _, path := range paths {
			for _, query := range []string{"", "at=-1m", "state=all", "from=-1h"} {
				if query != "" && route.Method != "GET" {
					continue
				}
				if query != "" {
					query = map[bool]string{false: "?", true: "&"}[strings.Contains(path, "?")] + query
				}
				res, b := s.Ask(route.Method, path+query, "", map[bool]any{true: struct{}{}}[route.Method != "GET"],
					append(headers, "Idempotency-Key", fmt.Sprint(route.Method, path))...)
				what := fmt.Sprintf("%s %s: %d", route.Method, path+query, res.StatusCode)
				if found := secret.Find(b); found != nil && !strings.Contains(path, string(found)) {
					t.Errorf("%s names %s:\n%.400s", what, found, b)
				}
				switch {
				case route.Method == "GET" && res.StatusCode == 200:
					seen++
				case route.Method != "GET" && res.StatusCode < 400 && !strings.Contains(path, "session"):
					t.Errorf("%s: a user changes something", what)
				case route.Need == remap.Viewer && res.StatusCode != http.StatusForbidden:
					t.Errorf("%s for a user", what)
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("a user saw %d answers only", seen)
	}
}

// ownOfAUser: jobs, how the forwarders that they use are, and what is found of these.
func ownOfAUser(t *testing.T, s *simsite.Site, slow topology.ForwarderID, mine remap.Job) {
	headers := signIn(s, mine.User, remap.User).headers(s)
	ask := func(path string, want int) []byte {
		t.Helper()
		res, b := s.Ask("GET", path, "", nil, headers...)
		if res.StatusCode != want {
			t.Errorf("GET %s: %d, want %d: %s", path, res.StatusCode, want, b)
		}
		return b
	}
	rows := decode[[]api.JobRow](t, ask("/api/v1/jobs", 200))
	if !slices.ContainsFunc(rows, func(r api.JobRow) bool {
		return r.ID == mine.ID &&
			r.NodeCount == len(mine.Nodes)
	}) {
		t.Errorf("no own job among %+v", rows)
	}
	job := decode[api.JobView](t, ask("/api/v1/jobs/"+string(mine.ID), 200))
	if job.Forwarders[slow] == 0 || job.User != mine.User {
		t.Errorf("own job: %+v", job)
	}
	eventually(t, "the slow forwarder is found", func() bool {
		o := decode[api.Overview](t, ask("/api/v1/overview", 200))
		return len(o.Findings) > 0 && len(o.Forwarders) > 0 && len(o.Forwarders) < 24 && *o.Jobs == len(rows) &&
			o.User == mine.User && o.Role == "user"
	})
	for _, f := range decode[[]struct{ ID, Sentence string }](t, ask("/api/v1/findings", 200)) {
		if one := ask("/api/v1/findings/"+f.ID, 200); f.Sentence == "" || !strings.Contains(string(one), f.ID) {
			t.Errorf("finding %+v: %s", f, one)
		}
	}
	// A busy machine may miss seconds, and shows the forwarder as stale meanwhile.
	eventually(t, "the own forwarder is suspected", func() bool {
		d := decode[api.ForwarderDetail](t, ask("/api/v1/forwarders/"+string(slow), 200))
		return (d.State == remap.ForwarderSuspect || d.State == remap.ForwarderSlow ||
			d.State == remap.ForwarderExcluded) && len(d.ClientNodes) > 0 &&
			len(d.Series) > 0
	})
	for _, n := range s.Machine.Topo.ByRole(topology.Forwarder) {
		if f := topology.ForwarderID(n.ID); !slices.Contains(forwardersOf(rows, s), f) {
			ask("/api/v1/forwarders/"+string(f), 404)
			break
		}
	}
}

// forwardersOf are those that the nodes of jobs use.
func forwardersOf(rows []api.JobRow, s *simsite.Site) (out []topology.ForwarderID) {
	for _, r := range rows {
		for _, n := range r.Nodes {
			out = append(out, s.Picture.Snapshot().Situation.Observed[n])
		}
	}
	return out
}

// feedOfAUser: the same words are in no message of the live feed, which brings the own seconds.
func feedOfAUser(t *testing.T, s *simsite.Site, slow topology.ForwarderID, mine remap.Job, secret *regexp.Regexp) {
	v := signIn(s, mine.User, remap.User)
	h := http.Header{}
	for pair := range slices.Chunk(v.headers(s), 2) {
		h.Set(pair[0], pair[1])
	}
	listen := func(topics string) (*websocket.Conn, int) {
		dialer := websocket.Dialer{NetDialContext: s.DialContext}
		c, res, err := dialer.Dial("ws://"+s.TCP+"/api/v1/live?topics="+topics, h)
		if res == nil {
			t.Fatal(err)
		}
		return c, res.StatusCode
	}
	for _, topic := range []string{"grid:busy", "exclusions"} {
		if c, status := listen(topic); status != http.StatusForbidden && status != http.StatusBadRequest {
			t.Errorf("%s: %d", topic, status)
			c.Close()
		}
	}
	c, status := listen("overview,findings,plans,forwarder:" + string(slow))
	if status != http.StatusSwitchingProtocols {
		t.Fatal(status)
	}
	defer c.Close()
	came := map[string]int{}
	for came["overview"] < 3 || came["findings"] < 3 || came["forwarder:"+string(slow)] < 3 {
		if err := c.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		_, b, err := c.ReadMessage()
		if err != nil {
			t.Fatalf("%v after %v", err, came)
		}
		m := decode[api.LiveMessage](t, b)
		came[m.Topic]++
		if found := secret.Find(b); found != nil {
			t.Errorf("%s names %s: %.400s", m.Topic, found, b)
		}
		if m.Overview != nil && (m.Overview.User != mine.User || len(m.Overview.Forwarders) == 0) {
			t.Errorf("overview of %q with %d forwarders", m.Overview.User, len(m.Overview.Forwarders))
		}
	}
}

// TestSharedTargetsArePutOnPages of jobs that wait for one, and not where a user sees the own job alone.
func TestSharedTargetsArePutOnPages(t *testing.T) {
	shared := func(of []topology.NodeID) (out []api.SharedTarget) {
		for _, n := range of {
			out = append(out, api.SharedTarget{Target: n, Text: "b uses it", Lines: []string{}})
		}
		return out
	}
	s := simsite.New(t, simsite.Options{Wraps: simsite.Wraps{Shared: shared}})
	for i, job := range []topology.JobID{"8", "9"} {
		if res, b := post(s, "/api/v1/dispatch", simsite.HookSecret, dispatch.Request{Job: job, User: "wei",
			App: "ROMS", Nodes: s.Machine.Topo.Default.Clients("fwd001")[i : i+1]}); res.StatusCode != 200 {
			t.Fatalf("%d %s", res.StatusCode, b)
		}
	}
	s.FindMu.Lock()
	s.Find = append(s.Find, anomaly.Finding{ID: "F-0001", Node: "OST3", Kind: anomaly.TargetSlow,
		State: anomaly.Confirmed, Since: time.Now(), Impact: []anomaly.Impact{{Job: "8", Share: 0.5}}})
	s.FindMu.Unlock()
	s.Run(1)
	eventually(t, "the finding is in the picture", func() bool {
		return len(get[api.JobView](s, "/api/v1/jobs/8").Shared) > 0
	})
	for job, want := range map[string]int{"8": 1, "9": 0} {
		got := get[api.JobView](s, "/api/v1/jobs/"+job).Shared
		if len(got) != want || want > 0 && got[0].Target != "OST3" {
			t.Errorf("job %s: %+v", job, got)
		}
	}
	v := signIn(s, "wei", remap.User)
	res, b := s.Ask("GET", "/api/v1/jobs/8", "", nil, v.headers(s)...)
	if res.StatusCode != 200 || strings.Contains(string(b), "b uses it") {
		t.Errorf("a user: %d %s", res.StatusCode, b)
	}
}
