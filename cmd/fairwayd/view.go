package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"fairway/anomaly"
	"fairway/cmd/program"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap/alert"
	"fairway/tsdb"
	"fairway/tsdb/migrate"
	"fairway/webui/access"
	"fairway/webui/api"
)

func newView(path *string) *cobra.Command {
	var at, socket string
	c := &cobra.Command{
		Use:   "view",
		Short: "Serve the faces over the seconds of another daemon's store server, read-only",
		Long: "The settings are those of the daemon whose store it is, of kind influx or prometheus. A view takes\n" +
			"no frames, judges nothing and changes nothing; findings, plans and jobs are at the daemon itself.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			conf, err := settings.Load(*path)
			if err != nil {
				return err
			}
			log, err := program.Log(os.Stderr, conf.LogLevel)
			if err != nil {
				return err
			}
			if err := conf.asView(at, socket); err != nil {
				return err
			}
			if conf.StateDir, err = os.MkdirTemp("", "fairwayd-view"); err != nil {
				return err
			}
			defer os.RemoveAll(conf.StateDir)
			return run(c.Context(), &conf, log)
		},
	}
	c.Flags().StringVar(&at, "http", "127.0.0.1:7119", "HOST:PORT for browsers and terminals")
	c.Flags().StringVar(&socket, "socket", "", "unix socket of local commands; empty: no socket")
	return c
}

// asView takes everything out of the settings that a view does not do.
func (c *Config) asView(at, socket string) error {
	if c.Store.Kind == storeEmbedded {
		return fmt.Errorf("%w: view: store.kind = %q: its own daemon alone reads that store; want influx or "+
			"prometheus",
			program.ErrSettings, c.Store.Kind)
	}
	c.view = true
	c.Listen.HTTP, c.Listen.Socket, c.Listen.Agents = at, socket, ""
	c.Cluster.Name, c.Cluster.Daemons = "", nil
	c.Driver = Driver{Kind: driverNone, Timeout: time.Second}
	c.Probe, c.Alert, c.Feed = defaultProbe(), alert.Settings{}, Feed{}
	c.Findings = anomaly.DefaultSettings()
	c.Queue.Policy, c.Slurm.Jobs = "", nil
	return c.Listen.validate()
}

// viewNotice is what every screen of a view says.
const viewNotice = "a view of the store: seconds alone; findings, plans and jobs are at the daemon, and nothing is " +
	"changed here"

// seen is a store that nobody writes to from here.
type seen struct{ migrate.Source }

// Append implements tsdb.Store.
func (s seen) Append(context.Context, []collector.Frame) error {
	return fmt.Errorf("%w: this is a view of the store, which takes no frames", api.ErrNotAllowed)
}

// viewOnly refuses what a view does not do, and lets everything be read.
func viewOnly(_ http.ResponseWriter, r *http.Request, _ access.Caller) (done bool, err error) {
	if r.Method == http.MethodGet {
		return false, nil
	}
	return true, fmt.Errorf("%w: %s %s: %s", api.ErrNotAllowed, r.Method, r.URL.Path, viewNotice)
}

const (
	// viewEvery is how often a view looks for newer seconds, viewSpan how far back.
	viewEvery = time.Second
	viewSpan  = 30 * time.Second
)

// keepView puts each node's newest second of the store on the board, until ctx ends.
func (d *daemon) keepView(ctx context.Context, arrived func()) {
	tick := time.NewTicker(viewEvery)
	defer tick.Stop()
	failing := false
	for {
		frames, err := newestOf(ctx, d.store, time.Now())
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing {
			d.log.Error("the store's server does not answer; what is shown grows old", "err", err)
		} else if err == nil && failing {
			d.log.Info("the store's server answers again")
		}
		failing = err != nil
		d.board.Take(frames, time.Now())
		arrived()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
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
