package tbf

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
)

// Keeper holds the jobs of the server that it runs on to the shares that it was given last. A rule is a ceiling that
// outlives whoever made it, so a keeper that hears nothing for as long as its shares hold takes its rules away, and so
// it does when it begins and ends: jobs that nobody watches are not held back.
type Keeper struct {
	Runner
	Log *slog.Logger

	given chan given
	held  ceilings // Run owns it, and what follows
	// unruled are the jobs whose ids no rule can hold, as they were logged.
	unruled string
}

// given are shares, how long they hold without newer ones, and where the answer goes.
type given struct {
	shares map[string]float64
	hold   time.Duration // 0: for ever
	done   chan error
}

// NewKeeper returns a keeper; Run does the work.
func NewKeeper(r Runner, log *slog.Logger) *Keeper {
	return &Keeper{Runner: r, Log: log, given: make(chan given)}
}

// Keep makes the shares true, and reads back that they are; hold is for how long without newer ones, 0 for ever.
func (k *Keeper) Keep(ctx context.Context, shares map[string]float64, hold time.Duration) error {
	g := given{shares, hold, make(chan error, 1)}
	select {
	case k.given <- g:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-g.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// freeWithin bounds the last commands of a keeper that ends.
const freeWithin = 30 * time.Second

// Run keeps shares until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	k.free(ctx, "a new agent has no shares yet")
	expired := time.NewTimer(0)
	expired.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), freeWithin)
			k.free(last, "the agent ends")
			cancel()
			return
		case <-expired.C:
			k.free(ctx, "no newer shares came")
		case g := <-k.given:
			expired.Stop()
			if g.hold > 0 {
				expired.Reset(g.hold)
			}
			g.done <- k.keep(ctx, g.shares)
		}
	}
}

// keep applies shares and looks whether the server has them then, and from time to time whether jobs keep to them.
// A job that a rule cannot name, such as a task of PBS's arrays, or not apart from another one, costs nobody else's
// share: it has no rule.
func (k *Keeper) keep(ctx context.Context, shares map[string]float64) error {
	shares = maps.Clone(shares)
	unruled, taken := "", map[string]bool{}
	for _, job := range slices.Sorted(maps.Keys(shares)) {
		if name := ruleName(job); holds(job) && !taken[name] {
			taken[name] = true
		} else {
			delete(shares, job)
			unruled = strings.TrimSpace(fmt.Sprintf("%s %q", unruled, job))
		}
	}
	if unruled != k.unruled && unruled != "" && k.Log != nil {
		k.Log.Warn("token bucket filter: jobs without a rule, which cannot hold their ids", "jobs", unruled)
	}
	k.unruled = unruled
	done, err := k.Apply(ctx, shares)
	if len(done) > 0 && k.Log != nil {
		k.Log.Info("token bucket filter: shares", "jobs", len(shares), "commands", len(done))
	}
	if err != nil {
		return err
	}
	if len(done) > 0 {
		left, err := k.Preview(ctx, shares)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("the server took %d commands and still lacks %d, the first: %q", len(done), len(left),
				left[0])
		}
		if err != nil {
			return err
		}
	}
	return k.measure(ctx, shares)
}

// measure looks whether jobs keep to the rules since the last time.
func (k *Keeper) measure(ctx context.Context, shares map[string]float64) error {
	rules, err := k.Server.Rates(shares)
	if err != nil {
		return err
	}
	defer func() { k.held.allow(rules) }()
	if now := time.Now(); k.held.due(now) {
		requests, err := k.Requests(ctx)
		if err != nil {
			return fmt.Errorf("what jobs did is not known: %w", err)
		}
		return k.held.measure(now, requests, k.Server)
	}
	return nil
}

// free takes the rules away. Where that fails the next shares, or the next start, do it. What jobs do from then on is
// held to nothing.
func (k *Keeper) free(ctx context.Context, why string) {
	k.held = ceilings{}
	done, err := k.Apply(ctx, nil)
	if k.Log == nil || len(done) == 0 && (err == nil || errors.Is(err, context.Canceled)) {
		return
	}
	if err != nil {
		k.Log.Warn("token bucket filter: rules of ours may be left", "because", why, "err", err)
		return
	}
	k.Log.Info("token bucket filter: no shares", "because", why, "commands", len(done))
}
