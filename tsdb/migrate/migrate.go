// Package migrate copies all samples of one store into another, oldest first, and goes on where it
// was interrupted.
package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"fairway/collector"
	"fairway/collector/appendlog"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/engine"
)

// Source is a store that can say when it has samples: the hours, as Unix seconds, ascending.
type Source interface {
	tsdb.Store
	Hours(ctx context.Context) ([]int64, error)
}

// flusher is a store whose server takes samples later than Append answers.
type flusher interface {
	Flush(ctx context.Context) error
}

// Piece sizes: a slice is one block of the embedded store, so that its blocks are written once, and
// nodesAtOnce bound what is in memory (4096 nodes x 8 metrics x 120 s is 60 MB).
const (
	sliceSeconds = engine.BlockSeconds
	nodesAtOnce  = 4096
	hourSeconds  = 3600
)

// Progress is where a copy stands.
type Progress struct {
	HoursDone, Hours int
	At               time.Time // copied up to here
	Samples          int64     // since this run began
	Elapsed          time.Duration
}

// Options say where the copy's place is kept and who gets the progress.
type Options struct {
	// State is a file that remembers how far the copy came; "" starts from the beginning. It is
	// removed when the copy is complete.
	State string
	// Report is called after every hour.
	Report func(Progress)
}

// state is the content of Options.State.
type state struct {
	NextHour int64 `json:"next_hour"` // Unix seconds: the first hour that is not copied in full
}

// Copy copies every sample of from into to. It may be interrupted and repeated: appending again
// changes nothing, and with Options.State it goes on at the hour that was not finished.
func Copy(ctx context.Context, from Source, to tsdb.Store, o Options) (Progress, error) {
	begun := time.Now()
	next, err := load(o.State)
	if err != nil {
		return Progress{}, err
	}
	hours, err := from.Hours(ctx)
	if err != nil {
		return Progress{}, fmt.Errorf("list what is to be copied: %w", err)
	}
	nodes, err := from.Nodes(ctx)
	if err != nil {
		return Progress{}, fmt.Errorf("list the nodes to be copied: %w", err)
	}
	p := Progress{Hours: len(hours)}
	for _, hour := range hours {
		if hour < next {
			p.HoursDone++
			continue
		}
		n, err := copyHour(ctx, from, to, nodes, hour)
		p.Samples += n
		p.Elapsed = time.Since(begun)
		if err != nil {
			return p, fmt.Errorf("copy the hour from %s: %w", time.Unix(hour, 0).UTC().Format(time.RFC3339), err)
		}
		p.HoursDone, p.At = p.HoursDone+1, time.Unix(hour+hourSeconds, 0)
		if err := save(o.State, state{NextHour: hour + hourSeconds}); err != nil {
			return p, err
		}
		if o.Report != nil {
			o.Report(p)
		}
	}
	if o.State != "" {
		if err := os.Remove(o.State); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return p, fmt.Errorf("the copy is complete, but its place cannot be forgotten: %w", err)
		}
	}
	return p, nil
}

// copyHour copies one hour and returns when the other store's server has it.
func copyHour(ctx context.Context, from, to tsdb.Store, nodes []tsdb.NodeInfo, hour int64) (samples int64, err error) {
	for at := hour; at < hour+hourSeconds; at += sliceSeconds {
		for group := range slices.Chunk(nodes, nodesAtOnce) {
			frames, n, err := read(ctx, from, group, at)
			if err != nil {
				return samples, err
			}
			if len(frames) == 0 {
				continue
			}
			if err := to.Append(ctx, frames); err != nil {
				return samples, err
			}
			samples += n
		}
	}
	if f, ok := to.(flusher); ok {
		return samples, f.Flush(ctx)
	}
	return samples, nil
}

// read makes a slice of some nodes into frames again, second by second.
func read(ctx context.Context, from tsdb.Store, nodes []tsdb.NodeInfo, at int64) (frames []collector.Frame,
	samples int64, err error) {
	type place struct {
		node   topology.NodeID
		second int64
	}
	found := map[place]int{}
	roles := make(map[topology.NodeID]topology.Role, len(nodes))
	for _, n := range nodes {
		roles[n.Node] = n.Role
	}
	for m := range collector.Metrics() {
		var names []topology.NodeID
		for _, n := range nodes {
			if slices.Contains(n.Metrics, m) {
				names = append(names, n.Node)
			}
		}
		if len(names) == 0 {
			continue
		}
		series, err := from.Select(ctx, tsdb.Query{Nodes: names, Metric: m, FromMillis: at * 1000,
			ToMillis: (at + sliceSeconds) * 1000})
		if err != nil {
			return nil, 0, err
		}
		for _, s := range series {
			for _, p := range s.Points {
				k := place{s.Node, p.TimeMillis}
				i, ok := found[k]
				if !ok {
					i = len(frames)
					found[k] = i
					frames = append(frames, collector.Frame{Node: s.Node, Role: roles[s.Node],
						TimeMillis: p.TimeMillis})
				}
				frames[i].Samples = append(frames[i].Samples, collector.Sample{Metric: m, Value: p.Value})
				samples++
			}
		}
	}
	slices.SortStableFunc(frames, func(a, b collector.Frame) int { return int(a.TimeMillis - b.TimeMillis) })
	return frames, samples, nil
}

func load(path string) (nextHour int64, err error) {
	if path == "" {
		return 0, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read how far the copy came: %w", err)
	}
	var s state
	if err := json.Unmarshal(b, &s); err != nil {
		return 0, fmt.Errorf("%s does not say how far the copy came (%w); remove it to begin again", path, err)
	}
	return s.NextHour, nil
}

func save(path string, s state) error {
	if path == "" {
		return nil
	}
	b, err := json.Marshal(s)
	if err == nil {
		err = appendlog.ReplaceFile(path, b, 0o600)
	}
	if err != nil {
		return fmt.Errorf("remember how far the copy came: %w", err)
	}
	return nil
}
