package tbf

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Rules are made, changed and removed as shares come; they end with the shares' time, and with the keeper. What an
// earlier agent left is gone before the first shares.
func TestKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lctl{tbf: true, rules: map[string]Rule{"default": {"*", 10000}, "fw_7": {"7", 5}, "site": {"cp.*", 5}}}
		k := NewKeeper(Runner{Server: Server{RPCsPerSec: 1000}, Run: l.run}, nil)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); k.Run(ctx) }()
		has := func(when string, want map[string]Rule) {
			t.Helper()
			synctest.Wait()
			all := map[string]Rule{"default": {"*", 10000}, "site": {"cp.*", 5}}
			maps.Copy(all, want)
			l.mu.Lock()
			defer l.mu.Unlock()
			if !maps.Equal(l.rules, all) {
				t.Errorf("%s: %v, want %v", when, l.rules, all)
			}
		}
		keep := func(shares map[string]float64) {
			t.Helper()
			if err := k.Keep(t.Context(), shares, time.Minute); err != nil {
				t.Error(err)
			}
		}
		has("begin", nil)
		keep(map[string]float64{"1": 0.75, "2": 0.25})
		has("two jobs", map[string]Rule{"fw_1": {"1", 750}, "fw_2": {"2", 250}})
		time.Sleep(50 * time.Second)
		keep(map[string]float64{"1": 1})
		has("one has ended", map[string]Rule{"fw_1": {"1", 1000}})
		time.Sleep(50 * time.Second)
		has("renewed 50 s ago", map[string]Rule{"fw_1": {"1", 1000}})
		time.Sleep(20 * time.Second)
		has("nobody renewed it", nil)
		keep(map[string]float64{"3": 0.5, "12[3]": 0.25, "": 0.125, "a b": 0.0625, "*": 0.0625,
			strings.Repeat("7", maxJob+1): 0.0625})
		has("the daemon is back, with jobs that no rule can name", map[string]Rule{"fw_3": {"3", 500}})
		const one, other = "7700001_132789", "7700001_729192" // tasks whose digests are alike
		keep(map[string]float64{"3": 0.5, one: 0.25, other: 0.25})
		has("two tasks whose rules have one name", map[string]Rule{"fw_3": {"3", 500}, ruleName(one): {one, 250}})
		stop()
		<-ended
		has("the agent has ended", nil)
	})
}

// A server that takes commands and does not do them is found when the rules are read back; one that fails is named.
func TestKeeperReadsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lctl{tbf: true, rules: map[string]Rule{"default": {"*", 10000}}}
		deaf := false
		k := NewKeeper(Runner{Server: Server{RPCsPerSec: 1000}, Run: func(ctx context.Context, argv ...string) ([]byte,
			error) {
			if deaf && argv[1] == "set_param" {
				return nil, nil
			}
			return l.run(ctx, argv...)
		}}, nil)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); k.Run(ctx) }()
		synctest.Wait()
		deaf = true
		if err := k.Keep(t.Context(), map[string]float64{"1": 1}, 0); err == nil ||
			!strings.Contains(err.Error(), "still lacks 1") {
			t.Errorf("a server that ignores commands: %v", err)
		}
		deaf, l.fail = false, l.calls+1
		if err := k.Keep(t.Context(), map[string]float64{"1": 1}, 0); err == nil ||
			!strings.Contains(err.Error(), "no such device") {
			t.Errorf("an lctl that fails: %v", err)
		}
		stop()
		<-ended
		if err := k.Keep(ctx, nil, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// Jobs are held to their rules by what the server counted: one that the rule does not hold is named, and so is a job
// whose requests come under an id that no rule takes.
func TestKeeperMeasuresRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lctl{tbf: true, rules: map[string]Rule{"default": {"*", 10000}}, did: map[string]int{}}
		k := NewKeeper(Runner{Server: Server{RPCsPerSec: 1000, Partitions: 2}, Run: l.run}, nil)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); k.Run(ctx) }()
		for i, c := range []struct {
			shares map[string]float64
			did    map[string]int // requests/s before these shares, under those of the line above
			want   string
		}{
			{map[string]float64{"1": 0.75, "2": 0.25}, map[string]int{"1": 750, "2": 250, "3": 5000}, ""},
			{map[string]float64{"1": 0.75, "2": 0.25}, map[string]int{"1": 740, "2": 900}, "job 2 did 900 requests/s"},
			{map[string]float64{"1": 0.75, "2": 0.25}, map[string]int{"2": 700}, "its rule allows 250"},
			{map[string]float64{"1": 0.25, "2": 0.75}, map[string]int{"1": 700}, ""},
			{map[string]float64{"1": 0.25, "2": 0.75}, map[string]int{"2": 700}, ""},
			{map[string]float64{"1": 1}, map[string]int{"1:0:c1": 3}, `come as "1:0:c1"`},
			{map[string]float64{"1": 1}, map[string]int{"1": -2000}, ""},
			{nil, map[string]int{"1": 900}, ""},
			{nil, map[string]int{"1": 5000}, ""},
		} {
			if i == 0 {
				if err := k.Keep(t.Context(), c.shares, 0); err != nil {
					t.Fatal(err)
				}
			}
			for range 11 {
				time.Sleep(time.Second)
				l.mu.Lock()
				for id, n := range c.did {
					l.did[id] = max(0, l.did[id]+n)
				}
				l.mu.Unlock()
			}
			err := k.Keep(t.Context(), c.shares, 0)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%d: %v, want %q", i, err, c.want)
			}
		}
		stop()
		<-ended
	})
}

// Only time under a rule is measured: not what a job did before its first rule, nor after shares expired.
func TestKeeperMeasuresOnlyRuledTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lctl{tbf: true, rules: map[string]Rule{"default": {"*", 10000}}, did: map[string]int{}}
		k := NewKeeper(Runner{Server: Server{RPCsPerSec: 1000}, Run: l.run}, nil)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); k.Run(ctx) }()
		one, both := map[string]float64{"1": 1}, map[string]float64{"1": .5, "2": .5}
		for _, c := range []struct {
			when    string
			shares  map[string]float64
			did     int // requests/s of job 2 in the seconds before these shares
			seconds int
			want    string
		}{
			{"begin", one, 0, 1, ""},
			{"job 2 had no rule so far", both, 5000, 6, ""},
			{"it had none in a part of the span", both, 5000, 6, ""},
			{"a span under its rule", both, 5000, 11, "job 2 did 5000 requests/s in 11 s"},
			{"the shares expired in between", both, 5000, 30, ""},
			{"it is held again", both, 500, 11, ""},
		} {
			for range c.seconds {
				time.Sleep(time.Second)
				l.mu.Lock()
				l.did["2"] += c.did
				l.mu.Unlock()
			}
			synctest.Wait()
			err := k.Keep(t.Context(), c.shares, 20*time.Second)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.when, err, c.want)
			}
		}
		stop()
		<-ended
	})
}
