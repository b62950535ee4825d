package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"fairway/cmd/program"
	"fairway/collector/topology"

	"fairway/tsdb/engine"
	"fairway/tsdb/influx"
	"fairway/tsdb/migrate"
	"fairway/tsdb/prometheus"
)

// Store says how frames are kept.
type Store struct {
	Kind       string        `toml:"kind" help:"embedded (in state_dir), influx or prometheus (on a server)."`
	Sync       time.Duration `toml:"sync" help:"Longest wait of frames for the disk, and so for their acknowledgement."`
	Keep       time.Duration `toml:"keep" help:"How long the embedded store keeps seconds, such as 720h; 0: for ever."`
	KeepBytes  int64         `toml:"keep_bytes" help:"Bytes above which the store's oldest hours go; 0: no limit."`
	Keep10s    time.Duration `toml:"keep_10s" help:"How long means of 10 s are kept, such as 8760h; 0: not made."`
	Keep5m     time.Duration `toml:"keep_5m" help:"The same for means of 5 min, made from those of 10 s."`
	Influx     Influx        `toml:"influx"`
	Prometheus Prometheus    `toml:"prometheus"`
}

// Influx is an InfluxDB server.
type Influx struct {
	URL       string `toml:"url" help:"Address of InfluxDB, such as http://127.0.0.1:8086."`
	Org       string `toml:"org" help:"Its organization; not needed for InfluxDB 1.8."`
	Bucket    string `toml:"bucket" help:"Its bucket; database/retention for InfluxDB 1.8."`
	TokenFile string `toml:"token_file" help:"File with its token (1.8: user:password), mode 0600; empty: no token."`
}

// Prometheus is a server or a cluster that takes remote write and answers Prometheus's query API.
type Prometheus struct {
	WriteURL  string `toml:"write_url" help:"Its address of remote write, such as http://127.0.0.1:9090/api/v1/write."`
	ReadURL   string `toml:"read_url" help:"What comes before /api/v1/query, such as http://127.0.0.1:9090."`
	TokenFile string `toml:"token_file" help:"File with its bearer token, mode 0600; empty: no token."`
}

// The kinds of store.
const (
	storeEmbedded   = "embedded"
	storeInflux     = "influx"
	storePrometheus = "prometheus"
	// formerPrometheus is the name of before it was more than VictoriaMetrics.
	formerPrometheus = "victoria"
)

// knownKind returns the kind of store that a word names.
func knownKind(word string) (kind string, known bool) {
	if word == formerPrometheus {
		word = storePrometheus
	}
	return word, word == storeEmbedded || word == storeInflux || word == storePrometheus
}

func (s *Store) validate() error {
	kind, known := knownKind(s.Kind)
	s.Kind = kind
	switch {
	case !known:
		return fmt.Errorf("%w: store.kind = %q: want embedded, influx or prometheus", program.ErrSettings, s.Kind)
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
	case storePrometheus:
		addresses["store.prometheus.write_url"], addresses["store.prometheus.read_url"] = s.Prometheus.WriteURL,
			s.Prometheus.ReadURL
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
	// setPeaks gives the store the peaks by which it counts occupancy ahead.
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
			SpoolDir: spool, Log: log})
		if err != nil {
			return openedStore{}, err
		}
		return openedStore{Source: s, writeMetrics: s.WriteMetrics}, nil
	case storePrometheus:
		p := c.Prometheus
		token, err := serverToken(p.TokenFile)
		if err != nil {
			return openedStore{}, fmt.Errorf("%w: store.prometheus.token_file: %w", program.ErrSettings, err)
		}
		// What waits under the former name is sent first.
		err = os.Rename(filepath.Join(conf.StateDir, "spool-"+formerPrometheus), spool)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return openedStore{}, fmt.Errorf("%w: seconds wait for the server in both; empty one of the two", err)
		}
		s, err := prometheus.Open(prometheus.Config{WriteURL: p.WriteURL, ReadURL: p.ReadURL, Token: token,
			SpoolDir: spool, Log: log})
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

// serverToken reads a server's token; "" without a file.
func serverToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return readPrivate(path)
}
