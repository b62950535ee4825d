package screen

import (
	"context"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
	"fairway/webui/incident"
)

// Backend is what pages read and act with, a method a route of the API. Errors wrap those of webui/api; every call that
// changes something carries its own idempotency key on the wire.
type Backend interface {
	// Watch calls update with every new overview (1 Hz, the newest only for a slow reader) until
	// ctx ends. While the server cannot be reached it calls update with the last overview and an
	// error that wraps ErrUnreachable, and keeps trying. (GET /api/v1/live, topic "overview")
	Watch(ctx context.Context, update func(api.Overview, error))
	Trend(ctx context.Context) (api.Trend, error)                                        // GET /api/v1/trend
	Forwarder(ctx context.Context, id topology.ForwarderID) (api.ForwarderDetail, error) // GET /api/v1/forwarders/{id}
	Plans(ctx context.Context) ([]api.PlanRow, error)                                    // GET /api/v1/plans
	Plan(ctx context.Context, id string) (api.PlanView, error)                           // GET /api/v1/plans/{id}

	Propose(ctx context.Context, m api.ManualRemap) (api.PlanView, error) // POST /api/v1/plans
	// Approve fails with ErrChanged when the preview behind hash has changed since.
	Approve(ctx context.Context, id, hash, reason string) (api.PlanView, error) // POST /api/v1/plans/{id}/approve
	Reject(ctx context.Context, id, reason string) (api.PlanView, error)        // POST /api/v1/plans/{id}/reject
	RollBack(ctx context.Context, id, reason string) (api.PlanView, error)      // POST /api/v1/plans/{id}/rollback
	// Stop ends an apply after the orders under way.
	Stop(ctx context.Context, id, reason string) (api.PlanView, error) // POST /api/v1/plans/{id}/stop
	LastAct(ctx context.Context) (api.LastAct, error)                  // GET /api/v1/undo
	// Undo fails with ErrChanged when seq is not the caller's last act any more.
	Undo(ctx context.Context, seq uint64) (api.LastAct, error) // POST /api/v1/undo

	// The layer as it was in the second that began at at. (?at= of the live routes)
	OverviewAt(ctx context.Context, at time.Time) (api.Overview, error)
	ForwarderAt(ctx context.Context, id topology.ForwarderID, at time.Time) (api.ForwarderDetail, error)
	// Marks lists what the journal says happened in [from, to), the oldest first. (GET /api/v1/marks)
	Marks(ctx context.Context, from, to time.Time, limit int) ([]remap.Mark, error)
	// Occupancy is how busy the forwarders were in the last span, by buckets, without the single
	// forwarders. (GET /api/v1/occupancy)
	Occupancy(ctx context.Context, span, bucket time.Duration) (api.OccupancyView, error)

	// GET /api/v1/jobs, those that run and those that ended last
	Jobs(ctx context.Context) ([]api.JobRow, error)
	Job(ctx context.Context, id topology.JobID) (api.JobView, error) // GET /api/v1/jobs/{id}
	// JobRuns compares a job with the runs like it, of which the newest limit are listed.
	JobRuns(ctx context.Context, id topology.JobID, limit int) (api.JobRuns, error) // GET /api/v1/jobs/{id}/runs
	Audit(ctx context.Context, q api.AuditQuery) ([]api.AuditEntry, error)          // GET /api/v1/audit, newest first

	Finding(ctx context.Context, id string) (api.FindingView, error) // GET /api/v1/findings/{id}
	// GET /api/v1/findings/{id}/incident
	Incident(ctx context.Context, id string, standIns bool) (*incident.Incident, error)
	Acknowledge(ctx context.Context, id, reason string) (anomaly.Finding, error) // POST /api/v1/findings/{id}/ack
	Dismiss(ctx context.Context, id, reason string) (anomaly.Finding, error)     // POST /api/v1/findings/{id}/dismiss
	// Note writes about a finding, and about which moment of it; zero: now. (POST /api/v1/findings/{id}/notes)
	Note(ctx context.Context, id, text string, about time.Time) (anomaly.Finding, error)
	// Silence keeps a finding from calling anybody for so long; 0 ends that.
	// POST /api/v1/findings/{id}/silence
	Silence(ctx context.Context, id string, long time.Duration, reason string) (anomaly.Finding, error)

	// Nobody is moved by excluding a forwarder.
	// PUT /api/v1/exclusions/{node}
	Exclude(ctx context.Context, f topology.ForwarderID, ttl time.Duration, reason string) (remap.Exclusion, error)
	// DELETE /api/v1/exclusions/{node}
	Return(ctx context.Context, f topology.ForwarderID, reason string) (remap.Feed, error)

	// Canary sends one canary and waits for what it finds. ErrConflict: the limits stand against it, or
	// no way to the forwarder is known.
	Canary(ctx context.Context, f topology.ForwarderID) (anomaly.Canary, error) // POST /api/v1/forwarders/{id}/canary

	// GET /api/v1/jobs/{id}/rootcause
	Cause(ctx context.Context, id topology.JobID) (api.JobCause, error)
	// GET /api/v1/archive/low-bandwidth; op is read or write
	SlowJobs(ctx context.Context, op string, all bool) ([]api.SlowJob, error)
	Shares(ctx context.Context, policy string, on topology.ForwarderID) (api.SharesView, error) // GET /api/v1/shares
	// GET /api/v1/periodic; set is JSON
	Pattern(ctx context.Context, set string) (api.PatternView, error)
	// GET /api/v1/jobs/{id}/domains
	Domains(ctx context.Context, id topology.JobID, q api.DomainsQuery) (api.DomainsView, error)

	// SignInLink makes an address that signs the caller in at the browser, once; by the unix socket only.
	SignInLink(ctx context.Context) (api.SignInLink, error)
}
