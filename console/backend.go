// Package console is the terminal face: bubbletea pages over a small Backend. The types in this
// file are what both faces show; the HTTP API serves them and webui/client fetches them.
package console

import (
	"context"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
)

// Overview is the newest second of the whole forwarding layer.
type Overview struct {
	Machine string    `json:"machine"`
	At      time.Time `json:"at"` // start of the second shown; zero before the first one
	// SentAt is the server's clock when it sent this (LiveMessage.Now): ages do not depend on the
	// reader's clock. Zero where it is not known.
	SentAt time.Time `json:"-"`
	User   string    `json:"user"`
	Role   string    `json:"role"` // viewer, operator, admin
	// Simulated is true when the frames come from simmachine: every screen then says so.
	Simulated    bool              `json:"simulated"`
	ComputeNodes int               `json:"compute_nodes"`
	Jobs         *int              `json:"jobs,omitempty"` // running now; nil when no batch system is known
	Forwarders   []ForwarderRow    `json:"forwarders"`
	Findings     []anomaly.Finding `json:"findings"`
	Waiting      []PlanRow         `json:"waiting"` // plans that need a person
	// NotKept says, of a past second, what of it is not known and where the rest comes from.
	NotKept []string `json:"not_kept,omitempty"`
}

// ForwarderState is a forwarder's standing.
type ForwarderState = remap.ForwarderState

// The standings of a forwarder, as pages and the API call them.
const (
	StateStale     = remap.ForwarderStale
	StateExcluded  = remap.ForwarderExcluded
	StateSuspect   = remap.ForwarderSuspect
	StateDedicated = remap.ForwarderDedicated
	StateIdle      = remap.ForwarderIdle
	StateOK        = remap.ForwarderOK
)

// ForwarderRow is one forwarder's newest second. A nil pointer is a value that is not known.
type ForwarderRow struct {
	ID               topology.ForwarderID `json:"id"`
	State            remap.ForwarderState `json:"state"`
	Rack             string               `json:"rack,omitempty"`
	LastSeen         time.Time            `json:"last_seen"`
	PeakBytesPerSec  float64              `json:"peak_bytes_per_sec"`
	Occupancy        *float64             `json:"occupancy"` // 0..1, last hour
	ReadBytesPerSec  *float64             `json:"read_bytes_per_sec"`
	WriteBytesPerSec *float64             `json:"write_bytes_per_sec"`
	QueueLen         *float64             `json:"queue_len"`
	MetaWaitSeconds  *float64             `json:"meta_wait_seconds"`
	ServerTime       *float64             `json:"server_time_seconds"`
	MetaOpsPerSec    *float64             `json:"meta_ops_per_sec"`
	ErrorsPerSec     *float64             `json:"errors_per_sec"`
	Clients          int                  `json:"clients"`
	TopJob           topology.JobID       `json:"top_job,omitempty"`
	TopJobShare      *float64             `json:"top_job_share,omitempty"` // 0..1 of bytes
	Plan             string               `json:"plan,omitempty"`          // waiting plan that touches it
}

// ForwarderDetail is one forwarder with its clients and its last minutes.
type ForwarderDetail struct {
	ForwarderRow
	ClientNodes []ClientRow         `json:"client_nodes"`
	Series      map[string][]Point  `json:"series"` // metric name -> last 5 minutes, 1 Hz, gaps absent
	PeersMedian map[string]*float64 `json:"peers_median"`
	// Storage is where the forwarder's requests go.
	Storage StorageView `json:"storage"`
	// Life is what is known of its findings; nil where nobody keeps any.
	Life *ForwarderLife `json:"life,omitempty"`
	// Canary is the newest one; nil where none was sent since the daemon's start, and of the past.
	Canary *remap.Canary `json:"canary,omitempty"`
}

// StorageView is what a forwarder asks of storage in the newest second.
type StorageView struct {
	// By is who counted: StorageByForwarder (its own side of each storage target) or StorageByServers
	// (the shares of its jobs at each storage server); empty where nobody does.
	By   string       `json:"by,omitempty"`
	Rows []StorageRow `json:"rows"` // slower than for the peers first, then the most bytes
	// Unknown says why there are no rows.
	Unknown string `json:"unknown,omitempty"`
}

// Who counted in a StorageView.
const (
	StorageByForwarder = "forwarder"
	StorageByServers   = "servers"
)

// StorageRow is one storage target or server behind a forwarder. A nil pointer is a value that is not
// known.
type StorageRow struct {
	Target           string   `json:"target"`
	RequestsPerSec   *float64 `json:"requests_per_sec"`
	ReadBytesPerSec  *float64 `json:"read_bytes_per_sec"`
	WriteBytesPerSec *float64 `json:"write_bytes_per_sec"`
	// LatencySeconds is the mean time of its requests: as the forwarder sees it from sending to reply or,
	// counted by servers, in the server for all of its clients. PeersLatency is the median of the same
	// over the other forwarders at this target or, by servers, over the other servers.
	LatencySeconds *float64 `json:"latency_seconds"`
	PeersLatency   *float64 `json:"peers_latency_seconds"`
	// Estimated says that the bytes are a job's split as its bytes at its several forwarders are.
	Estimated bool `json:"estimated,omitempty"`
}

// ForwarderLife is a forwarder's findings in short.
type ForwarderLife struct {
	// Steps are those of its open finding, Next what that waits for, NextFrom from when on where that is
	// known; empty without an open one.
	Steps    []anomaly.Step `json:"steps"`
	Next     string         `json:"next,omitempty"`
	NextFrom time.Time      `json:"next_from,omitzero"`
	// Earlier counts its closed findings, Last is the newest of them.
	Earlier int              `json:"earlier"`
	Last    *anomaly.Finding `json:"last,omitempty"`
}

// Point is one second of a series: Unix milliseconds and the value.
type Point struct {
	TimeMillis int64   `json:"t"`
	Value      float64 `json:"v"`
}

// ClientRow is one compute node behind a forwarder.
type ClientRow struct {
	ID               topology.NodeID `json:"id"`
	Job              topology.JobID  `json:"job,omitempty"`
	ReadBytesPerSec  *float64        `json:"read_bytes_per_sec"`
	WriteBytesPerSec *float64        `json:"write_bytes_per_sec"`
	MetaOpsPerSec    *float64        `json:"meta_ops_per_sec"`
	LatencySeconds   *float64        `json:"latency_seconds"` // mean of reads and writes
}

// NodeRow is one node of any layer in a list: its newest second.
type NodeRow struct {
	ID       topology.NodeID      `json:"id"`
	Role     topology.Role        `json:"role"`
	Rack     string               `json:"rack,omitempty"`
	State    remap.ForwarderState `json:"state"` // compute nodes are ok or stale
	LastSeen time.Time            `json:"last_seen"`
	// Forwarder is the observed one of a compute node, Generation the remaps of its mount so far.
	Forwarder  topology.ForwarderID `json:"forwarder,omitempty"`
	Generation uint64               `json:"generation,omitempty"`
	// Lost says that the node's mount gets no answer from that forwarder: it has none now.
	Lost bool `json:"lost,omitempty"`
	// Values are the samples of that second by metric name; what is not known is absent.
	Values map[string]float64 `json:"values"`
}

// NodeView is one node with what its agent says of its own sources.
type NodeView struct {
	NodeRow
	Sources []collector.SourceStatus `json:"sources"`
}

// AuditEntry is one line of the append-only record of who did what.
type AuditEntry struct {
	Seq     uint64    `json:"seq"`
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`          // user, or the policy's name
	From    string    `json:"from,omitempty"` // unix socket, remote address
	Action  string    `json:"action"`         // propose, approve, reject, apply, roll back, ...
	Subject string    `json:"subject"`        // plan or node
	Reason  string    `json:"reason,omitempty"`
	Result  string    `json:"result,omitempty"`
	Hash    string    `json:"hash,omitempty"` // of this line and the one before
}

// AuditQuery says which entries of the audit are wanted; an empty text is any.
type AuditQuery struct {
	Actor   string // a person's or a policy's whole name
	Subject string // a plan, a finding or an excluded forwarder
	// From (inclusive) and To (exclusive) are RFC 3339, or -2h before now.
	From, To string
	Limit    int // at most so many, the newest; 0 is the server's own limit
}

// FindingView is one finding with its life, the oldest change first.
type FindingView struct {
	anomaly.Finding
	Changes []anomaly.Change `json:"changes"`
}

// Exclude asks that a forwarder be withheld from allocation.
type Exclude struct {
	Reason string `json:"reason"`
	TTL    string `json:"ttl"` // how long, such as "4h"
}

// Allow asks that every plan of a policy for an application be approved beforehand.
type Allow struct {
	App    string `json:"app"`
	User   string `json:"user,omitempty"` // empty: of every user
	TTL    string `json:"ttl"`            // how long, such as "720h"
	Reason string `json:"reason"`
}

// SignInLink is an address that signs its first visitor in, once.
type SignInLink struct {
	Address string     `json:"address"`
	Name    string     `json:"name"`
	Role    remap.Role `json:"role"`
	Until   time.Time  `json:"until"`
}

// PlanRow is a plan in a list.
type PlanRow struct {
	ID      string          `json:"id"`
	Title   string          `json:"title"`
	State   remap.PlanState `json:"state"`
	Created time.Time       `json:"created"`
	Expires time.Time       `json:"expires"`
}

// PlanView is one plan with its preview, checks and progress.
type PlanView struct {
	remap.Plan
	Title string `json:"title"`
	// PreviewHash binds an approval to what the approver saw.
	PreviewHash string        `json:"preview_hash"`
	Lines       []string      `json:"lines"` // what each move does, in words
	Checks      []remap.Check `json:"checks"`
	// Expected is what the plan should bring and Outcome what it brought, in words; empty where no policy
	// made it, and before the job has ended.
	Expected string `json:"expected,omitempty"`
	Outcome  string `json:"outcome,omitempty"`
	Needs    int    `json:"needs"` // approvals, those given included
	// MayApprove is empty when the caller may approve, else why not.
	MayApprove string `json:"may_approve"`
}

// ManualRemap asks for a plan made by a person.
type ManualRemap struct {
	Nodes  []topology.NodeID    `json:"nodes"`
	To     topology.ForwarderID `json:"to"`
	Reason string               `json:"reason"`
	Force  bool                 `json:"force,omitempty"`
}

// Viewer is what pages read with. Errors wrap those of errors.go.
type Viewer interface {
	// Watch calls update with every new overview (1 Hz, the newest only for a slow reader) until
	// ctx ends. While the server cannot be reached it calls update with the last overview and an
	// error that wraps ErrUnreachable, and keeps trying. (GET /api/v1/live, topic "overview")
	Watch(ctx context.Context, update func(Overview, error))
	Forwarder(ctx context.Context, id topology.ForwarderID) (ForwarderDetail, error) // GET /api/v1/forwarders/{id}
	Plans(ctx context.Context) ([]PlanRow, error)                                    // GET /api/v1/plans
	Plan(ctx context.Context, id string) (PlanView, error)                           // GET /api/v1/plans/{id}
}

// Actor is what pages act with. Every call carries its own idempotency key on the wire.
type Actor interface {
	Propose(ctx context.Context, m ManualRemap) (PlanView, error) // POST /api/v1/plans
	// Approve fails with ErrChanged when the preview behind hash is no longer what would happen.
	Approve(ctx context.Context, id, hash, reason string) (PlanView, error) // POST /api/v1/plans/{id}/approve
	Reject(ctx context.Context, id, reason string) (PlanView, error)        // POST /api/v1/plans/{id}/reject
	RollBack(ctx context.Context, id, reason string) (PlanView, error)      // POST /api/v1/plans/{id}/rollback
	// Stop ends an apply after the orders under way.
	Stop(ctx context.Context, id, reason string) (PlanView, error) // POST /api/v1/plans/{id}/stop
}

// Past shows the layer as it was in the second that began at at. (?at= of the live routes)
type Past interface {
	OverviewAt(ctx context.Context, at time.Time) (Overview, error)
	ForwarderAt(ctx context.Context, id topology.ForwarderID, at time.Time) (ForwarderDetail, error)
	// Marks lists what the journal says happened in [from, to), the oldest first. (GET /api/v1/marks)
	Marks(ctx context.Context, from, to time.Time, limit int) ([]remap.Mark, error)
	// Occupancy is how busy the forwarders were in the last span, by buckets, without the single
	// forwarders. (GET /api/v1/occupancy)
	Occupancy(ctx context.Context, span, bucket time.Duration) (OccupancyView, error)
}

// Records is what pages look up: jobs, and who did what.
type Records interface {
	// GET /api/v1/jobs, those that run and those that ended last
	Jobs(ctx context.Context) ([]JobRow, error)
	Job(ctx context.Context, id topology.JobID) (JobView, error) // GET /api/v1/jobs/{id}
	// JobRuns compares a job with the runs like it, of which the newest limit are listed.
	JobRuns(ctx context.Context, id topology.JobID, limit int) (JobRuns, error) // GET /api/v1/jobs/{id}/runs
	Audit(ctx context.Context, q AuditQuery) ([]AuditEntry, error)              // GET /api/v1/audit, newest first
}

// Silence asks that a finding calls nobody for a while; "0s" ends that.
type Silence struct {
	For    string `json:"for"` // such as "4h", 1m to 168h
	Reason string `json:"reason"`
}

// Judge is what pages say of findings with.
type Judge interface {
	Finding(ctx context.Context, id string) (FindingView, error)                 // GET /api/v1/findings/{id}
	Acknowledge(ctx context.Context, id, reason string) (anomaly.Finding, error) // POST /api/v1/findings/{id}/ack
	Dismiss(ctx context.Context, id, reason string) (anomaly.Finding, error)     // POST /api/v1/findings/{id}/dismiss
	// Silence keeps a finding from calling anybody for so long; 0 ends that.
	// POST /api/v1/findings/{id}/silence
	Silence(ctx context.Context, id string, long time.Duration, reason string) (anomaly.Finding, error)
}

// Excluder is what pages withhold forwarders with. Nobody is moved by it.
type Excluder interface {
	// PUT /api/v1/exclusions/{node}
	Exclude(ctx context.Context, f topology.ForwarderID, ttl time.Duration, reason string) (remap.Exclusion, error)
	// DELETE /api/v1/exclusions/{node}
	Return(ctx context.Context, f topology.ForwarderID, reason string) (remap.Feed, error)
}

// Prober is what pages send canaries with.
type Prober interface {
	// Canary sends one canary and waits for what it finds. ErrConflict: the limits stand against it, or
	// no way to the forwarder is known.
	Canary(ctx context.Context, f topology.ForwarderID) (remap.Canary, error) // POST /api/v1/forwarders/{id}/canary
}

// Decision is the body of approve, reject, rollback, stop, ack, dismiss and canary.
type Decision struct {
	PreviewHash string `json:"preview_hash,omitempty"` // approve only
	Reason      string `json:"reason"`
}

// LiveMessage is one text message of the live feed. A client subscribes by ?topics=a,b.
type LiveMessage struct {
	// Topic is "overview"; "beat" each second; "plans" when one changed; "findings"; "exclusions";
	// "forwarder:ID".
	Topic string `json:"topic"`
	// Now is the server's clock when the message was made: what is shown is aged by it, not by the
	// reader's own clock, which may be wrong.
	Now      time.Time `json:"now"`
	Overview *Overview `json:"overview,omitempty"` // with topic "overview"
	// with topic "forwarder:ID"; each series has its newest second only
	Forwarder *ForwarderDetail  `json:"forwarder,omitempty"`
	Findings  []anomaly.Finding `json:"findings,omitempty"`
	// Exclusions are with topic "exclusions": when the list changes, and before its lease is half over.
	Exclusions *remap.Feed `json:"exclusions,omitempty"`
}

// Explainer is what pages ask of the I/O-log archive and of the policies; nothing is changed by it.
type Explainer interface {
	// GET /api/v1/jobs/{id}/rootcause
	Cause(ctx context.Context, id topology.JobID) (JobCause, error)
	// GET /api/v1/archive/low-bandwidth; op is read or write
	SlowJobs(ctx context.Context, op string, all bool) ([]SlowJob, error)
	Shares(ctx context.Context, policy string, on topology.ForwarderID) (SharesView, error) // GET /api/v1/shares
	// GET /api/v1/periodic; set is JSON
	Pattern(ctx context.Context, set string) (PatternView, error)
	// GET /api/v1/jobs/{id}/domains
	Domains(ctx context.Context, id topology.JobID, q DomainsQuery) (DomainsView, error)
}

// Backend is all of them.
type Backend interface {
	Viewer
	Past
	Records
	Actor
	Judge
	Excluder
	Prober
	Explainer
}
