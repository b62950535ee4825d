package mount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// key names one counter of a report: a job ("" for all), a class and a field.
type key struct {
	job        topology.JobID
	class      class
	field      uint8
	connection uint64 // of a path; each counts for itself
}

type class uint8

const (
	read class = iota
	write
	meta
)

const (
	bytes uint8 = iota
	count
	nanos
	failed
	waited   // nanoseconds, those of what is under way included
	segments // of the connection to the forwarder, both ways
	lost     // of these: sent again, or disordered
)

// total is the job under which the whole node is counted; no job has that name.
const total topology.JobID = "\x00total"

// Source reads one mount's control socket once a second.
type Source struct {
	node   topology.NodeID
	socket string
	rates  collector.Rates[key]
	// started is the mount's start at the last reading: another one means that its counters began anew.
	started time.Time
}

var _ collector.Source = (*Source)(nil)

// New makes a source for the mount of a compute node whose control socket is at a path.
func New(node topology.NodeID, socket string) *Source { return &Source{node: node, socket: socket} }

// Name is the source's name in the configuration.
func (s *Source) Name() string { return "mount" }

// Close has nothing to release: each tick is a connection of its own.
func (s *Source) Close() error { return nil }

// Read asks the mount for its report. A node without a mount has no data.
func (s *Source) Read(ctx context.Context, into *collector.Reading) error {
	r, err := Ask(ctx, s.socket, Request{Op: "stats"})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w: no mount answers: %w", collector.ErrNoData, err)
	}
	if err != nil {
		return err
	}
	s.report(&r.Report, into)
	if !r.Report.Connected {
		return fmt.Errorf(
			"mount %s: its forwarder %s at %s does not answer: operations wait until it is back or the mount is "+
				"moved by force",
			r.Report.MountPoint, r.Report.Forwarder, r.Report.Addr)
	}
	return nil
}

// report turns a report's counters into the second's samples.
func (s *Source) report(r *Report, into *collector.Reading) {
	if !s.started.Equal(r.Started) {
		s.rates = collector.Rates[key]{} // a new mount: its first report makes no rates
	}
	s.started = r.Started
	s.rates.Begin(into.Now)
	share := sum(r.Ops)
	into.Samples = s.samples(into.Samples, total, share)
	if r.CountsUnderWay {
		into.Samples = s.underWay(into.Samples, total, share)
	}
	errs := share.Read.Errors + share.Write.Errors + share.Meta.Errors
	if v, ok := s.rates.Rate(key{job: total, class: meta, field: failed}, errs); ok {
		into.Add(collector.Errors, v)
	}
	s.path(r, into)
	for id, j := range r.Jobs {
		if id == "" || id == total {
			continue
		}
		ss := s.samples(nil, id, j)
		if r.CountsUnderWay {
			ss = s.underWay(ss, id, j)
		}
		if len(ss) > 0 {
			into.Jobs = append(into.Jobs, collector.JobSamples{Job: id, Samples: files(ss, &j)})
		}
	}
	into.Resets += s.rates.Resets
	into.Routes = append(into.Routes, collector.Route{Client: s.node, Forwarder: r.Forwarder, Generation: r.Generation,
		Lost: !r.Connected})
	into.RoutesComplete = true
}

// fewSegments a second say nothing of a path.
const fewSegments = 20

// path adds what part of the segments to and from the forwarder did not get through as they were sent.
func (s *Source) path(r *Report, into *collector.Reading) {
	p := &r.Path
	if p.Connection == 0 {
		return
	}
	of := func(field uint8) key { return key{job: total, class: meta, field: field, connection: p.Connection} }
	all, ok := s.rates.Rate(of(segments), p.Sent+p.Received)
	bad, also := s.rates.Rate(of(lost), p.Resent+p.Disordered)
	if ok && also && all*s.rates.Seconds() >= fewSegments {
		into.Add(collector.PathLossRatio, min(1, bad/all))
	}
}

// samples appends one share's rates and the mean time its operations took as the programs saw it.
func (s *Source) samples(to []collector.Sample, job topology.JobID, v Share) []collector.Sample {
	for c, m := range [...]struct {
		op                   Op
		bytes, ops, duration collector.Metric
	}{
		read:  {v.Read, collector.ReadBytes, collector.ReadOps, collector.ClientRead},
		write: {v.Write, collector.WriteBytes, collector.WriteOps, collector.ClientWrite},
		meta:  {v.Meta, collector.MetricNone, collector.MetaOps, collector.ClientMeta},
	} {
		if m.bytes != collector.MetricNone {
			if perSec, ok := s.rates.Rate(key{job: job, class: class(c), field: bytes}, m.op.Bytes); ok {
				to = append(to, collector.Sample{Metric: m.bytes, Value: perSec})
			}
		}
		ops, known := s.rates.Rate(key{job: job, class: class(c), field: count}, m.op.Count)
		if known {
			to = append(to, collector.Sample{Metric: m.ops, Value: ops})
		}
		if ns, ok := s.rates.Rate(key{job: job, class: class(c), field: nanos}, m.op.Nanos); ok && known && ops > 0 {
			to = append(to, collector.Sample{Metric: m.duration, Value: ns / ops / 1e9})
		}
	}
	return to
}

// underWay appends how many operations of one share were under way in the mean of the second, and for how long the
// oldest has been. Where none was, the age is 0.
func (s *Source) underWay(to []collector.Sample, job topology.JobID, v Share) []collector.Sample {
	oldest, all, known := uint64(0), 0.0, true
	for c, op := range [...]Op{read: v.Read, write: v.Write, meta: v.Meta} {
		oldest = max(oldest, op.UnderWay.Oldest)
		ns, ok := s.rates.Rate(key{job: job, class: class(c), field: waited}, op.Nanos+op.UnderWay.Nanos)
		known = known && ok
		if all += ns / 1e9; ok && class(c) == meta {
			to = append(to, collector.Sample{Metric: collector.MetaInFlight, Value: ns / 1e9})
		}
	}
	if known {
		to = append(to, collector.Sample{Metric: collector.InFlight, Value: all})
	}
	return append(to, collector.Sample{Metric: collector.RequestAge, Value: float64(oldest) / 1e9})
}

// files appends which files a job uses.
func files(to []collector.Sample, v *Share) []collector.Sample {
	for _, d := range [...]struct {
		of           Files
		count, least collector.Metric
	}{{v.ReadFiles, collector.FilesRead, collector.LeastFileRead},
		{v.WrittenFiles, collector.FilesWritten, collector.LeastFileWritten}} {
		if d.of.Count > 0 {
			to = append(to, collector.Sample{Metric: d.count, Value: float64(d.of.Count)},
				collector.Sample{Metric: d.least, Value: float64(d.of.Least)})
		}
	}
	return to
}

// sum adds a report's operations up to reads, writes and metadata.
func sum(ops map[string]Op) Share {
	var s Share
	for name, o := range ops {
		to := &s.Meta
		switch name {
		case "read":
			to = &s.Read
		case "write":
			to = &s.Write
		}
		to.Count += o.Count
		to.Errors += o.Errors
		to.Bytes += o.Bytes
		to.Nanos += o.Nanos
		to.UnderWay.Count += o.UnderWay.Count
		to.UnderWay.Nanos += o.UnderWay.Nanos
		to.UnderWay.Oldest = max(to.UnderWay.Oldest, o.UnderWay.Oldest)
	}
	return s
}
