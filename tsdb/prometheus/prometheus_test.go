package prometheus_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairway/cmd/lab/conform/storetest"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/prometheus"
	"fairway/tsdb/remote"
)

// settled waits, before a read, until the servers show what was appended. Its nodes' names begin with a word of its
// own, so that several stores are empty ones of one server.
type settled struct {
	*prometheus.Store
	shows func(context.Context) error
	own   topology.NodeID

	mu       sync.Mutex
	appended atomic.Uint64 // calls that have ended; one at the beginning, of what the store had before
	shown    uint64        // of them
}

func (s *settled) settle(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	appended := s.appended.Load()
	if appended == s.shown {
		return nil
	}
	var refused remote.Refused // what is too far ahead is refused by design
	if err := s.Flush(ctx); err != nil && !errors.As(err, &refused) {
		return err
	}
	if err := s.shows(ctx); err != nil {
		return err
	}
	s.shown = appended
	return nil
}

// flushed has a single server show what it has taken.
func flushed(url string) func(context.Context) error {
	return func(context.Context) error {
		res, err := http.Get(url + "/internal/force_flush")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("force_flush: %s", res.Status)
		}
		return nil
	}
}

func (s *settled) names(nodes []topology.NodeID) (out []topology.NodeID) {
	for _, n := range nodes {
		out = append(out, s.own+n)
	}
	return out
}

func (s *settled) Append(ctx context.Context, frames []collector.Frame) error {
	frames = slices.Clone(frames)
	for i := range frames {
		if frames[i].Node != "" {
			frames[i].Node = s.own + frames[i].Node
		}
	}
	defer s.appended.Add(1)
	return s.Store.Append(ctx, frames)
}

func (s *settled) Select(ctx context.Context, q tsdb.Query) ([]tsdb.Series, error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	q.Nodes = s.names(q.Nodes)
	out, err := s.Store.Select(ctx, q)
	for i := range out {
		out[i].Node = out[i].Node[len(s.own):]
	}
	return out, err
}

func (s *settled) Occupancy(ctx context.Context, q tsdb.OccupancyQuery) ([]tsdb.NodeOccupancy, error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	q.Nodes = s.names(q.Nodes)
	peaks := map[topology.NodeID]float64{}
	for n, p := range q.PeakBytesPerSec {
		peaks[s.own+n] = p
	}
	q.PeakBytesPerSec = peaks
	out, err := s.Store.Occupancy(ctx, q)
	for i := range out {
		out[i].Node = out[i].Node[len(s.own):]
	}
	return out, err
}

func (s *settled) Nodes(ctx context.Context) ([]tsdb.NodeInfo, error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	out, err := s.Store.Nodes(ctx)
	out = slices.DeleteFunc(out, func(n tsdb.NodeInfo) bool {
		return !strings.HasPrefix(string(n.Node), string(s.own))
	})
	for i := range out {
		out[i].Node = out[i].Node[len(s.own):]
	}
	return out, err
}

// significantDigits is what VictoriaMetrics keeps of a fraction.
const significantDigits = 12

// opened opens a store at two addresses again and again, each of a test's with another own word.
func opened(t *testing.T, c prometheus.Config, shows func(context.Context) error) func() tsdb.Store {
	c.SpoolDir = t.TempDir()
	_, name, _ := strings.Cut(t.Name(), "/")
	return func() tsdb.Store {
		store, err := prometheus.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		s := &settled{Store: store, shows: shows, own: topology.NodeID(name + "/")}
		s.appended.Store(1)
		return s
	}
}

// A server of its own for each case: how late a sample may be depends on the newest that it has.
func TestContractOfPrometheus(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) func() tsdb.Store {
		url := storetest.Prometheus(t, week)
		return opened(t, prometheus.Config{WriteURL: url, ReadURL: url}, func(context.Context) error { return nil })
	})
}

func TestContractOfVictoriaMetrics(t *testing.T) {
	t.Parallel()
	url := storetest.Victoria(t)
	storetest.RunDigits(t, func(t *testing.T) func() tsdb.Store {
		return opened(t, prometheus.Config{WriteURL: url, ReadURL: url}, flushed(url))
	}, significantDigits)
}

// TestContractOfACluster is the contract over the addresses of a cluster, behind vmauth.
func TestContractOfACluster(t *testing.T) {
	t.Parallel()
	c := storetest.VictoriaCluster(t)
	storetest.RunDigits(t, func(t *testing.T) func() tsdb.Store {
		return opened(t, prometheus.Config{WriteURL: c.WriteURL, ReadURL: c.ReadURL, Token: c.Token}, c.Settle)
	}, significantDigits)
}

const week = 8 * 24 * time.Hour
