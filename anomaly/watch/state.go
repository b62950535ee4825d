package watch

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"time"

	"fairway/collector/topology"
)

// The file of the detectors' state: stateMagic with its version, the gob of a savedState, and the CRC-32C of that.
const (
	stateName  = "fairway detectors"
	stateMagic = stateName + " 3\n"
	// mostState bounds what is read: 41,488 forwarders take about a tenth of it.
	mostState = 512 << 20
	// skew is how far in the future a state may have been saved: clocks are set back a little.
	skew = time.Minute
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Reasons why a saved state is not used. The detectors then begin anew.
var (
	ErrStateDamaged = errors.New("the saved state of the detectors is damaged")
	ErrStateNewer   = errors.New("the saved state of the detectors is of another version")
	ErrStateOld     = errors.New("the saved state of the detectors is too old")
)

// savedState is what outlives a restart. Interference shows itself again in seconds.
type savedState struct {
	SavedAt time.Time
	Tests   map[string][]byte // by the names of tests
	Nets    map[topology.NodeID][]string
	Alone   map[topology.NodeID]*[3]habitOfClient // clients that are slow by themselves
	Clock   map[topology.NodeID]bool
	Asked   asked
	Heard   map[topology.NodeID]int64 // a forwarder that fell silent before the restart still is
	Quiet   map[topology.NodeID]int64
	Rates   linkRates
	Cases   map[topology.NodeID]*explained
	Trend   savedTrend // a restart does not empty what people look at
}

// test is a detector that saves what it has learnt, and the evidence so far.
type test interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// testsOf are the detectors whose evidence lasts.
func testsOf(d *Detectors) map[string]test {
	return map[string]test{"forwarders": d.slow, "clients": d.byClient, "links": d.clients.links.test,
		"targets": d.targets, "back ends": d.backEnds, "routers": d.routers.group,
		"forwarders by their targets": d.clients.sights.forwarders}
}

// State returns what the detectors have learnt, and the evidence so far, for LoadState after a restart.
func (d *Detectors) State(now time.Time) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := savedState{SavedAt: now.UTC(), Tests: map[string][]byte{}, Nets: d.routers.nets,
		Alone: d.clients.slow.of, Clock: d.ownClock, Asked: d.clients.asked,
		Heard: d.silence.last, Quiet: d.silence.quiet, Rates: d.silence.rates, Cases: d.silence.causes.cases,
		Trend: d.trend.save()}
	var err error
	for name, t := range testsOf(d) {
		saved, bad := t.MarshalBinary()
		s.Tests[name], err = saved, errors.Join(err, bad)
	}
	b := bytes.NewBufferString(stateMagic)
	if err = errors.Join(err, gob.NewEncoder(b).Encode(s)); err != nil {
		return nil, fmt.Errorf("BUG: encode the detectors' state: %w", err)
	}
	return binary.LittleEndian.AppendUint32(b.Bytes(), crc32.Checksum(b.Bytes()[len(stateMagic):], castagnoli)), nil
}

// LoadState continues from a saved state that is not older than maxAge. On an error the detectors are as they were.
// Errors: ErrStateDamaged, ErrStateNewer, ErrStateOld, and those of from.
func (d *Detectors) LoadState(from io.Reader, now time.Time, maxAge time.Duration) (age time.Duration, err error) {
	s, err := readState(from)
	if err != nil {
		return 0, err
	}
	age = now.Sub(s.SavedAt)
	if age > maxAge || age < -skew {
		return age, fmt.Errorf("%w: it was saved at %s, %s ago; at most %s may pass",
			ErrStateOld, s.SavedAt.Format(time.RFC3339), age.Round(time.Second), maxAge)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	anew := NewDetectors(d.board, d.set)
	for name, t := range testsOf(anew) {
		if err := t.UnmarshalBinary(s.Tests[name]); err != nil {
			return age, fmt.Errorf("%w: %w", ErrStateDamaged, err)
		}
	}
	d.slow, d.byClient, d.targets, d.backEnds = anew.slow, anew.byClient, anew.targets, anew.backEnds
	d.routers, d.clients.links, d.clients.sights = anew.routers, anew.clients.links, anew.clients.sights
	maps.Copy(d.routers.nets, s.Nets)
	d.clients.slow.begin()
	maps.Copy(d.clients.slow.of, s.Alone)
	maps.Copy(d.ownClock, s.Clock)
	maps.Copy(d.clients.asked, s.Asked)
	for n, at := range s.Heard {
		if s.SavedAt.Unix()-at <= silentAfter {
			at = now.Unix() // no forwarder could report while the daemon was down
		}
		d.silence.last[n] = at
	}
	maps.Copy(d.silence.quiet, s.Quiet)
	maps.Copy(d.silence.rates, s.Rates)
	for n, of := range s.Cases {
		of.Seen = now.Unix() // nobody could doubt it while the daemon was down
		d.silence.causes.cases[n] = of
	}
	d.trend.load(s.Trend)
	d.silence.order = slices.Sorted(maps.Keys(d.silence.last))
	return age, nil
}

func readState(from io.Reader) (s savedState, err error) {
	b, err := io.ReadAll(io.LimitReader(from, mostState+1))
	if err != nil {
		return s, err
	}
	body, known := bytes.CutPrefix(b, []byte(stateMagic))
	switch at := len(body) - crc32.Size; {
	case !known && bytes.HasPrefix(b, []byte(stateName)):
		return s, fmt.Errorf("%w: it does not begin with %q, as this one's do", ErrStateNewer, stateMagic)
	case !known || at < 0 || len(b) > mostState ||
		crc32.Checksum(body[:at], castagnoli) != binary.LittleEndian.Uint32(body[at:]):
		return s, fmt.Errorf("%w: %d bytes that do not begin with %q, or whose checksum does not match",
			ErrStateDamaged, len(b), stateMagic)
	}
	if err := gob.NewDecoder(bytes.NewReader(body)).Decode(&s); err != nil {
		return s, fmt.Errorf("%w: %w", ErrStateDamaged, err)
	}
	return s, nil
}
