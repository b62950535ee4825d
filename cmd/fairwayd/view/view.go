// Package view shows what other daemons know: the seconds of one's store, or the answers of several.
package view

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"fairway/anomaly"
	"fairway/cmd/fairwayd/config"
	"fairway/cmd/program"
	"fairway/collector"
	"fairway/collector/pace"
	"fairway/collector/topology"
	"fairway/remap/alert"
	"fairway/tsdb"
	"fairway/tsdb/migrate"
	"fairway/tsdb/window"
	"fairway/webui/access"
	"fairway/webui/api"
)

// Command is fairwayd view; run is the life of a daemon of this version.
func Command(path *string, version string,
	run func(context.Context, *config.Config, *slog.Logger) error) *cobra.Command {
	var at, socket string
	var of []string
	c := &cobra.Command{
		Use:   "view",
		Short: "Serve the faces over the seconds of another daemon's store server, or one page of several machines",
		Long: "The settings are those of the daemon whose store it is, of kind influx or prometheus. A view takes\n" +
			"no frames, judges nothing and changes nothing; findings, plans and jobs are at the daemon itself.\n\n" +
			"With --of hpc1,hpc2 it asks the daemons of these machines of " + program.SiteFile + " instead,\n" +
			"whatever their stores, and serves the page /sites: what needs somebody at any of them, the targets\n" +
			"that they share, and which of them does not answer. The settings say who may read it.",
		Args: cobra.NoArgs,
		RunE: config.File.With(path, func(c *cobra.Command, _ []string, conf *config.Config) error {
			log := program.Log(os.Stderr, conf.LogLevel)
			if len(of) > 0 {
				return serveSites(c.Context(), conf, at, socket, of, version, log)
			}
			err := Prepare(conf, at, socket)
			if err != nil {
				return err
			}
			if conf.StateDir, err = os.MkdirTemp("", "fairwayd-view"); err != nil {
				return err
			}
			defer os.RemoveAll(conf.StateDir)
			return run(c.Context(), conf, log)
		}),
	}
	c.Flags().StringVar(&at, "http", "127.0.0.1:7119", "HOST:PORT for browsers and terminals")
	c.Flags().StringSliceVar(&of, "of", nil, "machines by commas, as 'fairway sites' knows them")
	c.Flags().StringVar(&socket, "socket", "", "unix socket of local commands; empty: no socket")
	return c
}

// Prepare takes everything out of the settings that a view does not do.
func Prepare(c *config.Config, at, socket string) error {
	if c.Store.Kind == config.StoreEmbedded {
		return fmt.Errorf("%w: view: store.kind = %q: its own daemon alone reads that store; want influx or "+
			"prometheus, or --of and names of "+program.SiteFile,
			program.ErrSettings, c.Store.Kind)
	}
	c.View = true
	c.Listen.HTTP, c.Listen.Socket, c.Listen.Agents = at, socket, ""
	c.Cluster.Name, c.Cluster.Daemons = "", nil
	c.Driver = config.Driver{Kind: config.DriverNone, Timeout: time.Second}
	c.Probe, c.Alert, c.Feed = config.Default().Probe, alert.Settings{}, config.Feed{}
	c.Findings = anomaly.DefaultSettings()
	c.Queue.Policy, c.Slurm.Jobs = "", nil
	return c.Listen.Validate()
}

// Notice is what every screen of a view says.
const Notice = "a view of the store: seconds alone; findings, plans and jobs are at the daemon, and nothing is " +
	"changed here"

// Store is a store that nobody writes to from here.
type Store struct{ migrate.Source }

// Append implements tsdb.Store.
func (s Store) Append(context.Context, []collector.Frame) error {
	return fmt.Errorf("%w: this is a view of the store, which takes no frames", api.ErrNotAllowed)
}

// Refuse refuses what a view does not do, and lets everything be read.
func Refuse(_ http.ResponseWriter, r *http.Request, _ access.Caller) (done bool, err error) {
	if r.Method == http.MethodGet {
		return false, nil
	}
	return true, fmt.Errorf("%w: %s %s: %s", api.ErrNotAllowed, r.Method, r.URL.Path, Notice)
}

const (
	// viewEvery is how often a view looks for newer seconds, viewSpan how far back.
	viewEvery = time.Second
	viewSpan  = 30 * time.Second
)

// Keep puts each node's newest second of the store on the board, until ctx ends.
func Keep(ctx context.Context, store tsdb.Store, board *window.Board, arrived func(), log *slog.Logger) {
	failing := false
	pace.Every(ctx, 0, viewEvery, func(time.Time) {
		frames, err := newestOf(ctx, store, time.Now())
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing {
			log.Error("the store's server does not answer; what is shown grows old", "err", err)
		} else if err == nil && failing {
			log.Info("the store's server answers again")
		}
		failing = err != nil
		board.Take(frames, time.Now())
		arrived()
	})
}

// newestOf reads each node's newest second within viewSpan before now.
func newestOf(ctx context.Context, store tsdb.Store, now time.Time) ([]collector.Frame, error) {
	nodes, err := store.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	with := map[collector.Metric][]topology.NodeID{}
	roles := map[topology.NodeID]topology.Role{}
	for _, n := range nodes {
		roles[n.Node] = n.Role
		for _, m := range n.Metrics {
			with[m] = append(with[m], n.Node)
		}
	}
	newest := map[topology.NodeID]*collector.Frame{}
	for m, of := range with {
		list, err := store.Select(ctx, tsdb.Query{Nodes: of, Metric: m, FromMillis: now.Add(-viewSpan).UnixMilli(),
			ToMillis: now.UnixMilli()})
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			if len(s.Points) == 0 {
				continue
			}
			p := s.Points[len(s.Points)-1]
			f := newest[s.Node]
			if f == nil || f.TimeMillis < p.TimeMillis {
				f = &collector.Frame{Node: s.Node, Role: roles[s.Node], TimeMillis: p.TimeMillis}
				newest[s.Node] = f
			}
			if f.TimeMillis == p.TimeMillis {
				f.Samples = append(f.Samples, collector.Sample{Metric: m, Value: p.Value})
			}
		}
	}
	out := make([]collector.Frame, 0, len(newest))
	for _, f := range newest {
		slices.SortFunc(f.Samples, func(a, b collector.Sample) int { return int(a.Metric) - int(b.Metric) })
		out = append(out, *f)
	}
	return out, nil
}
