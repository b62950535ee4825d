package victoria_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"fairway/cmd/lab/conform/storetest"
	"fairway/tsdb"
	"fairway/tsdb/victoria"
)

// settled waits, before each read, until the servers show what was appended.
type settled struct {
	*victoria.Store
	shows func(context.Context) error
}

func (s settled) settle(ctx context.Context) error {
	if err := s.Flush(ctx); err != nil {
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

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.RunDigits(t, func(t *testing.T) func() tsdb.Store {
		url, spool := storetest.Victoria(t), t.TempDir()
		return func() tsdb.Store {
			s, err := victoria.Open(victoria.Config{WriteURL: url, ReadURL: url, SpoolDir: spool})
			if err != nil {
				t.Fatal(err)
			}
			return settled{s, flushed(url)}
		}
	}, significantDigits)
}

// TestContractOfACluster is the contract over the addresses of a cluster, behind vmauth.
func TestContractOfACluster(t *testing.T) {
	t.Parallel()
	storetest.RunDigits(t, func(t *testing.T) func() tsdb.Store {
		c, spool := storetest.VictoriaCluster(t), t.TempDir()
		return func() tsdb.Store {
			s, err := victoria.Open(victoria.Config{WriteURL: c.WriteURL, ReadURL: c.ReadURL, Token: c.Token,
				SpoolDir: spool})
			if err != nil {
				t.Fatal(err)
			}
			return settled{s, c.Settle}
		}
	}, significantDigits)
}
