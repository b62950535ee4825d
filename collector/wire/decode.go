package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"
	"unsafe"

	"fairway/collector"
	"fairway/collector/topology"
)

// maxInterned bounds the names that Names remember; past it, they forget all and start again.
const maxInterned = 1 << 17

// Decoder reads messages and reuses its memory from one to the next: names are kept, and the
// frames of a Frames message are valid only until the next Decode. Not for concurrent use: one
// per connection. The zero value is ready.
type Decoder struct {
	// Dropped counts the samples left out because their metric is unknown here or their value
	// is not a value (collector.IsValue).
	Dropped uint64
	// Names are those that several decoders share; nil: this one keeps its own.
	Names *Names
	// Own is the node that a message of one frame is expected to be of; empty: the one before.
	Own topology.NodeID

	held    int
	out     Frames
	frames  []collector.Frame
	samples []collector.Sample
	jobs    []collector.JobSamples
	routes  []collector.Route
	sources []collector.SourceStatus
	targets []collector.TargetSamples
}

// Decode reads one message. Errors wrap ErrMalformed or ErrLimit.
func (d *Decoder) Decode(msg []byte) (Message, error) {
	if len(msg) > MaxMessageBytes {
		return nil, fmt.Errorf("message of %d bytes, more than %d: %w", len(msg), MaxMessageBytes, ErrLimit)
	}
	if len(msg) < headerBytes {
		return nil, fmt.Errorf("message of %d bytes, shorter than its header: %w", len(msg), ErrMalformed)
	}
	if msg[0] != Version {
		return nil, fmt.Errorf("version %d, this side speaks %d: %w", msg[0], Version, ErrMalformed)
	}
	kind := Kind(msg[1])
	r := reader{b: msg, at: headerBytes, d: d}
	m := r.message(kind)
	if r.err == nil && r.at != len(msg) {
		r.fail("end", fmt.Sprintf("%d bytes too many", len(msg)-r.at), ErrMalformed)
	}
	if r.err != nil {
		return nil, fmt.Errorf("decode %v of %d bytes: %w", kind, len(msg), r.err)
	}
	return m, nil
}

func (r *reader) message(kind Kind) Message {
	switch kind {
	case KindHello:
		return Hello{
			Node: topology.NodeID(r.name("node")), Role: r.role(),
			FirstSeq: r.uvarint("first sequence"), Instance: r.name("instance"),
		}
	case KindFrames:
		return r.readFrames()
	case KindAck:
		return Ack{Seq: r.uvarint("sequence")}
	case KindOrder:
		o := Order{
			ID: r.name("order id"), Kind: r.name("order kind"),
			Deadline: timeOf(r.varint("deadline")), Body: r.body("order body"),
		}
		if r.err == nil && r.at < len(r.b) {
			if o.Term = r.uvarint("term"); o.Term == 0 {
				r.fail("term", "0 is not written", ErrMalformed)
			}
		}
		return o
	case KindOrderResult:
		return OrderResult{
			ID: r.name("order id"), OK: r.flag("ok"), Err: r.text("error"),
			Took: time.Duration(r.varint("took")), Body: r.body("result body"),
		}
	case KindReject:
		code := r.uvarint("code")
		if code > math.MaxUint16 {
			r.fail("code", fmt.Sprintf("%d does not fit 16 bits", code), ErrMalformed)
		}
		return Reject{Code: RejectCode(code), Seq: r.uvarint("sequence"), Text: r.text("text")}
	}
	r.fail("kind", fmt.Sprintf("%d is unknown", byte(kind)), ErrMalformed)
	return nil
}

func (r *reader) readFrames() *Frames {
	d := r.d
	d.samples, d.jobs, d.routes, d.sources, d.targets = d.samples[:0], d.jobs[:0], d.routes[:0], d.sources[:0],
		d.targets[:0]
	d.out.Seq = r.uvarint("sequence")
	base := r.varint("base time")
	d.held = 0
	n := r.list("frames", MaxFrames, minFrameBytes, int(unsafe.Sizeof(collector.Frame{})))
	if cap(d.frames) < n {
		d.frames = make([]collector.Frame, n)
	}
	d.frames = d.frames[:cap(d.frames)]
	if n == 1 && d.Own != "" {
		d.frames[0].Node = d.Own
	}
	for i := range n {
		r.frame(&d.frames[i], base)
		if r.err != nil {
			r.err = fmt.Errorf("frame %d (node %q): %w", i, d.frames[i].Node, r.err)
			return nil
		}
	}
	d.out.Frames = d.frames[:n]
	return &d.out
}

// The shortest that an element of a list can be.
const (
	minFrameBytes  = 4
	minJobBytes    = 2
	minTargetBytes = 2
	minRouteBytes  = 3
	minSourceBytes = 5
)

func (r *reader) frame(f *collector.Frame, base int64) {
	// Messages of one stream list the same nodes in the same order, so that the name to expect is
	// the one that stood here before.
	node := topology.NodeID(r.expectedName("node", string(f.Node)))
	*f = collector.Frame{Node: node}
	flags := r.byte("flags")
	f.Role = topology.Role(flags & roleMask)
	if f.Role > topology.Metadata {
		f.Role = topology.RoleUnknown
	}
	f.RoutesComplete = flags&flagComplete != 0
	f.TimeMillis = base + r.varint("time")
	f.Samples = r.readSamples(false)
	// A list that is there and empty reads as one that is not: it says no more.
	if flags&flagJobs != 0 {
		f.Jobs = elements(r, "jobs", MaxJobsPerFrame, minJobBytes, &r.d.jobs, r.job)
	}
	if flags&flagRoutes != 0 {
		f.Routes = elements(r, "routes", MaxRoutesPerFrame, minRouteBytes, &r.d.routes,
			func(before collector.Route) collector.Route { return r.route(string(node), before) })
	}
	if flags&flagSources != 0 {
		f.Sources = elements(r, "sources", MaxSourcesPerFrame, minSourceBytes, &r.d.sources, r.source)
	}
	if flags&flagTargets != 0 {
		f.Targets = elements(r, "targets", MaxTargetsPerFrame, minTargetBytes, &r.d.targets, r.target)
	}
	if r.retired {
		r.retired = false
		renameQueues(f)
	}
}

// renameQueues gives the numbers of an agent before collector.InFlight their names of today.
func renameQueues(f *collector.Frame) {
	for i := range f.Samples {
		switch s := &f.Samples[i]; s.Metric {
		case collector.QueueLen:
			s.Metric = collector.InFlight
		case collector.RetiredBacklogLen:
			s.Metric = collector.QueueLen
		}
	}
	for _, j := range f.Jobs {
		for i := range j.Samples {
			if j.Samples[i].Metric == collector.QueueLen {
				j.Samples[i].Metric = collector.InFlight
			}
		}
	}
}

func (r *reader) readSamples(ofJob bool) []collector.Sample {
	n := r.list("samples", MaxSamplesPerFrame, minSampleBytes, int(unsafe.Sizeof(collector.Sample{})))
	all := r.d.samples
	from := len(all)
	b, at := r.b, r.at
	for i := range n {
		if at >= len(b) {
			r.fail("sample", fmt.Sprintf("ends after %d of %d", i, n), ErrMalformed)
			return nil
		}
		head := b[at]
		at++
		var v float64
		if head&flagWhole != 0 {
			w, k := binary.Uvarint(b[at:])
			if k <= 0 || w > maxWhole {
				r.at = at
				r.fail("sample", "its whole value is cut off or too large", ErrMalformed)
				return nil
			}
			at += k
			v = float64(w)
		} else {
			if len(b)-at < 8 {
				r.at = at
				r.fail("sample", "its value is cut off", ErrMalformed)
				return nil
			}
			v = math.Float64frombits(binary.LittleEndian.Uint64(b[at:]))
			at += 8
		}
		m := collector.Metric(head & metricMask)
		if m == collector.RetiredBacklogLen && !ofJob && collector.IsValue(v) {
			r.retired = true
		} else if !m.Known() && !(ofJob && m.OfJobs()) || !collector.IsValue(v) {
			r.d.Dropped++
			continue
		}
		all = append(all, collector.Sample{Metric: m, Value: v})
	}
	r.at = at
	r.d.samples = all
	return all[from:len(all):len(all)]
}

// elements reads a list into the memory that all has; one gets what stood there before: messages are much alike.
func elements[T any](r *reader, what string, most, smallest int, all *[]T, one func(before T) T) []T {
	n := r.list(what, most, smallest, int(unsafe.Sizeof(*new(T))))
	if n == 0 {
		return nil
	}
	from := len(*all)
	for i := 0; i < n && r.err == nil; i++ {
		var before T
		if l := *all; len(l) < cap(l) {
			before = l[:len(l)+1][len(l)]
		}
		*all = append(*all, one(before))
	}
	return (*all)[from:len(*all):len(*all)]
}

func (r *reader) job(collector.JobSamples) collector.JobSamples {
	j := collector.JobSamples{Job: topology.JobID(r.name("job"))}
	if at := strings.LastIndexByte(string(j.Job), ' '); at >= 0 {
		j.Job, j.Target = j.Job[:at], topology.TargetID(j.Job[at+1:])
	}
	j.Samples = r.readSamples(true)
	return j
}

func (r *reader) target(collector.TargetSamples) collector.TargetSamples {
	return collector.TargetSamples{Target: topology.TargetID(r.name("target")), Samples: r.readSamples(false)}
}

// route reads a route of what a node of the name own sent.
func (r *reader) route(own string, before collector.Route) collector.Route {
	route := collector.Route{
		Client:     topology.NodeID(r.ownName("client", own, string(before.Client))),
		Forwarder:  topology.ForwarderID(r.ownName("forwarder", own, string(before.Forwarder))),
		Generation: r.uvarint("generation"),
	}
	if route.Generation&flagShare != 0 {
		part := r.uvarint("share")
		if part>>1 > wholeShare {
			r.fail("share", fmt.Sprintf("%d of %d", part>>1, wholeShare), ErrMalformed)
		}
		route.Share, route.Assumed = float64(part>>1)/wholeShare, part&1 != 0
	}
	if route.Generation&flagAddress != 0 {
		route.Address = r.expectedName("address", before.Address)
	}
	route.Lost = route.Generation&flagLost != 0
	route.Generation &^= flagLost | flagShare | flagAddress
	return route
}

func (r *reader) source(before collector.SourceStatus) collector.SourceStatus {
	s := collector.SourceStatus{
		Name: r.expectedName("source", before.Name), Duration: time.Duration(r.varint("duration")),
		Failures: r.uvarint("failures"), Resets: r.uvarint("resets"), Err: r.text("error"),
	}
	if s.Resets&flagNote != 0 {
		s.Resets &^= flagNote
		s.Note = r.text("note")
	}
	return s
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func (r *reader) body(what string) json.RawMessage {
	b := r.bytes(what, MaxBodyBytes)
	if len(b) == 0 {
		return nil
	}
	return json.RawMessage(append([]byte(nil), b...))
}

// Names are strings that several decoders keep once. The zero value is ready.
type Names struct {
	mu  sync.RWMutex
	all map[string]string
}

func (n *Names) of(b []byte) string {
	n.mu.RLock()
	s, ok := n.all[string(b)]
	n.mu.RUnlock()
	if ok {
		return s
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil || len(n.all) >= maxInterned {
		n.all = make(map[string]string)
	}
	s = string(b)
	n.all[s] = s
	return s
}

// smallFrames and smallLists are what a decoder of few nodes' messages has memory for.
const smallFrames, smallLists = 64, 1024

// Small says that a decoder holds no more memory than a message of few nodes needs.
func (d *Decoder) Small() bool {
	return cap(d.frames) <= smallFrames && cap(d.samples) <= smallLists && cap(d.jobs) <= smallLists &&
		cap(d.routes) <= smallLists && cap(d.sources) <= smallLists && cap(d.targets) <= smallLists
}

// Held is how many bytes the newest Frames message takes in memory, without its names.
func (d *Decoder) Held() int { return d.held }
