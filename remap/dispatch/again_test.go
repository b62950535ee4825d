package dispatch

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector"
	"fairway/remap"
	"fairway/remap/policy/dfra"
)

// A job that starts at the second in which the one before it ends is predicted from that one, whose profile is not made
// yet, and has its plan when the nodes are home.
func TestTheNextRunOnTheSameNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, newMachine(8, 2, 3), remap.ModeAuto)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.d.Run(ctx) }()
		defer func() { stop(); <-done }()
		s.past(t, "ROMS", 4, nil)
		s.takes = time.Second
		first := s.dispatch(t, "1", "ROMS", cns(0, 4))
		time.Sleep(4 * time.Second)
		s.wantState(t, first.Plan, remap.Verified)
		s.mu.Lock()
		for i := range 4 {
			s.frames = append(s.frames, collector.Frame{Node: cn(i),
				TimeMillis: time.Now().Truncate(time.Second).UnixMilli(),
				Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: 0},
					{Metric: collector.WriteBytes, Value: 3e11}, {Metric: collector.MetaOps, Value: 1},
					{Metric: collector.ClientMeta, Value: 0.001}}})
		}
		s.mu.Unlock()
		time.Sleep(2 * time.Second)
		if _, err := s.d.End(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		next := s.dispatch(t, "2", "ROMS", cns(0, 4))
		if p := next.Prediction; p == nil || p.Run.Job != "1" || p.Depth != 2 || p.Run.Profile.VolumeBytes() != 1.2e12 {
			t.Errorf("predicted from %+v", p)
		}
		if next.Decision.Action != dfra.Upgrade || next.Plan != "" ||
			!strings.Contains(next.Refused, "is being moved by "+first.Plan+" (rolling_back)") {
			t.Errorf("while its nodes go home: %+v", next)
		}
		time.Sleep(10 * time.Second)
		again := s.dispatch(t, "2", "ROMS", cns(0, 4))
		if again.Plan == "" || again.Refused != "" {
			t.Fatalf("when they are home: %+v", again)
		}
		if p := s.wantState(t, again.Plan, remap.Verified); p.Moves[0].From != "f0" {
			t.Errorf("it goes back to %s", p.Moves[0].From)
		}
	})
}
