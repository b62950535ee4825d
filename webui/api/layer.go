package api

import (
	"encoding/json"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/remap/alert"
	"fairway/tsdb"
)

// Banner is what every screen says of the numbers and of the daemon that shows them.
type Banner struct {
	// Simulated is true when the frames come from simmachine.
	Simulated bool `json:"simulated"`
	// Notice says that the daemon follows another one of its cluster, reaches too few of them, or is a
	// view. Empty: nothing.
	Notice string `json:"notice,omitempty"`
	// LateSeconds is by how much the daemon itself is late, as Notice says first; what looks slow or silent, or well,
	// may be only that.
	LateSeconds float64 `json:"late_seconds,omitempty"`
}

// Overview is the newest second of the whole forwarding layer.
type Overview struct {
	Machine string    `json:"machine"`
	At      time.Time `json:"at"` // start of the second shown; zero before the first one
	// SentAt is the server's clock when it sent this (LiveMessage.Now): ages do not depend on the
	// reader's clock. Zero where it is not known.
	SentAt time.Time `json:"-"`
	User   string    `json:"user"`
	Role   string    `json:"role"` // user, viewer, operator, admin
	Banner
	// LateAfter and StaleAfter are the ages at which a second is called late and its numbers are not shown any more.
	LateAfter    float64           `json:"late_after_seconds"`
	StaleAfter   float64           `json:"stale_after_seconds"`
	ComputeNodes int               `json:"compute_nodes"`
	Jobs         *int              `json:"jobs,omitempty"` // running now; nil when no batch system is known
	Forwarders   []ForwarderRow    `json:"forwarders"`
	Findings     []anomaly.Finding `json:"findings"`
	// Now is the mean of the layer's last 6 to 10 s, two steps; nil of the past and where nothing judges it.
	Now *LayerNow `json:"now,omitempty"`
	Todo
	// NotKept says, of a past second, what of it is not known and where the rest comes from.
	NotKept []string `json:"not_kept,omitempty"`
}

// Todo is what waits for a person.
type Todo struct {
	Waiting []PlanRow `json:"waiting"` // plans
	// Needs are the incidents, what hurts most first, and the plans that belong to none.
	Needs []advise.Card `json:"needs"`
	// Calm says what was compared, and what is open although it hurts nobody, where nothing needs a person.
	Calm string `json:"calm,omitempty"`
	// CalmWord sums it up: all well, watched, nothing needs you, not known.
	CalmWord string `json:"calm_word,omitempty"`
}

// Quiet writes Calm and its word.
func (o *Overview) Quiet() {
	o.Calm, o.CalmWord = "", ""
	switch {
	case len(o.Needs) > 0:
		return
	case o.LateSeconds > 0:
		o.CalmWord, o.Calm = "not known", "Not known while the daemon itself is late."
		return
	}
	compared, nearest, ratio := 0, "", 1.0
	for i := range o.Forwarders {
		r := &o.Forwarders[i]
		if r.Slow == nil {
			continue
		}
		compared++
		if *r.Slow > ratio {
			nearest, ratio = string(r.ID), *r.Slow
		}
	}
	o.CalmWord, o.Calm = advise.Calm(o.Findings, compared, len(o.Forwarders), nearest, ratio)
}

// ForwarderRow is one forwarder's newest second. A nil pointer is a value that is not known.
type ForwarderRow struct {
	ID              topology.ForwarderID `json:"id"`
	State           remap.ForwarderState `json:"state"`
	Rack            string               `json:"rack,omitempty"`
	LastSeen        time.Time            `json:"last_seen"`
	PeakBytesPerSec float64              `json:"peak_bytes_per_sec"`
	Occupancy       *float64             `json:"occupancy"` // 0..1, last hour
	// Busy is what it moves as a share of its peak, 0..1.
	Busy   *float64 `json:"busy"`
	Values Values   `json:"values"`
	Slowness
	ClientCounts
	TopJob      topology.JobID `json:"top_job,omitempty"`
	TopJobShare *float64       `json:"top_job_share,omitempty"` // 0..1 of bytes
	Plan        string         `json:"plan,omitempty"`          // waiting plan that touches it
	// Levels has a character for each of ForwarderScales: 0 to 9 for tenths of full scale, '.' below 1 % of it or idle,
	// '-' without a value.
	Levels string `json:"levels"`
}

// Slowness is how a forwarder's operations compare.
type Slowness struct {
	// Latency is how long an operation took its clients in the last 6 to 10 s. Slow is how many times as long
	// as on its peers at the same load operations took, by the slowest kind, SlowOp: read, write or meta. A
	// forwarder that reports its own service times is compared by these, without the wait for a thread; any other
	// by its clients' times.
	Latency *float64 `json:"latency_seconds"`
	Slow    *float64 `json:"slow"`
	SlowOp  string   `json:"slow_op,omitempty"`
}

// ClientCounts are a forwarder's clients.
type ClientCounts struct {
	Clients int `json:"clients"`
	// Assumed counts further clients, of which nothing was observed: the default mapping has them here.
	Assumed int `json:"assumed_clients,omitempty"`
	// Sharing counts further clients that spread their traffic over this forwarder and others.
	Sharing int `json:"sharing_clients,omitempty"`
}

// ForwarderDetail is one forwarder with its clients and its last minutes.
type ForwarderDetail struct {
	ForwarderRow
	// Options are the caller's; nil of the past and in the live feed, which is the same for everybody.
	*remap.Options
	ClientNodes []ClientRow             `json:"client_nodes"`
	Series      map[string][]tsdb.Point `json:"series"` // metric name -> last 5 minutes, 1 Hz, gaps absent
	PeersMedian map[string]*float64     `json:"peers_median"`
	// Unreported says of numbers of such a forwarder why they are missing where they are, by metric;
	// ClientsUnreported why none of its compute nodes reports what it reads and writes, "" where one does.
	Unreported        map[string]string `json:"unreported,omitempty"`
	ClientsUnreported string            `json:"clients_unreported,omitempty"`
	// Storage is where the forwarder's requests go, BackEnd the one server that a gateway is a client of, in words,
	// with the finding of one that is slow.
	Storage StorageView `json:"storage"`
	BackEnd string      `json:"back_end,omitempty"`
	// Drained is why it is excluded from allocation; of maintenance with who works on it until when.
	Drained string `json:"drained,omitempty"`
	// Life is what is known of its findings; nil where nobody keeps any.
	Life *ForwarderLife `json:"life,omitempty"`
	// Canary is the newest one; nil where none was sent since the daemon's start, and of the past.
	Canary *anomaly.Canary `json:"canary,omitempty"`
	// Targets are where its nodes can be moved to, the best first; nil of the past and in the live feed.
	Targets []advise.Target `json:"targets,omitempty"`
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

// StorageRow is one storage target or server behind a forwarder. A nil pointer is a value that is not known.
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
	// Most is who does most there of all that the target's server counts by user; nil where it does not.
	Most *Use `json:"most,omitempty"`
}

// TargetUse is what a job moves at a storage target or server in the newest second.
type TargetUse struct {
	Target topology.NodeID `json:"target"`
	// Job is empty where it is not known whose the bytes are.
	Job              topology.JobID `json:"job,omitempty"`
	ReadBytesPerSec  float64        `json:"read_bytes_per_sec"`
	WriteBytesPerSec float64        `json:"write_bytes_per_sec"`
	// By is StorageByServers where only the server counted: it knows a job of another machine by the same number.
	By string `json:"by,omitempty"`
}

// ForwarderLife is a forwarder's findings in short.
type ForwarderLife struct {
	// Steps are those of its open finding, Next what that waits for, NextFrom from when on where that is
	// known; empty without an open one.
	Steps    []anomaly.Step `json:"steps"`
	Next     string         `json:"next,omitempty"`
	NextFrom time.Time      `json:"next_from,omitzero"`
	// Earlier counts its closed findings, Last is the newest of them, LastWords what that was.
	Earlier   int              `json:"earlier"`
	Last      *anomaly.Finding `json:"last,omitempty"`
	LastWords string           `json:"last_words,omitempty"`
}

// ClientRow is one compute node behind a forwarder.
type ClientRow struct {
	ID      topology.NodeID `json:"id"`
	Assumed bool            `json:"assumed,omitempty"` // by the default mapping, not observed
	// Share is this forwarder's part of the node's traffic, of a node that spreads it over several; absent of any
	// other. ShareAssumed: it was not measured, the node may use all of them alike.
	Share            *float64       `json:"share,omitempty"`
	ShareAssumed     bool           `json:"share_assumed,omitempty"`
	Job              topology.JobID `json:"job,omitempty"`
	ReadBytesPerSec  *float64       `json:"read_bytes_per_sec"`
	WriteBytesPerSec *float64       `json:"write_bytes_per_sec"`
	MetaOpsPerSec    *float64       `json:"meta_ops_per_sec"`
	LatencySeconds   *float64       `json:"latency_seconds"` // mean of reads and writes
	// Way is how the frames of the node's own agent come; nil where that is not connected, and for the past.
	Way *NodeWay `json:"way,omitempty"`
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
	// Shares are of a compute node that spreads its traffic over several forwarders: then it has no one Forwarder.
	// SharesAssumed: they were not measured.
	Shares        []topology.Share `json:"shares,omitempty"`
	SharesAssumed bool             `json:"shares_assumed,omitempty"`
	// Lost says that the node's mount gets no answer from that forwarder: it has none now.
	Lost bool `json:"lost,omitempty"`
	// Way is how the frames of the node's own agent come; nil where that is not connected.
	Way *NodeWay `json:"way,omitempty"`
	// Values are the samples of that second by metric name; an unknown value is absent.
	Values map[string]float64 `json:"values"`
	// Of a server or forwarder: Most is who does most there, Attributed the part of its work with a known doer.
	Most       *Use     `json:"most,omitempty"`
	Attributed *float64 `json:"attributed,omitempty"`
}

// Uses are who works at a server or a storage target, the most first, and then what nobody is known for: together they
// are all that it does.
type Uses struct {
	Rows []Use `json:"rows"`
	// Attributed is the part, 0..1, that somebody is known for: the smaller of the bytes' and the metadata operations'.
	Attributed *float64 `json:"attributed"`
	// Note is what the server's agent says of its count, Unknown why there are no rows, or more than these.
	Note    string `json:"note,omitempty"`
	Unknown string `json:"unknown,omitempty"`
}

// Most is who does most; nil where nobody is known.
func (u Uses) Most() *Use {
	if len(u.Rows) == 0 || u.Rows[0].Kind == UseRest {
		return nil
	}
	return &u.Rows[0]
}

// Use is one row: a job, or whoever else can be named.
type Use struct {
	Who              string   `json:"who"`
	Kind             string   `json:"kind"`
	Why              string   `json:"why,omitempty"` // of UseRest: why nobody is named
	ReadBytesPerSec  float64  `json:"read_bytes_per_sec"`
	WriteBytesPerSec float64  `json:"write_bytes_per_sec"`
	MetaOpsPerSec    float64  `json:"meta_ops_per_sec"`
	BytesPart        *float64 `json:"bytes_part"` // of all bytes, 0..1; nil: there are none
	MetaPart         *float64 `json:"meta_part"`
}

// Part is the larger of a row's parts.
func (u *Use) Part() (part float64) {
	for _, v := range []*float64{u.BytesPart, u.MetaPart} {
		if v != nil {
			part = max(part, *v)
		}
	}
	return part
}

// The kinds of Use.
const (
	UseJob    = "job"
	UseUser   = "user"   // as Lustre writes one: program and user's number, or user@host
	UseNode   = "node"   // without a job of its own
	UseID     = "id"     // of Lustre's, which names neither job nor user
	UseOthers = "others" // named ones that are too many to list
	UseRest   = "rest"
)

// NodeWay is how a node's frames come to the daemon.
type NodeWay struct {
	// LateSeconds is how long after its end the newest second came.
	LateSeconds float64 `json:"late_seconds"`
}

// NodeView is one node with what its agent says of its own sources.
type NodeView struct {
	NodeRow
	// Uses are who works there; nil of a compute node.
	Uses    *Uses                    `json:"uses,omitempty"`
	Sources []collector.SourceStatus `json:"sources"`
}

// MachineView is the site with its mappings.
type MachineView struct {
	topology.Machine
	Generation uint32           `json:"generation"` // changes with the list of nodes
	Observed   topology.Mapping `json:"observed_mapping"`
	Simulated  bool             `json:"simulated"`
}

// Readiness says whether the daemon does its work.
type Readiness struct {
	Ready      bool      `json:"ready"`
	Picture    time.Time `json:"picture"` // when the newest one was made
	Newest     time.Time `json:"newest"`  // second of data; zero before the first
	Forwarders int       `json:"forwarders"`
}

// LiveMessage is one text message of the live feed. A client subscribes by ?topics=a,b.
type LiveMessage struct {
	// Topic is "overview"; "beat" each second; "plans" when one changed; "findings"; "exclusions"; "forwarder:ID".
	Topic string `json:"topic"`
	// Now is the server's clock when the message was made: what is shown is aged by it, not by the
	// reader's own clock, which may be wrong.
	Now      time.Time `json:"now"`
	Overview *Overview `json:"overview,omitempty"` // with topic "overview"
	// Changes are with topic "overview" in place of it, where the listener asked for changes=1 and has the one before:
	// a merge patch (RFC 7396). A list of objects has the patches of those that changed as the member "[]", by place.
	Changes json.RawMessage `json:"changes,omitempty"`
	// with topic "forwarder:ID"; each series has its newest second only
	Forwarder *ForwarderDetail  `json:"forwarder,omitempty"`
	Findings  []anomaly.Finding `json:"findings,omitempty"`
	// Exclusions are with topic "exclusions": when the list changes, and before its lease is half over.
	Exclusions *remap.Feed `json:"exclusions,omitempty"`
}

// CheckLevel is how one look at the installation went.
type CheckLevel string

// The levels of a check.
const (
	CheckOK      CheckLevel = "ok"
	CheckWarned  CheckLevel = "warning" // it works, with less than it could
	CheckFailed  CheckLevel = "failed"
	CheckUnknown CheckLevel = "unknown" // could not be looked at, because another check failed
)

// Check is one look at the installation: what was found and, unless all is well, what to do.
type Check struct {
	Name  string     `json:"name"`
	Level CheckLevel `json:"level"`
	Text  string     `json:"text"`
	Fix   string     `json:"fix,omitempty"`
}

// Is is the check with what was found, and what to do about it.
func (c Check) Is(level CheckLevel, text, fix string) Check {
	return Check{Name: c.Name, Level: level, Text: text, Fix: fix}
}

// Alerts is who is called when something needs a person, and how delivery goes.
type Alerts struct {
	Receivers []alert.Status `json:"receivers"`
	Open      int            `json:"open"` // alerts that have not ended
}
