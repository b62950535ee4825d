package console

import (
	"context"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/webui/api"
)

// askTimeout bounds every request a page makes, but that for a canary: it is answered when the
// canary is, which may be as slow as the longest probe.timeout.
const (
	askTimeout    = 10 * time.Second
	canaryTimeout = 70 * time.Second
)

// asker turns calls of the Backend into commands whose answers say which request they were.
type asker struct {
	ctx     context.Context
	backend Backend
	now     func() time.Time
}

// logged is an answer of any kind.
type logged interface{ request() Request }

// answer is what came back from one request.
type answer[T any] struct {
	req   Request
	value T
}

func (a answer[T]) request() Request { return a.req }

func ask[T any](k *asker, call string, f func(context.Context) (T, error)) tea.Cmd {
	return askWithin(k, askTimeout, call, f)
}

func askWithin[T any](k *asker, within time.Duration, call string, f func(context.Context) (T, error)) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(k.ctx, within)
		defer cancel()
		start := k.now()
		v, err := f(ctx)
		return answer[T]{Request{At: start, Call: call, Took: k.now().Sub(start), Err: err}, v}
	}
}

func (k *asker) forwarder(id topology.ForwarderID) tea.Cmd {
	return ask(k, "forwarder "+string(id),
		func(ctx context.Context) (api.ForwarderDetail, error) { return k.backend.Forwarder(ctx, id) })
}

func (k *asker) canary(id topology.ForwarderID) tea.Cmd {
	return askWithin(k, canaryTimeout, "canary through "+string(id),
		func(ctx context.Context) (anomaly.Canary, error) { return k.backend.Canary(ctx, id) })
}

func (k *asker) plans() tea.Cmd {
	return ask(k, "plans", func(ctx context.Context) ([]api.PlanRow, error) { return k.backend.Plans(ctx) })
}

func (k *asker) past(at time.Time) tea.Cmd {
	get := ask(k, "overview at "+at.UTC().Format(time.RFC3339),
		func(ctx context.Context) (api.Overview, error) { return k.backend.OverviewAt(ctx, at) })
	return func() tea.Msg { return pastMsg{get().(answer[api.Overview]), at} }
}

func (k *asker) forwarderAt(id topology.ForwarderID, at time.Time) tea.Cmd {
	return ask(k, "forwarder "+string(id)+" at "+at.UTC().Format(time.RFC3339),
		func(ctx context.Context) (api.ForwarderDetail, error) { return k.backend.ForwarderAt(ctx, id, at) })
}

func (k *asker) jobs() tea.Cmd {
	return ask(k, "jobs", func(ctx context.Context) ([]api.JobRow, error) { return k.backend.Jobs(ctx) })
}

func (k *asker) job(id topology.JobID) tea.Cmd {
	return ask(k, "job "+string(id), func(ctx context.Context) (api.JobView, error) { return k.backend.Job(ctx, id) })
}

func (k *asker) plan(id string) tea.Cmd {
	return ask(k, "plan "+id, func(ctx context.Context) (api.PlanView, error) { return k.backend.Plan(ctx, id) })
}

// decided is the answer to something that was asked to change.
type decided struct{ api.PlanView }

func (k *asker) decide(call string, f func(context.Context) (api.PlanView, error)) tea.Cmd {
	return ask(k, call, func(ctx context.Context) (decided, error) {
		v, err := f(ctx)
		return decided{v}, err
	})
}

func (k *asker) propose(m api.ManualRemap) tea.Cmd {
	return k.decide("propose remap to "+string(m.To),
		func(ctx context.Context) (api.PlanView, error) { return k.backend.Propose(ctx, m) })
}

func (k *asker) approve(id, hash, reason string) tea.Cmd {
	return k.decide("approve "+id, func(ctx context.Context) (api.PlanView, error) {
		return k.backend.Approve(ctx, id, hash,
			reason)
	})
}

func (k *asker) reject(id, reason string) tea.Cmd {
	return k.decide("reject "+id, func(ctx context.Context) (api.PlanView,
		error) {
		return k.backend.Reject(ctx, id, reason)
	})
}

func (k *asker) rollBack(id, reason string) tea.Cmd {
	return k.decide("roll back "+id, func(ctx context.Context) (api.PlanView,
		error) {
		return k.backend.RollBack(ctx, id, reason)
	})
}

func (k *asker) stop(id string) tea.Cmd {
	return k.decide("stop "+id, func(ctx context.Context) (api.PlanView, error) {
		return k.backend.Stop(ctx, id, "stopped from the terminal")
	})
}

// log keeps the newest requests.
func (s *State) log(r Request) {
	s.Requests = append(s.Requests, r)
	if over := len(s.Requests) - maxRequests; over > 0 {
		s.Requests = append(s.Requests[:0], s.Requests[over:]...)
	}
}
