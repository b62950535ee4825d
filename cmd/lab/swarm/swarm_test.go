package swarm

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/ingest"
	"fairway/collector/topology"
)

// memory is a store that remembers which seconds came, by node.
type memory struct {
	mu   sync.Mutex
	rows map[topology.NodeID]map[int64]bool
}

func (m *memory) Append(_ context.Context, frames []collector.Frame) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range frames {
		f := &frames[i]
		if m.rows[f.Node] == nil {
			m.rows[f.Node] = map[int64]bool{}
		}
		m.rows[f.Node][f.TimeMillis] = len(f.Samples) == 8
	}
	return nil
}

func (m *memory) all(nodes int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.rows) == nodes
}

// TestAPartMeasuresItsAgents runs a few agents and looks at what is reported of them, also of those whose daemon is
// gone.
func TestAPartMeasuresItsAgents(t *testing.T) {
	for _, lost := range []bool{false, true} {
		const agents = 5
		store := &memory{rows: map[topology.NodeID]map[int64]bool{}}
		hub := ingest.New(ingest.Config{Store: store})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			hub.Serve(w, r, ingest.Speaker{Name: "agents", Limits: ingest.DefaultLimits()})
		}))
		in, words := io.Pipe()
		answers, out := io.Pipe()
		part := Part{Count: agents, URL: "ws" + strings.TrimPrefix(server.URL, "http"), patience: time.Minute}
		if lost {
			part.patience = time.Millisecond
		}
		ended := make(chan error, 1)
		go func() { ended <- part.Run(t.Context(), in, out) }()
		read := json.NewDecoder(answers)
		say := func(word string) {
			if _, err := io.WriteString(words, word+"\n"); err != nil {
				t.Fatal(err)
			}
		}
		ask := func() (r Result) {
			if err := read.Decode(&r); err != nil {
				t.Fatal(err)
			}
			return r
		}
		say("measure")
		for {
			if say(""); ask().Connected == agents && store.all(agents) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if lost {
			hub.Close()
			server.Close()
			for { // one more second at least, which nobody takes
				say("")
				if r := ask(); r.Connected == 0 && r.Lost > 0 {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		say("end")
		r := ask()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		counted := uint64(0)
		for _, n := range r.Lags {
			counted += n
		}
		if r.Sent < agents || (r.Lost == 0) == lost || (r.Breaks == 0) == lost || counted == 0 {
			t.Errorf("lost %v: %+v", lost, r)
		}
		hub.Close()
		server.Close()
	}
}

func TestQuantiles(t *testing.T) {
	var l lags
	l.add(time.Second) // before the measuring
	l.begin()
	for i := range 100 {
		l.add(time.Duration(i) * 10 * time.Millisecond)
	}
	l.merge(map[int]uint64{6000: 1, -1: 7, 9000: 7})
	if l.quantile(0.5) != 510*time.Millisecond || l.quantile(0.98) != 990*time.Millisecond || l.above(late) != 1 ||
		l.quantile(1) != 60*time.Second+10*time.Millisecond || len(l.counts()) != 101 {
		t.Errorf("median %s, 98 %% %s, %d late, all %s", l.quantile(0.5), l.quantile(0.98), l.above(late),
			l.quantile(1))
	}
}
