package queue

import (
	"context"
	"encoding/binary"
	"math"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector/p9"
)

// asks sends one write at a time with a pause after each, and returns how long the answers took in the mean.
func asks(t *testing.T, c net.Conn, n int, pause time.Duration) time.Duration {
	t.Helper()
	took := time.Duration(0)
	for i := range n {
		from := time.Now()
		if _, err := c.Write(frame(p9.TWrite, uint16(i), make([]byte, writeData-p9.HeaderBytes+8000))); err != nil {
			t.Fatal(err)
		}
		m, err := readMessage(c)
		if err != nil || binary.LittleEndian.Uint16(m[5:]) != uint16(i) {
			t.Fatalf("answer %v: %v", m, err)
		}
		took += time.Since(from)
		time.Sleep(pause)
	}
	return took / time.Duration(n)
}

// A job with a limit lets the others find the forwarder free, has no more than its part while they ask for all they can
// get, and everything once they have asked for nothing for a second. Taken back, the table is what it was.
func TestAJobWithALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForwarder()
		r := New(Config{Dial: f.dial, Seed: 1})
		ctx, cancel := context.WithCancel(t.Context())
		p := newPipes()
		done := make(chan error)
		go func() { done <- r.Serve(ctx, p) }()
		share := func(limit float64) {
			table := twoJobs("job-fair")
			table.Jobs[0].Limit = limit
			if err := r.Share(table); err != nil {
				t.Fatal(err)
			}
		}
		share(0)
		victim := p.dial("10.0.1.1")
		alone := asks(t, victim, 100, 5*time.Millisecond)
		for i := range 4 {
			start(ctx, p, "10.0.0."+string(rune('1'+i)), 16, 8000)
		}
		time.Sleep(100 * time.Millisecond)
		beside := asks(t, victim, 100, 5*time.Millisecond)
		share(.05)
		time.Sleep(100 * time.Millisecond)
		limited := asks(t, victim, 100, 5*time.Millisecond)
		t.Logf("a request takes %s alone, %s beside the big job, %s beside it with a limit", alone, beside, limited)
		if limited > alone*6/5 || beside < alone*3/2 {
			t.Error("want at most 1.2 times as long as alone, and far more without the limit")
		}
		if got := r.Report().Limits; len(got) != 1 || got["big"] != .05 {
			t.Errorf("limits in force: %v", got)
		}

		start(ctx, p, "10.0.1.1", 64, 8000)
		time.Sleep(100 * time.Millisecond)
		before := r.Stats()
		time.Sleep(time.Second)
		after := r.Stats()
		big, small := after["big"].Cost-before["big"].Cost, after["small"].Cost-before["small"].Cost
		if part := float64(big) / float64(big+small); part > .05 || part == 0 {
			t.Errorf("the big job has %.4f of what the forwarder does, want up to 0.05", part)
		}

		share(0)
		if got := r.Report(); got.Limits != nil || got.By != ByLocal {
			t.Errorf("taken back: %+v", got)
		}
		before = r.Stats()
		time.Sleep(time.Second)
		after = r.Stats()
		big, small = after["big"].Cost-before["big"].Cost, after["small"].Cost-before["small"].Cost
		if math.Abs(float64(big)/float64(small)-1) > .1 {
			t.Errorf("without the limit the jobs have %d and %d, want as much", big, small)
		}
		cancel()
		<-done
		time.Sleep(time.Second)
		synctest.Wait()
		if r.inFlight != 0 {
			t.Errorf("%d requests are left in flight", r.inFlight)
		}
		for i := range r.queue.lanes {
			if n := r.queue.lanes[i].flights; n != 0 {
				t.Errorf("lane %d has %d requests in flight at the end", i, n)
			}
		}
	})
}

// Alone, a job with a limit has all of the forwarder, also when others have just ended.
func TestALimitBesideNobody(t *testing.T) {
	table := twoJobs("job-fair")
	table.Jobs[1].Limit = .05
	stats, _ := bench(t, table, func(ctx context.Context, p *pipes) { start(ctx, p, "10.0.1.1", 32, 8000) })
	if s := stats["small"]; s.Requests < 11_900 {
		t.Errorf("the forwarder does 12000 requests in 1.5 s: %+v", stats)
	}
	stats, _ = bench(t, table, func(ctx context.Context, p *pipes) {
		start(ctx, p, "10.0.1.1", 32, 8000)
		other, stop := context.WithTimeout(ctx, 100*time.Millisecond)
		context.AfterFunc(ctx, stop)
		start(other, p, "10.0.0.1", 1, 8000)
	})
	if n := stats["small"].Requests; n < 2500 || n > 6000 { // 0.4 s of 8 a ms, 1.1 s of 1 a ms
		t.Errorf("%d requests, want about 4000: few for a second after the other's last one, then all", n)
	}
}

func TestTablesWithLimits(t *testing.T) {
	for limit, wrong := range map[string]bool{"0.05": false, "1": false, "0": false, "-0.1": true, "1.01": true} {
		_, err := ReadTable(strings.NewReader(`{"policy":"job-fair","jobs":[{"job":"1","limit":` + limit + `}]}`))
		if wrong != (err != nil) || err != nil && !strings.Contains(err.Error(), "jobs[0].limit") {
			t.Errorf("limit %s: %v", limit, err)
		}
	}
	table := twoJobs("job-fair")
	table.Jobs[0].Limit = .1
	if got, err := table.Shares(); err != nil || got["big"] != .1 || got["small"] != .5 {
		t.Errorf("shares %v %v, want a ceiling for the big job only", got, err)
	}
}
