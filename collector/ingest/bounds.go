package ingest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

const (
	// DefaultOldest is how old a frame may be: longer than an agent's spool holds by default.
	DefaultOldest = 7 * 24 * time.Hour
	// maxSpread is how far the times of one message may be apart: an agent sends a second's frames together.
	maxSpread = time.Hour
	// slowAppend is how long the store may take for a message before the log says so.
	slowAppend = 5 * time.Second
)

// newestOf returns the newest time of frames that is not in the future.
func newestOf(frames []collector.Frame, now time.Time) (millis int64) {
	last := now.Add(maxAhead).UnixMilli()
	for i := range frames {
		if t := frames[i].TimeMillis; t > millis && t <= last {
			millis = t
		}
	}
	return millis
}

// wrongTime says why a frame's time cannot be taken; empty when it can.
func (h *Hub) wrongTime(f *collector.Frame, newest int64, now time.Time) string {
	at := func() string { return time.UnixMilli(f.TimeMillis).UTC().Format(time.RFC3339) }
	switch {
	case f.TimeMillis < 0 || f.TimeMillis > now.Add(maxAhead).UnixMilli():
		return fmt.Sprintf("node %q says it is %s; its clock is wrong (run chrony or ntpd there)", f.Node, at())
	case h.cfg.Oldest > 0 && f.TimeMillis < now.Add(-h.cfg.Oldest).UnixMilli():
		return fmt.Sprintf(
			"node %q has a frame of %s, more than %s ago; its clock is wrong, or its "+
				"spool is older than that", f.Node, at(), h.cfg.Oldest)
	case f.TimeMillis < newest-maxSpread.Milliseconds():
		return fmt.Sprintf(
			"node %q has a frame of %s in a message with frames of %s; a message's frames are at most %s apart",
			f.Node, at(), time.UnixMilli(newest).UTC().Format(time.RFC3339), maxSpread)
	}
	return ""
}

// unclean returns the first name in a frame with a character that a terminal would obey; empty without one.
func unclean(f *collector.Frame) (name string) {
	bad := func(names ...string) bool {
		i := slices.IndexFunc(names, func(n string) bool { return !topology.CleanName(n) })
		if i >= 0 {
			name = names[i]
		}
		return i >= 0
	}
	if bad(string(f.Node)) ||
		slices.ContainsFunc(f.Jobs, func(j collector.JobSamples) bool {
			return bad(string(j.Job), string(j.Target))
		}) ||
		slices.ContainsFunc(f.Routes, func(r collector.Route) bool {
			return bad(string(r.Client), string(r.Forwarder), r.Address)
		}) ||
		slices.ContainsFunc(f.Sources, func(s collector.SourceStatus) bool { return bad(s.Name) }) ||
		slices.ContainsFunc(f.Targets, func(t collector.TargetSamples) bool { return bad(string(t.Target)) }) {
		return name
	}
	return ""
}

// bind makes a frame one of the role that its node is configured with. Where forwarders are configured, no other node
// is one.
func (h *Hub) bind(f *collector.Frame) {
	if role, known := h.cfg.Roles[f.Node]; known {
		f.Role = role
	} else if f.Role == topology.Forwarder && h.forwarders {
		f.Role = topology.RoleUnknown
	}
}

// ownRoutes takes out the routes that a frame's node cannot know, and counts them: a forwarder lists its own clients,
// any other node has its own route.
func ownRoutes(f *collector.Frame) int {
	if f.Role != topology.Forwarder {
		f.RoutesComplete = false
	}
	had := len(f.Routes)
	f.Routes = slices.DeleteFunc(f.Routes, func(r collector.Route) bool {
		if f.Role == topology.Forwarder {
			return r.Forwarder.Node() != f.Node
		}
		return r.Client != f.Node
	})
	return had - len(f.Routes)
}

// appends is what the store has not answered yet.
type appends struct {
	waiting atomic.Int64
	// since is when the first of those came that wait now, or when the newest answer came; Unix nanoseconds.
	since atomic.Int64
	slow  atomic.Uint64
}

// watch begins an append; what it returns ends it. One that takes long is logged while it does.
func (q *intake) watch(frames int) (done func(err error)) {
	a := &q.appends
	if a.waiting.Add(1) == 1 {
		a.since.Store(time.Now().UnixNano())
	}
	begun := time.Now()
	line := time.AfterFunc(slowAppend, func() {
		a.slow.Add(1)
		q.cfg.Log.Warn("the store is slow: a message has not been made durable yet; agents keep theirs meanwhile",
			"waiting_for", slowAppend, "frames", frames, "messages_waiting", a.waiting.Load())
	})
	return func(err error) {
		if !line.Stop() {
			q.cfg.Log.Warn("the slow message was answered", "took", time.Since(begun).Round(time.Millisecond), "err",
				err)
		}
		if err == nil {
			a.since.Store(time.Now().UnixNano())
		}
		a.waiting.Add(-1)
	}
}

// Stalled is how long messages have been waiting for the store without any being made durable; 0 when none waits.
func (q *intake) Stalled() time.Duration {
	if q.appends.waiting.Load() == 0 {
		return 0
	}
	return max(time.Since(time.Unix(0, q.appends.since.Load())), 0)
}

// enterer is a store that takes frames before they are durable (engine.DB).
type enterer interface {
	Enter(ctx context.Context, frames []collector.Frame) (durable func(context.Context) error, err error)
}

// keep has the store keep frames. Those of one token enter one message at a time: a message of another one waits for at
// most one of each, and not for all that a flood has under way.
func (p *sender) keep(ctx context.Context, store Appender, frames []collector.Frame) error {
	e, ok := store.(enterer)
	if !ok {
		return store.Append(ctx, frames)
	}
	select {
	case p.entering <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	durable, err := e.Enter(ctx, frames)
	<-p.entering
	if err != nil {
		return err
	}
	return durable(ctx)
}

// append has the store keep a token's frames and notes whether it does.
func (q *intake) append(ctx context.Context, p *sender, frames []collector.Frame) error {
	done := q.watch(len(frames))
	err := p.keep(ctx, q.cfg.Store, frames)
	done(err)
	q.keeps(ctx, err)
	return err
}

// keeps notes whether the store keeps what it gets.
func (q *intake) keeps(ctx context.Context, err error) {
	switch {
	case err == nil:
		q.refusing.Store(nil)
	case ctx.Err() == nil: // else it is the sender who went
		q.stats.storeErrors.Add(1)
		q.refusing.Store(&err)
	}
}
