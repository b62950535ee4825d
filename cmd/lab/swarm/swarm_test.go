package swarm

import (
	"context"
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

// TestASwarmMeasuresItsAgents runs a few agents and looks at what is reported of them, also of those whose daemon is
// gone.
func TestASwarmMeasuresItsAgents(t *testing.T) {
	for _, lost := range []bool{false, true} {
		const agents = 5
		store := &memory{rows: map[topology.NodeID]map[int64]bool{}}
		hub := ingest.New(ingest.Config{Store: store})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			hub.Serve(w, r, ingest.Speaker{Name: "agents", Limits: ingest.DefaultLimits()})
		}))
		ctx, stop := context.WithCancel(t.Context())
		s := start(ctx, Options{Agents: agents, URL: "ws" + strings.TrimPrefix(server.URL, "http")})
		s.measure()
		for s.connected() < agents || !store.all(agents) {
			time.Sleep(10 * time.Millisecond)
		}
		patience := time.Minute
		if lost {
			patience = time.Millisecond
			hub.Close()
			server.Close()
			for s.connected() > 0 || s.agents[0].queue.Pending() == 0 { // one more second at least, which nobody takes
				time.Sleep(10 * time.Millisecond)
			}
		}
		r := s.end(patience)
		stop()
		s.running.Wait()
		if r.sent < agents || (r.lost == 0) == lost || (r.breaks == 0) == lost || s.lags.quantile(1) == 0 {
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
	l.add(time.Hour)
	if l.quantile(0.5) != 500*time.Millisecond || l.quantile(0.98) != 980*time.Millisecond || l.above(late) != 1 ||
		l.quantile(1) != time.Hour {
		t.Errorf("median %s, 98 %% %s, %d late, all %s", l.quantile(0.5), l.quantile(0.98), l.above(late),
			l.quantile(1))
	}
}
