// Package wire is the binary language between agents and the daemon: one message is one WebSocket
// binary message. It is compact enough that the frames of 41,488 nodes a second decode in a small
// part of one core, keeps every float64 exact, and allocates nothing per sample.
//
// # Layout, version 1
//
// A message is
//
//	byte 0   version, 1
//	byte 1   kind, see Kind
//	bytes 2… the kind's fields, in the order below, with nothing after them
//
// Fields are
//
//	uvarint  unsigned LEB128, at most 10 bytes (encoding/binary)
//	varint   the same, zigzag-coded
//	string   uvarint length, then that many bytes
//
// The kinds' fields are
//
//	Hello        string node, byte role, uvarint first unacknowledged sequence, string instance
//	Frames       uvarint sequence, varint base time (Unix ms), uvarint count, then count frames
//	Ack          uvarint sequence
//	Order        string id, string kind, varint deadline (Unix ms), string body (JSON), uvarint term unless it is 0
//	OrderResult  string id, byte ok (0, 1), string error, varint took (ns), string body (JSON)
//	Reject       uvarint code, uvarint sequence, string text
//
// A frame is
//
//	string   node
//	byte     role in the low 3 bits; 0x08 targets follow; 0x10 routes are complete; 0x20 jobs follow;
//	         0x40 routes follow; 0x80 source states follow
//	varint   time minus the message's base time, ms
//	uvarint  number of samples, then the samples
//	[jobs    uvarint count, then for each: string job, with a blank and its target behind it where it has one, uvarint
//	         number of samples, samples]
//	[routes  uvarint count, then for each: name client, name forwarder, uvarint generation
//	         plus 2^63 where the forwarder does not answer its client; plus 2^62 where a uvarint
//	         follows: twice the client's share in ten thousandths, plus 1 where it is assumed]
//	[states  uvarint count, then for each: string name, varint duration (ns), uvarint failures,
//	         uvarint resets, string error]
//	[targets uvarint count, then for each: string target, uvarint number of samples, samples]
//
// A name is uvarint 0 for the frame's own node, or uvarint length+1 and that many bytes.
//
// A sample is
//
//	byte     metric number (1..127) in the low 7 bits
//	         0x80 set: the value is a whole number 0..2^53, as uvarint
//	         0x80 clear: the value is 8 bytes, an IEEE 754 double, little-endian
//
// A reader drops, and counts, samples whose metric it does not know (a newer writer's) and values
// that are not finite or beyond 1e30 (collector.MaxValue). Everything else that is out of shape or over a limit is an
// error that names the field, its place in the message and the limit.
package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// Version is the only version this package writes and reads.
const Version = 1

// Kind says which message follows.
type Kind byte

// The kinds of message. Agents send Hello, Frames and OrderResult; the daemon sends Ack, Order
// and Reject.
const (
	KindHello Kind = 1 + iota
	KindFrames
	KindAck
	KindOrder
	KindOrderResult
	KindReject
)

var kindNames = [...]string{"unknown", "hello", "frames", "ack", "order", "order-result", "reject"}

// String returns the kind's name for messages to people.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", byte(k))
}

// Limits of a message. A writer that would exceed one, and a reader that sees one exceeded, answers
// an error that wraps ErrLimit and names it.
const (
	MaxMessageBytes    = 16 << 20 // a message, all in all; a WebSocket's read limit
	MaxHeldBytes       = 64 << 20 // what a reader holds of a message in memory: two bytes may stand for forty
	MaxFrames          = 65536    // frames (nodes) in a Frames message
	MaxSamplesPerFrame = 1024     // samples of a frame, and of each job in it
	MaxJobsPerFrame    = 8192     // jobs of a frame
	MaxRoutesPerFrame  = 65536    // routes of a frame
	MaxTargetsPerFrame = 1024     // storage targets of a frame
	MaxSourcesPerFrame = 64       // source states of a frame
	MaxNameBytes       = 255      // a node, job, source, instance, order id or order kind
	MaxTextBytes       = 4096     // an error text
	MaxBodyBytes       = 1 << 20  // an order's or a result's JSON body
)

// ErrLimit is wrapped by every error that says a limit was exceeded.
var ErrLimit = errors.New("limit exceeded")

// ErrMalformed is wrapped by every error that says bytes are not a message of this version.
var ErrMalformed = errors.New("malformed message")

// Message is one of Hello, *Frames, Ack, Order, OrderResult and Reject.
type Message interface{ kind() Kind }

// Hello opens a connection, agent to daemon.
type Hello struct {
	Node topology.NodeID // the agent that speaks; one that speaks for others, such as the simulator, names itself
	Role topology.Role
	// FirstSeq is the first sequence number that the agent holds unacknowledged, and so the first
	// it will send; numbers start at 1 and grow by 1.
	FirstSeq uint64
	// Instance names the numbering that FirstSeq belongs to: it changes only when the agent's
	// spool is new and numbering starts again.
	Instance string
}

// Frames carries seconds of nodes, agent to daemon.
type Frames struct {
	Seq    uint64
	Frames []collector.Frame
}

// Ack says, daemon to agent, that every Frames message up to and including Seq is safely stored.
type Ack struct{ Seq uint64 }

// Order asks an agent to do something, daemon to agent. The same ID is done at most once; a
// repetition is answered with the first result.
type Order struct {
	ID       string
	Kind     string // e.g. "remap"
	Deadline time.Time
	Body     json.RawMessage
	// Term is of the daemon's lead of its cluster; 0: it is alone. An agent refuses acts of a term that is over.
	Term uint64
}

// OrderResult answers an Order.
type OrderResult struct {
	ID   string
	OK   bool
	Err  string // why not; empty when OK
	Took time.Duration
	Body json.RawMessage
}

// RejectCode says why something was rejected.
type RejectCode uint16

// The reasons for a Reject. With Seq 0 the whole connection is refused and closed; with another
// Seq that Frames message alone is refused for good: sending it again would not help.
const (
	RejectVersion   RejectCode = 1 + iota // a version or kind of message the daemon does not speak
	RejectMalformed                       // bytes that do not decode
	RejectLimit                           // over a limit
	RejectForbidden                       // this token may not speak for this node
	RejectBusy                            // come back later
)

// Reject refuses a message or the connection, daemon to agent.
type Reject struct {
	Code RejectCode
	Seq  uint64
	Text string
}

func (Hello) kind() Kind       { return KindHello }
func (*Frames) kind() Kind     { return KindFrames }
func (Ack) kind() Kind         { return KindAck }
func (Order) kind() Kind       { return KindOrder }
func (OrderResult) kind() Kind { return KindOrderResult }
func (Reject) kind() Kind      { return KindReject }

// Error makes a Reject usable as the reason why a stream ended.
func (r Reject) Error() string {
	if r.Seq == 0 {
		return fmt.Sprintf("the daemon refused the connection (code %d): %s", r.Code, r.Text)
	}
	return fmt.Sprintf("the daemon refused message %d (code %d): %s", r.Seq, r.Code, r.Text)
}

const (
	headerBytes    = 2
	roleMask       = 0x07
	flagTargets    = 0x08
	flagComplete   = 0x10
	flagJobs       = 0x20
	flagRoutes     = 0x40
	flagSources    = 0x80
	flagWhole      = 0x80
	flagLost       = 1 << 63
	flagShare      = 1 << 62
	flagAddress    = 1 << 61
	flagNote       = 1 << 63 // of a source's resets
	metricMask     = 0x7f
	maxWhole       = 1 << 53
	wholeShare     = 10000
	minSampleBytes = 2
)
