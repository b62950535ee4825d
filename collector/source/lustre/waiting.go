package lustre

import (
	"bytes"
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

// inflight is how many requests an import says are without an answer.
func inflight(s *Source, file string) (n float64, known bool) {
	text, err := s.read(file)
	if err != nil {
		return 0, false
	}
	_, rest, found := bytes.Cut(text, []byte("inflight:"))
	if !found {
		return 0, false
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	v, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 10, 32)
	s.fail(file, err)
	return float64(v), err == nil
}
