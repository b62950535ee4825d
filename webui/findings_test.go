package webui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/webui"

	"github.com/gorilla/websocket"
	prom "github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"

	"fairway/anomaly"
	"fairway/remap"
	"fairway/webui/access"
	"fairway/webui/api"
)

func TestFindingsAreAcknowledgedAndDismissed(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(0)
	eventually(t, "routes are known", func() bool { return len(s.Board.Routes(time.Now())) == 32 })
	s.Says.Detector = simsite.Accuse("fwd001")
	now := time.Now().Add(-10 * time.Second)
	for i := range 7 {
		if err := s.Loop.Step(t.Context(), now.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	s.FindMu.Lock()
	s.Find = s.Loop.Findings()
	s.FindMu.Unlock()
	eventually(t, "the overview shows the finding and its forwarder as slow", func() bool {
		o := get[api.Overview](s, "/api/v1/overview")
		return len(o.Findings) == 1 && o.Findings[0].State == anomaly.Confirmed &&
			o.Forwarders[1].State == remap.ForwarderSlow && o.Forwarders[2].State != remap.ForwarderSlow
	})
	library := prometheusOf(t, s, simsite.ViewerSecret)
	open, err := library.Alerts(t.Context())
	if a := open.Alerts; err != nil || len(a) != 1 || a[0].Labels["alertname"] != "fairway_fail_slow" ||
		a[0].Labels["node"] != "fwd001" || a[0].State != v1.AlertStateFiring || a[0].ActiveAt.IsZero() ||
		a[0].Annotations["summary"] == "" || a[0].Value == "" {
		t.Errorf("as alerts of Prometheus: %+v %v", open, err)
	}
	const some = "count(fairway_read_bytes_per_second) > bool 0"
	if v, _, _, err := library.Query(t.Context(), some, time.Now()); err != nil ||
		!strings.Contains(v.String(), "=> 1 @") {
		t.Errorf("Prometheus's library is answered %v %v", v, err)
	}
	var refused *v1.Error
	if _, err := prometheusOf(t, s, "nobody's").Rules(t.Context(), nil); !errors.As(err, &refused) ||
		refused.Type != v1.ErrClient || !strings.Contains(refused.Detail, "sign") {
		t.Errorf("Prometheus's library reads of a token that is not known: %+v", err)
	}
	v := get[api.FindingView](s, "/api/v1/findings/F-0001")
	if len(v.Changes) != 2 || v.Changes[1].Frozen == nil || v.State != anomaly.Confirmed {
		t.Errorf("its life is %+v", v)
	}
	for _, c := range []struct {
		path, secret string
		body         any
		status       int
	}{
		{"/api/v1/findings/F-0001/ack", simsite.ViewerSecret, api.Decision{}, 403},
		{"/api/v1/findings/F-0009/ack", simsite.OperatorSecret, api.Decision{}, 404},
		{"/api/v1/findings/F-0001/dismiss", simsite.OperatorSecret, api.Decision{Reason: "no"}, 400},
		{"/api/v1/findings/F-0001/silence", simsite.ViewerSecret, api.Silence{For: "4h"}, 403},
		{"/api/v1/findings/F-0001/silence", simsite.OperatorSecret, api.Silence{For: "soon"}, 400},
		{"/api/v1/findings/F-0001/silence", simsite.OperatorSecret, api.Silence{For: "1000h"}, 400},
		{"/api/v1/findings/F-0009/silence", simsite.OperatorSecret, api.Silence{For: "4h"}, 404},
		{"/api/v1/findings/F-0001/silence", simsite.OperatorSecret,
			api.Silence{For: "4h", Reason: "its array rebuilds"},
			200},
		{"/api/v1/findings/F-0001/ack", simsite.OperatorSecret, api.Decision{}, 200},
		{"/api/v1/findings/F-0001/dismiss", simsite.OperatorSecret, api.Decision{Reason: "its array is being rebuilt"},
			200},
	} {
		if res, b := post(s, c.path, c.secret, c.body); res.StatusCode != c.status {
			t.Errorf("POST %s: %d %s, want %d", c.path, res.StatusCode, b, c.status)
		}
	}
	v = get[api.FindingView](s, "/api/v1/findings/F-0001")
	if n := len(v.Changes); n != 5 || v.Changes[2].Why != "silenced for 4h: its array rebuilds" ||
		v.Changes[4].By != "olga" || v.State != anomaly.Dismissed || v.Owner != "olga" {
		t.Errorf("its life is %+v", v)
	}
	s.FindMu.Lock()
	over := s.Find[0]
	over.State = anomaly.Dismissed
	s.Find = []anomaly.Finding{over}
	s.FindMu.Unlock()
	eventually(t, "Prometheus's alerts are without what was dismissed", func() bool {
		open, err := library.Alerts(t.Context())
		return err == nil && open.Alerts != nil && len(open.Alerts) == 0
	})
	audit := get[[]api.AuditEntry](s, "/api/v1/audit?subject=F-0001")
	if len(audit) != 5 || audit[0].Actor != "olga" || audit[0].Result != "dismissed" ||
		audit[0].Reason != "its array is being rebuilt" {
		t.Errorf("audit: %+v", audit)
	}
}

// prometheusOf is the client library of Prometheus, with a bearer token as Grafana has one.
func prometheusOf(t *testing.T, s *simsite.Site, secret string) v1.API {
	c, err := prom.NewClient(prom.Config{Address: "http://" + s.TCP + "/prometheus",
		RoundTripper: config.NewAuthorizationCredentialsRoundTripper("Bearer", config.NewInlineSecret(secret),
			prom.DefaultRoundTripper)})
	if err != nil {
		t.Fatal(err)
	}
	return v1.NewAPI(c)
}

// TestANumberThatIsNoneDoesNotEndTheFeed gives a finding a score that JSON cannot hold: the feed has the finding
// without it, and goes on.
func TestANumberThatIsNoneDoesNotEndTheFeed(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	accuse := func(findings ...anomaly.Finding) {
		s.FindMu.Lock()
		defer s.FindMu.Unlock()
		s.Find = findings
	}
	accuse(anomaly.Finding{ID: "F-0001", Node: "fwd001", Kind: anomaly.FailSlow, State: anomaly.Suspect,
		Score: math.NaN()})
	ws, _, err := websocket.DefaultDialer.Dial("ws://"+s.TCP+"/api/v1/live?topics=overview,findings", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	await := func(topic string) {
		ws.SetReadDeadline(time.Now().Add(90 * time.Second))
		for {
			var m api.LiveMessage
			if err := ws.ReadJSON(&m); err != nil {
				t.Fatalf("no %s: %v", topic, err)
			}
			if m.Topic == topic {
				return
			}
		}
	}
	s.Run(0)
	eventually(t, "the picture has the finding",
		func() bool { return len(s.Picture.Snapshot().Overview.Findings) == 1 })
	await(webui.TopicBeat)
	accuse()
	await(webui.TopicFindings)
}

// TestWaitsForExclusionsAreBounded: who waits for another list has a place of a live feed.
func TestWaitsForExclusionsAreBounded(t *testing.T) {
	const each = 4
	s := simsite.New(t, simsite.Options{Access: func(c *access.Config) { c.Limits.FeedsEach = each }})
	s.Run(0)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for range each {
		all.Go(func() {
			r, err := http.NewRequestWithContext(ctx, "GET", "http://"+s.TCP+"/api/v1/exclusions?generation=0", nil)
			if err != nil {
				t.Error(err)
				return
			}
			if res, err := http.DefaultClient.Do(r); err == nil {
				res.Body.Close()
				t.Errorf("a wait ended: %d", res.StatusCode)
			}
		})
	}
	eventually(t, "all wait", func() bool {
		_, b := s.Ask("GET", "/metrics", simsite.ViewerSecret, nil)
		return strings.Contains(string(b), fmt.Sprintf("fairway_limit_in_use{limit=\"feeds\"} %d\n", each))
	})
	if res, b := s.Ask("GET", "/api/v1/exclusions?generation=0", "", nil); res.StatusCode != 429 {
		t.Errorf("one more: %d %s", res.StatusCode, b)
	}
	if res, b := s.Ask("GET", "/api/v1/exclusions", simsite.ViewerSecret, nil); res.StatusCode != 200 {
		t.Errorf("another caller: %d %s", res.StatusCode, b)
	}
}

func TestExclusionsFeed(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(0)
	eventually(t, "routes are known", func() bool { return len(s.Board.Routes(time.Now())) == 32 })
	feed := get[remap.Feed](s, "/api/v1/exclusions")
	if feed.Generation != 0 || feed.Exclusions == nil || time.Until(feed.ValidUntil) < 50*time.Second {
		t.Fatalf("the first feed is %+v", feed)
	}
	ws, _, err := websocket.DefaultDialer.Dial("ws://"+s.TCP+"/api/v1/live?topics=exclusions,findings", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	waited := make(chan remap.Feed)
	go func() { waited <- get[remap.Feed](s, "/api/v1/exclusions?generation=0") }()
	const path = "/api/v1/exclusions/fwd001"
	for i, c := range []struct {
		method, path, secret string
		body                 any
		status               int
	}{
		{"PUT", path, simsite.ViewerSecret, api.Exclude{Reason: "its disk is dying", TTL: "4h"}, 403},
		{"PUT", path, simsite.OperatorSecret, api.Exclude{Reason: "its disk is dying", TTL: "soon"}, 400},
		{"PUT", "/api/v1/exclusions/fwd999", simsite.OperatorSecret,
			api.Exclude{Reason: "its disk is dying", TTL: "4h"},
			400},
		{"DELETE", path, simsite.OperatorSecret, nil, 404},
		{"PUT", path, simsite.OperatorSecret, api.Exclude{Reason: "its disk is dying", TTL: "4h"}, 200},
	} {
		if res, b := s.Ask(c.method, c.path, c.secret, c.body, "Idempotency-Key",
			fmt.Sprint("k", i)); res.StatusCode != c.status {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, res.StatusCode, b, c.status)
		}
	}
	select {
	case f := <-waited:
		if f.Generation != 1 || len(f.Exclusions) != 1 || f.Exclusions[0].Forwarder != "fwd001" ||
			f.Exclusions[0].By != "olga" {
			t.Errorf("who waited got %+v", f)
		}
	case <-time.After(time.Minute):
		t.Error("who waited for a change is still waiting")
	}
	awaitFeed(s, ws, 1)
	req, _ := http.NewRequest("GET", "http://"+s.TCP+"/api/v1/exclusions", nil)
	req.Header.Set("If-None-Match", `"1"`)
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusNotModified || res.Header.Get("ETag") != `"1"` {
		t.Fatalf("the same list again: %v, %v", res, err)
	}
	res.Body.Close()
	if until, err := time.Parse(time.RFC3339, res.Header.Get("Fairway-Valid-Until")); err != nil ||
		time.Until(until) < 50*time.Second {
		t.Errorf("a 304 renews the lease to %q", res.Header.Get("Fairway-Valid-Until"))
	}
	if res, b := s.Ask("DELETE", path+"?reason=disk+replaced+today", simsite.OperatorSecret, nil, "Idempotency-Key",
		"r"); res.StatusCode != 200 {
		t.Errorf("return: %d %s", res.StatusCode, b)
	}
	if f := get[remap.Feed](s, "/api/v1/exclusions"); f.Generation != 2 || len(f.Exclusions) != 0 {
		t.Errorf("at the end: %+v", f)
	}
}

// awaitFeed reads live messages until one has the feed of a generation.
func awaitFeed(s *simsite.Site, ws *websocket.Conn, generation uint64) {
	s.T.Helper()
	for range 50 {
		_, b, err := ws.ReadMessage()
		if err != nil {
			s.T.Fatal(err)
		}
		var m api.LiveMessage
		if err := json.Unmarshal(b, &m); err != nil {
			s.T.Fatal(fmt.Errorf("%s: %w", b, err))
		}
		if m.Exclusions != nil && m.Exclusions.Generation == generation {
			return
		}
	}
	s.T.Errorf("no message with generation %d", generation)
}
