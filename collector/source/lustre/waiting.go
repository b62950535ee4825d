package lustre

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"fairway/collector"
)

// outstanding follows a target whose answers do not come.
type outstanding struct {
	since    time.Time // it has had requests without one being answered
	requests float64   // without an answer, at its newest look
}

// mostLooks is how many quiet targets' imports are read in a second, beside those that have requests without answers.
const mostLooks = 8

// reportWaiting reports the node's requests under way: their mean from the times of those that were answered, and of
// targets that answer nothing what their imports say.
func reportWaiting(s *Source, all []*target) {
	under, meta, age := 0.0, 0.0, time.Duration(0)
	known, metaKnown, looks := false, false, mostLooks
	for i := range all {
		t := all[(i+s.look)%len(all)]
		n, ok := t.inFlight()
		answered, counted := t.answered.Value()
		pings, _ := t.pings.Value()
		known = known || ok
		metaKnown = metaKnown || ok && t.metadata
		was := s.waiting[t.folder]
		switch {
		case counted && answered-pings > 0:
			if was != nil { // what ends after a long wait brings all of it: it was under way for this second alone
				n = min(n, was.requests+answered-pings)
			}
			delete(s.waiting, t.folder)
		case was != nil || looks > 0:
			if was == nil {
				looks--
			}
			waiting, there := inflight(s, t.folder+"/import")
			metaKnown = metaKnown || there && t.metadata
			if known = known || there; waiting == 0 {
				delete(s.waiting, t.folder)
				break
			}
			if was == nil {
				was = &outstanding{since: s.into.Now}
				s.waiting[t.folder] = was
			}
			was.requests, n = waiting, waiting
			age = max(age, s.into.Now.Sub(was.since))
		}
		if under += n; t.metadata {
			meta += n
		}
	}
	if s.look += mostLooks; known {
		s.into.Add(collector.InFlight, under)
		s.into.Add(collector.RequestAge, age.Seconds())
	}
	if metaKnown { // a node without metadata targets in sight has none that it knows of, not none that wait
		s.into.Add(collector.MetaInFlight, meta)
	}
}

// importsAtOnce is how many imports are looked at in a second: all of 256 targets before one idles (20 s).
const importsAtOnce = 16

// connection is what a target's import had when it was looked at last.
type connection struct {
	attempts uint64
	idle     bool
}

// reportReconnects counts the connections to targets that were lost in use and made anew: one that idled is.
func reportReconnects(s *Source, all []*target) {
	again, known := uint64(0), false
	for i := range min(importsAtOnce, len(all)) {
		folder := all[(s.imports+i)%len(all)].folder
		text, err := s.read(folder + "/import")
		if err != nil {
			continue
		}
		now := connection{idle: bytes.Contains(text, []byte("state: IDLE"))}
		var counted bool
		if now.attempts, counted = numberBehind(text, "connection_attempts:"); !counted {
			continue
		}
		known = true
		if was, ok := s.connections[folder]; ok && !was.idle && now.attempts > was.attempts {
			again += now.attempts - was.attempts
		}
		s.connections[folder] = now
	}
	s.imports += importsAtOnce
	if seconds := s.rates.Seconds(); seconds > 0 && known {
		s.into.Add(collector.Reconnects, float64(again)/seconds)
	}
}

// reportRecovery counts the server's targets that wait for their clients to come back after a restart.
func reportRecovery(s *Source) {
	targets, recovering := 0, 0
	for _, name := range append(s.files("obdfilter/*/recovery_status"), s.files("mdt/*/recovery_status")...) {
		if text, err := s.read(name); err == nil {
			targets++
			if bytes.HasPrefix(text, []byte("status: RECOVERING")) || bytes.HasPrefix(text, []byte("status: WAITING")) {
				recovering++
			}
		}
	}
	if targets > 0 {
		s.into.Add(collector.Recovering, float64(recovering))
	}
}

// numberBehind reads the number behind a name of an import.
func numberBehind(text []byte, name string) (n uint64, ok bool) {
	_, rest, _ := bytes.Cut(text, []byte(name))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 10, 64)
	return n, err == nil
}

// inflight is how many requests an import says are without an answer.
func inflight(s *Source, file string) (n float64, known bool) {
	text, err := s.read(file)
	if err != nil {
		return 0, false
	}
	v, known := numberBehind(text, "inflight:")
	if !known && bytes.Contains(text, []byte("inflight:")) {
		s.fail(file, errors.New("inflight: want a number"))
	}
	return float64(v), known
}
