package config

import (
	"errors"
	"fmt"
	"net/url"
	"time"
)

// Keeping says where and how long things are kept.
type Keeping struct {
	Store Store `toml:"store" help:"A server has its own retention; fairwayd migrate copies."`
	Keep  Keep  `toml:"keep" help:"What is kept how long; docs/store.md."`
}

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
	StoreEmbedded   = "embedded"
	StoreInflux     = "influx"
	StorePrometheus = "prometheus"
	// FormerPrometheus is the name of before it was more than VictoriaMetrics.
	FormerPrometheus = "victoria"
)

// KnownKind returns the kind of store that a word names.
func KnownKind(word string) (kind string, known bool) {
	if word == FormerPrometheus {
		word = StorePrometheus
	}
	return word, word == StoreEmbedded || word == StoreInflux || word == StorePrometheus
}

func (s *Store) validate() error {
	kind, known := KnownKind(s.Kind)
	s.Kind = kind
	switch {
	case !known:
		return fmt.Errorf("store.kind = %q: want embedded, influx or prometheus", s.Kind)
	case s.Keep < 0 || s.KeepBytes < 0:
		return fmt.Errorf("store.keep = %s, store.keep_bytes = %d: want 0 (no limit) or more", s.Keep, s.KeepBytes)
	case s.Keep10s < 0 || s.Keep5m < 0 || s.Keep5m > 0 && s.Keep10s == 0:
		return fmt.Errorf("store.keep_10s = %s, store.keep_5m = %s: want 0 (no such tier) or more, and keep_5m needs "+
			"keep_10s", s.Keep10s, s.Keep5m)
	case s.Kind != StoreEmbedded && (s.Keep > 0 || s.KeepBytes > 0 || s.Keep10s > 0):
		return fmt.Errorf("store.keep, keep_bytes, keep_10s and keep_5m are the embedded store's; the server of %s "+
			"has its own retention", s.Kind)
	}
	return s.ValidateServer(s.Kind)
}

// ValidateServer looks at the settings of one kind's server.
func (s *Store) ValidateServer(kind string) error {
	addresses := map[string]string{}
	switch kind {
	case StoreInflux:
		addresses["store.influx.url"] = s.Influx.URL
		if s.Influx.Bucket == "" {
			return errors.New("store.influx.bucket is empty: want a bucket's name, or database/retention for " +
				"InfluxDB 1.8")
		}
	case StorePrometheus:
		addresses["store.prometheus.write_url"], addresses["store.prometheus.read_url"] = s.Prometheus.WriteURL,
			s.Prometheus.ReadURL
	}
	for key, address := range addresses {
		if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("%s = %q: want an address such as http://127.0.0.1:8086", key, address)
		}
	}
	return nil
}

// Keep says how long what is beside the seconds is kept; store.keep is theirs.
type Keep struct {
	Journal time.Duration `toml:"-"`
	History time.Duration `toml:"history" help:"How long ended jobs stay in the history; 0: for ever."`
	Archive time.Duration `toml:"archive" help:"How long days stay in the I/O-log archive; 0: for ever."`
	Memory  time.Duration `toml:"-"`
}

func defaultKeep() Keep { return Keep{Journal: 365 * 24 * time.Hour, Memory: time.Hour} }

func (k *Keep) validate() error {
	const least = 24 * time.Hour
	for _, s := range []struct {
		name string
		long time.Duration
	}{{"history", k.History}, {"archive", k.Archive}} {
		if s.long != 0 && s.long < least {
			return fmt.Errorf("keep.%s = %s: want %s or more, or 0", s.name, s.long, least)
		}
	}
	return nil
}
