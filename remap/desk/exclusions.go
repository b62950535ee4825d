package desk

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"fairway/collector/appendlog"
	"fairway/collector/pace"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

// exclusionTable is the state of exclusions.
type exclusionTable struct {
	of         map[topology.ForwarderID]remap.Exclusion
	planned    map[topology.ForwarderID]remap.Exclusion // maintenance to come
	generation uint64
}

func newExclusionTable() exclusionTable {
	return exclusionTable{of: map[topology.ForwarderID]remap.Exclusion{},
		planned: map[topology.ForwarderID]remap.Exclusion{}}
}

// check says why a record does not follow from the state and a draft of the batch before it.
func (x *exclusionTable) check(r *journal.Record, d *draft) error {
	if r.Exclusion == nil {
		return fmt.Errorf("%s without an exclusion", r.Kind)
	}
	f := r.Exclusion.Forwarder
	excluded, drafted := d.excluded[f]
	if !drafted {
		if _, excluded = x.of[f]; !excluded {
			_, excluded = x.planned[f]
		}
	}
	if r.Kind == journal.StepReturn && !excluded {
		return fmt.Errorf("%s is returned and was not excluded", f)
	}
	return nil
}

// take makes a checked record part of the state.
func (x *exclusionTable) take(r *journal.Record) {
	x.generation++
	f := r.Exclusion.Forwarder
	switch r.Kind {
	case journal.StepMaintenance:
		x.planned[f] = *r.Exclusion
	case journal.StepReturn:
		// What is in force ends first; what is planned stays then.
		if _, inForce := x.of[f]; inForce {
			delete(x.of, f)
		} else {
			delete(x.planned, f)
		}
	default:
		x.of[f] = *r.Exclusion
		if p, ok := x.planned[f]; ok && p.Since.Equal(r.Exclusion.Since) {
			delete(x.planned, f)
		}
	}
}

// exclusions are the forwarders that are excluded from allocation, and the feed that allocators read.
type exclusions struct {
	cfg  *Config
	rec  *recorder
	feed atomic.Pointer[remap.Feed] // without a lease
}

// Feed returns the exclusions in force, on a lease from now.
func (d *exclusions) Feed() remap.Feed {
	f := *d.feed.Load()
	if d.cfg.Drain != nil {
		f.Exclusions = slices.Clone(f.Exclusions)
		for i := range f.Exclusions {
			f.Exclusions[i].Drain = d.cfg.Drain(f.Exclusions[i].Forwarder)
		}
	}
	f.ValidUntil = time.Now().UTC().Add(d.cfg.Settings.FeedLease)
	return f
}

// Excluded returns the forwarders that are excluded and why.
func (d *exclusions) Excluded() map[topology.ForwarderID]string {
	out := map[topology.ForwarderID]string{}
	for _, e := range d.feed.Load().Exclusions {
		out[e.Forwarder] = e.Words()
	}
	return out
}

func (d *exclusions) publish() {
	x := &d.rec.state.exclusions
	byName := func(a, b remap.Exclusion) int { return cmp.Compare(a.Forwarder, b.Forwarder) }
	f := remap.Feed{Generation: x.generation, Exclusions: slices.AppendSeq([]remap.Exclusion{}, maps.Values(x.of)),
		Planned: slices.SortedFunc(maps.Values(x.planned), byName)}
	slices.SortFunc(f.Exclusions, byName)
	d.feed.Store(&f)
}

// Exclude keeps a forwarder out of allocation for ttl, or renews its lease. It moves nobody.
// Errors: ErrNotAllowed, ErrInvalid (forwarder, reason, ttl), ErrState when too few forwarders
// would be left, ErrConflict.
func (d *exclusions) Exclude(ctx context.Context, by remap.Person, f topology.ForwarderID, ttl time.Duration,
	a remap.Answer) (remap.Exclusion, error) {
	return d.keepOut(ctx, by, remap.Exclusion{Forwarder: f}, ttl, a)
}

// Maintain excludes a forwarder that is worked on, now (from is zero) or at a time to come. Errors: those of Exclude.
func (d *exclusions) Maintain(ctx context.Context, by remap.Person, f topology.ForwarderID, from time.Time,
	ttl time.Duration, a remap.Answer) (remap.Exclusion, error) {
	if ahead := time.Until(from); !from.IsZero() && ahead > remap.MaxAhead {
		return remap.Exclusion{}, fmt.Errorf("%w: maintenance from %s: want within %s", remap.ErrInvalid,
			from.UTC().Format(time.RFC3339), remap.MaxAhead)
	}
	return d.keepOut(ctx, by, remap.Exclusion{Forwarder: f, Since: from.UTC(), Maintenance: true}, ttl, a)
}

// keepOut is Exclude and Maintain.
func (d *exclusions) keepOut(ctx context.Context, by remap.Person, e remap.Exclusion, ttl time.Duration,
	a remap.Answer) (remap.Exclusion, error) {
	f := e.Forwarder
	if err := by.May(remap.Operator, "excluding a forwarder"); err != nil {
		return remap.Exclusion{}, err
	}
	if err := remap.ActExclude.CheckReason(a.Reason); err != nil {
		return remap.Exclusion{}, err
	}
	if ttl < time.Second || ttl > remap.MaxExclusion {
		return remap.Exclusion{}, fmt.Errorf("%w: a lease of %s: want 1s to %s", remap.ErrInvalid, ttl,
			remap.MaxExclusion)
	}
	s := d.cfg.Situation()
	if !s.IsForwarder(f) {
		return remap.Exclusion{}, fmt.Errorf("%w: %q is not a forwarding node of %s", remap.ErrInvalid, f,
			s.Machine.Name)
	}
	var out remap.Exclusion
	body := digest("exclude "+string(f), []any{ttl, a.Reason})
	if e.Maintenance {
		body = digest("maintain "+string(f), []any{e.Since, ttl, a.Reason})
	}
	err := d.rec.do(ctx, func() error {
		_, again, err := d.rec.state.keys.used(by, a.Key, body)
		now := time.Now().UTC()
		later := e.Since.After(now)
		table := &d.rec.state.exclusions
		old, renewed := table.of[f]
		if later {
			old, renewed = table.planned[f]
		}
		if err != nil || again {
			out = old
			return err
		}
		if !renewed {
			if err := mayExclude(f, d.rec.state.exclusions.of, s, &d.cfg.Settings); err != nil {
				return err
			}
		}
		out = remap.Exclusion{Forwarder: f, Reason: a.Reason, By: by.Name, Since: now, Until: now.Add(ttl),
			Maintenance: e.Maintenance}
		kind := journal.StepExclude
		switch {
		case later:
			kind, out.Since, out.Until = journal.StepMaintenance, e.Since, e.Since.Add(ttl)
		case renewed:
			out.Since = old.Since
		}
		return d.rec.recordFor(by, a, body, &journal.Record{At: now, Kind: kind, Exclusion: &out})
	})
	return out, err
}

// pool counts what an exclusion is checked against: all forwarders, those excluded, and the healthy ones that
// are not. The newest exclusions count though the situation may not have them yet.
type pool struct {
	all, excluded int
	healthy       map[topology.ForwarderID]bool
}

func newPool(s *remap.Situation, out map[topology.ForwarderID]remap.Exclusion) pool {
	p := pool{excluded: len(out), healthy: map[topology.ForwarderID]bool{}}
	for _, id := range s.Index.Forwarders() {
		p.all++
		if _, gone := out[id]; !gone && s.State(id).Healthy() {
			p.healthy[id] = true
		}
	}
	return p
}

// refuses says why one more forwarder may not be excluded, whoever asks; empty: it may.
func (p pool) refuses(f topology.ForwarderID, set *Settings) string {
	left := len(p.healthy)
	if p.healthy[f] {
		left--
	}
	if left < set.HealthyFloor {
		return fmt.Sprintf("without %s %d healthy forwarders would be left, the floor is %d", f, left, set.HealthyFloor)
	}
	if n, most := p.excluded+1, set.mostExcluded(p.all); n > most {
		return fmt.Sprintf("%d of %d forwarders would be excluded, at most %d may be (desk.max_excluded is %.0f%%)", n,
			p.all, most, 100*set.MaxExcluded)
	}
	return ""
}

// mayExclude says why one more forwarder may not be excluded; nil: it may.
func mayExclude(f topology.ForwarderID, out map[topology.ForwarderID]remap.Exclusion, s *remap.Situation,
	set *Settings) error {
	if why := newPool(s, out).refuses(f, set); why != "" {
		return fmt.Errorf("%w: %s", remap.ErrState, why)
	}
	return nil
}

// ForwarderOptions returns what a person may do with each forwarder of a situation. canary says why no canary can
// be sent through a forwarder; empty: one can.
func (d *exclusions) ForwarderOptions(by remap.Person, s *remap.Situation,
	canary func(topology.ForwarderID) string) func(topology.ForwarderID) remap.Options {
	out := map[topology.ForwarderID]remap.Exclusion{}
	for _, e := range d.feed.Load().Exclusions {
		out[e.Forwarder] = e
	}
	p := newPool(s, out)
	return func(f topology.ForwarderID) remap.Options {
		_, excluded := out[f]
		return remap.ForwarderOptions(by, excluded,
			map[remap.Action]string{remap.ActExclude: p.refuses(f, &d.cfg.Settings),
				remap.ActCanary: canary(f)})
	}
}

// mostExcluded is how many of so many forwarders may be excluded: a share of less than one is one.
func (s *Settings) mostExcluded(forwarders int) int {
	if s.MaxExcluded == 0 {
		return 0
	}
	return max(1, int(s.MaxExcluded*float64(forwarders)))
}

// Return takes a forwarder back into allocation. Errors: ErrNotAllowed, ErrInvalid (reason), ErrNotFound when it is not
// excluded, ErrConflict.
func (d *exclusions) Return(ctx context.Context, by remap.Person, f topology.ForwarderID, a remap.Answer) error {
	if err := by.May(remap.Operator, "returning a forwarder"); err != nil {
		return err
	}
	if err := remap.ActReturn.CheckReason(a.Reason); err != nil {
		return err
	}
	body := digest("return "+string(f), a.Reason)
	return d.rec.do(ctx, func() error {
		if _, again, err := d.rec.state.keys.used(by, a.Key, body); err != nil || again {
			return err
		}
		e, ok := d.rec.state.exclusions.of[f]
		if !ok { // maintenance to come is called off
			e, ok = d.rec.state.exclusions.planned[f]
		}
		if !ok {
			return fmt.Errorf("exclusion of %q: %w", f, remap.ErrNotFound)
		}
		return d.rec.recordFor(by, a, body, &journal.Record{Kind: journal.StepReturn, Exclusion: &e})
	})
}

// leaseAgain is for how long a lease is renewed that ends while its forwarder is accused.
const leaseAgain = time.Hour

// keepLeases begins the maintenance whose time has come and returns the forwarders whose lease is over, but for those
// that are accused meanwhile.
func (d *exclusions) keepLeases(now time.Time) {
	for _, e := range d.feed.Load().Planned {
		if !now.Before(e.Since) {
			_ = d.rec.record(&journal.Record{At: now.UTC(), Kind: journal.StepExclude, Reason: "its maintenance begins",
				Exclusion: &e})
		}
	}
	for _, e := range d.feed.Load().Exclusions {
		if now.Before(e.Until) {
			continue
		}
		if g, accused := d.rec.state.findings.accuses(e.Forwarder); accused {
			e.Until = now.UTC().Add(leaseAgain)
			_ = d.rec.record(&journal.Record{At: now.UTC(), Kind: journal.StepExclude, Exclusion: &e,
				Reason: "its lease ended, and it is kept out for " + inWords(leaseAgain) + " more: " +
					remap.Accusation(g)})
		} else {
			_ = d.rec.record(&journal.Record{At: now.UTC(), Kind: journal.StepReturn, Reason: "its lease ended",
				Exclusion: &e})
		}
	}
}

// AwaitFeed returns the feed once its generation is another one than that, or at the latest when
// half of its lease is over: then with a newer lease. It fails only with ctx or a closed desk.
func (d *exclusions) AwaitFeed(ctx context.Context, generation uint64) (remap.Feed, error) {
	changed, stop := d.rec.Watch(16)
	defer stop()
	enough := time.NewTimer(d.cfg.Settings.FeedLease / 2)
	defer enough.Stop()
	for {
		if f := d.Feed(); f.Generation != generation {
			return f, nil
		}
		select {
		case _, open := <-changed:
			if !open {
				return remap.Feed{}, fmt.Errorf("exclusions: %w", remap.ErrClosed)
			}
		case <-enough.C:
			return d.Feed(), nil
		case <-ctx.Done():
			return remap.Feed{}, ctx.Err()
		}
	}
}

// KeepFeedFile writes the feed to path whenever the list changes and often enough that its lease
// never runs out, until ctx ends. A reader sees the old file or the new one, never a part: each is
// written beside it, forced to disk and renamed. A file that cannot be written is reported and
// tried again; its reader goes by the lease in the one it has.
func (d *exclusions) KeepFeedFile(ctx context.Context, path string, log *slog.Logger) {
	failing, f := false, d.Feed()
	for {
		err := appendlog.WriteNote(path, f, 0o644) // its reader is another user
		switch {
		case err != nil && !failing:
			log.Error("the file of exclusions was not written; its readers fall back when its lease ends", "err", err,
				"valid_until", f.ValidUntil)
		case err == nil && failing:
			log.Info("the file of exclusions is written again", "file", path)
		}
		failing = err != nil
		if f, err = d.AwaitFeed(ctx, f.Generation); err != nil {
			return
		}
		if failing && !pace.Wait(ctx, time.Second) { // a full disk is not helped by haste
			return
		}
	}
}
