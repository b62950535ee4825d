// Package stores opens the store of each kind, checks and migrates it.
package stores

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"fairway/cmd/fairwayd/config"
	"fairway/cmd/program"
	"fairway/collector/appendlog"
	"fairway/collector/topology"
	"fairway/tsdb/engine"
	"fairway/tsdb/influx"
	"fairway/tsdb/migrate"
	"fairway/tsdb/prometheus"
)

// Opened is a store with what only some kinds can do.
type Opened struct {
	migrate.Source
	// SetPeaks gives the store the peaks by which it counts occupancy ahead.
	SetPeaks     func(bytesPerSec map[topology.NodeID]float64)
	WriteMetrics func(io.Writer)
}

// Open opens the store of a kind, which is usually conf.Store.Kind.
func Open(conf *config.Config, kind string, log *slog.Logger) (Opened, error) {
	if err := os.MkdirAll(conf.StateDir, 0o750); err != nil {
		return Opened{}, fmt.Errorf("state_dir: %w", err)
	}
	c, spool := &conf.Store, filepath.Join(conf.StateDir, "spool-"+kind)
	switch kind {
	case config.StoreInflux:
		token, err := serverToken(c.Influx.TokenFile)
		if err != nil {
			return Opened{}, fmt.Errorf("%w: store.influx.token_file: %w", program.ErrSettings, err)
		}
		s, err := influx.Open(influx.Config{URL: c.Influx.URL, Org: c.Influx.Org, Bucket: c.Influx.Bucket, Token: token,
			SpoolDir: spool, Log: log})
		if err != nil {
			return Opened{}, err
		}
		return Opened{Source: s, WriteMetrics: s.WriteMetrics}, nil
	case config.StorePrometheus:
		p := c.Prometheus
		token, err := serverToken(p.TokenFile)
		if err != nil {
			return Opened{}, fmt.Errorf("%w: store.prometheus.token_file: %w", program.ErrSettings, err)
		}
		// What waits under the former name is sent first.
		err = os.Rename(filepath.Join(conf.StateDir, "spool-"+config.FormerPrometheus), spool)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Opened{}, fmt.Errorf("%w: seconds wait for the server in both; empty one of the two", err)
		}
		s, err := prometheus.Open(prometheus.Config{WriteURL: p.WriteURL, ReadURL: p.ReadURL, Token: token,
			SpoolDir: spool, Log: log})
		if err != nil {
			return Opened{}, err
		}
		return Opened{Source: s, WriteMetrics: s.WriteMetrics}, nil
	}
	db, err := engine.Open(filepath.Join(conf.StateDir, "store"), engine.Options{
		SyncInterval: c.Sync, RetentionAge: c.Keep, RetentionBytes: c.KeepBytes, Keep10s: c.Keep10s, Keep5m: c.Keep5m,
		Log: log,
	})
	if err != nil {
		return Opened{}, err
	}
	return Opened{Source: db, SetPeaks: db.SetPeaks}, nil
}

// serverToken reads a server's token; "" without a file.
func serverToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return appendlog.ReadPrivate(path)
}
