package prometheus_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"fairway/cmd/lab/conform/storetest"
	"fairway/tsdb"
	"fairway/tsdb/prometheus"
	"fairway/tsdb/remote"
)

// settled waits, before each read, until the servers show what was appended.
type settled struct {
	*prometheus.Store
	shows func(context.Context) error
}

func (s settled) settle(ctx context.Context) error {
	var refused remote.Refused // what is too far ahead is refused by design
	if err := s.Flush(ctx); err != nil && !errors.As(err, &refused) {
		return err
	}
	return s.shows(ctx)
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

func (s settled) Select(ctx context.Context, q tsdb.Query) ([]tsdb.Series, error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	return s.Store.Select(ctx, q)
}

func (s settled) Occupancy(ctx context.Context, q tsdb.OccupancyQuery) ([]tsdb.NodeOccupancy, error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	return s.Store.Occupancy(ctx, q)
}

func (s settled) Nodes(ctx context.Context) ([]tsdb.NodeInfo, error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	return s.Store.Nodes(ctx)
}

// significantDigits is what VictoriaMetrics keeps of a fraction.
const significantDigits = 12

// opened opens a store at two addresses again and again.
func opened(t *testing.T, c prometheus.Config, shows func(context.Context) error) func() tsdb.Store {
	c.SpoolDir = t.TempDir()
	return func() tsdb.Store {
		s, err := prometheus.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		return settled{s, shows}
	}
}

func TestContractOfPrometheus(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) func() tsdb.Store {
		url := storetest.Prometheus(t, week)
		return opened(t, prometheus.Config{WriteURL: url, ReadURL: url}, func(context.Context) error { return nil })
	})
}

func TestContractOfVictoriaMetrics(t *testing.T) {
	t.Parallel()
	storetest.RunDigits(t, func(t *testing.T) func() tsdb.Store {
		url := storetest.Victoria(t)
		return opened(t, prometheus.Config{WriteURL: url, ReadURL: url}, flushed(url))
	}, significantDigits)
}

// TestContractOfACluster is the contract over the addresses of a cluster, behind vmauth.
func TestContractOfACluster(t *testing.T) {
	t.Parallel()
	storetest.RunDigits(t, func(t *testing.T) func() tsdb.Store {
		c := storetest.VictoriaCluster(t)
		return opened(t, prometheus.Config{WriteURL: c.WriteURL, ReadURL: c.ReadURL, Token: c.Token}, c.Settle)
	}, significantDigits)
}

const week = 8 * 24 * time.Hour
