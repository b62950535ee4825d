package webui_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"

	influxdb2 "github.com/influxdata/influxdb-client-go/v2"
	influxhttp "github.com/influxdata/influxdb-client-go/v2/api/http"

	"fairway/collector"
	"fairway/collector/ingest"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/webui/access"
)

// postLines sends lines as another collector would.
func postLines(s *simsite.Site, secret, query string, body []byte, headers ...string) (*http.Response, string) {
	s.T.Helper()
	r, err := http.NewRequest("POST", "http://"+s.TCP+"/api/v2/write?org=o&bucket=b&"+query, bytes.NewReader(body))
	if err != nil {
		s.T.Fatal(err)
	}
	r.Header.Set("Authorization", "Token "+secret)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, b := s.Do(http.DefaultClient, r)
	return res, string(b)
}

func stored(s *simsite.Site, node topology.NodeID, m collector.Metric) (values []float64) {
	s.T.Helper()
	now := time.Now()
	out, err := s.Store.Select(context.Background(), tsdb.Query{Nodes: []topology.NodeID{node}, Metric: m,
		FromMillis: now.Add(-time.Hour).UnixMilli(), ToMillis: now.Add(time.Hour).UnixMilli()})
	if err != nil {
		s.T.Fatal(err)
	}
	for _, series := range out {
		for _, p := range series.Points {
			values = append(values, p.Value)
		}
	}
	return values
}

// TestInfluxClientWritesHere sends points with InfluxData's own client.
func TestInfluxClientWritesHere(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	c := influxdb2.NewClientWithOptions("http://"+s.TCP, simsite.AgentSecret,
		influxdb2.DefaultOptions().SetUseGZip(true).SetPrecision(time.Millisecond))
	defer c.Close()
	now := time.Now()
	p := influxdb2.NewPoint("fairway", map[string]string{"hostname": "oss1.site", "role": "storage"},
		map[string]any{"read_bytes": 12.5, "queue_len": 3}, now)
	if err := c.WriteAPIBlocking("o", "b").WritePoint(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(stored(s, "oss1", collector.ReadBytes),
		stored(s, "oss1", collector.QueueLen)); got != "[12.5] [3]" {
		t.Errorf("stored %s", got)
	}
	old := influxdb2.NewPoint("fairway", map[string]string{"host": "oss1"}, map[string]any{"read_bytes": 1.0},
		now.Add(-3*time.Hour))
	var refused *influxhttp.Error
	if err := c.WriteAPIBlocking("o", "b").WritePoint(context.Background(), old); !errors.As(err, &refused) ||
		refused.Code != "invalid" || !strings.Contains(refused.Message, "an hour from now") {
		t.Errorf("its client reads of a refusal: %v", err)
	}
	if f, ok := s.Board.Frame("oss1"); !ok || f.Role != topology.Storage {
		t.Errorf("the picture has %+v %v", f, ok)
	}
}

func TestLinesThatAreRefused(t *testing.T) {
	limits := ingest.Limits{Nodes: 3, SamplesPerFrame: 4, FramesPerSec: 10, BurstSeconds: 1, MessageBytes: 4096}
	s := simsite.New(t, simsite.Options{Access: func(a *access.Config) {
		a.Tokens = append(a.Tokens, access.Token{Name: "telegraf", Role: access.RoleAgent,
			SHA256: access.HashToken("telegraf-secret"),
			Nodes:  []string{"n*"}, Limits: limits})
	}})
	now := time.Now().UnixNano()
	line := func(node string, at int64) string { return fmt.Sprintf("errors,host=%s value=1 %d\n", node, at) }
	for _, c := range []struct {
		name, body, query string
		status            int
		says              string
	}{
		{"a bad line among good ones", line("n1", now) + "errors,host=n1\n" + line("n2", now), "", 400, "1 of 3 lines"},
		{"another's node among its own", line("n1", now) + line("fwd1", now), "", 400, "fwd1"},
		{"another's node alone", line("fwd1", now), "", 403, "fwd1"},
		{"a clock that is wrong", line("n1", now-3*3600e9), "", 400, "an hour"},
		{"a precision that is wrong", line("n1", now), "precision=h", 400, "precision"},
		{"too many nodes", line("n3", now) + line("n4", now), "", 400, "3 nodes already"},
		{"too many nodes, alone", line("n4", now), "", 400, "3 nodes already"},
		{"a body too large", strings.Repeat("#", 5000), "", 413, "4096"},
		{"not gzip", line("n1", now), "gzip", 400, "gzip"},
	} {
		headers := []string{}
		if c.query == "gzip" {
			headers = []string{"Content-Encoding", "gzip"}
		}
		res, b := postLines(s, "telegraf-secret", c.query, []byte(c.body), headers...)
		if res.StatusCode != c.status || !strings.Contains(b, c.says) {
			t.Errorf("%s: %d %s, want %d with %q", c.name, res.StatusCode, b, c.status, c.says)
		}
		var refused struct{ Code, Message string } // what InfluxDB's clients and Telegraf read of a refusal
		if err := json.Unmarshal([]byte(b), &refused); c.status >= 400 && (err != nil || refused.Code == "" ||
			!strings.Contains(refused.Message, c.says)) {
			t.Errorf("%s: Telegraf would log %q: %q, want %q (%v)", c.name, refused.Code, refused.Message, c.says, err)
		}
	}
	for node, want := range map[topology.NodeID]int{"n1": 1, "n2": 1, "n3": 1, "n4": 0, "fwd1": 0} {
		if got := stored(s, node, collector.Errors); len(got) != want {
			t.Errorf("%s: stored %v, want %d", node, got, want)
		}
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	z.Write(make([]byte, 1<<20))
	z.Close()
	if res, b := postLines(s, "telegraf-secret", "", bomb.Bytes(), "Content-Encoding", "gzip"); res.StatusCode != 413 {
		t.Errorf("a gzip bomb of %d bytes: %d %s", bomb.Len(), res.StatusCode, b)
	}
	if res, _ := postLines(s, simsite.ViewerSecret, "", []byte(line("n1", now))); res.StatusCode != 403 {
		t.Errorf("a viewer's token: %d", res.StatusCode)
	}
}

// TestFloodIsIsolated lets one token send more than it may, and another goes on as before.
func TestFloodIsIsolated(t *testing.T) {
	limits := ingest.DefaultLimits()
	limits.FramesPerSec, limits.BurstSeconds = 1, 5
	s := simsite.New(t, simsite.Options{Access: func(a *access.Config) {
		a.Tokens = append(a.Tokens, access.Token{Name: "flood", Role: access.RoleAgent,
			SHA256: access.HashToken("flood-secret"),
			Limits: limits})
	}})
	busy := 0
	for i := range 20 {
		res, b := postLines(s, "flood-secret", "", fmt.Appendf(nil, "errors,host=x%d value=1", i))
		switch {
		case res.StatusCode == 429 && res.Header.Get("Retry-After") == "1" && strings.Contains(b, "flood"):
			busy++
		case res.StatusCode != 204:
			t.Fatalf("%d %s", res.StatusCode, b)
		}
		if res, b := postLines(s, simsite.AgentSecret, "", []byte("errors,host=good value=1")); res.StatusCode != 204 {
			t.Fatalf("the honest sender: %d %s", res.StatusCode, b)
		}
	}
	if busy == 0 {
		t.Error("the flood never had to wait")
	}
}
