// Package clienttest serves a consoletest.Fake over the API's routes, so that the client and the
// programs on top of it can be tested without a machine, with a key for every write.
package clienttest

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"fairway/collector/topology"
	"fairway/console/consoletest"
	"fairway/tsdb/history/iolog"
	"fairway/webui/api"
)

// Handler answers like the daemon, out of a fake.
type Handler struct {
	http.Handler
	fake *consoletest.Fake

	mu   sync.Mutex
	keys []string // guarded by mu
}

// Keys are the idempotency keys of the writes that arrived.
func (h *Handler) Keys() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.keys...)
}

// NewHandler serves fake. Its live feeds end with ctx.
func NewHandler(ctx context.Context, fake *consoletest.Fake) *Handler {
	mux := http.NewServeMux()
	h := &Handler{Handler: mux, fake: fake}
	read(mux, "GET /api/v1/overview", func(r *http.Request) (any, error) { return fake.Overview(r.Context()) })
	read(mux, "GET /api/v1/forwarders/{id}", func(r *http.Request) (any, error) {
		return fake.Forwarder(r.Context(), topology.ForwarderID(r.PathValue("id")))
	})
	read(mux, "GET /api/v1/jobs", func(r *http.Request) (any, error) { return fake.Jobs(r.Context()) })
	read(mux, "GET /api/v1/jobs/{id}", func(r *http.Request) (any, error) {
		return fake.Job(r.Context(), topology.JobID(r.PathValue("id")))
	})
	read(mux, "GET /api/v1/jobs/{id}/runs", func(r *http.Request) (any, error) {
		return fake.JobRuns(r.Context(), topology.JobID(r.PathValue("id")), 0)
	})
	read(mux, "GET /api/v1/occupancy", func(r *http.Request) (any, error) {
		span, _ := time.ParseDuration(strings.TrimPrefix(r.URL.Query().Get("from"), "-"))
		bucket, _ := time.ParseDuration(r.URL.Query().Get("bucket"))
		return fake.Occupancy(r.Context(), span, bucket)
	})
	read(mux, "GET /api/v1/marks", func(r *http.Request) (any, error) {
		from, _ := time.Parse(time.RFC3339, r.URL.Query().Get("from"))
		to, _ := time.Parse(time.RFC3339, r.URL.Query().Get("to"))
		return fake.Marks(r.Context(), from, to, 0)
	})
	read(mux, "GET /api/v1/audit", func(r *http.Request) (any, error) {
		v := r.URL.Query()
		return fake.Audit(r.Context(), api.AuditQuery{Actor: v.Get("actor"), Subject: v.Get("subject"),
			From: v.Get("from"), To: v.Get("to")})
	})
	read(mux, "GET /api/v1/plans", func(r *http.Request) (any, error) { return fake.Plans(r.Context()) })
	read(mux, "GET /api/v1/plans/{id}", func(r *http.Request) (any,
		error) {
		return fake.Plan(r.Context(), r.PathValue("id"))
	})
	write(h, mux, "POST /api/v1/plans", func(r *http.Request, m api.ManualRemap) (any,
		error) {
		return fake.Propose(r.Context(), m)
	})
	write(h, mux, "POST /api/v1/plans/{id}/approve", func(r *http.Request, d api.Decision) (any, error) {
		return fake.Approve(r.Context(), r.PathValue("id"), d.PreviewHash, d.Reason)
	})
	write(h, mux, "POST /api/v1/plans/{id}/reject", func(r *http.Request, d api.Decision) (any, error) {
		return fake.Reject(r.Context(), r.PathValue("id"), d.Reason)
	})
	write(h, mux, "POST /api/v1/plans/{id}/rollback", func(r *http.Request, d api.Decision) (any, error) {
		return fake.RollBack(r.Context(), r.PathValue("id"), d.Reason)
	})
	write(h, mux, "POST /api/v1/plans/{id}/stop", func(r *http.Request, d api.Decision) (any, error) {
		return fake.Stop(r.Context(), r.PathValue("id"), d.Reason)
	})
	h.findings(mux)
	explanations(mux, fake)
	mux.HandleFunc("GET /api/v1/live", func(w http.ResponseWriter, r *http.Request) { h.live(ctx, w, r) })
	return h
}

// findings are the routes about findings and exclusions.
func (h *Handler) findings(mux *http.ServeMux) {
	fake := h.fake
	read(mux, "GET /api/v1/findings", func(r *http.Request) (any, error) { return fake.Findings(r.Context()) })
	read(mux, "GET /api/v1/findings/{id}",
		func(r *http.Request) (any, error) { return fake.Finding(r.Context(), r.PathValue("id")) })
	write(h, mux, "POST /api/v1/findings/{id}/ack", func(r *http.Request, d api.Decision) (any, error) {
		return fake.Acknowledge(r.Context(), r.PathValue("id"), d.Reason)
	})
	write(h, mux, "POST /api/v1/findings/{id}/silence", func(r *http.Request, d api.Silence) (any, error) {
		long, err := time.ParseDuration(d.For)
		if err != nil {
			return nil, err
		}
		return fake.Silence(r.Context(), r.PathValue("id"), long, d.Reason)
	})
	write(h, mux, "POST /api/v1/findings/{id}/dismiss", func(r *http.Request, d api.Decision) (any, error) {
		return fake.Dismiss(r.Context(), r.PathValue("id"), d.Reason)
	})
	write(h, mux, "POST /api/v1/forwarders/{id}/canary", func(r *http.Request, _ api.Decision) (any, error) {
		return fake.Canary(r.Context(), topology.ForwarderID(r.PathValue("id")))
	})
	read(mux, "GET /api/v1/exclusions", func(r *http.Request) (any, error) { return fake.Exclusions(r.Context()) })
	write(h, mux, "PUT /api/v1/exclusions/{node}", func(r *http.Request, e api.Exclude) (any, error) {
		ttl, err := time.ParseDuration(e.TTL)
		if err != nil {
			return nil, err
		}
		return fake.Exclude(r.Context(), topology.ForwarderID(r.PathValue("node")), ttl, e.Reason)
	})
	write(h, mux, "DELETE /api/v1/exclusions/{node}", func(r *http.Request, _ any) (any, error) {
		return fake.Return(r.Context(), topology.ForwarderID(r.PathValue("node")), r.URL.Query().Get("reason"))
	})
}

// explanations are the routes of the archive and of the policies.
func explanations(mux *http.ServeMux, fake *consoletest.Fake) {
	read(mux, "GET /api/v1/jobs/{id}/rootcause", func(r *http.Request) (any, error) {
		return fake.Cause(r.Context(), topology.JobID(r.PathValue("id")))
	})
	read(mux, "GET /api/v1/jobs/{id}/domains", func(r *http.Request) (any, error) {
		q, err := api.ParseDomainsQuery(r.URL.Query())
		if err != nil {
			return nil, err
		}
		return fake.Domains(r.Context(), topology.JobID(r.PathValue("id")), q)
	})
	read(mux, "GET /api/v1/archive/low-bandwidth", func(r *http.Request) (any, error) {
		q := r.URL.Query()
		jobs, err := fake.SlowJobs(r.Context(), q.Get("op"), q.Has("min_procs"))
		res := iolog.Result{Columns: []string{"job_id", "app", "procs", "bytes", "bytes_per_sec", "small", "osts"}}
		for _, j := range jobs {
			res.Rows = append(res.Rows, []any{j.Job, j.App, j.Procs, j.Bytes, j.BytesPerSec, j.Small, j.OSTs})
		}
		return res, err
	})
	read(mux, "GET /api/v1/shares", func(r *http.Request) (any, error) {
		return fake.Shares(r.Context(), r.URL.Query().Get("policy"),
			topology.ForwarderID(r.URL.Query().Get("forwarder")))
	})
	read(mux, "GET /api/v1/periodic", func(r *http.Request) (any,
		error) {
		return fake.Pattern(r.Context(), r.URL.Query().Get("set"))
	})
}

func read(mux *http.ServeMux, route string, f func(*http.Request) (any, error)) {
	mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
		v, err := f(r)
		answer(w, r, v, err)
	})
}

func write[T any](h *Handler, mux *http.ServeMux, route string, f func(*http.Request, T) (any, error)) {
	mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.keys = append(h.keys, r.Header.Get("Idempotency-Key"))
		h.mu.Unlock()
		var body T
		err := json.NewDecoder(r.Body).Decode(&body)
		var v any
		if err == nil {
			v, err = f(r, body)
		}
		answer(w, r, v, err)
	})
}

func answer(w http.ResponseWriter, r *http.Request, v any, err error) {
	if err != nil {
		api.WriteProblem(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client is gone: nobody is left to read it
}

// live sends each new overview, and a beat in every second without one.
func (h *Handler) live(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	up := websocket.Upgrader{}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var reader sync.WaitGroup
	reader.Go(func() { // sees the client go
		defer cancel()
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				return
			}
		}
	})
	messages := make(chan api.LiveMessage)
	var watch sync.WaitGroup
	watch.Go(func() {
		h.fake.Watch(ctx, func(o api.Overview, err error) {
			if err != nil {
				cancel()
				return
			}
			select {
			case messages <- api.LiveMessage{Topic: "overview", Now: o.SentAt, Overview: &o}:
			case <-ctx.Done():
			}
		})
	})
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	for ctx.Err() == nil {
		m := api.LiveMessage{Topic: "beat"}
		select {
		case <-ctx.Done():
			continue
		case m = <-messages:
		case <-beat.C:
		}
		if conn.WriteJSON(m) != nil {
			cancel()
		}
	}
	conn.Close()
	watch.Wait()
	reader.Wait()
}
