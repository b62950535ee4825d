package swarm

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"fairway/collector/ingest"
	"fairway/collector/topology"
	"fairway/webui/access"
)

// TestRacksAreGatherers: nodes of racks prove themselves, come through their gatherers, and their seconds are kept and
// acknowledged.
func TestRacksAreGatherers(t *testing.T) {
	const agents, secret = 7, "a-secret-behind-the-tokens-of-nodes"
	gate, err := access.NewGate(access.Config{Enrolment: &access.Enrolment{
		Secrets: func() ([]string, error) { return []string{secret}, nil },
		Revoked: func(topology.NodeID) time.Time { return time.Time{} }}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	store := &memory{rows: map[topology.NodeID]map[int64]bool{}}
	hub := ingest.New(ingest.Config{Store: store})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		by := ingest.Speaker{Name: "racks", Limits: ingest.DefaultLimits()}
		if err := hub.Gather(w, r, by, topology.NodeID(r.URL.Query().Get("node")), gate.Gathered); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	defer hub.Close()
	in, words := io.Pipe()
	answers, out := io.Pipe()
	part := Part{Count: agents, Racks: 2, FirstRack: 5, Secret: secret, patience: time.Minute,
		URL: "ws" + strings.TrimPrefix(server.URL, "http")}
	ended := make(chan error, 1)
	go func() { ended <- part.Run(t.Context(), in, out) }()
	read := json.NewDecoder(answers)
	ask := func(word string) (r Result) {
		if _, err := io.WriteString(words, word+"\n"); err != nil {
			t.Fatal(err)
		}
		if err := read.Decode(&r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	if _, err := io.WriteString(words, sayMeasure+"\n"); err != nil {
		t.Fatal(err)
	}
	for ask("").Connected != agents || !store.all(agents) {
		time.Sleep(10 * time.Millisecond)
	}
	if all := hub.Gatherers(); len(all) != 2 || all[0].Node != "gather005" || all[0].Nodes+all[1].Nodes != agents {
		t.Errorf("the gatherers are %+v", all)
	}
	if r := ask(sayEnd); r.Sent < agents || r.Lost != 0 || r.Breaks != 0 || r.Err != "" {
		t.Errorf("%+v", r)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	store.mu.Lock()
	defer store.mu.Unlock()
	for n, seconds := range store.rows {
		for at, whole := range seconds {
			if !whole {
				t.Errorf("%s: the second %d lacks metrics", n, at)
			}
		}
	}
}
