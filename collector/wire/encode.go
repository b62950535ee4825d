package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// Append encodes m after dst and returns the longer slice. On error (ErrLimit, wrapped) it returns
// dst as it was.
func Append(dst []byte, m Message) ([]byte, error) {
	e := encoder{b: append(dst, Version, byte(m.kind()))}
	switch m := m.(type) {
	case Hello:
		e.name("node", string(m.Node))
		e.b = append(e.b, byte(m.Role))
		e.uvarint(m.FirstSeq)
		e.name("instance", m.Instance)
	case *Frames:
		e.frames(m)
	case Ack:
		e.uvarint(m.Seq)
	case Order:
		e.name("order id", m.ID)
		e.name("order kind", m.Kind)
		e.varint(unixMilli(m.Deadline))
		e.str("order body", string(m.Body), MaxBodyBytes)
		if m.Term > 0 {
			e.uvarint(m.Term)
		}
	case OrderResult:
		e.name("order id", m.ID)
		ok := byte(0)
		if m.OK {
			ok = 1
		}
		e.b = append(e.b, ok)
		e.text(m.Err)
		e.varint(int64(m.Took))
		e.str("result body", string(m.Body), MaxBodyBytes)
	case Reject:
		e.uvarint(uint64(m.Code))
		e.uvarint(m.Seq)
		e.text(m.Text)
	}
	if n := len(e.b) - len(dst); e.err == nil && n > MaxMessageBytes {
		e.limit("message bytes", n, MaxMessageBytes)
	}
	if e.err != nil {
		return dst, fmt.Errorf("encode %v: %w", m.kind(), e.err)
	}
	return e.b, nil
}

// encoder appends fields to b and remembers the first limit that was exceeded.
type encoder struct {
	b   []byte
	err error
}

func (e *encoder) limit(what string, n, limit int) {
	if e.err == nil {
		e.err = fmt.Errorf("%s: %d is more than %d: %w", what, n, limit, ErrLimit)
	}
}

func (e *encoder) uvarint(v uint64) { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) varint(v int64)   { e.b = binary.AppendVarint(e.b, v) }

func (e *encoder) count(what string, n, limit int) {
	if n > limit {
		e.limit(what, n, limit)
	}
	e.uvarint(uint64(n))
}

func (e *encoder) str(what, s string, limit int) {
	e.count(what, len(s), limit)
	e.b = append(e.b, s...)
}

func (e *encoder) name(what, s string) { e.str(what, s, MaxNameBytes) }

// text cuts what is too long: half an explanation is better than a lost frame.
func (e *encoder) text(s string) { e.str("text", s[:min(len(s), MaxTextBytes)], MaxTextBytes) }

func (e *encoder) frames(m *Frames) {
	base := int64(0)
	if len(m.Frames) > 0 {
		base = m.Frames[0].TimeMillis
	}
	e.uvarint(m.Seq)
	e.varint(base)
	e.count("frames", len(m.Frames), MaxFrames)
	for i := range m.Frames {
		f := &m.Frames[i]
		e.frame(f, base)
		if e.err != nil {
			e.err = fmt.Errorf("frame %d (node %q): %w", i, f.Node, e.err)
			return
		}
	}
}

func (e *encoder) frame(f *collector.Frame, base int64) {
	e.name("node", string(f.Node))
	flags := byte(f.Role) & roleMask
	if f.RoutesComplete {
		flags |= flagComplete
	}
	if len(f.Jobs) > 0 {
		flags |= flagJobs
	}
	if len(f.Routes) > 0 {
		flags |= flagRoutes
	}
	if len(f.Sources) > 0 {
		flags |= flagSources
	}
	if len(f.Targets) > 0 {
		flags |= flagTargets
	}
	e.b = append(e.b, flags)
	e.varint(f.TimeMillis - base)
	e.samples(f.Samples)
	if flags&flagJobs != 0 {
		e.count("jobs", len(f.Jobs), MaxJobsPerFrame)
		for i := range f.Jobs {
			e.share(f.Jobs[i].Job, f.Jobs[i].Target)
			e.samples(f.Jobs[i].Samples)
		}
	}
	if flags&flagRoutes != 0 {
		e.count("routes", len(f.Routes), MaxRoutesPerFrame)
		for i := range f.Routes {
			r := &f.Routes[i]
			e.ownName("client", string(r.Client), string(f.Node))
			e.ownName("forwarder", string(r.Forwarder), string(f.Node))
			generation := r.Generation &^ (flagLost | flagShare | flagAddress)
			if r.Lost {
				generation |= flagLost
			}
			if r.Share > 0 {
				generation |= flagShare
			}
			if r.Address != "" {
				generation |= flagAddress
			}
			e.uvarint(generation)
			if r.Share > 0 {
				part := 2 * uint64(math.Round(wholeShare*min(r.Share, 1)))
				if r.Assumed {
					part++
				}
				e.uvarint(part)
			}
			if r.Address != "" {
				e.name("address", r.Address)
			}
		}
	}
	if flags&flagSources != 0 {
		e.count("sources", len(f.Sources), MaxSourcesPerFrame)
		for i := range f.Sources {
			s := &f.Sources[i]
			e.name("source", s.Name)
			e.varint(int64(s.Duration))
			e.uvarint(s.Failures)
			resets := s.Resets &^ flagNote
			if s.Note != "" {
				resets |= flagNote
			}
			e.uvarint(resets)
			e.text(s.Err)
			if s.Note != "" {
				e.text(s.Note)
			}
		}
	}
	if flags&flagTargets != 0 {
		e.count("targets", len(f.Targets), MaxTargetsPerFrame)
		for i := range f.Targets {
			e.name("target", string(f.Targets[i].Target))
			e.samples(f.Targets[i].Samples)
		}
	}
}

// share writes a job and its target as one name: readers from before targets show it.
func (e *encoder) share(job topology.JobID, target topology.TargetID) {
	if target == "" && !strings.Contains(string(job), " ") {
		e.name("job", string(job))
		return
	}
	e.count("job", len(job)+len(" ")+len(target), MaxNameBytes)
	e.b = append(append(append(e.b, job...), ' '), target...)
}

func (e *encoder) ownName(what, s, own string) {
	if s == own {
		e.b = append(e.b, 0)
		return
	}
	if len(s) > MaxNameBytes {
		e.limit(what, len(s), MaxNameBytes)
	}
	e.uvarint(uint64(len(s)) + 1)
	e.b = append(e.b, s...)
}

// samples leaves out what no reader could use: what is not a value (collector.IsValue) and metric
// numbers that do not fit.
func (e *encoder) samples(ss []collector.Sample) {
	n := 0
	for i := range ss {
		if sendable(ss[i]) {
			n++
		}
	}
	e.count("samples", n, MaxSamplesPerFrame)
	for _, s := range ss {
		if !sendable(s) {
			continue
		}
		bits := math.Float64bits(s.Value)
		if w := uint64(s.Value); s.Value >= 0 && s.Value <= maxWhole && math.Float64bits(float64(w)) == bits {
			e.b = append(e.b, byte(s.Metric)|flagWhole)
			e.b = binary.AppendUvarint(e.b, w)
			continue
		}
		e.b = append(e.b, byte(s.Metric))
		e.b = binary.LittleEndian.AppendUint64(e.b, bits)
	}
}

func sendable(s collector.Sample) bool {
	return s.Metric != collector.MetricNone && s.Metric <= metricMask && collector.IsValue(s.Value)
}

// unixMilli maps the zero time, which is not an instant anybody means, to 0.
func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
