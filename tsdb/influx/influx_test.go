package influx_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"fairway/cmd/lab/conform/storetest"
	"fairway/tsdb"
	"fairway/tsdb/influx"
)

// settled waits, before each read, until the server has what was appended.
type settled struct{ *influx.Store }

func (s settled) Select(ctx context.Context, q tsdb.Query) ([]tsdb.Series, error) {
	if err := s.Flush(ctx); err != nil {
		return nil, err
	}
	return s.Store.Select(ctx, q)
}

func (s settled) Occupancy(ctx context.Context, q tsdb.OccupancyQuery) ([]tsdb.NodeOccupancy, error) {
	if err := s.Flush(ctx); err != nil {
		return nil, err
	}
	return s.Store.Occupancy(ctx, q)
}

func (s settled) Nodes(ctx context.Context) ([]tsdb.NodeInfo, error) {
	if err := s.Flush(ctx); err != nil {
		return nil, err
	}
	return s.Store.Nodes(ctx)
}

func TestContract(t *testing.T) {
	at := storetest.Influx(t)
	var count atomic.Int32
	storetest.Run(t, func(t *testing.T) func() tsdb.Store {
		name := fmt.Sprintf("fairway%d", count.Add(1))
		storetest.InfluxDatabase(t, at, name)
		spool := t.TempDir()
		return func() tsdb.Store {
			s, err := influx.Open(influx.Config{URL: at, Bucket: name + "/autogen", SpoolDir: spool})
			if err != nil {
				t.Fatal(err)
			}
			return settled{s}
		}
	})
}
