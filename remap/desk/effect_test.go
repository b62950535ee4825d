package desk

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/effect"
	"fairway/tsdb"
)

// drawn is a store in which some nodes write ten times as fast from an instant on.
type drawn struct {
	faster time.Time
	nodes  []topology.NodeID
}

func (d drawn) Select(_ context.Context, q tsdb.Query) (out []tsdb.Series, err error) {
	value := map[collector.Metric][2]float64{collector.WriteOps: {20, 200}, collector.ClientWrite: {0.05, 0.005},
		collector.WriteBytes: {1e6, 1e7}}[q.Metric]
	for _, n := range q.Nodes {
		s := tsdb.Series{Node: n}
		for at := q.FromMillis; at < q.ToMillis && value[0] > 0; at += 1000 {
			v := value[0]
			if at >= d.faster.UnixMilli() && slices.Contains(d.nodes, n) {
				v = value[1]
			}
			s.Points = append(s.Points, tsdb.Point{TimeMillis: at, Value: v})
		}
		out = append(out, s)
	}
	return out, nil
}

// The effect of a verified plan is shown while it is measured, goes on record after a minute, and is there after a
// restart and after the roll back.
func TestTheEffectOfAPlanIsOnRecord(t *testing.T) {
	m := newTestMachine(6, 3)
	path := filepath.Join(t.TempDir(), "journal")
	synctest.Test(t, func(t *testing.T) {
		d := openTestDesk(t, m, path, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		meter := effect.NewMeter(effect.Config{Desk: d, Situation: m.situation, Seconds: drawn{time.Now(), nodes(0, 1)},
			Log: slog.New(slog.DiscardHandler)})
		go meter.Run(ctx)
		p := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0, 1), "fwd1"), Reason: why})
		if err := d.RecordEffect(ctx, p.ID, &remap.Effect{}); err == nil {
			t.Error("an effect of a plan that has moved nothing is on record")
		}
		approve(t, d, sam, p.ID)
		time.Sleep(30 * time.Second)
		if p = wantState(t, d, p.ID, remap.Verified); p.Effect != nil {
			t.Errorf("after half a minute %q is on record", p.Effect.Text())
		}
		if e := meter.Newest(p.ID); e == nil || e.Verdict != remap.Measuring || e.Latency == nil {
			t.Errorf("half way it is %+v", e)
		}
		time.Sleep(time.Minute)
		const want = "helped: its nodes' write latency 50 -> 5 ms, 10x as fast " +
			"beside other nodes behind 1 forwarder; " +
			"its nodes 2 -> 20 MB/s"
		if p = wantState(t, d, p.ID, remap.Verified); p.Effect.Text() != want {
			t.Errorf("it is %q", p.Effect.Text())
		}
		if e := meter.Newest(p.ID); e != nil {
			t.Errorf("it is still measured: %+v", e)
		}
		cancel()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = openTestDesk(t, m, path, nil)
		if _, err := d.RollBack(t.Context(), olga, p.ID, remap.Answer{Reason: why}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if p = wantState(t, d, p.ID, remap.RolledBack); p.Effect.Text() != want {
			t.Errorf("after a restart and a roll back it is %q", p.Effect.Text())
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// What a plan brought whose job ends before the minute is over is on record: nothing else will come.
func TestTheEffectUntilTheJobsEnd(t *testing.T) {
	m := newTestMachine(6, 3)
	inDesk(t, m, nil, func(t *testing.T, d *Desk, _ string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		meter := effect.NewMeter(effect.Config{Desk: d, Situation: m.situation, Seconds: drawn{time.Now(), nodes(0)},
			Log: slog.New(slog.DiscardHandler)})
		go meter.Run(ctx)
		p := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0), "fwd1"), Reason: why})
		approve(t, d, sam, p.ID)
		time.Sleep(40 * time.Second)
		if _, err := d.Restore(t.Context(), olga, p.ID, remap.Answer{Reason: why}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		const want = "helped: its nodes' write latency 50 -> 5 ms, 10x as fast " +
			"beside other nodes behind 1 forwarder; " +
			"its nodes 1 -> 10 MB/s"
		if p = wantState(t, d, p.ID, remap.Restored); p.Effect == nil || p.Effect.Text() != want {
			t.Errorf("%+v", p.Effect)
		}
	})
}

// A plan that a person takes back before its minute is over has no effect on record.
func TestAPlanTakenBackEarlyIsNotMeasured(t *testing.T) {
	m := newTestMachine(6, 3)
	inDesk(t, m, nil, func(t *testing.T, d *Desk, _ string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		meter := effect.NewMeter(effect.Config{Desk: d, Situation: m.situation, Seconds: drawn{time.Now(), nodes(0)},
			Log: slog.New(slog.DiscardHandler)})
		go meter.Run(ctx)
		p := propose(t, d, olga, remap.Request{Moves: remap.MoveAll(nodes(0), "fwd1"), Reason: why})
		approve(t, d, sam, p.ID)
		time.Sleep(20 * time.Second)
		if _, err := d.RollBack(t.Context(), olga, p.ID, remap.Answer{Reason: why}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if p = wantState(t, d, p.ID, remap.RolledBack); p.Effect != nil || meter.Newest(p.ID) != nil {
			t.Errorf("%+v, %+v", p.Effect, meter.Newest(p.ID))
		}
	})
}
