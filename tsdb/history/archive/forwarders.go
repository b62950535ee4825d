package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/history/iolog"
)

// lateness is how long after midnight a day may still change: stores take samples that are an hour late.
const lateness = 65 * time.Minute

// forwarderRows is how many rows of forwarders are collected before they become a part.
const forwarderRows = 1_000_000

// KeepForwarders copies the forwarders' seconds of whole days from the store into the archive in dir: of
// each of the last days before now that is complete and not in it yet. Seconds in which nothing moved and
// nothing waited are left out. It returns how many days it added. ErrBusy means that an import is
// running; ask again later.
func KeepForwarders(ctx context.Context, dir string, store tsdb.Store, now time.Time, days int) (int, error) {
	nodes, err := store.Nodes(ctx)
	if err != nil {
		return 0, fmt.Errorf("archive: %w", err)
	}
	var forwarders []topology.NodeID
	for _, n := range nodes {
		if n.Role == topology.Forwarder {
			forwarders = append(forwarders, n.Node)
		}
	}
	if len(forwarders) == 0 {
		return 0, nil
	}
	s, err := openStore(dir)
	if err != nil {
		return 0, err
	}
	defer s.close()
	added := 0
	newest := dayOf(now.Add(-lateness))
	for d := range days {
		k := forwarderDay{s: s, store: store, nodes: forwarders, day: newest.AddDate(0, 0, d-days), now: now}
		ok, err := k.keep(ctx)
		if err != nil {
			return added, err
		}
		if ok {
			added++
		}
	}
	return added, nil
}

// forwarderDay copies one day.
type forwarderDay struct {
	s     *store
	store tsdb.Store
	nodes []topology.NodeID
	day   time.Time
	now   time.Time
}

// keep adds the day as one batch; false means that it was there, or that the store knows nothing of it.
func (k *forwarderDay) keep(ctx context.Context) (bool, error) {
	name := "forwarders " + k.day.Format(time.DateOnly)
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:])
	res, err := Query(ctx, k.s.dir, "SELECT count(*) FROM read WHERE hash = $hash", map[string]any{"hash": hash}, 0)
	if err != nil || res.Rows[0][0] != int64(0) {
		return false, err
	}
	b, err := newBatch()
	if err != nil {
		return false, err
	}
	defer b.close()
	folder, err := k.s.begin(hash[:16])
	if err != nil {
		return false, err
	}
	total, part := 0, 0
	for _, node := range k.nodes {
		rows, err := k.rows(ctx, node)
		if err != nil {
			return false, err
		}
		if err := b.addRows(&iolog.Log{Forwarders: rows}); err != nil {
			return false, err
		}
		if total += len(rows); b.rows >= forwarderRows {
			if err := b.writeTo(folder, fmt.Sprintf("%s-%d", hash[:16], part)); err != nil {
				return false, err
			}
			part++
		}
	}
	if total == 0 {
		return false, nil
	}
	b.note(iolog.Read{Hash: hash, Path: name, Imported: k.now, Kind: "forwarders", Rows: int64(total)})
	if err := b.writeTo(folder, fmt.Sprintf("%s-%d", hash[:16], part)); err != nil {
		return false, err
	}
	return true, k.s.commit(folder)
}

// rows are the seconds of one forwarder, in order.
func (k *forwarderDay) rows(ctx context.Context, node topology.NodeID) ([]iolog.Forwarder, error) {
	const perDay = 86400
	seconds := make([]iolog.Forwarder, perDay)
	first := k.day.UnixMilli()
	for i := range seconds {
		nan := math.NaN()
		seconds[i] = iolog.Forwarder{Time: k.day.Add(time.Duration(i) * time.Second), Node: string(node),
			ReadBytesPerSec: nan, WriteBytesPerSec: nan,
			ReadOpsPerSec: nan, WriteOpsPerSec: nan, MetaOpsPerSec: nan, QueueLen: nan, MetaQueueLen: nan}
	}
	busy := make([]bool, perDay)
	for _, m := range []struct {
		metric collector.Metric
		field  func(*iolog.Forwarder) *float64
	}{
		{collector.ReadBytes, func(f *iolog.Forwarder) *float64 { return &f.ReadBytesPerSec }},
		{collector.WriteBytes, func(f *iolog.Forwarder) *float64 { return &f.WriteBytesPerSec }},
		{collector.ReadOps, func(f *iolog.Forwarder) *float64 { return &f.ReadOpsPerSec }},
		{collector.WriteOps, func(f *iolog.Forwarder) *float64 { return &f.WriteOpsPerSec }},
		{collector.MetaOps, func(f *iolog.Forwarder) *float64 { return &f.MetaOpsPerSec }},
		{collector.QueueLen, func(f *iolog.Forwarder) *float64 { return &f.QueueLen }},
		{collector.MetaQueueLen, func(f *iolog.Forwarder) *float64 { return &f.MetaQueueLen }},
	} {
		series, err := k.store.Select(ctx, tsdb.Query{Nodes: []topology.NodeID{node}, Metric: m.metric,
			FromMillis: first, ToMillis: first + perDay*1000})
		if err != nil {
			return nil, fmt.Errorf("archive: %s of %s: %w", m.metric, node, err)
		}
		for _, s := range series {
			for _, p := range s.Points {
				if i := (p.TimeMillis - first) / 1000; i >= 0 && i < perDay {
					*m.field(&seconds[i]) = p.Value
					busy[i] = busy[i] || p.Value != 0
				}
			}
		}
	}
	out := seconds[:0]
	for i := range seconds {
		if busy[i] {
			out = append(out, seconds[i])
		}
	}
	return out, nil
}

// Keep adds complete days to the archive, soon after each midnight, until ctx ends.
func Keep(ctx context.Context, dir string, store tsdb.Store, report func(days int, err error)) {
	const back = 7 // days that a daemon may have been away
	wait := time.NewTimer(time.Minute)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-wait.C:
			days, err := KeepForwarders(ctx, dir, store, now, back)
			if ctx.Err() == nil && (days > 0 || err != nil && !errors.Is(err, ErrBusy)) {
				report(days, err)
			}
			wait.Reset(time.Hour)
		}
	}
}
