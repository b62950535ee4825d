package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"fairway/cmd/program"
	"fairway/collector/topology"

	"fairway/tsdb/engine"
	"fairway/tsdb/influx"
	"fairway/tsdb/migrate"
	"fairway/tsdb/victoria"
)

// Store says how frames are kept.
type Store struct {
	Kind       string        `toml:"kind"`
	Sync       time.Duration `toml:"sync"`
	Keep       time.Duration `toml:"keep"`
	KeepBytes  int64         `toml:"keep_bytes"`
	Keep10s    time.Duration `toml:"keep_10s"`
	Keep5m     time.Duration `toml:"keep_5m"`
	SpoolBytes int64         `toml:"spool_bytes"`
	Influx     Influx        `toml:"influx"`
	Victoria   Victoria      `toml:"victoria"`
}

// Influx is an InfluxDB server.
type Influx struct {
	URL       string `toml:"url"`
	Org       string `toml:"org"`
	Bucket    string `toml:"bucket"`
	TokenFile string `toml:"token_file"`
}

// Victoria is a VictoriaMetrics server or cluster.
type Victoria struct {
	WriteURL  string `toml:"write_url"`
	ReadURL   string `toml:"read_url"`
	TokenFile string `toml:"token_file"`
}

// The kinds of store.
const (
	storeEmbedded = "embedded"
	storeInflux   = "influx"
	storeVictoria = "victoria"
)

var storeKinds = []string{storeEmbedded, storeInflux, storeVictoria}

func (s *Store) validate() error {
	switch {
	case !slices.Contains(storeKinds, s.Kind):
		return fmt.Errorf("%w: store.kind = %q: want embedded, influx or victoria", program.ErrSettings, s.Kind)
	case s.Keep < 0 || s.KeepBytes < 0:
		return fmt.Errorf("%w: store.keep = %s, store.keep_bytes = %d: want 0 (no limit) or more", program.ErrSettings,
			s.Keep, s.KeepBytes)
	case s.Keep10s < 0 || s.Keep5m < 0 || s.Keep5m > 0 && s.Keep10s == 0:
		return fmt.Errorf(
			"%w: store.keep_10s = %s, store.keep_5m = %s: want 0 (no such tier) or more, and keep_5m needs keep_10s",
			program.ErrSettings, s.Keep10s, s.Keep5m)
	case s.Kind != storeEmbedded && (s.Keep > 0 || s.KeepBytes > 0 || s.Keep10s > 0):
		return fmt.Errorf(
			"%w: store.keep, keep_bytes, keep_10s and keep_5m are the embedded store's; the server of %s has its own "+
				"retention", program.ErrSettings, s.Kind)
	}
	return s.validateServer(s.Kind)
}

// validateServer looks at the settings of one kind's server.
func (s *Store) validateServer(kind string) error {
	addresses := map[string]string{}
	switch kind {
	case storeInflux:
		addresses["store.influx.url"] = s.Influx.URL
		if s.Influx.Bucket == "" {
			return fmt.Errorf(
				"%w: store.influx.bucket is empty: want a bucket's name, or database/retention for InfluxDB 1.8",
				program.ErrSettings)
		}
	case storeVictoria:
		addresses["store.victoria.write_url"], addresses["store.victoria.read_url"] = s.Victoria.WriteURL,
			s.Victoria.ReadURL
	}
	for key, address := range addresses {
		if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("%w: %s = %q: want an address such as http://127.0.0.1:8086", program.ErrSettings, key,
				address)
		}
	}
	return nil
}

// openedStore is a store with what only some kinds can do.
type openedStore struct {
	migrate.Source
	// setPeaks tells the store by what to count occupancy ahead.
	setPeaks     func(bytesPerSec map[topology.NodeID]float64, threshold float64)
	writeMetrics func(io.Writer)
}

// openStore opens the store of a kind, which is usually conf.Store.Kind.
func openStore(conf *Config, kind string, log *slog.Logger) (openedStore, error) {
	if err := os.MkdirAll(conf.StateDir, 0o750); err != nil {
		return openedStore{}, fmt.Errorf("state_dir: %w", err)
	}
	c, spool := &conf.Store, filepath.Join(conf.StateDir, "spool-"+kind)
	switch kind {
	case storeInflux:
		token, err := serverToken(c.Influx.TokenFile)
		if err != nil {
			return openedStore{}, fmt.Errorf("%w: store.influx.token_file: %w", program.ErrSettings, err)
		}
		s, err := influx.Open(influx.Config{URL: c.Influx.URL, Org: c.Influx.Org, Bucket: c.Influx.Bucket, Token: token,
			SpoolDir: spool, SpoolBytes: c.SpoolBytes, Log: log})
		if err != nil {
			return openedStore{}, err
		}
		return openedStore{Source: s, writeMetrics: s.WriteMetrics}, nil
	case storeVictoria:
		token, err := serverToken(c.Victoria.TokenFile)
		if err != nil {
			return openedStore{}, fmt.Errorf("%w: store.victoria.token_file: %w", program.ErrSettings, err)
		}
		s, err := victoria.Open(victoria.Config{WriteURL: c.Victoria.WriteURL, ReadURL: c.Victoria.ReadURL,
			Token:    token,
			SpoolDir: spool, SpoolBytes: c.SpoolBytes, Log: log})
		if err != nil {
			return openedStore{}, err
		}
		return openedStore{Source: s, writeMetrics: s.WriteMetrics}, nil
	}
	db, err := engine.Open(filepath.Join(conf.StateDir, "store"), engine.Options{
		SyncInterval: c.Sync, RetentionAge: c.Keep, RetentionBytes: c.KeepBytes, Keep10s: c.Keep10s, Keep5m: c.Keep5m,
		Log: log,
	})
	if err != nil {
		return openedStore{}, err
	}
	return openedStore{Source: db, setPeaks: db.SetPeaks}, nil
}

// serverToken reads a server's token; "" is none.
func serverToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return readPrivate(path)
}
