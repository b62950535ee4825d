package lustre

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"fairway/collector"
	"fairway/collector/topology"
)

// maxTargets bounds the storage targets that a client reports in a second: those with the most requests.
const maxTargets = 256

// target is what a client asked of one storage or metadata target in the second; of each pair reads come first.
type target struct {
	id       topology.TargetID
	folder   string // of its files
	metadata bool
	bytes    [2]collector.Total
	ops      [2]collector.Total // requests answered
	took     [2]collector.Total // microseconds from their sending to their reply
	// all is that of all requests, ping that of pings: microseconds in a second are requests in flight. answered and
	// pings count them.
	all, ping, answered, pings collector.Total
}

// targets reads a client's side of each target: its requests, and how long their answers took from here. What of that a
// server sees is the server's (obdfilter, mdt).
func (s *Source) targets() {
	var all []*target
	for _, name := range append(s.files("osc/*/stats"), s.files("mdc/*/stats")...) {
		folder := path.Dir(name)
		metadata := path.Base(path.Dir(folder)) == "mdc"
		id, rest, ok := strings.Cut(path.Base(folder), map[bool]string{false: "-osc", true: "-mdc"}[metadata])
		if !ok || strings.HasPrefix(rest, "-MDT") {
			continue // a metadata server's own
		}
		t := &target{id: topology.TargetID(id), folder: folder, metadata: metadata}
		s.lines(name, func(st Stat) { s.countTarget(t, name, st) })
		all = append(all, t)
	}
	if s.ReportWaiting {
		reportWaiting(s, all)
	}
	reportReconnects(s, all)
	if over := len(all) - maxTargets; over > 0 {
		slices.SortStableFunc(all, func(a, b *target) int { return cmp.Compare(b.requests(), a.requests()) })
		all = all[:maxTargets]
	}
	for _, t := range all {
		if t.requests() > 0 {
			s.into.Targets = append(s.into.Targets, collector.TargetSamples{Target: t.id, Samples: t.samples()})
		}
	}
}

// inFlight is the mean number of requests on their way in the second. A request's whole time is counted when its
// answer comes: one that hangs shows nothing, and then more than a second holds.
func (t *target) inFlight() (n float64, known bool) {
	all, ok := t.all.Value()
	if !ok {
		return 0, false
	}
	ping, _ := t.ping.Value()
	return max(0, all-ping) * microsecond, true
}

func (s *Source) countTarget(t *target, file string, st Stat) {
	switch st.Name {
	case "req_waittime":
		s.addSum(&t.all, file, st)
		s.addSamples(&t.answered, file, st)
	case "obd_ping":
		s.addSum(&t.ping, file, st)
		s.addSamples(&t.pings, file, st)
	case "read_bytes":
		s.addSum(&t.bytes[0], file, st)
	case "write_bytes":
		s.addSum(&t.bytes[1], file, st)
	case "ost_read":
		s.addSamples(&t.ops[0], file, st)
		s.addSum(&t.took[0], file, st)
	case "ost_write":
		s.addSamples(&t.ops[1], file, st)
		s.addSum(&t.took[1], file, st)
	}
}

// requests a second that were answered, of a storage target those of data.
func (t *target) requests() float64 {
	if t.metadata {
		all, _ := t.answered.Value()
		pings, _ := t.pings.Value()
		return max(0, all-pings)
	}
	read, _ := t.ops[0].Value()
	write, _ := t.ops[1].Value()
	return read + write
}

func (t *target) samples() []collector.Sample {
	var r collector.Reading
	for i, m := range []struct{ bytes, ops, took collector.Metric }{
		{collector.ReadBytes, collector.ReadOps, collector.ClientRead},
		{collector.WriteBytes, collector.WriteOps, collector.ClientWrite},
	} {
		r.AddTotal(m.bytes, &t.bytes[i])
		r.AddTotal(m.ops, &t.ops[i])
		n, ok := t.ops[i].Value()
		if took, known := t.took[i].Value(); ok && known && n > 0 {
			r.Add(m.took, took/n*microsecond)
		}
	}
	n, ok := t.inFlight()
	if ok {
		r.Add(collector.InFlight, n)
	}
	if answered := t.requests(); ok && t.metadata && answered > 0 {
		r.Add(collector.MetaOps, answered)
		r.Add(collector.ClientMeta, n/answered)
	}
	return r.Samples
}
